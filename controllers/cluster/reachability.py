"""Can the Cluster's own API be reached? What is said of it, once for each time that it changes."""

from __future__ import annotations

from typing import Any

from api import names
from api.conditions import ClusterCondition, Reason
from controllers.cluster.observe import Observed
from controllers.kernel.actions import Action, Event, Patch
from controllers.kernel.conditions import Condition, find, format_time
from controllers.kernel.refs import key_of, resource_version_of
from controllers.kernel.view import ManagementCluster, Reached, Unreachable

_TYPE = str(ClusterCondition.REACHABLE)
_GRANT = "grant the kubeconfig's user list and watch of it there"


def condition(observed: Observed) -> Condition:
    """Reachable. Its words stay the same for as long as the trouble does."""
    match observed.workload:
        case ManagementCluster():
            return Condition(_TYPE, "True", str(Reason.REACHABLE), "its Nodes live in the cluster that holds it")
        case Reached(secret=secret, lacking=lacking):
            more = f"; certificates of its kubelets are not approved: {lacking}; {_GRANT}" if lacking else ""
            return Condition(_TYPE, "True", str(Reason.REACHABLE), f"by Secret {secret}{more}")
        case Unreachable(reason=reason, why=why, last_contact=moment):
            heard = f"last answer at {format_time(moment)}" if moment else "no answer since the controllers started"
            return Condition(_TYPE, "False", str(reason), f"{why}; {heard}")


def facts(observed: Observed) -> dict[str, Any]:
    """The Secret by which it is reached. Never taken back: without it the Cluster would be taken for home."""
    return {"kubeconfigSecret": _secret(observed)} if _secret(observed) else {}


def news(observed: Observed) -> list[Action]:
    """An Event when contact is lost and when it is found again; a new Cluster that is reached is no news."""
    current = condition(observed)
    old = find(observed.status.get("conditions"), _TYPE)
    before = str(old.get("status")) if old else "True"
    if current.status == before:
        return []
    if current.status == "False":
        return [Event(observed.ref, "Warning", current.reason, current.message)]
    return [Event(observed.ref, "Normal", current.reason, f"it answers again, {current.message}")]


def hold(observed: Observed) -> Patch | None:
    """Keep a Cluster of its own as long as it has Machines: gone, nobody would know where their Nodes live."""
    have = list(observed.cluster["metadata"].get("finalizers") or ())
    kept = _secret(observed) or (observed.endpoint is not None and observed.endpoint.known is not None)
    if not kept or observed.deleting or observed.paused or names.CLUSTER_FINALIZER in have:
        return None
    return Patch(
        observed.ref,
        {"metadata": {"finalizers": [*have, names.CLUSTER_FINALIZER]}},
        f"hold Cluster {key_of(observed.cluster)} while Machines of it are left",
        resource_version=resource_version_of(observed.cluster),
    )


def _secret(observed: Observed) -> str:
    """ "" for a Cluster that is in the management cluster, or may be."""
    return "" if isinstance(observed.workload, ManagementCluster) else observed.workload.secret
