"""Which of several processes works: the one that holds a Lease, or always this one.

A process that has lost its Lease never works again: it ends and is started anew, as Kubernetes' own controllers do.
Whatever it still had in hand may be wrong by now, and a fresh start reads the world anew.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

import structlog

from controllers.kernel.refs import LEASE, Key, Kind, Obj, Ref, ref_of, resource_version_of
from nodewright.runtime import metrics
from nodewright.runtime.kube.client import ClientLimits
from nodewright.runtime.kube.errors import ApiError, KubeError
from nodewright.runtime.lease import Acquire, Candidate, Lost, Renew, Seen, Terms, Wait, decide, released

_log = structlog.get_logger("nodewright.leadership")

_SAY_AGAIN = 300.0
"""Seconds after which a candidate says again whom it waits for."""


class Leadership(Protocol):
    """``acquire`` returns once this process may write; ``held`` tells whether it still may, at this very moment.

    ``lost`` is set when it may not any more; then ``why_lost`` says why. ``release`` lets somebody else begin.
    """

    @property
    def held(self) -> bool: ...

    @property
    def lost(self) -> asyncio.Event: ...

    @property
    def why_lost(self) -> str: ...

    async def acquire(self) -> None: ...

    async def release(self) -> None: ...


class LeadershipLostError(Exception):
    """Another process may work now; this one has stopped and must end."""


class AlwaysLeader:
    """For a single process."""

    def __init__(self) -> None:
        self._lost = asyncio.Event()

    @property
    def held(self) -> bool:
        return True

    @property
    def lost(self) -> asyncio.Event:
        return self._lost

    @property
    def why_lost(self) -> str:
        return ""

    async def acquire(self) -> None:
        """At once."""

    async def release(self) -> None:
        """Nobody waits for it."""


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """Which Lease to hold, and on which terms. ``identity`` "": host name, process and a random part."""

    name: str
    namespace: str
    terms: Terms = field(default_factory=Terms)
    identity: str = ""

    @property
    def limits(self) -> ClientLimits:
        """Of the client that keeps the Lease: its own connections, so that no burst of other work delays a renewal."""
        terms = self.terms
        return ClientLimits(
            2, request_timeout=terms.renew_deadline / 2, attempts=2, retry_after_at_most=terms.retry_period
        )


def _elapsed() -> float:
    """Seconds that have passed, a suspension of the machine included where the system can tell."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class LeaseClient(Protocol):
    """What keeping a Lease needs of a client (``KubeClient`` has it)."""

    async def get(self, kind: Kind, key: Key) -> dict[str, Any]: ...

    async def create(self, kind: Kind, body: Obj) -> dict[str, Any]: ...

    async def merge_patch(
        self, target: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = ""
    ) -> dict[str, Any]: ...


