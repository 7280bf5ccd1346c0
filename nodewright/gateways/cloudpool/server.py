"""The cloudpool REST API over MachineDeployments and MachineSets: every pool below ``/cloudpools/NAME``, an only one at
the root too."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import orjson
import structlog
from aiohttp import web

from controllers.cloudpool.messages import (
    Membership,
    MessageError,
    ServiceState,
    decoded,
    desired_size_of,
    dismissal_of,
    machine_id_of,
    pool_message,
    size_message,
    typed,
)
from controllers.cloudpool.pool import READS
from controllers.kernel.refs import Key, Kind
from nodewright.gateways.cloudpool import listener as guarding
from nodewright.gateways.cloudpool.instances import Instance, InstanceError, Instances, read_config
from nodewright.gateways.cloudpool.listener import ROUTE, ListenerOptions, RequestGuard, read_body
from nodewright.gateways.cloudpool.machines import Machines
from nodewright.gateways.cloudpool.openapi import document
from nodewright.gateways.cloudpool.operations import OperationError
from nodewright.gateways.cloudpool.watching import Watching
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import KubeError
from nodewright.runtime.settings.options import utc_now
from nodewright.runtime.telemetry.observability import Checks

_log = structlog.get_logger("nodewright.cloudpool")

PREFIX = "/cloudpools"
SETTLE_EVERY = 10.0
"""Seconds; a look at the caches, no more if nothing is left to do."""
Handler = Callable[[web.Request, Instance], Awaitable[web.Response]]


@dataclass(frozen=True, slots=True)
class ServerOptions:
    listener: ListenerOptions = field(default_factory=ListenerOptions)
    api_timeout: float = 30.0


class CloudpoolServer:
    """An async context manager; see ``url``. ``client`` is an open client of the cluster that holds the Machines."""

    def __init__(self, client: KubeClient, instances: Instances, options: ServerOptions) -> None:
        self._instances = instances
        self._options = options
        self._watching = Watching(client, READS, utc_now)
        self._machines = Machines(self._watching, options.api_timeout)
        self._stack = AsyncExitStack()
        self._problems: dict[str, str] = {}
        self.url = ""

    async def __aenter__(self) -> CloudpoolServer:
        await self._stack.enter_async_context(self._watching)
        self.url = await guarding.open_listener(self._app(), self._options.listener, self._stack)
        settling = asyncio.create_task(self._settle(), name="settle cloudpools")
        self._stack.callback(settling.cancel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def readiness(self) -> Checks:
        return self._watching.problems()

    async def missing(self, within: float) -> list[str]:
        """Why pools can't be served yet, one line each, after at most ``within`` seconds."""
        with contextlib.suppress(KubeError):  # each pool says it
            await self._watching.current(within)
        instances = (self._instances.get(name) for name in self._instances.names())
        return [
            f"cloudpool {each.name}: {why}" for each in instances if each is not None and (why := self._lacks(each))
        ]

    def _lacks(self, instance: Instance) -> str:
        """Why it can't be served, "" if it can or nobody has said yet what it is."""
        if instance.config is None:
            return ""
        try:
            self._machines.look(*instance.config.what)
        except OperationError as error:
            return str(error)
        return ""

    def families(self) -> tuple[object, ...]:
        """Nothing is counted only when asked."""
        return ()

    def _app(self) -> web.Application:
        guard = RequestGuard(self._options.listener, "cloudpool")
        app = web.Application(client_max_size=guarding.MOST_BYTES, middlewares=[guard.middleware])
        app.router.add_get("/openapi.json", self._document)
        app.router.add_get(PREFIX, self._list)
        app.router.add_post(f"{PREFIX}/{{name}}", self._create)
        app.router.add_delete(f"{PREFIX}/{{name}}", self._delete)
        of_machines = {
            "terminate": self._terminate,
            "detach": self._detach,
            "attach": self._attach,
            "serviceState": self._service_state,
            "membershipStatus": self._membership,
        }
        for base in ("", f"{PREFIX}/{{name}}"):
            app.router.add_get(f"{base}/config", self._on("get config", self._get_config))
            app.router.add_post(f"{base}/config", self._on("set config", self._set_config))
            app.router.add_post(f"{base}/start", self._on("start", self._start))
            app.router.add_post(f"{base}/stop", self._on("stop", self._stop))
            app.router.add_get(f"{base}/status", self._on("status", self._status))
            app.router.add_get(f"{base}/pool", self._on("pool", self._pool))
            app.router.add_get(f"{base}/pool/size", self._on("size", self._size))
            app.router.add_post(f"{base}/pool/size", self._on("set size", self._set_size))
            for name, handler in of_machines.items():
                app.router.add_post(f"{base}/pool/{name}", self._on(name, handler))
                if base:  # where the lineage's own servers of several pools have them
                    app.router.add_post(f"{base}/{name}", self._on(name, handler))
        return app

    def _on(self, route: str, handler: Handler) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            request[ROUTE] = route
            name = request.match_info.get("name")
            instance = self._instances.get(name) if name else self._instances.only
            if instance is None:
                why = f"there is no cloudpool {name}" if name else f"name one of the cloudpools below {PREFIX}"
                raise OperationError(404, why, f"there are {', '.join(self._instances.names()) or 'none'}")
            return await handler(request, instance)

        return answer

    async def _settle(self) -> None:
        """Finish what was left half-done: by an earlier life at the start, and by whatever failed now and then."""
        await self._each(self._machines.leave_attaching, lambda _: True)
        while True:
            await self._each(self._machines.settle, lambda instance: instance.started)
            await asyncio.sleep(SETTLE_EVERY)

    async def _each(self, act: Callable[[Kind, Key], Awaitable[None]], meant: Callable[[Instance], bool]) -> None:
        for name in self._instances.names():
            instance = self._instances.get(name)
            if instance is not None and instance.config is not None and meant(instance):
                try:
                    await act(*instance.config.what)
                except OperationError as error:  # the object may not be there yet
                    self._tell(name, str(error))
                else:
                    self._tell(name, "")

    def _tell(self, name: str, trouble: str) -> None:
        """Once for each that comes, and once when it has gone."""
        if trouble == self._problems.get(name, ""):
            return
        self._problems[name] = trouble
        if trouble:
            _log.warning("a cloudpool can't be served", pool=name, error=trouble)
        else:
            _log.info("a cloudpool is served now", pool=name)

    async def _document(self, _request: web.Request) -> web.Response:
        return _json(document())

    async def _list(self, request: web.Request) -> web.Response:
        return _json([f"{request.scheme}://{request.host}{PREFIX}/{name}" for name in self._instances.names()])

    async def _create(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        try:
            self._instances.create(name)
        except InstanceError as error:
            raise OperationError(400, f"illegal input: {error}") from error
        location = f"{request.scheme}://{request.host}{PREFIX}/{name}"
        return web.Response(status=201, headers={"Location": location})

    async def _delete(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if self._instances.get(name) is None:
            raise OperationError(404, f"there is no cloudpool {name}")
        self._instances.delete(name)
        return web.Response()

    async def _get_config(self, _request: web.Request, instance: Instance) -> web.Response:
        if instance.config is None:
            raise OperationError(404, "no cloud pool configuration has been set")
        config = instance.config
        return _json({"kind": config.kind, "namespace": config.namespace, "name": config.name})

    async def _set_config(self, request: web.Request, instance: Instance) -> web.Response:
        config = read_config(decoded(await self._body(request), "config"))
        self._instances.configure(instance.name, config)
        return web.Response()

    async def _start(self, _request: web.Request, instance: Instance) -> web.Response:
        if instance.config is None:
            raise OperationError(400, "attempt to start cloudpool before being configured")
        self._instances.start(instance.name, True)
        return web.Response()

    async def _stop(self, _request: web.Request, instance: Instance) -> web.Response:
        self._instances.start(instance.name, False)
        return web.Response()

    async def _status(self, _request: web.Request, instance: Instance) -> web.Response:
        status: dict[str, Any] = {"started": instance.started, "configured": instance.config is not None}
        why = self._lacks(instance)
        return _json(status | {"problem": why} if why else status)

    async def _pool(self, _request: web.Request, instance: Instance) -> web.Response:
        found = self._machines.look(*_started(instance))
        return _json(pool_message(found.machines, self._watching.as_of()))

    async def _size(self, _request: web.Request, instance: Instance) -> web.Response:
        found = self._machines.look(*_started(instance))
        return _json(size_message(found.size, self._watching.as_of()))

    async def _set_size(self, request: web.Request, instance: Instance) -> web.Response:
        desired = desired_size_of(await self._body(request))
        await self._machines.resize(*_started(instance), desired)
        return web.Response()

    async def _terminate(self, request: web.Request, instance: Instance) -> web.Response:
        wanted = dismissal_of(await self._body(request))
        await self._machines.terminate(*_started(instance), wanted.machine, wanted.decrement)
        return web.Response()

    async def _detach(self, request: web.Request, instance: Instance) -> web.Response:
        wanted = dismissal_of(await self._body(request), "detachMachine")
        await self._machines.detach(*_started(instance), wanted.machine, wanted.decrement)
        return web.Response()

    async def _attach(self, request: web.Request, instance: Instance) -> web.Response:
        machine = machine_id_of(decoded(await self._body(request), "attachMachine"), "attachMachine")
        await self._machines.attach(*_started(instance), machine)
        return web.Response()

    async def _service_state(self, request: web.Request, instance: Instance) -> web.Response:
        title = "setServiceState"
        fields = decoded(await self._body(request), title)
        machine, state = machine_id_of(fields, title), typed(fields, "serviceState", str, title)
        if state not in set(ServiceState):
            raise MessageError(f"{title} message", f"serviceState: one of {', '.join(ServiceState)} is needed")
        await self._machines.set_service_state(*_started(instance), machine, ServiceState(state))
        return web.Response()

    async def _membership(self, request: web.Request, instance: Instance) -> web.Response:
        title = "setMembershipStatus"
        fields = decoded(await self._body(request), title)
        machine, membership = machine_id_of(fields, title), typed(fields, "membershipStatus", dict, title)
        parts = {key.lower(): value for key, value in (membership or {}).items()}
        active, evictable = (typed(parts, name, bool, title) for name in ("active", "evictable"))
        if active is None or evictable is None:
            raise MessageError(f"{title} message", "membershipStatus: active and evictable are required")
        await self._machines.set_membership(*_started(instance), machine, Membership(active, evictable))
        return web.Response()

    async def _body(self, request: web.Request) -> bytes:
        return await read_body(request, self._options.listener)


def _started(instance: Instance) -> tuple[Kind, Key]:
    if instance.config is None or not instance.started:
        raise OperationError(500, "attempt to invoke cloudpool before being started")
    return instance.config.what


def _json(body: Any) -> web.Response:
    return web.Response(body=orjson.dumps(body), content_type="application/json")
