"""The verbs of the API on any resource: one set of routes for built-in kinds and custom ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from aiohttp import web

from nodewright.apiserver.app import options
from nodewright.apiserver.app.authentication import User
from nodewright.apiserver.app.bodies import Body, decode, decode_patch, media_type, off_the_loop, read_bytes
from nodewright.apiserver.app.config import Limits
from nodewright.apiserver.app.discovery import subresource_verbs, verbs_of
from nodewright.apiserver.app.negotiation import PLAIN, wanted_object
from nodewright.apiserver.app.rendering import View, answer
from nodewright.apiserver.app.requests import Target, dry_run, flag, number, user_agent
from nodewright.apiserver.app.reviews import Reviewer
from nodewright.apiserver.app.streams import LiveWatches, Pace, Stream, Streamer
from nodewright.apiserver.store import Store
from nodewright.apiserver.values import ApiError, NoSuchPathError, Obj, PatchRequest, Resource, WatchOptions, Written

_GATEWAY_TIMEOUT = 504


@dataclass(frozen=True, slots=True)
class RequestContext:
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
class Layers:
    """The parts of the plane that the verbs need."""

    store: Store
    streamer: Streamer
    live: LiveWatches
    reviewer: Reviewer
    clock: Callable[[], datetime]
    limits: Limits


class Verbs:
    """Serves requests for resources. Every method raises ApiError for what it refuses."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        self._store = layers.store
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
        return await serve(
            RequestContext(request, target, resource, user, View(wanted, resource, include, self._layers.clock))
        )

    async def get(self, context: RequestContext) -> web.StreamResponse:
        """GET one object, or its scale."""
        target = context.target
        if target.subresource == "scale":
            return self._answer(context, self._store.get_scale(context.resource, target.namespace, target.name))
        return self._answer(context, self._store.get(context.resource, target.namespace, target.name))

    async def list(self, context: RequestContext) -> web.StreamResponse:
        """GET a collection."""
        result = self._store.list(
            context.resource, context.target.namespace, options.list_options(context.request.query)
        )
        return answer(context.view.many(result), context.view.wanted, warnings=context.warnings)

    async def watch(self, context: RequestContext) -> web.StreamResponse:
        """GET a collection's changes.

        A resourceVersion that is too old ends in an ERROR event in a stream with status 200, as in
        kube-apiserver's watch cache; one of the future (the data folder was exchanged) likewise sends the client
        back to a LIST.
        """
        limits = self._layers.limits
        if len(self._layers.live) >= limits.watches:
            raise ApiError.too_many_requests("too many watches, please try again later", 5)
        query = context.request.query
        asked = options.watch_options(query)
        seconds = number(query, "timeoutSeconds")
        bookmarks = limits.bookmark_seconds if flag(query, "allowWatchBookmarks") else None
        longest = limits.watch_seconds
        pace = Pace(float(min(seconds, longest) if seconds and seconds > 0 else longest), bookmarks)
        error: ApiError | None = None
        try:
            watch = self._store.watch(context.resource, context.target.namespace, asked)
        except ApiError as refused:
            if refused.code not in (410, _GATEWAY_TIMEOUT):
                raise
            error = refused if refused.code != _GATEWAY_TIMEOUT else ApiError.expired(refused.message)
            unchanged = WatchOptions(resource_version="", send_initial_events=False)
            watch = self._store.watch(context.resource, context.target.namespace, unchanged)
        stream = Stream(watch, context.view, pace)
        if error is not None:
            stream.end(error)
        return await self._layers.streamer.serve(context.request, stream)

    async def create(self, context: RequestContext) -> web.StreamResponse:
        """POST an object to a collection, or to a subresource that takes one."""
        target, resource, store = context.target, context.resource, self._store
        body = await self._body(context)
        if target.subresource == "eviction":
            dry = dry_run(context.request.query.getall("dryRun", []), "CreateOptions")
            return answer(store.evict(target.namespace, target.name, body.content, dry_run=dry), PLAIN, 201)
        if target.subresource == "binding":
            return answer(store.bind(target.namespace, target.name, body.content), PLAIN, 201)
        if target.subresource == "token":
            account = store.get(resource, target.namespace, target.name)
            return answer(self._layers.reviewer.issue(account, body.content), PLAIN, 201)
        asked = options.write_options(context.request.query, "create", user_agent(context.request))
        duplicates = _duplicates(body, resource, asked.field_validation)
        written = store.create(resource, target.namespace, body.content, asked)
        return self._written(context, written, duplicates, 201)

    async def update(self, context: RequestContext) -> web.StreamResponse:
        """PUT an object, or one of its subresources."""
        target = context.target
        body = await self._body(context)
        asked = options.write_options(context.request.query, "update", user_agent(context.request))
        duplicates = _duplicates(body, context.resource, asked.field_validation)
        written = self._store.update(
            context.resource, target.namespace, target.name, body.content, asked, subresource=target.subresource
        )
        return self._written(context, written, duplicates, 201 if written.created else 200)

    async def patch(self, context: RequestContext) -> web.StreamResponse:
        """PATCH an object, or one of its subresources."""
        target, query = context.target, context.request.query
        content = await read_bytes(context.request, self._layers.limits)
        kind = media_type(context.request)
        read = partial(decode_patch, content, kind, builtin=context.resource.builtin)
        patch_type, body = await off_the_loop(read, content, kind)
        asked = options.write_options(query, "patch", user_agent(context.request))
        force = options.apply_force(query, is_apply=patch_type == "apply")
        duplicates = _duplicates(body, context.resource, asked.field_validation)
        desired = PatchRequest(patch_type, body.content, asked, force)
        written = self._store.patch(
            context.resource, target.namespace, target.name, desired, subresource=target.subresource
        )
        return self._written(context, written, duplicates, 201 if written.created else 200)

    async def delete(self, context: RequestContext) -> web.StreamResponse:
        """DELETE one object."""
        target = context.target
        asked = options.delete_options(context.request.query, await self._optional_body(context))
        return self._answer(context, self._store.delete(context.resource, target.namespace, target.name, asked))

    async def delete_collection(self, context: RequestContext) -> web.StreamResponse:
        """DELETE all selected objects of a collection."""
        body = await self._optional_body(context)
        query = context.request.query
        result = self._store.delete_collection(
            context.resource, context.target.namespace, options.list_options(query), options.delete_options(query, body)
        )
        return answer(context.view.many(result), context.view.wanted, warnings=context.warnings)

    async def _body(self, context: RequestContext) -> Body:
        content = await read_bytes(context.request, self._layers.limits)
        kind = media_type(context.request)
        body = await off_the_loop(partial(decode, content, kind), content, kind)
        if context.resource.builtin and not context.target.subresource:
            # A typed client may leave the kind out where the URL says it (runtime.Decoder's defaults).
            body.content.setdefault("kind", context.resource.kind)
            body.content.setdefault("apiVersion", context.resource.api_version)
        return body

    async def _optional_body(self, context: RequestContext) -> Obj | None:
        content = await read_bytes(context.request, self._layers.limits)
        if not content:
            return None
        kind = media_type(context.request)
        body = await off_the_loop(partial(decode, content, kind), content, kind)
        decoded: Obj = body.content
        return decoded

    def _answer(self, context: RequestContext, obj: Obj) -> web.Response:
        return answer(context.view.one(obj), context.view.wanted, warnings=context.warnings)

    def _written(
        self, context: RequestContext, written: Written, duplicates: Sequence[str], status: int
    ) -> web.Response:
        warnings = (*context.warnings, *duplicates, *written.warnings)
        return answer(context.view.one(written.obj), context.view.wanted, status, warnings)


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


def _duplicates(body: Body, resource: Resource, validation: str) -> tuple[str, ...]:
    """Give the warnings for fields that came twice. Raises ApiError 400 if validation is strict."""
    if not body.duplicates or validation == "Ignore":
        return ()
    found = tuple(f'duplicate field "{path}"' for path in body.duplicates)
    if validation == "Strict":
        what = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        raise ApiError.bad_request(f"{what}: strict decoding error: {', '.join(found)}")
    return found
