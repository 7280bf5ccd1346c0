"""MachineDrainRule: which pods move in which order when a Node is drained, which stay, which are waited for."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api import names
from api.meta import LabelSelector, ObjectMeta
from api.model import ATOMIC_LIST, Model, Rule, Schema
from api.resource import AGE, Column, Resource

_Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1), Schema({"format": "int32"})]


class MachineDrainRuleDrain(Model):
    """What to do with the pods."""

    __rules__: ClassVar = (
        Rule("!has(self.order) || self.behavior == 'Drain'", "order goes with behavior Drain only", ".order"),
    )

    behavior: Literal["Drain", "Skip", "WaitCompleted"]
    """Drain: they are evicted. Skip: they stay and hold nothing up. WaitCompleted: the drain waits until they end by
    themselves."""
    order: _Int32 | None = None
    """Pods of a lower order are evicted first; pods of the next order when those are gone. Default: 0."""


class MachineDrainRuleMachineSelector(Model):
    """Machines that the rule is about. Both selectors must match; one that is not given matches all."""

    __rules__: ClassVar = (
        Rule(
            "has(self.selector) || has(self.clusterSelector)", "selector or clusterSelector must be given", ".selector"
        ),
    )

    selector: LabelSelector | None = None
    """Selects Machines by their labels."""
    cluster_selector: LabelSelector | None = None
    """Selects them by the labels of their Cluster."""


class MachineDrainRulePodSelector(Model):
    """Pods that the rule is about. Both selectors must match; one that is not given matches all."""

    __rules__: ClassVar = (
        Rule(
            "has(self.selector) || has(self.namespaceSelector)",
            "selector or namespaceSelector must be given",
            ".selector",
        ),
    )

    selector: LabelSelector | None = None
    """Selects pods by their labels."""
    namespace_selector: LabelSelector | None = None
    """Selects them by the labels of their namespace."""


_MachineSelectors = Annotated[list[MachineDrainRuleMachineSelector], Field(min_length=1, max_length=32), ATOMIC_LIST]
_PodSelectors = Annotated[list[MachineDrainRulePodSelector], Field(min_length=1, max_length=32), ATOMIC_LIST]


class MachineDrainRuleSpec(Model):
    """Which pods of which Machines, and what to do with them."""

    drain: MachineDrainRuleDrain
    """What to do with the pods."""
    machines: _MachineSelectors | None = None
    """Machines of the rule's namespace to which it applies: those that at least one entry selects. Default: all."""
    pods: _PodSelectors | None = None
    """Pods to which it applies: those that at least one entry selects. Default: all."""


class MachineDrainRule(Model):
    """Says how pods are treated when the Node of a Machine is drained. If several rules match a pod, the first by name
    applies.
    """

    resource: ClassVar = Resource(
        kind="MachineDrainRule",
        plural="machinedrainrules",
        short_name="mdr",
        columns=(
            Column("Behavior", ".spec.drain.behavior", "What is done with the pods."),
            Column("Order", ".spec.drain.order", "Pods of a lower order move first.", "integer"),
            AGE,
        ),
    )

    api_version: str = names.API_VERSION
    """Version of the schema of this object."""
    kind: Literal["MachineDrainRule"] = "MachineDrainRule"
    """Kind of this object."""
    metadata: ObjectMeta = ObjectMeta()
    """Standard metadata."""
    spec: MachineDrainRuleSpec
    """Which pods, and what to do with them."""
