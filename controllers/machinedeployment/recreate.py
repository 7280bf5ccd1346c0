"""Recreate: all old Machines go, hosts included, before the first new one comes."""

from __future__ import annotations

from collections.abc import Sequence

from controllers.kernel.wording import counted
from controllers.machinedeployment.observe import Observed, SetState
from controllers.machinedeployment.targets import Targets


def recreate(observed: Observed, now: SetState, old: Sequence[SetState]) -> Targets:
    wanted = observed.desired.replicas
    targets = {state.uid: 0 for state in old}
    left = sum(state.total + len(state.members.deleting) for state in old)
    targets[now.uid] = min(now.replicas, wanted) if left else wanted
    notes = ("new Machines wait until " + counted(left, "old one is gone", "old ones are gone"),) if left else ()
    return Targets(targets, notes)
