"""Its workload cluster can't be reached: what is left undone for that, and in which words.

Left undone is all that its Node would have to know of first: deletion of the host, changes of it, its replacement.
Making a host goes on: the first hosts of a cluster are what its API runs on, and nothing is lost by one too many
that its owner asked for.
"""

from __future__ import annotations

from api import names
from api.conditions import MachineCondition, Reason
from controllers.kernel.conditions import Condition, find
from controllers.kernel.plan import Blocked
from controllers.machine.decision import Cause, Decision, condition, up_to_date
from controllers.machine.observe import Observed

REQUEUE_AFTER = 300.0
"""Seconds. Contact with the cluster wakes the Machine at once."""
WAY_OUT = f"annotate the Machine with {names.ABANDON_NODE_ANNOTATION} to give up its Node and pods"


def is_frozen(observed: Observed) -> bool:
    """Whether its host must stay because nobody can ask its Node; not if nobody cares for that Node any more."""
    return observed.unreachable is not None and not gives_up_node(observed)


def gives_up_node(observed: Observed) -> str:
    """Why its Node is neither drained nor deleted, "" if it has to be."""
    if not observed.deleting:
        return ""
    if observed.goes_with_its_cluster:
        return "its whole cluster is being deleted"
    if observed.unreachable is not None and names.ABANDON_NODE_ANNOTATION in observed.annotations:
        return f"the annotation {names.ABANDON_NODE_ANNOTATION} says so"
    return ""


def never_had_a_node(observed: Observed) -> bool:
    """No host was ever bound to it, so none can have joined."""
    return not observed.provider_id and not observed.status.get("nodeRef")


def message(observed: Observed) -> str:
    """No times and no causes: the Cluster tells those, and each would cost a write on every Machine."""
    return f"Cluster {observed.cluster_title} can't be reached (see its condition Reachable)"


def holds(observed: Observed, what: str) -> tuple[str, str]:
    """Reason and text of a deletion of which ``what`` waits."""
    return str(Reason.CONNECTION_DOWN), f"{message(observed)}: {what} until it can; {WAY_OUT}"


def hold_change(observed: Observed, doing: str) -> Decision:
    """The host is not as its Machine asks, and stays so for now."""
    text = f"{message(observed)}: {doing} waits for it"
    return Decision(
        None,
        outcome=Blocked(text, REQUEUE_AFTER),
        up_to_date=up_to_date(False, Reason.CONNECTION_DOWN, text),
        warning=Cause(Reason.CONNECTION_DOWN, text),
    )


def may_be_ready(observed: Observed) -> Condition:
    """Ready as it was last known, else Unknown.

    Pods run on while an API server is away. If all Machines of the cluster turned bad at once, a rollout would take
    them for unhealthy ones and let go of more than it may.
    """
    ready = find(observed.status.get("conditions"), MachineCondition.READY)
    if ready is not None and ready.get("status") == "True":
        return condition(MachineCondition.READY, True, str(ready.get("reason")), str(ready.get("message") or ""))
    return condition(MachineCondition.READY, None, Reason.CONNECTION_DOWN, message(observed))


def node_condition(observed: Observed) -> Condition:
    return condition(MachineCondition.NODE_READY, None, Reason.CONNECTION_DOWN, message(observed))
