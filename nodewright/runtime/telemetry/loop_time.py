"""How long a piece of work keeps the event loop from all others: CPU time between two of its awaits.

CPU time of the thread, not wall time: what another process of the machine takes is nobody's doing here. A garbage
collection that falls into a step counts as part of it.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from time import thread_time
from typing import Any, Generic, TypeVar

_R = TypeVar("_R")


class LoopTime:
    """Loop time of one reconcile: ``longest`` step so far, in seconds. Tasks of its own join with ``shared``."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def of(self, work: Coroutine[Any, Any, _R]) -> _R:
        """Await ``work``, measured; ``shared`` finds this object in it and in the tasks that it starts."""
        token = _current.set(self)
        try:
            return await _Measured(self, work)
        finally:
            _current.reset(token)


async def shared(work: Coroutine[Any, Any, _R]) -> _R:
    """Await ``work`` in a task that a measured reconcile has started; its steps count as those of the reconcile."""
    meter = _current.get()
    return await (work if meter is None else _Measured(meter, work))


_current: ContextVar[LoopTime | None] = ContextVar("nodewright_loop_time", default=None)


class _Measured(Generic[_R]):
    """Awaits a coroutine step by step."""

    def __init__(self, meter: LoopTime, work: Coroutine[Any, Any, _R]) -> None:
        self._meter = meter
        self._work = work

    def __await__(self) -> Generator[Any, Any, _R]:
        work, meter = self._work, self._meter
        thrown: BaseException | None = None
        sent: Any = None
        while True:
            began = thread_time()
            try:
                yielded = work.send(sent) if thrown is None else work.throw(thrown)
            except StopIteration as ended:
                result: _R = ended.value
                return result
            finally:
                meter.longest = max(meter.longest, thread_time() - began)
            thrown, sent = None, None
            try:
                sent = yield yielded
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:  # a cancellation of the task is passed to the work in it
                thrown = error
