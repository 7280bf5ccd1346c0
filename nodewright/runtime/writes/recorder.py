"""Write Kubernetes Events: after the fact, counted instead of repeated, and never faster than a bound.

The same sentence about the same object becomes one Event whose ``count`` grows; it is written when it is new, and then
at ever longer intervals, so that a plan that says the same in every reconcile causes no stream of writes. Many
sentences alike are combined, and each object has a budget of writes (``correlator``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

import structlog

from api.secrets import without_secrets
from controllers.kernel.actions import Event
from controllers.kernel.conditions import format_time, shortened
from controllers.kernel.memory import digest
from controllers.kernel.refs import EVENT, Key, Kind, Obj, Ref
from nodewright.runtime.hosts.limits import TokenBucket
from nodewright.runtime.kube.errors import ApiError, KubeError
from nodewright.runtime.queues.fair_queue import FairQueue
from nodewright.runtime.telemetry import metrics
from nodewright.runtime.writes.correlator import Correlated, Correlator

_log = structlog.get_logger("nodewright.events")

MOST_SENTENCES = 4096
"""Sentences remembered; the oldest is forgotten first (its next occurrence becomes a new Event)."""
QUEUE_BOUND = 1000
FIRST_INTERVAL, LONGEST_INTERVAL = 30.0, 3600.0
FORGET_AFTER = 3600.0
"""Seconds after which a sentence starts a new Event; API servers keep Events for one hour."""
_LONGEST_MESSAGE = 1024


class EventWriter(Protocol):
    """What the recorder needs of a client."""

    async def create(self, kind: Kind, body: Obj) -> dict[str, Any]: ...

    async def merge_patch(
        self, target: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = ""
    ) -> dict[str, Any]: ...


@dataclass(slots=True)
class _Sentence:
    name: str
    first: datetime
    first_at: float
    last: datetime
    message: str
    count: int = 0
    written: bool = False
    next_write: float = 0.0
    interval: float = FIRST_INTERVAL


class _Lines:
    """Events that wait to be written. Namespaces take turns, and one of them has at most half of the places."""

    def __init__(self) -> None:
        self._waiting: FairQueue[tuple[Event, _Sentence]] = FairQueue()
        self._some = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._unfinished = 0

    def add(self, event: Event, sentence: _Sentence) -> bool:
        """False: there is no place."""
        namespace = event.target.key.namespace
        if len(self._waiting) >= QUEUE_BOUND or self._waiting.of(namespace) >= QUEUE_BOUND // 2:
            return False
        self._waiting.append(namespace, (event, sentence))
        self._unfinished += 1
        self._idle.clear()
        self._some.set()
        return True

    async def get(self) -> tuple[Event, _Sentence]:
        """To be followed by ``done``."""
        while (found := self._waiting.pop()) is None:
            self._some.clear()
            await self._some.wait()
        return found

    def done(self) -> None:
        self._unfinished -= 1
        if not self._unfinished:
            self._idle.set()

    async def written(self) -> None:
        """Wait until all are."""
        await self._idle.wait()


class EventRecorder:
    """``record`` never waits and never fails; ``run`` writes in the background until cancelled."""

    def __init__(
        self, client: EventWriter, component: str, now: Callable[[], datetime], per_second: float = 20.0
    ) -> None:
        self._client = client
        self._component = component
        self._now = now
        self._bucket = TokenBucket(per_second, 50)
        self._correlator = Correlator()
        self._sentences: dict[tuple[str, ...], _Sentence] = {}
        self._lines = _Lines()

    def record(self, event: Event) -> None:
        loop_now = asyncio.get_running_loop().time()
        event = replace(event, why=without_secrets(event.why)[:_LONGEST_MESSAGE])
        sentence = self._sentence(self._correlator.correlate(event, loop_now), event, loop_now)
        sentence.count += 1
        sentence.last = self._now()
        if loop_now < sentence.next_write:
            metrics.of(metrics.EVENTS, "counted").inc()
            return
        sentence.next_write = loop_now + sentence.interval
        sentence.interval = min(sentence.interval * 2, LONGEST_INTERVAL)
        if not self._correlator.may_write(event, loop_now):
            metrics.of(metrics.EVENTS, "limited").inc()
            return
        if not self._lines.add(event, sentence):
            metrics.of(metrics.EVENTS, "dropped").inc()

    async def run(self) -> None:
        while True:
            event, sentence = await self._lines.get()
            try:
                await self._turn()
                await self._write(event, sentence)
                metrics.of(metrics.EVENTS, "written").inc()
            except KubeError as error:
                metrics.of(metrics.EVENTS, "failed").inc()
                _log.debug("event could not be written", target=str(event.target), error=str(error))
            finally:
                self._lines.done()

    async def flush(self, seconds: float) -> None:
        """Wait until all is written, at most ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                await self._lines.written()
        except TimeoutError:
            return

    async def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        pause = self._bucket.take(loop.time())
        while pause > 0:
            await asyncio.sleep(pause)
            pause = self._bucket.take(loop.time())

    def _sentence(self, correlated: Correlated, event: Event, loop_now: float) -> _Sentence:
        identity = correlated.identity
        sentence = self._sentences.get(identity)
        if sentence is None or loop_now - sentence.first_at > FORGET_AFTER:
            now = self._now()
            suffix = digest([*identity, now.isoformat()], 16)
            name = f"{event.target.key.name[:230]}.{suffix}"
            sentence = _Sentence(name, now, loop_now, now, shortened(correlated.message))
            self._sentences.pop(identity, None)
            self._sentences[identity] = sentence
            if len(self._sentences) > MOST_SENTENCES:
                del self._sentences[next(iter(self._sentences))]
        sentence.message = shortened(correlated.message)
        return sentence

    async def _write(self, event: Event, sentence: _Sentence) -> None:
        key = Key(event.target.key.namespace or "default", sentence.name)
        if sentence.written:
            patch = {
                "count": sentence.count,
                "lastTimestamp": format_time(sentence.last),
                "message": sentence.message[:_LONGEST_MESSAGE],
            }
            try:
                await self._client.merge_patch(Ref(EVENT, key), patch)
                return
            except ApiError as error:
                if not error.not_found:
                    raise
        try:
            await self._client.create(EVENT, self._body(event, sentence, key))
        except ApiError as error:
            if not error.already_exists:  # a lost answer: it is there
                raise
        sentence.written = True

    def _body(self, event: Event, sentence: _Sentence, key: Key) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "involvedObject": _involved(event.target),
            "type": event.type,
            "reason": event.reason,
            "message": sentence.message[:_LONGEST_MESSAGE],
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._component,
            "firstTimestamp": format_time(sentence.first),
            "lastTimestamp": format_time(sentence.last),
            "count": sentence.count,
        }


def _involved(target: Ref) -> dict[str, str]:
    """As a core/v1 ObjectReference."""
    return {
        "apiVersion": target.kind.api_version,
        "kind": target.kind.name,
        "name": target.key.name,
        **({"namespace": target.key.namespace} if target.key.namespace else {}),
        **({"uid": target.uid} if target.uid else {}),
    }
