"""From our words to those of the wire. Pure.

An instance's id is its Machine's ``spec.providerID``, and until there is one ``pending://namespace/name``; the latter
is understood for good, since whoever heard of it may come back later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from api import names
from controllers.autoscaler.health import OUT_OF_CAPACITY
from controllers.kernel.machine_facts import MachineFacts
from controllers.scaling.node_group import NodeGroup
from controllers.scheduling.shapes import CPU, HOSTNAME, Amounts, NodeInfo
from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire
from nodewright.gateways.externalgrpc.wire import core_pb2 as core

PENDING = "pending://"
OUT_OF_RESOURCES, OTHER = 1, 99
"""Error classes of the Cluster Autoscaler. Either makes it leave the group alone for a while."""
LONGEST_MESSAGE = 256
"""Characters of an instance's error: a client takes answers of 4 MiB at most, for thousands of instances."""
_TEMPLATE_PREFIX = "template-node-for-"
_MOST_NAME_PARTS = 3
_ARCHITECTURE, _SYSTEM = "kubernetes.io/arch", "kubernetes.io/os"
_State = wire.InstanceStatus.InstanceState


def node_group(group: NodeGroup, replicas: int, rolling: bool) -> wire.NodeGroup:
    """While it rolls out a group can't get smaller over this wire: then its size is its least, so that no Node is
    drained for a removal that would be refused.
    """
    smallest, largest = group.bounds.min_size, group.bounds.max_size
    if rolling:
        smallest = min(max(smallest, replicas), largest)
    debug = f"{group.id}: {replicas} of {smallest} to {largest}" + (", rolling out" if rolling else "")
    return wire.NodeGroup(id=group.id, minSize=smallest, maxSize=largest, debug=debug)


def instances(machines: Iterable[MachineFacts], leaving: Iterable[MachineFacts]) -> wire.NodeGroupNodesResponse:
    going = {machine.key for machine in leaving}
    found = (instance(machine, machine.deleting or machine.key in going) for machine in machines)
    return wire.NodeGroupNodesResponse(instances=found)


def instance(machine: MachineFacts, going: bool) -> wire.Instance:
    """A Machine with a Node runs, one without is being created, and may tell why it never will be."""
    if going:
        status = wire.InstanceStatus(instanceState=_State.instanceDeleting)
    elif machine.node_name:
        status = wire.InstanceStatus(instanceState=_State.instanceRunning)
    else:
        status = wire.InstanceStatus(instanceState=_State.instanceCreating, errorInfo=error_of(machine))
    return wire.Instance(id=instance_id(machine), status=status)


def instance_id(machine: MachineFacts) -> str:
    known = (machine.body.get("spec") or {}).get("providerID")
    return known if isinstance(known, str) and known else f"{PENDING}{machine.key}"


def error_of(machine: MachineFacts) -> wire.InstanceErrorInfo | None:
    """Why nobody should wait for it: it failed for good, or its provider has no room now."""
    short = machine.reason in OUT_OF_CAPACITY
    if not short and not machine.failed:
        return None
    return wire.InstanceErrorInfo(
        errorCode=machine.reason or "Failed",
        errorMessage=machine.message[:LONGEST_MESSAGE],
        instanceErrorClass=OUT_OF_RESOURCES if short else OTHER,
    )


def template(node: NodeInfo, capacity: Amounts, group: str) -> wire.NodeGroupTemplateNodeInfoResponse:
    """Under the number of every release. ``group``: id of the node group, see ``candidate_groups``."""
    content = node_of(node, capacity, group).SerializeToString()
    return wire.NodeGroupTemplateNodeInfoResponse(nodeInfo=content, nodeBytes=content)


def node_of(shape: NodeInfo, capacity: Amounts, group: str) -> core.Node:
    """A Ready Node of that shape: ``capacity`` is what it has, pods may use what is allocatable."""
    name = shape.name.replace("/", "-").lower()
    system = core.NodeSystemInfo(
        operatingSystem=shape.labels.get(_SYSTEM, ""), architecture=shape.labels.get(_ARCHITECTURE, "")
    )
    return core.Node(
        metadata=core.ObjectMeta(
            name=name, labels={**shape.labels, HOSTNAME: name}, annotations={names.NODE_GROUP_ANNOTATION: group}
        ),
        spec=core.NodeSpec(
            taints=(core.Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in shape.taints)
        ),
        status=core.NodeStatus(
            capacity=_quantities(capacity),
            allocatable=_quantities(shape.allocatable),
            conditions=(core.NodeCondition(type="Ready", status="True", reason="Template"),),
            nodeInfo=system,
        ),
    )


def candidate_groups(node: wire.ExternalGrpcNode) -> Iterator[str]:
    """Ids of node groups that a Node without a Machine may stand for, the most certain first.

    The Cluster Autoscaler asks for the price of copies, named ``template-node-for-<group id>-<random>`` and, for Nodes
    that are on their way, with further parts behind. A copy of our template carries the id in an annotation. A copy of
    a Node that is gone by now has it in its name alone.
    """
    if group := node.annotations.get(names.NODE_GROUP_ANNOTATION):
        yield group
    rest = node.name.removeprefix(_TEMPLATE_PREFIX)
    if rest == node.name:
        return
    for _ in range(_MOST_NAME_PARTS):
        rest, dash, _last = rest.rpartition("-")
        if not dash:
            return
        yield rest


def gpu_types(labels: Iterable[Mapping[str, str]], gpu_label: str) -> wire.GetAvailableGPUTypesResponse:
    """Values that the label has on Nodes of any group; the autoscaler looks at the keys alone."""
    answer = wire.GetAvailableGPUTypesResponse()
    for found in labels:
        if found.get(gpu_label):
            answer.gpuTypes[found[gpu_label]].Clear()
    return answer


def _quantities(amounts: Amounts) -> dict[str, core.Quantity]:
    return {name: core.Quantity(string=_quantity(name, amount)) for name, amount in amounts}


def _quantity(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == CPU else str(amount)
