"""The verbs of the API on any resource: one set of routes for built-in kinds and custom ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from aiohttp import web

from nodewright.controlplane.app import options
from nodewright.controlplane.app.authentication import User
from nodewright.controlplane.app.bodies import Body, decode, decode_patch, in_turns, media_type, read_bytes
from nodewright.controlplane.app.config import Limits
from nodewright.controlplane.app.discovery import subresource_verbs, verbs_of
from nodewright.controlplane.app.negotiation import PLAIN, wanted_object
from nodewright.controlplane.app.rendering import View, answer
from nodewright.controlplane.app.requests import Target, dry_run, flag, number, user_agent
from nodewright.controlplane.app.reviews import Reviewer
from nodewright.controlplane.app.streams import LiveWatches, Pace, Stream, Streamer
from nodewright.controlplane.store import Store
from nodewright.controlplane.values import ApiError, NoSuchPathError, Obj, PatchRequest, Resource, WatchOptions, Written

_GATEWAY_TIMEOUT = 504


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for a resource: what was asked, by whom, and how they want to see the answer."""

    request: web.BaseRequest
    target: Target
    resource: Resource
    user: User
    view: View

    @property
    def warnings(self) -> tuple[str, ...]:
        """Give the warnings that come with every answer about this resource."""
        resource = self.resource
        return (f"{resource.api_version} {resource.kind} is deprecated",) if resource.deprecated else ()


@dataclass(frozen=True, slots=True)
class Rooms:
    """The parts of the plane that the verbs need."""

    store: Store
    streamer: Streamer
    live: LiveWatches
    reviewer: Reviewer
    clock: Callable[[], datetime]
    limits: Limits


