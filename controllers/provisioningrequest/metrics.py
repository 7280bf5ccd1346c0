"""The numbers of a look at all requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from controllers.kernel.plan import Metric, Sample
from controllers.provisioningrequest.deciding import Decided
from controllers.provisioningrequest.observe import Observed
from controllers.provisioningrequest.stages import Stage
from controllers.provisioningrequest.trial_snapshot import TrialSnapshot

_PREFIX = "nodewright_provisioning_"
METRICS: list[Metric] = []


def _metric(name: str, meaning: str, *labels: str, total: bool = False) -> Metric:
    found = Metric(f"{_PREFIX}{name}", meaning, labels, total)
    METRICS.append(found)
    return found


_REQUESTS = _metric("requests", "ProvisioningRequests by stage.", "stage")
_BOOKED = _metric("booked_nodes", "Nodes on which ProvisioningRequests hold room.")
_ADDED = _metric("nodes_total", "Nodes that were asked for by ProvisioningRequests.", total=True)
_ROLLED_BACK = _metric("rollbacks_total", "Requests of which a part could not be had.", total=True)


def samples(observed: Observed, decided: Sequence[Decided], trial_snapshot: TrialSnapshot) -> tuple[Sample, ...]:
    stages = Counter(each.stage for each in decided)
    added = sum(count for each in decided for count in each.added.values())
    back = sum(1 for each in decided if each.record is not None and each.record.leaving)
    booked = {name for reservation in trial_snapshot.held.values() for name in reservation.nodes}
    return (
        *(Sample(_REQUESTS, stages[stage], (stage,)) for stage in Stage if stages[stage]),
        Sample(_BOOKED, len(booked)),
        *((Sample(_ADDED, added),) if added else ()),
        *((Sample(_ROLLED_BACK, back),) if back else ()),
    )
