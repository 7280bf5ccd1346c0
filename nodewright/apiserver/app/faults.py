"""Faults on request, so that tests can see how clients take them. Without any, a request pays one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nodewright.apiserver.app.stats import RequestKey
from nodewright.apiserver.app.streams import LiveWatches
from nodewright.apiserver.values import ApiError

Kind = Literal["answer", "lose answer", "delay"]


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests: each field None matches everything. `name` is the object's ("" for collections)."""

    verb: str | None = None
    resource: str | None = None
    subresource: str | None = None
    name: str | None = None
    user_agent: str | None = None

    def takes(self, key: RequestKey, name: str) -> bool:
        """Say whether a request is meant."""
        return (
            self.verb in (None, key.verb)
            and self.resource in (None, key.resource)
            and self.subresource in (None, key.subresource)
            and self.name in (None, name)
            and self.user_agent in (None, key.user_agent)
        )


@dataclass(slots=True)
class _Fault:
    kind: Kind
    match: Match
    skip: int
    times: int
    error: ApiError | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with a request: wait, refuse it, or serve it and hang up instead of answering."""

    error: ApiError | None = None
    lose_answer: bool = False
    delay_seconds: float = 0.0


class Faults:
    """The faults that are still to come, in the order in which they were asked for.

    `nth` counts the matching requests from 1; `times` is for how many in a row the fault then holds.
    """

    def __init__(self, live: LiveWatches) -> None:
        self.hits = 0
        """How many requests were hit so far."""
        self._pending: list[_Fault] = []
        self._live = live

    @property
    def active(self) -> bool:
        """True if a request may be hit."""
        return bool(self._pending)

    def answer(self, error: ApiError, match: Match | None = None, *, nth: int = 1, times: int = 1) -> None:
        """Refuse requests instead of serving them, e.g. with `ApiError.too_many_requests("slow down", 1)`."""
        self._pending.append(_Fault("answer", match or Match(), nth - 1, times, error=error))

    def lose_answer(self, match: Match | None = None, *, nth: int = 1, times: int = 1) -> None:
        """Serve requests and then close the connection: the client can't know that the write took place."""
        self._pending.append(_Fault("lose answer", match or Match(), nth - 1, times))

    def delay(self, seconds: float, match: Match | None = None, *, nth: int = 1, times: int = 1) -> None:
        """Let requests wait before they are served."""
        self._pending.append(_Fault("delay", match or Match(), nth - 1, times, seconds=seconds))

    def cut_watches(self, resource: str | None = None, error: ApiError | None = None) -> int:
        """End the running watches of a resource (None: all), after an ERROR event if one is given.

        Without it the client sees a clean end of the stream, as from a kube-apiserver that sheds a slow watcher.
        Gives the number of watches that were running.
        """
        return self._live.cut(resource, error)

    def clear(self) -> None:
        """Forget all faults that are still to come."""
        self._pending.clear()

    def judge(self, key: RequestKey, name: str) -> Verdict:
        """Decide on a request, and count it for the faults it matches."""
        verdict = Verdict()
        for fault in list(self._pending):
            if not fault.match.takes(key, name):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            fault.times -= 1
            if fault.times <= 0:
                self._pending.remove(fault)
            self.hits += 1
            verdict = Verdict(
                verdict.error or fault.error,
                verdict.lose_answer or fault.kind == "lose answer",
                verdict.delay_seconds + fault.seconds,
            )
        return verdict
