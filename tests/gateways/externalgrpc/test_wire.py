"""What crosses the wire: names and numbers, Nodes as Kubernetes reads them, options and prices."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import structlog
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.timestamp_pb2 import Timestamp
from structlog.testing import capture_logs

from api import names
from controllers.autoscaler import templates
from controllers.autoscaler.prices import PriceTable, PriceTableError, read_table
from controllers.kernel import machine_facts
from controllers.kernel.refs import MACHINE_DEPLOYMENT, Key, Obj, Ref
from controllers.scaling.node_group import Bounds, NodeGroup
from nodewright.apiserver.protobuf import messages
from nodewright.gateways.externalgrpc import group_options, translate
from nodewright.gateways.externalgrpc.fleet import KINDS, Fleet
from nodewright.gateways.externalgrpc.prices import requests_of
from nodewright.gateways.externalgrpc.reads import CallError, ReadOptions, Reads
from nodewright.gateways.externalgrpc.server import SERVICE
from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire
from nodewright.gateways.externalgrpc.wire import core_pb2 as core
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.settings.options import utc_now
from tests.builders.objects import MachineBuilder, machine, machine_deployment
from tests.gateways.externalgrpc import contract

_TYPES = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_ENUM: "enum",
}
GIB = 1024**3


def shown(field: FieldDescriptor) -> str:
    if field.type != FieldDescriptor.TYPE_MESSAGE:
        return _TYPES[field.type]
    if field.message_type.GetOptions().map_entry:
        return "map"
    package = f"{SERVICE.file.package}."
    return f"{'repeated ' if field.is_repeated else ''}{field.message_type.full_name.removeprefix(package)}"


def test_the_service_has_the_name_and_the_methods_that_clients_call() -> None:
    assert SERVICE.full_name == "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"
    assert set(SERVICE.methods_by_name) == contract.METHODS


@pytest.mark.parametrize("name", contract.MESSAGES)
def test_messages_have_the_numbers_that_clients_know(name: str) -> None:
    ours = wire.DESCRIPTOR.message_types_by_name[name]
    fields = {field.name: (field.number, shown(field)) for field in ours.fields}
    wanted = contract.MESSAGES[name]
    assert {key: fields[key] for key in wanted} == wanted
    assert all(kind.startswith("Meta") for key, (_, kind) in fields.items() if key not in wanted), "of releases to 1.34"


def test_states_have_the_numbers_that_clients_know() -> None:
    assert dict(wire.InstanceStatus.InstanceState.items()) == contract.STATES


def test_a_template_is_a_node_to_kubernetes_under_both_numbers() -> None:
    body = (
        machine_deployment("batch")
        .annotated(names.CAPACITY_CPU_ANNOTATION, "3500m")
        .annotated(names.CAPACITY_MEMORY_ANNOTATION, "16Gi")
        .annotated(names.CAPACITY_GPU_TYPE_ANNOTATION, "nvidia.com/gpu")
        .annotated(names.CAPACITY_GPU_COUNT_ANNOTATION, "2")
        .annotated(names.CAPACITY_LABELS_ANNOTATION, "zone=a")
        .annotated(names.CAPACITY_TAINTS_ANNOTATION, "dedicated=batch:NoSchedule")
        .build()
    )
    shape = templates.from_nothing(body, "MachineDeployment/default/batch")
    answer = translate.template(shape, templates.capacity_of(body), "MachineDeployment/default/batch")
    assert answer.nodeInfo == answer.nodeBytes
    node = messages.read("core.v1.Node", memoryview(answer.nodeBytes))
    assert node["metadata"]["labels"]["zone"] == "a"
    assert node["metadata"]["annotations"] == {names.NODE_GROUP_ANNOTATION: "MachineDeployment/default/batch"}
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == node["metadata"]["name"]
    assert node["spec"]["taints"] == [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
    offered = {"cpu": "3500m", "memory": str(16 * GIB), "pods": "110", "nvidia.com/gpu": "2"}
    assert node["status"]["allocatable"] == node["status"]["capacity"] == offered
    assert [(c["type"], c["status"]) for c in node["status"]["conditions"]] == [("Ready", "True")]
    assert node["status"]["nodeInfo"] == {"operatingSystem": "linux", "architecture": "amd64"}


@pytest.mark.parametrize(
    ("built", "going", "id_", "state", "error"),
    [
        (machine("m").provider_id("sim://1").ready().on_node("m"), False, "sim://1", 1, None),
        (machine("m").provider_id("sim://1").pending(), False, "sim://1", 2, None),
        (machine("m").pending(), False, "pending://default/m", 2, None),
        (machine("m").pending("QuotaExceeded", "cores"), False, "pending://default/m", 2, ("QuotaExceeded", 1)),
        (machine("m").pending("StockOut"), False, "pending://default/m", 2, ("StockOut", 1)),
        (machine("m").failed("InvalidConfiguration"), False, "pending://default/m", 2, ("InvalidConfiguration", 99)),
        (machine("m").provider_id("sim://1").deleting(), True, "sim://1", 3, None),
        (machine("m").pending("StockOut"), True, "pending://default/m", 3, None),
    ],
)
def test_instances(built: MachineBuilder, going: bool, id_: str, state: int, error: tuple[str, int] | None) -> None:
    found = translate.instance(machine_facts.read(built.build()), going)
    assert (found.id, found.status.instanceState) == (id_, state)
    told = found.status.errorInfo
    assert ((told.errorCode, told.instanceErrorClass) if told.errorCode else None) == error


def test_a_group_that_rolls_out_says_that_it_can_not_shrink() -> None:
    group = NodeGroup(Ref(MACHINE_DEPLOYMENT, Key("default", "a")), Bounds(1, 4), 3)
    assert translate.node_group(group, 3, rolling=False).minSize == 1
    assert translate.node_group(group, 3, rolling=True).minSize == 3
    assert translate.node_group(group, 9, rolling=True).minSize == 4


def options(**fields: object) -> wire.NodeGroupAutoscalingOptions:
    return wire.NodeGroupAutoscalingOptions(**fields)  # type: ignore[arg-type]


def test_options_echo_what_the_group_does_not_speak_of_in_both_generations() -> None:
    prefix = names.AUTOSCALING_OPTIONS_PREFIX
    asked = options(scaleDownUtilizationThreshold=0.5, scaleDownGpuUtilizationThreshold=0.7)
    asked.scaleDownUnneededDuration.FromTimedelta(timedelta(minutes=10))
    asked.MaxNodeProvisionTime.duration = 15 * 60 * 10**9
    found = group_options.answer(
        {f"{prefix}scaledownunreadytime": "1m30s", f"{prefix}zeroormaxnodescaling": "true", "other": "x"}, asked
    )
    assert found is not None
    assert (found.scaleDownUtilizationThreshold, found.scaleDownGpuUtilizationThreshold) == (0.5, 0.7)
    assert found.scaleDownUnneededTime.duration == 600 * 10**9
    assert found.scaleDownUnneededDuration.ToTimedelta() == timedelta(minutes=10)
    assert found.scaleDownUnreadyDuration.ToTimedelta() == timedelta(seconds=90)
    assert found.scaleDownUnreadyTime.duration == 90 * 10**9
    assert found.MaxNodeProvisionDuration.ToTimedelta() == timedelta(minutes=15)
    assert found.zeroOrMaxNodeScaling


@pytest.mark.parametrize("text", ["", "soon", "-1m", "1.5.5"])
def test_a_faulty_option_is_none(text: str) -> None:
    assert group_options.answer({f"{names.AUTOSCALING_OPTIONS_PREFIX}scaledownunreadytime": text}, options()) is None


def test_a_group_without_options_leaves_the_autoscaler_its_own() -> None:
    assert group_options.answer({}, options(scaleDownUtilizationThreshold=0.5)) is None


def test_prices_come_by_group_then_by_type_and_for_as_long_as_is_asked() -> None:
    table = read_table("nodes: {MachineDeployment/default/a: 2, m.large: 0.5}\npods: {cpu: 0.1, memory: 0.01}")
    labels = {"node.kubernetes.io/instance-type": "m.large"}
    assert table.node("MachineDeployment/default/a", labels, timedelta(hours=2)) == 4
    assert table.node("", labels, timedelta(minutes=30)) == 0.25
    assert table.node("", {}, timedelta(hours=1)) is None
    assert PriceTable().pod((), timedelta(hours=1)) == 0


def container(**requests: str) -> core.Container:
    found = {name: core.Quantity(string=text) for name, text in requests.items()}
    return core.Container(resources=core.ResourceRequirements(requests=found))


def test_a_pod_costs_what_a_scheduler_counts() -> None:
    spec = core.PodSpec(
        containers=[container(cpu="500m", memory="1Gi"), container(cpu="1")],
        initContainers=[container(cpu="2"), container(memory="512Mi")],
        overhead={"cpu": core.Quantity(string="100m")},
    )
    pod = core.Pod.FromString(core.Pod(spec=spec).SerializeToString())
    assert dict(requests_of(pod)) == {"cpu": 2100, "memory": GIB}
    assert PriceTable(pods={"cpu": 1.0, "memory": 0.5}).pod(requests_of(pod), timedelta(hours=1)) == pytest.approx(2.6)


def test_sidecars_cost_as_long_as_the_pod_and_pod_level_resources_go_before_both() -> None:
    sidecar = container(cpu="1")
    sidecar.restartPolicy = "Always"
    spec = core.PodSpec(containers=[container(cpu="1", memory="1Gi")], initContainers=[sidecar, container(cpu="500m")])
    assert dict(requests_of(core.Pod(spec=spec))) == {"cpu": 2000, "memory": GIB}
    spec.resources.requests["cpu"].string = "3"
    assert dict(requests_of(core.Pod(spec=spec))) == {"cpu": 3000, "memory": GIB}


def test_a_quantity_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match=r"spec\.containers\[0\]\.resources\.requests\[cpu\]"):
        requests_of(core.Pod(spec=core.PodSpec(containers=[container(cpu="much")])))


@pytest.mark.parametrize(
    "text", ["nodes: [1]", "nodes: {a: -1}", "nodes: {a: .nan}", "pods: {cpu: dear}", "x: {}", "["]
)
def test_a_table_that_can_not_be_used_is_refused(text: str) -> None:
    with pytest.raises(PriceTableError):
        read_table(text)


@pytest.mark.parametrize(
    "fields",
    [
        {"startTime": wire.MetaTime(seconds=7200), "endTime": wire.MetaTime(seconds=10800)},
        {"startTimestamp": Timestamp(seconds=7200), "endTimestamp": Timestamp(seconds=10800)},
    ],
)
def test_times_come_under_the_numbers_of_either_generation(fields: dict[str, object]) -> None:
    """Releases to 1.34 send meta/v1 Time, later ones a Timestamp."""
    reads = Reads(Fleet(Cache(KINDS), utc_now), ReadOptions(prices=PriceTable({"m.large": 0.5}, {"cpu": 2.0})))
    labels = {"node.kubernetes.io/instance-type": "m.large"}
    node = wire.PricingNodePriceRequest(node=wire.ExternalGrpcNode(labels=labels), **fields)  # type: ignore[arg-type]
    assert reads.PricingNodePrice(node).price == 0.5
    body = core.Pod(spec=core.PodSpec(containers=[container(cpu="1")])).SerializeToString()
    for name in ("pod", "pod_bytes"):
        pod = wire.PricingPodPriceRequest(**{name: body}, **fields)  # type: ignore[arg-type]
        assert reads.PricingPodPrice(pod).price == 2.0


PRICED = "MachineDeployment/default/batch"


def fleet_of(*deployments: Obj) -> Fleet:
    cache = Cache(KINDS)
    for kind in KINDS:
        cache.listed(kind, [dict(each) for each in deployments] if kind == MACHINE_DEPLOYMENT else [], "1")
    return Fleet(cache, utc_now)


@pytest.mark.parametrize(
    ("asked", "price"),
    [
        ({"annotations": {names.NODE_GROUP_ANNOTATION: PRICED}}, 2.0),
        ({"name": f"template-node-for-{PRICED}-5577006791947779410"}, 2.0),
        ({"name": f"template-node-for-{PRICED}-5577006791947779410-upcoming-0"}, 2.0),
        ({"name": f"template-node-for-{PRICED}-1-5577006791947779410"}, 3.0),
        ({"name": f"template-node-for-{PRICED}-5577006791947779410", "providerID": "simulated:///gone"}, 2.0),
        ({"name": PRICED}, None),
        ({"name": "template-node-for-"}, None),
        ({"name": "template-node-for-MachineDeployment/default/none-1"}, None),
        ({"annotations": {names.NODE_GROUP_ANNOTATION: "MachineDeployment/default/none"}}, None),
    ],
    ids=[
        "annotation",
        "name",
        "upcoming",
        "longest name",
        "of a Node that is gone",
        "a Node",
        "cut",
        "gone",
        "no group",
    ],
)
def test_a_template_node_costs_what_its_group_does(asked: dict[str, Any], price: float | None) -> None:
    """The Cluster Autoscaler asks for copies of the template, which have another name and no providerID."""
    groups = [
        machine_deployment(name)
        .annotated(names.AUTOSCALER_MIN_ANNOTATION, "0")
        .annotated(names.AUTOSCALER_MAX_ANNOTATION, "3")
        .build()
        for name in ("batch", "batch-1")
    ]
    fleet = fleet_of(*groups)
    table = PriceTable({PRICED: 2.0, f"{PRICED}-1": 3.0})
    reads = Reads(fleet, ReadOptions(prices=table))
    span = {"startTimestamp": Timestamp(seconds=0), "endTimestamp": Timestamp(seconds=3600)}
    request = wire.PricingNodePriceRequest(node=wire.ExternalGrpcNode(**asked), **span)  # type: ignore[arg-type]
    if price is None:
        with pytest.raises(CallError, match="add its group or instance type"):
            reads.PricingNodePrice(request)
    else:
        assert reads.PricingNodePrice(request).price == price


def test_a_group_that_never_shrinks_over_this_wire_is_told_once() -> None:
    """The Cluster Autoscaler compares group objects of which externalgrpc makes one for each Node."""
    zero_or_max = f"{names.AUTOSCALING_OPTIONS_PREFIX}zeroormaxnodescaling"
    body = machine_deployment("batch").annotated(names.AUTOSCALER_MIN_ANNOTATION, "0").annotated(zero_or_max, "true")
    other = machine_deployment("usual").annotated(names.AUTOSCALER_MIN_ANNOTATION, "0")
    built = [each.annotated(names.AUTOSCALER_MAX_ANNOTATION, "3").build() for each in (body, other)]
    reads = Reads(fleet_of(*built), ReadOptions(group_options=True))
    structlog.reset_defaults()
    with capture_logs() as lines:
        for name in ("batch", "usual", "batch", "batch"):
            request = wire.NodeGroupAutoscalingOptionsRequest(id=f"MachineDeployment/default/{name}")
            found = reads.NodeGroupGetOptions(request).nodeGroupAutoscalingOptions
            assert found.zeroOrMaxNodeScaling is (name == "batch")
    assert [(line["log_level"], line["group"]) for line in lines] == [("warning", PRICED)]
    assert "never shrinks" in lines[0]["event"]
