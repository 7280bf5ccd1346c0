"""Which labels and taints of the Machine were left off its Node, and why: the condition NodeMetadataAllowed."""

from __future__ import annotations

from api.conditions import MachineCondition, Reason
from controllers.kernel.conditions import Condition
from controllers.kernel.wording import some_of
from controllers.machine.decision import condition
from controllers.machine.observe import Observed

_MOST = 5


def decide(observed: Observed) -> Condition | None:
    """None: all that the Machine asks for may reach its Node."""
    left_off = observed.left_off
    if not left_off:
        return None
    text = (
        f"{some_of(left_off, _MOST)} may not reach its Node: the administrator allows such labels by "
        "--allow-node-labels, and taints by --allow-node-taints"
    )
    return condition(MachineCondition.NODE_METADATA_ALLOWED, False, Reason.NOT_ALLOWED, text)
