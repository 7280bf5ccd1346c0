"""Carry out the two requests that may take machines away: each asks the pure plan again until nothing is left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from controllers.cloudpool import scaledown, world
from controllers.cloudpool.messages import PoolSize
from controllers.cloudpool.scaledown import Forward, NotMember, Observed, Refused, Rules, Shrink, Victim
from controllers.kernel.refs import (
    CSI_NODE,
    DAEMON_SET,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    Kind,
)
from nodewright.gateways.cloudpool.backend import BackendError
from nodewright.gateways.cloudpool.evacuator import EvacuationError, Evacuator, GoesOn
from nodewright.gateways.cloudpool.operations import OperationError, Operations
from nodewright.runtime.kube.errors import KubeError
from nodewright.runtime.telemetry import metrics

_log = structlog.get_logger("nodewright.cloudpool")

READS: tuple[Kind, ...] = (
    NODE, POD, POD_DISRUPTION_BUDGET, DAEMON_SET, NAMESPACE, VOLUME_ATTACHMENT,
    PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, CSI_NODE,
)  # fmt: skip
SET_SIZE, TERMINATE = "failed to set desired size", "failed to terminate machine"
_AT_ONCE = 10
"""Nodes that are emptied side by side, as in the Cluster Autoscaler."""
_RECONCILES = 20
"""Looks at the pool in one request; a pool that grows as fast as it shrinks is left to the next one."""


@dataclass(frozen=True, slots=True)
class ScalerOptions:
    """``api_timeout``: seconds for the API server to answer. ``strict``: a scale-down that falls short is an error."""

    rules: Rules = field(default_factory=Rules)
    api_timeout: float = 60.0
    strict: bool = False
    sweep_every: float = 10.0


class Scaler:
    """Sizes of the pool behind ``evacuator``. All methods raise OperationError."""

    def __init__(self, evacuator: Evacuator, options: ScalerOptions, operations: Operations | None = None) -> None:
        self.operations = operations or Operations()
        self._watching = evacuator.watching
        self._backend = evacuator.backend
        self._evacuator = evacuator
        self._options = options

    async def set_size(self, desired: int) -> None:
        async def work(stops: GoesOn) -> None:
            await self._resize(desired, stops)

        await self.operations.run("size", f"desired size {desired}", work)

    async def terminate(self, machine: str, decrement: bool) -> None:
        async def work(stops: GoesOn) -> None:
            await self._remove_one(machine, decrement, stops)

        title = f"terminate {machine}{', one machine less' if decrement else ''}"
        await self.operations.run("", title, work)

    async def sweep_for_ever(self) -> None:
        """Look after what an earlier life left over, at once and now and then."""
        while True:
            try:
                await self._watching.current(self._options.api_timeout)
                await self._evacuator.sweep()
            except (KubeError, BackendError) as error:
                _log.info("what may be left over can't be looked after", error=str(error))
            await asyncio.sleep(self._options.sweep_every)

    def status(self) -> dict[str, object]:
        return {"operations": self.operations.under_way, "nodes": dict(self._evacuator.busy)}

    async def _resize(self, desired: int, stops: GoesOn) -> None:
        removed = 0
        for _ in range(_RECONCILES):
            observed = await self._observe(SET_SIZE)
            match scaledown.plan_size(observed, await self._size(), desired):
                case Forward(needless=needless, why=why):
                    if not (needless and removed):
                        _log.info("forwarding", desired=desired, why=why)
                        await self._forward(desired)
                    metrics.CLOUDPOOL_MISSING.set(0)
                    return
                case Refused(why=why):
                    raise OperationError(500, SET_SIZE, why)
                case Shrink() as shrink:
                    await self._shrink(shrink, stops)
                    removed += len(shrink.victims)
                    if shrink.missing:
                        self._falls_short(desired, shrink)
                        return
        raise OperationError(500, SET_SIZE, f"the pool has grown as fast as it shrank: {removed} machines went")

    async def _forward(self, desired: int) -> None:
        try:
            await self._backend.set_size(desired)
        except BackendError as error:
            raise _of_backend(SET_SIZE, "failed to request desiredSize against backend cloudpool", error) from error

    def _falls_short(self, desired: int, shrink: Shrink) -> None:
        """As upstream: a client learns only that its request was accepted; a strict one gets the outcome."""
        metrics.CLOUDPOOL_MISSING.set(shrink.missing)
        _log.warning("the scale-down falls short", desired=desired, missing=shrink.missing, kept=dict(shrink.kept))
        if self._options.strict:
            kept = "; ".join(f"{machine}: {why}" for machine, why in sorted(shrink.kept.items()))
            raise OperationError(500, SET_SIZE, f"{shrink.missing} machines more should have gone: {kept}")

    async def _size(self) -> PoolSize:
        """What the backend says of its size now."""
        try:
            return await self._backend.size()
        except BackendError as error:
            raise _of_backend(SET_SIZE, "failed to retrieve cloudpool", error) from error

    async def _shrink(self, shrink: Shrink, stops: GoesOn) -> None:
        """All victims side by side; one that stays doesn't keep the others."""
        slots = asyncio.Semaphore(_AT_ONCE)

        async def remove(victim: Victim) -> None:
            async with slots:
                refusal = stops()
                if refusal:
                    raise EvacuationError(refusal)
                await self._evacuator.remove(victim, True, stops)

        results = await asyncio.gather(*(remove(victim) for victim in shrink.victims), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        unexpected = [error for error in failures if not isinstance(error, EvacuationError)]
        if unexpected:
            raise unexpected[0]
        if failures:
            gone = [victim.machine.id for victim, result in zip(shrink.victims, results, strict=True) if result is None]
            raise _incomplete([error for error in failures if isinstance(error, EvacuationError)], gone)

    async def _remove_one(self, machine: str, decrement: bool, stops: GoesOn) -> None:
        observed = await self._observe(TERMINATE)
        match scaledown.plan_terminate(observed, machine):
            case NotMember(why=why):
                raise OperationError(404, TERMINATE, why)
            case Refused(why=why):
                raise OperationError(500, TERMINATE, why)
            case Victim() as victim:
                try:
                    await self._evacuator.remove(victim, decrement, stops)
                except EvacuationError as error:
                    raise OperationError(502 if error.of_backend else 500, TERMINATE, str(error)) from error

    async def _observe(self, title: str) -> Observed:
        try:
            await self._watching.current(self._options.api_timeout)
        except KubeError as error:
            why = f"failed to retrieve kubernetes worker nodes: {error}"
            raise OperationError(500, title, why) from error
        try:
            machines = await self._backend.pool()
        except BackendError as error:
            raise _of_backend(title, "failed to retrieve cloudpool", error) from error
        gone = self._evacuator.gone
        return Observed(machines, world.observe(self._objects(), self._watching.now()), self._options.rules, gone)

    def _objects(self) -> world.Objects:
        kinds = (
            NODE, POD, POD_DISRUPTION_BUDGET, NAMESPACE, CSI_NODE,
            PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, STORAGE_CLASS,
        )  # fmt: skip
        return world.Objects(*(self._watching.objects(kind) for kind in kinds))


def _incomplete(failures: Sequence[EvacuationError], gone: Sequence[str]) -> OperationError:
    """Some machines could not be removed; ``gone``: those that were."""
    went = f"; gone are {', '.join(gone)}" if gone else ""
    why = f"scale-down failed: {'; '.join(map(str, failures))}{went}"
    return OperationError(502 if any(error.of_backend for error in failures) else 500, SET_SIZE, why)


def _of_backend(title: str, what: str, error: BackendError) -> OperationError:
    return OperationError(502, title, f"{what}: {error}")
