"""The entry of every request: authentication, routing, planned faults, and the handler."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from aiohttp import web

from nodewright.apiserver.app.authentication import ANONYMOUS, Authenticator, User
from nodewright.apiserver.app.authorization import READS, authorize, authorize_snapshot
from nodewright.apiserver.app.bodies import decode, media_type, read_bytes
from nodewright.apiserver.app.commits import Commits
from nodewright.apiserver.app.config import Limits
from nodewright.apiserver.app.documents import Documents
from nodewright.apiserver.app.faults import Faults
from nodewright.apiserver.app.rendering import answer, refusal
from nodewright.apiserver.app.requests import Target, target_of, user_agent
from nodewright.apiserver.app.reviews import Reviewer, find_review
from nodewright.apiserver.app.snapshots import PATH, Snapshots
from nodewright.apiserver.app.stats import RequestKey, Stats
from nodewright.apiserver.app.verbs import Verbs
from nodewright.apiserver.store import Store
from nodewright.apiserver.values import ApiError, NoSuchPathError, Resource

_LOG = logging.getLogger("nodewright.apiserver")


_CLUSTER_INFO = Target("get", "", "v1", "configmaps", "kube-public", "cluster-info")


@dataclass(frozen=True, slots=True)
class Parts:
    """What the door leads to."""

    store: Store
    commits: Commits
    authenticator: Authenticator
    reviewer: Reviewer
    verbs: Verbs
    documents: Documents
    stats: Stats
    faults: Faults
    limits: Limits
    anonymous_cluster_info: bool = False


class Front:
    """The handler of aiohttp's low-level server: one function for all paths, since the paths are data."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._in_flight = 0

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer any request; whatever goes wrong is answered as a metav1.Status."""
        try:
            response = await self._admit(request)
        except ApiError as error:
            response = refusal(error)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:
            _LOG.exception("%s %s failed", request.method, ascii(request.path))
            response = refusal(ApiError.internal("the server failed on this request; its log says why"))
        await self._send(request, response)
        return response

    async def _send(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        """Send an answer to a client that has a bounded time to read it; a watch has sent all of its own already."""
        if response.prepared:
            return
        try:
            async with asyncio.timeout(self._parts.limits.answer_seconds):
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:
            pass  # the client is gone, as aiohttp will find too

    async def _admit(self, request: web.BaseRequest) -> web.StreamResponse:
        if (public := self._parts.documents.public(request)) is not None:
            return public
        user = self._parts.authenticator.user(request)
        target = target_of(request.method, request.path, request.query)
        if user is None or (user is ANONYMOUS and not self._is_public(target)):
            raise ApiError.unauthorized()
        if target is None:
            return await self._serve_document(request, user)
        if target.verb == "watch":
            return await self._serve(request, target, user)
        if self._in_flight >= self._parts.limits.requests_in_flight:
            raise ApiError.too_many_requests("too many requests, please try again later", 1)
        self._in_flight += 1
        try:
            return await self._serve(request, target, user)
        finally:
            self._in_flight -= 1

    def _is_public(self, target: Target | None) -> bool:
        """Say whether anybody may ask this: kubeadm's token discovery reads cluster-info before it trusts anybody."""
        return self._parts.anonymous_cluster_info and target == _CLUSTER_INFO

    async def _serve_document(self, request: web.BaseRequest, user: User) -> web.StreamResponse:
        """Serve a path that names no resource."""
        if request.path == PATH and request.method == "GET":
            authorize_snapshot(user)
            return await Snapshots(self._parts.store, self._parts.commits).serve()
        return self._parts.documents.serve(request)

    async def _serve(self, request: web.BaseRequest, target: Target, user: User) -> web.StreamResponse:
        parts = self._parts
        resource = parts.store.resources.find(target.group, target.version, target.plural)
        named = resource or self._review_named(target)
        authorize(user, target, named)
        key = RequestKey(user_agent(request), target.verb, named.group_resource, target.subresource)
        parts.stats.record(key)
        hang_up = await self._inject_fault(key, target.name) if parts.faults.active else False
        if resource is None:
            response: web.StreamResponse = await self._review(request, target, named, user)
        elif target.verb in READS:
            response = await self._read(request, target, resource, user)
        else:
            parts.commits.check_writable()
            response = await parts.verbs.serve(request, target, resource, user)
            await parts.commits.settled()
        if hang_up and request.transport is not None:
            request.transport.abort()
        return response

    def _review_named(self, target: Target) -> Resource:
        """Give the kind of review of this path. Raises ApiError 404 if it is none."""
        review = find_review(target.group, target.version, target.plural)
        if review is None:
            known = any(r.builtin and r.group == target.group for r in self._parts.store.resources.all())
            raise ApiError.page_not_found() if known else NoSuchPathError()
        return review

    async def _read(
        self, request: web.BaseRequest, target: Target, resource: Resource, user: User
    ) -> web.StreamResponse:
        """Serve a read. What it saw of a write that could not be written down is undone: it then looks again."""
        response = await self._parts.verbs.serve(request, target, resource, user)
        if target.verb != "watch":
            try:
                await self._parts.commits.settled()
            except ApiError:
                response = await self._parts.verbs.serve(request, target, resource, user)
        return response

    async def _inject_fault(self, key: RequestKey, name: str) -> bool:
        """Let planned faults happen; say whether the answer is to be lost."""
        verdict = self._parts.faults.judge(key, name)
        if verdict.delay_seconds:
            await asyncio.sleep(verdict.delay_seconds)
        if verdict.error is not None:
            raise verdict.error
        return verdict.lose_answer

    async def _review(self, request: web.BaseRequest, target: Target, resource: Resource, user: User) -> web.Response:
        if target.verb != "create" or target.name:
            raise ApiError.method_not_allowed(resource, target.verb)
        content = await read_bytes(request, self._parts.limits)
        body = decode(content, media_type(request)).content
        return answer(self._parts.reviewer.answer(resource, body, user), status=201)
