"""What is there? Get, list with selectors and pages, and watch."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from nodewright.apiserver.store.collection import Collection, Key
from nodewright.apiserver.store.registry import collection_name
from nodewright.apiserver.store.selection import Selection, key_of, select
from nodewright.apiserver.store.state import State
from nodewright.apiserver.store.versions import as_served
from nodewright.apiserver.store.watching import Watch, initial_events_end
from nodewright.apiserver.values import (
    ApiError,
    Cause,
    ListOptions,
    ListResult,
    Obj,
    Resource,
    WatchEvent,
    WatchOptions,
)

_CONTINUE_VERSION = "meta.k8s.io/v1"


class Reader:
    """Answers reads from the state. All objects it gives are the stored ones: frozen."""

    def __init__(self, state: State) -> None:
        self._state = state

    def get(self, resource: Resource, namespace: str, name: str) -> Obj:
        """Give one object. Raises ApiError 404."""
        found = self._collection(resource).get(namespace if resource.namespaced else "", name)
        if found is None:
            raise ApiError.not_found(resource, name)
        return as_served(resource, found)

    def list(self, resource: Resource, namespace: str, options: ListOptions) -> ListResult:
        """Give the selected objects by namespace and name; `namespace` "" is all namespaces.

        Pages of one list show the state at the first page's resourceVersion.
        Raises ApiError 400 (selector, continue token), 410 (that state is no longer known), 504 (it is to come).
        """
        selection = select(resource, namespace, options.label_selector, options.field_selector)
        collection = self._collection(resource)
        revision, start = self._list_from(collection, options)
        candidates = _candidates(collection, selection, start, None if revision == self._state.revision else revision)
        if options.limit <= 0:
            items = [as_served(resource, obj) for obj in candidates if selection.accepts(obj)]
            return ListResult(items, str(revision))
        chosen = (obj for obj in candidates if selection.accepts(obj))
        page = list(islice(chosen, options.limit))
        items = [as_served(resource, obj) for obj in page]
        if next(chosen, None) is None:
            return ListResult(items, str(revision))
        remaining = 1 + sum(1 for _ in chosen) if selection.test is None else None
        return ListResult(items, str(revision), _continue_token(revision, key_of(page[-1])), remaining)

    def watch(self, resource: Resource, namespace: str, options: WatchOptions) -> Watch:
        """Start a watch.

        Raises ApiError 400 (selector, resourceVersion), 410 (too old), 504 (resourceVersion of the future).
        """
        selection = select(resource, namespace, options.label_selector, options.field_selector)
        collection = self._collection(resource)
        asked = _parse_revision(options.resource_version)
        self._refuse_future(asked)
        from_now = asked == 0 or options.send_initial_events is True
        if not from_now and asked < collection.log.floor:
            raise _too_old(asked, collection)
        position = collection.log.end if from_now else collection.log.position_after(asked)
        watch = Watch(resource, collection, selection, position)
        if from_now and options.send_initial_events is not False:
            watch.begin_with(self._initial_events(resource, collection, selection, options))
        return watch

    def _initial_events(
        self, resource: Resource, collection: Collection, selection: Selection, options: WatchOptions
    ) -> Sequence[WatchEvent]:
        events = [
            WatchEvent("ADDED", as_served(resource, obj), obj["metadata"]["resourceVersion"])
            for obj in _candidates(collection, selection, None, None)
            if selection.accepts(obj)
        ]
        if options.send_initial_events:
            events.append(initial_events_end(resource, self._state.revision))
        return events

    def _list_from(self, collection: Collection, options: ListOptions) -> tuple[int, Key | None]:
        match, asked = options.resource_version_match, options.resource_version
        _check_match(match, asked, bool(options.continue_))
        if options.continue_ and asked not in ("", "0"):
            raise ApiError.bad_request("specifying resource version is not allowed when using continue")
        if options.continue_:
            revision, start = _parse_continue(options.continue_)
        else:
            revision, start = _parse_revision(asked), None
        self._refuse_future(revision)
        # Without "Exact" a resourceVersion is a lower bound, and what is there now satisfies any.
        if not options.continue_ and match != "Exact":
            return self._state.revision, start
        if revision < collection.log.floor:
            raise _too_old(revision, collection) if start is None else _page_too_old()
        return revision, start

    def _refuse_future(self, revision: int) -> None:
        if revision > self._state.revision:
            message = f"Too large resource version: {revision}, current: {self._state.revision}"
            cause = Cause("", "ResourceVersionTooLarge", "Too large resource version")
            raise ApiError(
                504,
                "Timeout",
                f"Timeout: {message}",
                {"causes": [{"reason": cause.reason, "message": cause.message}]},
                retry_after=1,
            )

    def _collection(self, resource: Resource) -> Collection:
        return self._state.collection(collection_name(resource))


def _candidates(collection: Collection, selection: Selection, start: Key | None, revision: int | None) -> Iterator[Obj]:
    """Give the objects that may be selected, in order, after `start`, as they were at `revision` (None: are now)."""
    namespace = selection.namespace
    if revision is not None:
        past = collection.at(revision, namespace)
        return (obj for key, obj in past.items() if start is None or key > start)
    if start is not None:
        return (obj for _, obj in collection.after(namespace, start))
    return iter(_now(collection, selection))


def _now(collection: Collection, selection: Selection) -> Iterable[Obj]:
    if selection.name and selection.namespace:
        found = collection.get(selection.namespace, selection.name)
        return () if found is None else (found,)
    return collection.scan(selection.namespace)


def _too_old(revision: int, collection: Collection) -> ApiError:
    return ApiError.expired(f"too old resource version: {revision} ({collection.log.floor})")


def _page_too_old() -> ApiError:
    return ApiError.expired(
        "The provided continue parameter is too old to display a consistent list result. "
        "You can start a new list without the continue parameter."
    )


def _check_match(match: str, revision: str, continues: bool) -> None:
    """Refuse what ValidateListOptions refuses: ApiError 422 for ListOptions, naming the option."""
    cause = None
    if match and continues:
        cause = ("FieldValueForbidden", "Forbidden: resourceVersionMatch is forbidden for continue")
    elif match and not revision:
        text = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        cause = ("FieldValueForbidden", text)
    elif match not in ("", "Exact", "NotOlderThan"):
        text = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
        cause = ("FieldValueNotSupported", text)
    elif match == "Exact" and revision == "0":
        text = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        cause = ("FieldValueForbidden", text)
    if cause is not None:
        raise ApiError.invalid("ListOptions.meta.k8s.io", "", [Cause("resourceVersionMatch", *cause)])


def _parse_revision(text: str) -> int:
    if text in ("", "0"):
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise ApiError.bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": invalid syntax'
        )
    return int(text)


def _continue_token(revision: int, last: Key) -> str:
    token = {"v": _CONTINUE_VERSION, "rv": revision, "start": f"{last[0]}/{last[1]}"}
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")


def _parse_continue(text: str) -> tuple[int, Key]:
    try:
        token = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars="-_", validate=True))
        namespace, slash, name = token["start"].partition("/")
        revision = token["rv"]
        if token["v"] != _CONTINUE_VERSION or type(revision) is not int or revision <= 0 or not slash:
            raise ValueError(text)
    except (binascii.Error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ApiError.bad_request(f"invalid continue token: continue key is not valid: {error}") from error
    return revision, (namespace, name)
