"""What a strategy answers: how many replicas each MachineSet is to have now, and why not more.

Every single change must be right without the others: they are applied in no order, and the process may die in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from controllers.machinedeployment.observe import SetState


@dataclass(frozen=True, slots=True)
class Targets:
    """``replicas`` by uid of the MachineSet; one that is not named keeps what it has (never zero: MCM#802)."""

    replicas: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def of(self, state: SetState) -> int:
        return max(self.replicas.get(state.uid, state.replicas), state.floor)


def within_ceiling(sizes: Mapping[str, int], sets: Sequence[SetState], max_total: int) -> dict[str, int]:
    """``sizes`` (by uid) by which no MachineSet makes a Machine too many: those that others have to give up, and still
    have, hold hosts until they are gone (seed 614 scaled down in a rollout). Older sets give way first.
    """
    held = {state.uid: max(sizes.get(state.uid, state.replicas), state.members.alive) for state in sets}
    allowed = dict(sizes)
    for state in sets:
        if state.uid in sizes:
            others = sum(held.values()) - held[state.uid]
            allowed[state.uid] = min(sizes[state.uid], max(max_total - others, state.members.alive))
            held[state.uid] = max(allowed[state.uid], state.members.alive)
    return allowed


class Stock:
    """A MachineSet while a reconcile is worked out: whoever goes first is taken from its head.

    Protected Machines are at its end and are never taken.
    """

    def __init__(self, state: SetState, replicas: int | None = None) -> None:
        self.state = state
        wanted = state.replicas if replicas is None else replicas
        missing = max(wanted - len(state.going), 0)
        self._queue = [*([None] * missing), *state.going]
        del self._queue[: len(self._queue) - wanted]

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def takeable(self) -> bool:
        """Whether there is one to take."""
        return bool(self._queue) and (self._queue[0] is None or not self._queue[0].protected)

    def head_is_annotated(self) -> bool:
        return bool(self._queue) and self._queue[0] is not None and self._queue[0].annotated

    def head_is_available(self, available: frozenset[str]) -> bool:
        head = self._queue[0]
        return head is not None and head.uid in available

    def take(self) -> None:
        self._queue.pop(0)

    def count(self, available: frozenset[str]) -> int:
        """How many available Machines are left."""
        return sum(1 for machine in self._queue if machine is not None and machine.uid in available)
