"""Start the plane, the controllers and the simulated kubelets in one process, and stop them in the right order."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.apiserver.app.certificates import Credentials
from nodewright.apiserver.store import JournalError
from nodewright.apiserver.values import ApiError
from nodewright.cli.embedded.folder import held, remember_port, remembered_port
from nodewright.cli.embedded.stamp import check_in
from nodewright.cli.exits import CliError
from nodewright.cli.kubeconfigs import must_be_ours
from nodewright.cli.moving.simulated import share_hosts_in
from nodewright.cli.screen import say
from nodewright.cli.trust import Trust
from nodewright.crds import load_crds
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.kubeconfig import load_kubeconfig

if TYPE_CHECKING:
    from controllers.autoscaler.options import AutoscalerOptions
    from controllers.kernel.node_policy import NodePolicy
    from controllers.provisioningrequest.options import ProvisioningOptions
    from nodewright.runtime.election.lease_options import LeaseOptions
    from nodewright.runtime.settings.options import Reconcilers, RunOptions

START_SECONDS = 60.0
GRACE_SECONDS = 5.0
"""How long the controllers get to finish what they have begun; they may be killed at any moment anyway."""
STOP_SECONDS = 3 * GRACE_SECONDS
"""After that they are cancelled."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What to start. ``data_dir`` None: in memory. ``port`` 0: that of the last start, or a free one."""

    data_dir: Path | None = None
    kubeconfig: Path | None = None
    port: int = 0
    controllers: bool = True
    bind_pods: bool = True
    """With the controllers: what kube-scheduler does elsewhere."""
    autoscaler: AutoscalerOptions | None = None
    """With the controllers, if it is wanted."""
    provisioning: ProvisioningOptions | None = None
    """With the autoscaler, if it is to know of ProvisioningRequests."""
    accept_loss: bool = False
    """Go on with what can be read of a damaged state."""
    anonymous_cluster_info: bool = False
    """Let anybody read the ConfigMap cluster-info in kube-public."""
    trust: Trust = field(default_factory=Trust)
    simulated_cloud: Path | None = None
    """With the controllers: where simulated hosts are kept together with other planes; None: in ``data_dir``."""
    nodes: NodePolicy | None = None
    """With the controllers: which labels and taints of Machines may reach their Nodes; None: what is built in."""


