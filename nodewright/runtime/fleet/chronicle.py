"""Log the life of Machines at info: one line for each step, with what it is about. Only while this process decides."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import structlog

from controllers.kernel.actions import Action, Create, CreateHost, Delete, DeleteHost, RebootHost, UpdateHost
from controllers.kernel.refs import MACHINE, NODE, Ref, key_of, uid_of
from controllers.machine.milestones import milestones
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.store import Change

_log = structlog.get_logger("nodewright.machines")


_RECORDED_KINDS = frozenset((MACHINE, NODE))


def tell(action: Action) -> None:
    """Log a Machine, Node or host that comes or goes by our hand, with the reason; other actions are no line."""
    match action:
        case CreateHost() | UpdateHost() | DeleteHost() | RebootHost():
            _log.info(f"{type(action).__name__.removesuffix('Host').lower()} host", why=action.why)
        case Create(kind=kind) if kind in _RECORDED_KINDS:
            _log.info(f"create {kind.name} {key_of(action.body).name}", why=action.why)
        case Delete(target=Ref(kind=kind)) if kind in _RECORDED_KINDS:
            _log.info(f"delete {kind.name} {action.target.key.name}", why=action.why)
        case _:
            pass


class Chronicle:
    """Listens to ``cache``. Machines that are there at the first list are not logged again.

    ``speaks``: whether this process leads; a process that stands by sees the same changes and stays silent.
    """

    def __init__(self, cache: Cache, now: Callable[[], datetime], speaks: Callable[[], bool]) -> None:
        self._now = now
        self._speaks = speaks
        if MACHINE in cache.stores:
            cache.listen(MACHINE, self._changed)

    def _changed(self, change: Change, from_list: bool) -> None:
        if not self._speaks() or (from_list and change.old is None):
            return
        shown = change.new if change.new is not None else change.old
        for step in milestones(change.old, change.new, self._now()):
            log = _log.warning if step.wrong else _log.info
            log(
                step.text,
                kind=MACHINE.name,
                namespace=change.key.namespace,
                name=change.key.name,
                uid=uid_of(shown) if shown is not None else "",
                why=step.why,
            )
