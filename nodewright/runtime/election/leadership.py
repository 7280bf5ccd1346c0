"""Which of several processes works: the one that holds a Lease with which no other live Lease overlaps.

A process first takes its own Lease and then reads the Leases of all others. If two begin at once, at least one sees
the other, so never both work, whatever each of them serves (``claims``).

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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

import structlog

from api import names
from controllers.kernel.refs import LEASE, NAMESPACE, Key, Obj, Ref, annotations_of, ref_of, resource_version_of
from nodewright.runtime.election.claims import Claim, Holder, holder_of
from nodewright.runtime.election.lease import Acquire, Candidate, Lost, Renew, Seen, Wait, decide, released
from nodewright.runtime.election.lease_options import LeaseClient, LeaseOptions
from nodewright.runtime.election.other_holders import OtherHolders
from nodewright.runtime.election.process_identity import this_process
from nodewright.runtime.kube.errors import ApiError, KubeError
from nodewright.runtime.telemetry import metrics

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


class HeldElsewhereError(LeadershipLostError):
    """Another process works, and this one was asked not to wait."""


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


def _elapsed() -> float:
    """Seconds that have passed, a suspension of the machine included where the system can tell."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


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
        self._options = options
        self._candidate = Candidate(options.identity or new_identity(), options.terms)
        self._other_holders = OtherHolders(client, self._key, options, self._clock_now)
        self._alone = False
        """Whether no other live Lease overlapped with ours once we held it."""
        self._made_again = False
        self._served: tuple[Claim, ...] = options.claims
        self._recorded: frozenset[Claim] = frozenset()
        self.findings: Callable[[], str] = str
        """What the Lease is to say besides its holder (``LEASE_FINDINGS_ANNOTATION``); "": nothing."""
        self._wall = now
        self._clock = clock
        self._seen = Seen(None, self._clock())
        self._read = False
        """Whether ``_seen`` is what the server holds, as far as we know."""
        self._lost = asyncio.Event()
        self._why_lost = ""
        self._logged = ("", 0.0)
        self._keeping: asyncio.Task[None] | None = None
        self._random = random.Random()  # noqa: S311  (jitter)
        metrics.of(metrics.LEADER, self.name).set(0)

    @property
    def held(self) -> bool:
        """By the clock, not by an event: true only before the deadline, however late our own tasks run."""
        return self._alone and self._has_lease

    @property
    def lost(self) -> asyncio.Event:
        return self._lost

    @property
    def why_lost(self) -> str:
        return self._why_lost

    def serve_also(self, claims: Iterable[Claim]) -> None:
        """What is served beside ``LeaseOptions.claims``; the next renewal writes it down."""
        self._served = (*self._options.claims, *sorted(claims))
        self._recorded &= frozenset(self._served)

    @property
    def recorded(self) -> frozenset[Claim]:
        """What the Lease says that this process serves, and will say as long as nobody changes it here."""
        return self._recorded

    async def others(self, claims: Iterable[Claim]) -> dict[Claim, tuple[str, Holder]]:
        """Which of ``claims`` somebody else serves: his Lease, and who he is. Raises KubeError."""
        return await self._other_holders.overlapping(claims)

    @property
    def _has_lease(self) -> bool:
        return self._clock() < self._candidate.gives_up_at and not self._lost.is_set()

    def _clock_now(self) -> float:
        return self._clock()

    async def acquire(self) -> None:
        """Wait until the Lease is ours and no other overlaps with it, for as long as that takes.

        Raises HeldElsewhereError if this process is not to wait.
        """
        terms = self._candidate.terms
        while True:
            blocked = False
            if await self._turn():
                if await self._is_alone():
                    break
                blocked = True
            while True:
                await asyncio.sleep(self._random.uniform(terms.retry_period, terms.longest_pause))
                if not (blocked and await self._look_for_other_holders()):
                    break
        metrics.of(metrics.LEADER, self.name).set(1)
        self._keeping = asyncio.create_task(self._keep(), name=f"lease {self.name}")

    async def release(self) -> None:
        """Give the Lease back, if it is ours. Call it after the last write."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        metrics.of(metrics.LEADER, self.name).set(0)
        self._alone = False
        await self._let_go()

    async def _let_go(self) -> None:
        if not self._has_lease or self._seen.lease is None:
            return
        try:
            async with asyncio.timeout(self._left()):
                await self._give_back()
            _log.info("released the lease", lease=self.name)
        except (KubeError, TimeoutError) as error:
            _log.info("the lease could not be released, it runs out", lease=self.name, error=str(error))
        finally:
            self._candidate = replace(self._candidate, renewed_at=None)

    async def _give_back(self) -> None:
        """Raises KubeError. A renewal that was cut off may have arrived: then the Lease is newer than we saw."""
        assert self._seen.lease is not None
        try:
            await self._patch(self._seen.lease, released(self._wall()))
        except ApiError as error:
            if not error.conflict:
                raise
            await self._look()
            if self._seen.lease is None or holder_of(self._seen.lease).identity != self._candidate.identity:
                return
            await self._patch(self._seen.lease, released(self._wall()))

    async def _is_alone(self) -> bool:
        """With the Lease in hand: whether nobody else works on what it stands for. If somebody does, it is let go."""
        other_holder = await self._look_for_other_holders()
        if other_holder:
            await self._let_go()
            self._read = False
        self._alone = not other_holder and self._has_lease
        return self._alone

    async def _look_for_other_holders(self) -> str:
        """Why this process must wait for others than the holder of its own Lease, "" if it need not."""
        try:
            found = await self._other_holders.find(self._served)
        except KubeError as error:
            why = f"the Leases of others could not be read: {error}"
            self._say(why)
            return why
        if found is not None:
            self._wait_for(*found)
            return str(found)
        return ""

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
            started, served = self._clock(), frozenset(self._served)
            decision = decide(self._seen, self._candidate, started, self._wall(), gone=self._holder_has_ended())
            match decision:
                case Wait(why=why):
                    self._read = False
                    self._wait_for(self.name, holder_of(self._seen.lease or {}))
                    return False
                case Lost(why=why):
                    self._lose(why)
                    return False
                case Acquire(spec=spec, why=why):
                    lease = await self._take(spec)
                    self._made_again = self._made_again or self._alone
                    if self._candidate.renewed_at is None:
                        _log.info("leading", lease=self.name, identity=self._candidate.identity, why=why)
                case Renew(spec=spec):
                    assert self._seen.lease is not None
                    lease = await self._patch(self._seen.lease, spec, self._news(self._seen.lease))
            self._seen = Seen(lease, started)
            self._recorded = served & frozenset(self._served)
            self._candidate = replace(self._candidate, renewed_at=started)
            if self._made_again:
                await self._check_again()
        except KubeError as error:
            self._read = False
            self._say(f"it could not be read or written: {error}")
            return False
        return not self._lost.is_set()

    async def _check_again(self) -> None:
        """While our Lease was missing (somebody had deleted it) another process may have begun. Raises KubeError."""
        found = await self._other_holders.find(self._served)
        self._made_again = False
        if found is not None:
            self._lose(f"it was deleted, and {found[1]} works now by the Lease {found[0]}")

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

    def _holder_has_ended(self) -> bool:
        if self._seen.lease is None or self._candidate.renewed_at is not None:
            return False
        holder = holder_of(self._seen.lease)
        return bool(holder.identity) and self._options.ended(holder)

    async def _take(self, spec: Any) -> dict[str, Any]:
        annotations = {names.LEASE_HOLDER_ANNOTATION: self._holder().annotation()}
        if self._seen.lease is not None:
            changed = {**annotations, names.LEASE_FINDINGS_ANNOTATION: self._found()}
            return await self._patch(self._seen.lease, spec, {"metadata": {"annotations": changed}})
        meta = {"name": self._key.name, "namespace": self._key.namespace, "annotations": annotations}
        body = {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": meta, "spec": spec}
        try:
            return await self._client.create(LEASE, body)
        except ApiError as error:
            if not error.not_found:
                raise
        await self._client.create(
            NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._key.namespace}}
        )
        return await self._client.create(LEASE, body)

    def _news(self, lease: Obj) -> Mapping[str, Any]:
        """Annotations that have changed: a renewal takes them along."""
        texts = {
            names.LEASE_FINDINGS_ANNOTATION: self._found(),
            names.LEASE_HOLDER_ANNOTATION: self._holder().annotation(),
        }
        changed = {name: text for name, text in texts.items() if text != annotations_of(lease).get(name)}
        return {"metadata": {"annotations": changed}} if changed else {}

    def _found(self) -> str | None:
        """A fault in what is only news must not cost the Lease."""
        try:
            return self.findings() or None
        except Exception:
            _log.exception("findings can't be published", lease=self.name)
            return None

    def _holder(self) -> Holder:
        process = this_process()
        host = str(process.get("host") or socket.gethostname())
        return Holder(self._candidate.identity, self._options.command, host, process, self._served)

    async def _patch(self, lease: Obj, spec: Any, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Refused (409) if anybody has written it since we saw it: that is what makes the Lease exclusive."""
        target: Ref = ref_of(LEASE, lease)
        patch = {"spec": spec, **(more or {})}
        return await self._client.merge_patch(target, patch, resource_version=resource_version_of(lease))

    def _lose(self, why: str) -> None:
        self._why_lost = f"lease {self.name}: {why}"
        self._lost.set()
        metrics.of(metrics.LEADER, self.name).set(0)
        _log.error("leadership is lost", lease=self.name, why=why)

    def _wait_for(self, lease: str, holder: Holder) -> None:
        """Say for whom this process waits. Raises HeldElsewhereError if it is not to wait."""
        serves = ", ".join(map(str, holder.claims))
        why = f"{holder} holds the Lease {lease}" + (f" and serves {serves}" if serves else "")
        if not self._options.waits:
            self._lose(why)
            raise HeldElsewhereError(why)
        if why != self._logged[0] and self._options.on_wait is not None:
            self._options.on_wait(why)
        self._say(why)

    def _say(self, why: str) -> None:
        last, at = self._logged
        if why != last or self._clock() - at > _SAY_AGAIN:
            self._logged = (why, self._clock())
            _log.info("waiting for the lease", lease=self.name, why=why)


def new_identity() -> str:
    """Never that of another process, nor of an earlier life of this one: a pod keeps its host name over restarts."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"