class Session:
    """A running control plane; made by ``session``."""

    def __init__(self, plane: APIServer, connection: Connection, stop: asyncio.Event, desired: SessionOptions) -> None:
        self.plane = plane
        self._desired = desired
        self.connection = connection
        self.stop = stop
        self._parts: dict[str, asyncio.Task[None]] = {}

    @property
    def url(self) -> str:
        return self.plane.url

    @property
    def kubeconfig(self) -> Path:
        return self.plane.kubeconfig_path

    def _options(self, ready: asyncio.Event) -> RunOptions:
        from nodewright.runtime.settings.options import RunOptions  # noqa: PLC0415

        def stand_by(why: str) -> None:
            """The plane serves all the same."""
            say(f"waiting: {why}; the controllers of this process take over when that one ends")
            ready.set()

        reconcilers = _reconcilers_of(self._desired)
        return RunOptions(
            reconcilers=reconcilers,
            workloads=self._desired.trust.workloads(),
            grace=GRACE_SECONDS,
            bind_pods=self._desired.bind_pods,
            leader_election=_lease(self._desired, reconcilers, stand_by),
        )

    async def control(self, ready: asyncio.Event) -> None:
        """All controllers and the simulated kubelets, until ``stop``."""
        # Imported now, not before: a control plane alone is ready twice as soon without all that controllers need.
        from nodewright.runtime.election.leadership import LeadershipLostError  # noqa: PLC0415
        from nodewright.runtime.manager import run_controllers  # noqa: PLC0415

        options = self._options(ready)
        while not self.stop.is_set():
            try:
                await run_controllers(self.connection, options, stop=self.stop, ready=ready)
            except LeadershipLostError as error:
                # The machine was asleep, or had no time for us. The plane goes on, and the controllers begin anew.
                say(f"the controllers have stopped and begin anew: {error}", err=True)

    async def start(self, name: str, part: Callable[[asyncio.Event], Awaitable[None]]) -> None:
        """Run ``part`` beside the plane; returns once it is ready. Raises what it raises before that."""
        ready = asyncio.Event()
        task = asyncio.ensure_future(part(ready))
        self._parts[name] = asyncio.ensure_future(_named(name, task))
        waiting = [asyncio.ensure_future(event.wait()) for event in (ready, self.stop)]
        done, _ = await asyncio.wait([*waiting, task], timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for one in waiting:
            one.cancel()
        if not done:
            raise CliError(f"the {name} did not become ready in {START_SECONDS:.0f} s", "See the log above")
        if task.done():
            await self._parts[name]

    async def until_stopped(self) -> None:
        """Wait for ``stop``. Raises CliError if a part ends before."""
        stopping = asyncio.ensure_future(self.stop.wait())
        try:
            done, _ = await asyncio.wait({stopping, *self._parts.values()}, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopping}:
                await task
                if not self.stop.is_set():
                    raise CliError("a part of the program ended by itself", "See the log above and start it again")
        finally:
            stopping.cancel()

    async def close(self) -> None:
        """Ask the parts to end, and cancel those that take too long."""
        self.stop.set()
        if not self._parts:
            return
        _, late = await asyncio.wait(self._parts.values(), timeout=STOP_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*self._parts.values(), return_exceptions=True)


def _reconcilers_of(desired: SessionOptions) -> Reconcilers:
    """The controllers that ``desired`` asks for."""
    from nodewright.runtime.settings import wiring  # noqa: PLC0415

    reconcilers = _unconfined(desired)
    return reconcilers if desired.nodes is None else wiring.with_node_policy(reconcilers, desired.nodes)


def _unconfined(desired: SessionOptions) -> Reconcilers:
    from nodewright.runtime.settings import wiring  # noqa: PLC0415

    scaling, provisioning = desired.autoscaler, desired.provisioning
    usual = wiring.reconcilers(template_kinds=desired.trust.template_kinds())
    more = wiring.on_request(
        None if scaling is None else lambda: scaling, None if provisioning is None else lambda: provisioning
    )
    wanted = ["controlplane"]  # all Secrets of the embedded plane are its own
    if scaling is not None:
        wanted += ["autoscaler", *(["provisioningrequest"] if scaling.provisioning_requests else [])]
    named = tuple(more[name]() for name in wanted)
    if scaling is not None and scaling.clusters is not None:
        from nodewright.runtime.settings.cluster_wiring import for_each_cluster  # noqa: PLC0415

        named = tuple(for_each_cluster(named))
    return (*usual, *named)


_PLANE = "plane-"


def _lease(desired: SessionOptions, reconcilers: Reconcilers, stand_by: Callable[[str], None]) -> LeaseOptions:
    """The Lease of `nodewright run` without options: beside it the controllers of this process wait.

    This process alone can serve its plane (the data folder is locked), so that a Lease of an earlier one is free.
    The identity stays the same for as long as the process lives: its controllers may begin anew.
    """
    from api.names import SYSTEM_NAMESPACE  # noqa: PLC0415
    from nodewright.cli.election import LEASE_NAME  # noqa: PLC0415
    from nodewright.runtime.election.leadership import new_identity  # noqa: PLC0415
    from nodewright.runtime.election.lease_options import LeaseOptions  # noqa: PLC0415
    from nodewright.runtime.election.process_identity import is_gone  # noqa: PLC0415
    from nodewright.runtime.settings import wiring  # noqa: PLC0415

    return LeaseOptions(
        LEASE_NAME,
        SYSTEM_NAMESPACE,
        identity=_PLANE + new_identity(),
        claims=wiring.claims_of(reconcilers),
        command="nodewright up",
        ended=lambda holder: holder.identity.startswith(_PLANE) or is_gone(holder.process),
        on_wait=stand_by,
    )


async def _named(name: str, task: asyncio.Future[None]) -> None:
    try:
        await task
    except CliError:
        raise
    except Exception as error:
        raise CliError(f"the {name} failed: {type(error).__name__}: {error}", "See the log above") from error


@asynccontextmanager
async def session(desired: SessionOptions, stop: asyncio.Event) -> AsyncIterator[Session]:
    """A control plane that ``kubectl`` can use, with the CRDs and (if wished) the controllers, until the block ends.

    Setting ``stop`` also cuts the start short; look at it before work is begun. Raises CliError for a folder in use, a
    port in use, or state that can't be read.
    """
    async with AsyncExitStack() as stack:
        if desired.kubeconfig is not None:
            must_be_ours(desired.kubeconfig, _authority_in(desired.data_dir))
        if desired.data_dir is not None:
            stack.enter_context(held(desired.data_dir))
            check_in(desired.data_dir)
        plane = await _serve(stack, desired)
        running = Session(plane, await load_kubeconfig([plane.kubeconfig_path]), stop, desired)
        stack.push_async_callback(running.close)
        if desired.controllers:
            _keep_simulated_hosts(stack, desired)
            await running.start("controllers", running.control)
        yield running


def _keep_simulated_hosts(stack: AsyncExitStack, desired: SessionOptions) -> None:
    """The simulated cloud outlives this process as a real one would, if the state does."""
    from providers.simulated import WORLDS  # noqa: PLC0415

    if desired.simulated_cloud is not None:
        share_hosts_in(desired.simulated_cloud)
    elif desired.data_dir is not None:
        try:
            WORLDS.keep_in(desired.data_dir / "simulated")
        except RuntimeError as error:
            raise CliError(str(error), "Stop the other one, or choose another --data-dir") from error
        except ValueError as error:
            raise CliError(str(error), "Remove the damaged file, or begin anew with another --data-dir") from error
    stack.callback(WORLDS.close)


def _authority_in(folder: Path | None) -> bytes | None:
    """That of the plane whose state lies there, as kubeconfigs have it; None before its first start."""
    if folder is None:
        return None
    try:
        return base64.b64encode(Credentials(folder).ca.read_bytes())
    except OSError:
        return None


async def _serve(stack: AsyncExitStack, desired: SessionOptions) -> APIServer:
    """Listen on the port that is wished, else on that of the last start, else on a free one."""
    ports = [desired.port] if desired.port or desired.data_dir is None else [remembered_port(desired.data_dir), 0]
    for port in dict.fromkeys(ports):
        config = APIServerConfig(
            data_dir=desired.data_dir,
            port=port,
            kubeconfig=desired.kubeconfig,
            crds=tuple(load_crds()),
            accept_loss=desired.accept_loss,
            anonymous_cluster_info=desired.anonymous_cluster_info,
        )
        try:
            plane = await stack.enter_async_context(APIServer(config))
        except OSError as error:
            if port != ports[-1]:
                continue
            where = f"port {port}" if port else str(desired.data_dir or "the control plane")
            hint = "Choose another --port" if port else "Choose another --data-dir"
            raise CliError(f"{where} can't be used: {error.strerror or error}", hint) from error
        except ApiError as error:
            raise CliError(error.message, f"Look at the disk of {desired.data_dir}") from error
        except JournalError as error:
            raise CliError(str(error), "Look at the folder, or choose another --data-dir") from error
        if desired.data_dir is not None:
            remember_port(desired.data_dir, urlsplit(plane.url).port or 0)
        return plane
    raise AssertionError("the last port either works or raises")
