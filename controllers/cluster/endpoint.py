"""The endpoint that the provider makes for a Cluster: written down, made, published, given to its hosts, and removed.

    config -> status.providerStatus -> EnsureEndpoint -> spec.controlPlaneEndpoint -> … -> RemoveEndpoint -> finalizer

Nothing is made before its config is written down and the finalizer holds the Cluster, so nothing is left behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from api.conditions import ClusterCondition, Reason
from controllers.kernel.actions import Action, EnsureEndpoint, Patch, RemoveEndpoint
from controllers.kernel.conditions import Condition
from controllers.kernel.endpoints import NOBODY_MAKES, EndpointKnown, EndpointsView, asked_of, recorded_of
from controllers.kernel.machine_facts import MachineFacts, read
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    Obj,
    is_deleting,
    key_of,
    mapping,
    ref_of,
    resource_version_of,
    spec_of,
)
from controllers.kernel.view import CONTROL_PLANE_OF, View
from providers.base.endpoints import ENDPOINT_PORT, EndpointMember, EndpointRequest

SOON, AGAIN = 2.0, 60.0
"""Seconds until a reconcile looks again: while something is under way, and else."""
_TYPE = str(ClusterCondition.ENDPOINT_READY)


@dataclass(frozen=True, slots=True)
class Endpointing:
    """``asked``: the config of the spec; ``recorded``: that of the status, which counts where there is one.

    ``request``: with the config that counts. ``known`` None: nobody makes endpoints here.
    """

    asked: Mapping[str, Any] | None
    recorded: Mapping[str, Any] | None
    request: EndpointRequest
    known: EndpointKnown | None = field(default=None)

    @property
    def is_of_an_earlier_config(self) -> bool:
        return self.recorded is not None and self.asked != self.recorded

    @property
    def is_to_be_made_anew(self) -> bool:
        """Nobody knows an address yet, so another config counts as soon as nothing is left of the earlier one."""
        return self.is_of_an_earlier_config and not self.request.host


def look_at(cluster: Obj, view: View, endpoints: EndpointsView = NOBODY_MAKES) -> Endpointing | None:
    """None: no endpoint is asked for, and none was made."""
    asked, recorded = asked_of(cluster), recorded_of(cluster)
    config = recorded or asked
    if config is None:
        return None
    key, ref = key_of(cluster), ref_of(CLUSTER, cluster)
    host = mapping(spec_of(cluster).get("controlPlaneEndpoint")).get("host")
    known_host = host if isinstance(host, str) else ""
    request = EndpointRequest(ref.uid, key.namespace, key.name, config, _members(view, str(key)), known_host)
    return Endpointing(asked, recorded, request, endpoints.look(request))


def actions(endpointing: Endpointing | None, cluster: Obj, *, last: bool) -> list[Action]:
    """What is to be done now. ``last``: the Cluster goes, and nothing else is left of it."""
    if endpointing is None or endpointing.recorded is None or endpointing.known is None:
        return []
    known, request, ref = endpointing.known, endpointing.request, ref_of(CLUSTER, cluster)
    if last or endpointing.is_to_be_made_anew:
        why = f"remove the endpoint of Cluster {ref.key}"
        return [] if known.gone else [RemoveEndpoint(ref, request, why)]
    if known.host and not request.host:
        why = f"the endpoint of Cluster {ref.key} is {known.host}"
        endpoint = {"controlPlaneEndpoint": {"host": known.host, "port": ENDPOINT_PORT}}
        return [Patch(ref, {"spec": endpoint}, why, resource_version=resource_version_of(cluster))]
    why = f"make the endpoint of Cluster {ref.key}" if not request.host else f"see to the endpoint of Cluster {ref.key}"
    return [EnsureEndpoint(ref, request, why)] if known.due or known.gone else []


def record(endpointing: Endpointing | None, cluster: Obj) -> dict[str, Any]:
    """What is written down of the config, before anything is made. Taken back once nothing is left of that."""
    if endpointing is None or endpointing.known is None or is_deleting(cluster):
        return {}
    if endpointing.recorded is None:
        return {} if endpointing.known.reason else {"providerStatus": dict(endpointing.asked or {})}
    if endpointing.is_to_be_made_anew and endpointing.known.gone:
        return {"providerStatus": None}
    return {}


def is_gone(endpointing: Endpointing | None) -> bool:
    """Whether nothing of an endpoint keeps the Cluster."""
    if endpointing is None or endpointing.recorded is None:
        return True
    return endpointing.known is not None and endpointing.known.gone


def look_again(endpointing: Endpointing | None) -> float:
    """Seconds until the next look, 0 if there is nothing to look at."""
    if endpointing is None or endpointing.known is None:
        return 0.0
    known = endpointing.known
    settled = known.host and endpointing.request.host and not known.waits and not known.reason and not known.due
    return AGAIN if settled else SOON


def conditions(endpointing: Endpointing | None) -> list[Condition]:
    """EndpointReady, where an endpoint is made."""
    if endpointing is None:
        return []
    known = endpointing.known
    if known is None:
        return [Condition(_TYPE, "Unknown", str(Reason.ENDPOINT_PENDING), "this process makes no endpoints")]
    if known.reason:
        return [Condition(_TYPE, "False", known.reason, known.message)]
    if endpointing.is_to_be_made_anew:
        text = "what was begun with an earlier configuration is removed first"
        return [Condition(_TYPE, "False", str(Reason.ENDPOINT_PENDING), text)]
    if known.waits or not known.host:
        return [Condition(_TYPE, "False", str(Reason.ENDPOINT_PENDING), known.waits or "it is being made")]
    changed = (
        "; its configuration was changed since, which has no effect" if endpointing.is_of_an_earlier_config else ""
    )
    return [Condition(_TYPE, "True", str(Reason.ENDPOINT_READY), f"{known.host}{changed}")]


def _members(view: View, cluster: str) -> tuple[EndpointMember, ...]:
    """The Machines of the control plane, the oldest first; those that go only where there are no others."""
    found = [read(machine) for machine in view.indexed(MACHINE, CONTROL_PLANE_OF, cluster)]
    staying = [machine for machine in found if not machine.deleting] or found
    return tuple(EndpointMember(each.uid, each.ready) for each in sorted(staying, key=_age))


def _age(machine: MachineFacts) -> tuple[Any, str]:
    return machine.created, machine.key.name
