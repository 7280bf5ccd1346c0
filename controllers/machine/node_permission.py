"""Which labels and taints of the Machine were left off its Node, and why: the condition NodeMetadataAllowed."""

from __future__ import annotations

from api.conditions import MachineCondition, Reason
from controllers.kernel.conditions import Condition
from controllers.machine.decision import condition
from controllers.machine.observe import Observed

_MOST = 5


def decide(observed: Observed) -> Condition | None:
    """None: all that the Machine asks for may reach its Node."""
    left_off = observed.left_off
    if not left_off:
        return None
    more = f" and {len(left_off) - _MOST} more" if len(left_off) > _MOST else ""
    text = (
        f"{', '.join(left_off[:_MOST])}{more} may not reach its Node: the administrator allows such labels by "
        "--allow-node-labels, and taints by --allow-node-taints"
    )
    return condition(MachineCondition.NODE_METADATA_ALLOWED, False, Reason.NOT_ALLOWED, text)
