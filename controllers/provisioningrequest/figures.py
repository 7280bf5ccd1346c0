"""The numbers of a look at all requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from controllers.kernel.plan import Figure, Measure
from controllers.provisioningrequest.deciding import Decided
from controllers.provisioningrequest.ground import Ground
from controllers.provisioningrequest.observe import Observed
from controllers.provisioningrequest.stages import Stage

_PREFIX = "nodewright_provisioning_"
MEASURES: list[Measure] = []


def _measure(name: str, meaning: str, *labels: str, total: bool = False) -> Measure:
    found = Measure(f"{_PREFIX}{name}", meaning, labels, total)
    MEASURES.append(found)
    return found


_REQUESTS = _measure("requests", "ProvisioningRequests by stage.", "stage")
_BOOKED = _measure("booked_nodes", "Nodes on which ProvisioningRequests hold room.")
_ADDED = _measure("nodes_total", "Nodes that were asked for by ProvisioningRequests.", total=True)
_ROLLED_BACK = _measure("rollbacks_total", "Requests of which a part could not be had.", total=True)


def figures(observed: Observed, decided: Sequence[Decided], ground: Ground) -> tuple[Figure, ...]:
    stages = Counter(each.stage for each in decided)
    added = sum(count for each in decided for count in each.added.values())
    back = sum(1 for each in decided if each.record is not None and each.record.leaving)
    booked = {name for seats in ground.held.values() for name in seats.nodes}
    return (
        *(Figure(_REQUESTS, stages[stage], (stage,)) for stage in Stage if stages[stage]),
        Figure(_BOOKED, len(booked)),
        *((Figure(_ADDED, added),) if added else ()),
        *((Figure(_ROLLED_BACK, back),) if back else ()),
    )