class Verbs:
    """Serves requests for resources. Every method raises ApiError for what it refuses."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._store = rooms.store
        self._serve = {
            "get": self.get,
            "list": self.list,
            "watch": self.watch,
            "create": self.create,
            "update": self.update,
            "patch": self.patch,
            "delete": self.delete,
            "deletecollection": self.delete_collection,
        }

    async def serve(
        self, request: web.BaseRequest, target: Target, resource: Resource, user: User
    ) -> web.StreamResponse:
        """Answer a request for a resource that exists."""
        _check_scope(target, resource)
        _check_subresource(target, resource)
        serve = self._serve.get(target.verb)
        if serve is None or not _fits(target, resource):
            raise ApiError.method_not_allowed(resource, target.verb or request.method)
        wanted = wanted_object(request.headers.get("Accept", ""))
        include = request.query.get("includeObject", "Metadata")
        return await serve(Ask(request, target, resource, user, View(wanted, resource, include, self._rooms.clock)))

    async def get(self, ask: Ask) -> web.StreamResponse:
        """GET one object, or its scale."""
        target = ask.target
        if target.subresource == "scale":
            return self._answer(ask, self._store.get_scale(ask.resource, target.namespace, target.name))
        return self._answer(ask, self._store.get(ask.resource, target.namespace, target.name))

    async def list(self, ask: Ask) -> web.StreamResponse:
        """GET a collection."""
        result = self._store.list(ask.resource, ask.target.namespace, options.list_options(ask.request.query))
        return answer(ask.view.many(result), ask.view.wanted, warnings=ask.warnings)

    async def watch(self, ask: Ask) -> web.StreamResponse:
        """GET a collection's changes.

        A resourceVersion that is too old is told by an ERROR event in a stream with status 200, as by
        kube-apiserver's watch cache; one of the future (the data folder was exchanged) likewise sends the client
        back to a LIST.
        """
        limits = self._rooms.limits
        if len(self._rooms.live) >= limits.watches:
            raise ApiError.too_many_requests("too many watches, please try again later", 5)
        query = ask.request.query
        asked = options.watch_options(query)
        seconds = number(query, "timeoutSeconds")
        bookmarks = limits.bookmark_seconds if flag(query, "allowWatchBookmarks") else None
        longest = limits.watch_seconds
        pace = Pace(float(min(seconds, longest) if seconds and seconds > 0 else longest), bookmarks)
        error: ApiError | None = None
        try:
            watch = self._store.watch(ask.resource, ask.target.namespace, asked)
        except ApiError as refused:
            if refused.code not in (410, _GATEWAY_TIMEOUT):
                raise
            error = refused if refused.code != _GATEWAY_TIMEOUT else ApiError.expired(refused.message)
            unchanged = WatchOptions(resource_version="", send_initial_events=False)
            watch = self._store.watch(ask.resource, ask.target.namespace, unchanged)
        stream = Stream(watch, ask.view, pace)
        if error is not None:
            stream.end(error)
        return await self._rooms.streamer.serve(ask.request, stream)

    async def create(self, ask: Ask) -> web.StreamResponse:
        """POST an object to a collection, or to a subresource that takes one."""
        target, resource, store = ask.target, ask.resource, self._store
        body = await self._body(ask)
        if target.subresource == "eviction":
            dry = dry_run(ask.request.query.getall("dryRun", []), "CreateOptions")
            return answer(store.evict(target.namespace, target.name, body.content, dry_run=dry), PLAIN, 201)
        if target.subresource == "binding":
            return answer(store.bind(target.namespace, target.name, body.content), PLAIN, 201)
        if target.subresource == "token":
            account = store.get(resource, target.namespace, target.name)
            return answer(self._rooms.reviewer.issue(account, body.content), PLAIN, 201)
        asked = options.write_options(ask.request.query, "create", user_agent(ask.request))
        doubled = _doubled(body, resource, asked.field_validation)
        written = store.create(resource, target.namespace, body.content, asked)
        return self._written(ask, written, doubled, 201)

    async def update(self, ask: Ask) -> web.StreamResponse:
        """PUT an object, or one of its subresources."""
        target = ask.target
        body = await self._body(ask)
        asked = options.write_options(ask.request.query, "update", user_agent(ask.request))
        doubled = _doubled(body, ask.resource, asked.field_validation)
        written = self._store.update(
            ask.resource, target.namespace, target.name, body.content, asked, subresource=target.subresource
        )
        return self._written(ask, written, doubled, 201 if written.created else 200)

    async def patch(self, ask: Ask) -> web.StreamResponse:
        """PATCH an object, or one of its subresources."""
        target, query = ask.target, ask.request.query
        content = await read_bytes(ask.request, self._rooms.limits)
        kind = media_type(ask.request)
        read = partial(decode_patch, content, kind, builtin=ask.resource.builtin)
        patch_type, body = await in_turns(read, content, kind)
        asked = options.write_options(query, "patch", user_agent(ask.request))
        force = options.apply_force(query, is_apply=patch_type == "apply")
        doubled = _doubled(body, ask.resource, asked.field_validation)
        wish = PatchRequest(patch_type, body.content, asked, force)
        written = self._store.patch(ask.resource, target.namespace, target.name, wish, subresource=target.subresource)
        return self._written(ask, written, doubled, 201 if written.created else 200)

    async def delete(self, ask: Ask) -> web.StreamResponse:
        """DELETE one object."""
        target = ask.target
        asked = options.delete_options(ask.request.query, await self._optional_body(ask))
        return self._answer(ask, self._store.delete(ask.resource, target.namespace, target.name, asked))

    async def delete_collection(self, ask: Ask) -> web.StreamResponse:
        """DELETE all selected objects of a collection."""
        body = await self._optional_body(ask)
        query = ask.request.query
        result = self._store.delete_collection(
            ask.resource, ask.target.namespace, options.list_options(query), options.delete_options(query, body)
        )
        return answer(ask.view.many(result), ask.view.wanted, warnings=ask.warnings)

    async def _body(self, ask: Ask) -> Body:
        content = await read_bytes(ask.request, self._rooms.limits)
        kind = media_type(ask.request)
        body = await in_turns(partial(decode, content, kind), content, kind)
        if ask.resource.builtin and not ask.target.subresource:
            # A typed client may leave the kind out where the URL says it (runtime.Decoder's defaults).
            body.content.setdefault("kind", ask.resource.kind)
            body.content.setdefault("apiVersion", ask.resource.api_version)
        return body

    async def _optional_body(self, ask: Ask) -> Obj | None:
        content = await read_bytes(ask.request, self._rooms.limits)
        if not content:
            return None
        kind = media_type(ask.request)
        body = await in_turns(partial(decode, content, kind), content, kind)
        decoded: Obj = body.content
        return decoded

    def _answer(self, ask: Ask, obj: Obj) -> web.Response:
        return answer(ask.view.one(obj), ask.view.wanted, warnings=ask.warnings)

    def _written(self, ask: Ask, written: Written, doubled: Sequence[str], status: int) -> web.Response:
        warnings = (*ask.warnings, *doubled, *written.warnings)
        return answer(ask.view.one(written.obj), ask.view.wanted, status, warnings)


def _fits(target: Target, resource: Resource) -> bool:
    """Say whether the verb goes with what the path names: a collection, an object or a part of one."""
    if target.subresource:
        return True
    if target.verb == "create":
        return not target.name
    return target.verb in verbs_of(resource) and (bool(target.name) or target.verb not in ("update", "patch"))


def _check_scope(target: Target, resource: Resource) -> None:
    """Refuse paths that no resource of this scope has."""
    if target.namespace and not resource.namespaced:
        raise ApiError.page_not_found()
    if resource.namespaced and not target.namespace:
        if target.name:
            raise ApiError.page_not_found()
        if target.verb == "create":
            raise ApiError.method_not_allowed(resource, target.verb) if resource.builtin else NoSuchPathError()


def _check_subresource(target: Target, resource: Resource) -> None:
    """Refuse subresources that are not there (logs and exec among them), and verbs that one doesn't take."""
    if not target.subresource:
        return
    if target.subresource not in resource.subresources or target.rest:
        raise ApiError.page_not_found()
    if target.verb not in subresource_verbs(target.subresource):
        raise ApiError.method_not_allowed(resource, target.verb)


def _doubled(body: Body, resource: Resource, validation: str) -> tuple[str, ...]:
    """Give the warnings for fields that came twice. Raises ApiError 400 if validation is strict."""
    if not body.doubled or validation == "Ignore":
        return ()
    found = tuple(f'duplicate field "{path}"' for path in body.doubled)
    if validation == "Strict":
        what = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        raise ApiError.bad_request(f"{what}: strict decoding error: {', '.join(found)}")
    return found
