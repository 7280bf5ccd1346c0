"""Which MachineSet is the current one, its revision number, and which old ones to forget.

Going back to an earlier template finds the MachineSet kept of it and makes that the current one again: this is how
``rollback`` works here, and nothing is created or deleted that need not be.
"""

from __future__ import annotations

from typing import Any

from api import names
from controllers.kernel.actions import Delete
from controllers.kernel.refs import annotations_of, is_deleting
from controllers.machinedeployment.observe import Observed, SetState

MAX_HISTORY_TEXT = 256
"""Characters kept of the list of earlier numbers."""


def current(observed: Observed) -> SetState | None:
    """The MachineSet of the deployment's template; of several, the one with the most Machines, then the oldest.

    Several can be left behind by other controllers (cluster-api#13649 made four); all but one are rolled away as old.
    """
    found = [state for state in observed.sets if state.current]
    return min(found, key=lambda state: (-state.members.existing, state.created, state.name), default=None)


def old(observed: Observed) -> tuple[SetState, ...]:
    """All others, oldest first."""
    now = current(observed)
    return tuple(state for state in observed.sets if now is None or state.uid != now.uid)


def revision_of_current(observed: Observed) -> int:
    """One more than the highest number of the old ones; the current one keeps its number if it is above already."""
    now = current(observed)
    highest = max((state.revision for state in old(observed)), default=0)
    return now.revision if now is not None and now.revision > highest else highest + 1


def revision_annotations(observed: Observed, state: SetState | None) -> dict[str, str]:
    """Annotations of the current MachineSet; the Cluster Autoscaler's hard-coded key beside ours (autoscaler#8494)."""
    number = revision_of_current(observed)
    annotations = {names.REVISION_ANNOTATION: str(number), names.CAPI_REVISION_ANNOTATION: str(number)}
    if state is not None and state.revision and state.revision != number:
        before = annotations_of(state.body).get(names.REVISION_HISTORY_ANNOTATION, "")
        history = [part for part in before.split(",") if part] + [str(state.revision)]
        while len(",".join(history)) > MAX_HISTORY_TEXT:
            history.pop(0)
        annotations[names.REVISION_HISTORY_ANNOTATION] = ",".join(history)
    return annotations


def deployment_annotations(observed: Observed) -> dict[str, Any]:
    """The deployment shows the number of its current MachineSet."""
    number = str(revision_of_current(observed))
    return {names.REVISION_ANNOTATION: number, names.CAPI_REVISION_ANNOTATION: number}


def to_forget(observed: Observed) -> list[Delete]:
    """Empty old MachineSets beyond the limit, lowest revision first."""
    idle = [state for state in old(observed) if state.empty and not is_deleting(state.body)]
    idle.sort(key=lambda state: (state.revision, state.created, state.name))
    limit = observed.desired.history_limit
    return [
        Delete(state.ref, f"MachineSet {state.name} (revision {state.revision}) is beyond revisionHistoryLimit {limit}")
        for state in idle[: max(len(idle) - limit, 0)]
    ]