class LeaseLeadership:
    """Holds one Lease. ``acquire`` once; from then on a task of its own renews it until ``release`` or ``lost``.

    ``now`` is the time that is written down for people, ``clock`` the one that decides.
    """

    def __init__(
        self,
        client: LeaseClient,
        options: LeaseOptions,
        now: Callable[[], datetime],
        clock: Callable[[], float] = _elapsed,
    ) -> None:
        self.name = f"{options.namespace}/{options.name}"
        self._client = client
        self._key = Key(options.namespace, options.name)
        self._candidate = Candidate(options.identity or _identity(), options.terms)
        self._wall = now
        self._clock = clock
        self._seen = Seen(None, self._clock())
        self._read = False
        """Whether ``_seen`` is what the server holds, as far as we know."""
        self._lost = asyncio.Event()
        self._why_lost = ""
        self._said = ("", 0.0)
        self._keeping: asyncio.Task[None] | None = None
        self._random = random.Random()  # noqa: S311  (jitter)
        metrics.of(metrics.LEADER, self.name).set(0)

    @property
    def held(self) -> bool:
        """By the clock, not by an event: true only before the deadline, however late our own tasks run."""
        return self._clock() < self._candidate.gives_up_at and not self._lost.is_set()

    @property
    def lost(self) -> asyncio.Event:
        return self._lost

    @property
    def why_lost(self) -> str:
        return self._why_lost

    async def acquire(self) -> None:
        """Wait until the Lease is ours, for as long as that takes."""
        terms = self._candidate.terms
        while True:
            if await self._turn():
                break
            await asyncio.sleep(self._random.uniform(terms.retry_period, terms.longest_pause))
        metrics.of(metrics.LEADER, self.name).set(1)
        self._keeping = asyncio.create_task(self._keep(), name=f"lease {self.name}")

    async def release(self) -> None:
        """Give the Lease back, if it is ours. Call it after the last write."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        metrics.of(metrics.LEADER, self.name).set(0)
        if not self.held or self._seen.lease is None:
            return
        try:
            async with asyncio.timeout(self._left()):
                await self._patch(self._seen.lease, released(self._wall()))
            _log.info("released the lease", lease=self.name)
        except (KubeError, TimeoutError) as error:
            _log.info("the lease could not be released, it runs out", lease=self.name, error=str(error))
        finally:
            self._candidate = replace(self._candidate, renewed_at=None)

    async def _keep(self) -> None:
        """Renew until that fails for too long, whatever a request hangs on."""
        while not self._lost.is_set():
            try:
                async with asyncio.timeout(self._left()):
                    await asyncio.sleep(self._candidate.terms.retry_period)
                    await self._turn()
            except TimeoutError:
                self._lose(f"it could not be renewed within {self._candidate.terms.renew_deadline:g} s")
            except Exception as error:
                _log.exception("the lease could not be kept", lease=self.name)
                self._lose(f"unexpected {type(error).__name__}")

    async def _turn(self) -> bool:
        """One look and one write; True if the Lease is ours by it. Failures are logged and tried again later."""
        try:
            if not self._read:
                await self._look()
            started = self._clock()
            decision = decide(self._seen, self._candidate, started, self._wall())
            match decision:
                case Wait(why=why):
                    self._read = False
                    self._say(why)
                    return False
                case Lost(why=why):
                    self._lose(why)
                    return False
                case Acquire(spec=spec, why=why):
                    lease = await self._take(spec)
                    if self._candidate.renewed_at is None:
                        _log.info("leading", lease=self.name, identity=self._candidate.identity, why=why)
                case Renew(spec=spec):
                    assert self._seen.lease is not None
                    lease = await self._patch(self._seen.lease, spec)
        except KubeError as error:
            self._read = False
            self._say(f"it could not be read or written: {error}")
            return False
        self._seen = Seen(lease, started)
        self._candidate = replace(self._candidate, renewed_at=started)
        return True

    def _left(self) -> float:
        """Seconds until this process must not write any more."""
        return max(0.0, self._candidate.gives_up_at - self._clock())

    async def _look(self) -> None:
        try:
            lease: Obj | None = await self._client.get(LEASE, self._key)
        except ApiError as error:
            if not error.not_found:
                raise
            lease = None
        self._seen = self._seen.then(lease, self._clock())
        self._read = True

    async def _take(self, spec: Any) -> dict[str, Any]:
        if self._seen.lease is not None:
            return await self._patch(self._seen.lease, spec)
        meta = {"name": self._key.name, "namespace": self._key.namespace}
        body = {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": meta, "spec": spec}
        return await self._client.create(LEASE, body)

    async def _patch(self, lease: Obj, spec: Any) -> dict[str, Any]:
        """Refused (409) if anybody has written it since we saw it: that is what makes the Lease exclusive."""
        target: Ref = ref_of(LEASE, lease)
        return await self._client.merge_patch(target, {"spec": spec}, resource_version=resource_version_of(lease))

    def _lose(self, why: str) -> None:
        self._why_lost = f"lease {self.name}: {why}"
        self._lost.set()
        metrics.of(metrics.LEADER, self.name).set(0)
        _log.error("leadership is lost", lease=self.name, why=why)

    def _say(self, why: str) -> None:
        said, at = self._said
        if why != said or self._clock() - at > _SAY_AGAIN:
            self._said = (why, self._clock())
            _log.info("waiting for the lease", lease=self.name, why=why)


def _identity() -> str:
    """Never that of another process, nor of an earlier life of this one: a pod keeps its host name over restarts."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"
