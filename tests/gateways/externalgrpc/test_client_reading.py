"""What a provider may answer, and what its caller makes of it: the worst, the unknown, and the file that names it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import limits
from controllers.autoscaler.external import Instance, InstanceState
from controllers.autoscaler.templates import from_nothing
from controllers.scheduling.demand import ShapeError
from nodewright.gateways.externalgrpc.client import reading
from nodewright.gateways.externalgrpc.client.config import CloudConfig, CloudConfigError, read_config
from nodewright.gateways.externalgrpc.client.reading import AnswerError
from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire
from nodewright.gateways.externalgrpc.wire import core_pb2 as core

Group, State = wire.NodeGroup, wire.InstanceStatus


def test_groups_that_can_not_be_used_are_named_and_the_others_go_on() -> None:
    good, bad = reading.group_ids(
        [
            Group(id="a", minSize=1, maxSize=3),
            Group(id="", maxSize=1),
            Group(id="line\nbreak", maxSize=1),
            Group(id="b", minSize=3, maxSize=1),
            Group(id="c", minSize=-1, maxSize=1),
            Group(id="d", maxSize=limits.MAX_PROVIDER_SIZE + 1),
            Group(id="twice", maxSize=1),
            Group(id="twice", maxSize=9),
        ]
    )
    assert good == {"a": (1, 3)}
    assert bad.keys() == {"", "line break", "b", "c", "d", "twice"}


def test_too_many_groups_or_instances_are_no_answer() -> None:
    with pytest.raises(AnswerError, match="NodeGroups: more than"):
        reading.group_ids(Group(id=str(n), maxSize=1) for n in range(limits.MAX_PROVIDER_GROUPS + 1))
    with pytest.raises(AnswerError, match="NodeGroupNodes: more than"):
        reading.instances(wire.Instance(id="x") for _ in range(limits.MAX_PROVIDER_INSTANCES + 1))


@pytest.mark.parametrize("size", [-1, limits.MAX_PROVIDER_SIZE + 1])
def test_a_size_that_can_not_be_meant_is_no_answer(size: int) -> None:
    with pytest.raises(AnswerError, match="NodeGroupTargetSize"):
        reading.size(size)


def test_an_error_counts_of_an_instance_that_is_being_created_alone() -> None:
    error = wire.InstanceErrorInfo(errorCode="STOCKOUT", errorMessage="no\x1b[31m room", instanceErrorClass=1)
    found = reading.instances(
        [
            wire.Instance(id="a", status=State(instanceState=2, errorInfo=error)),
            wire.Instance(id="b", status=State(instanceState=1, errorInfo=error)),
            wire.Instance(id="c"),
            wire.Instance(id="c", status=State(instanceState=3)),
            wire.Instance(id="d", status=State(instanceState=77)),
        ]
    )
    assert found == (
        Instance("a", InstanceState.CREATING, "STOCKOUT: no [31m room", True),
        Instance("b", InstanceState.RUNNING),
        Instance("c"),
        Instance("d"),
    )


def node(**status: str) -> core.Node:
    quantities = {name: core.Quantity(string=text) for name, text in status.items()}
    return core.Node(status=core.NodeStatus(allocatable=quantities))


def test_a_template_is_what_pods_may_use() -> None:
    found = node(cpu="4", memory="8Gi")
    found.status.capacity["cpu"].string = "5"
    found.metadata.labels["pool"] = "a"
    found.metadata.labels["kubernetes.io/hostname"] = "template"
    shape = reading.template(found.SerializeToString())
    assert (shape.capacity, shape.labels) == ({"cpu": "4", "memory": "8Gi"}, {"pool": "a"})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xff\xff",
        b"\x00" * (limits.MAX_PROVIDER_NODE + 1),
        core.Node(metadata=core.ObjectMeta(labels={str(n): "" for n in range(300)})).SerializeToString(),
        core.Node(spec=core.NodeSpec(taints=[core.Taint(key="a", effect="Sometimes")])).SerializeToString(),
    ],
    ids=["empty", "no protobuf", "too large", "too many labels", "unknown effect"],
)
def test_a_template_that_can_not_be_used_is_no_answer(content: bytes) -> None:
    with pytest.raises(AnswerError, match="NodeGroupTemplateNodeInfo"):
        reading.template(content)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_template_or_no_answer(content: bytes) -> None:
    try:
        shape = reading.template(content)
        from_nothing({"metadata": {}}, "g", shape=shape)
    except (AnswerError, ShapeError):
        pass


@given(
    st.floats(),
    st.floats(),
    st.integers(-(2**40), 2**40),
)
def test_options_that_mean_nothing_are_left_out(share: float, gpu: float, seconds: int) -> None:
    answer = wire.NodeGroupAutoscalingOptionsResponse()
    said = answer.nodeGroupAutoscalingOptions
    said.scaleDownUtilizationThreshold, said.scaleDownGpuUtilizationThreshold = share, gpu
    said.scaleDownUnneededDuration.seconds = seconds
    found = reading.options(answer)
    assert ("scaledownutilizationthreshold" in found) == (0 < share <= 1)
    assert ("scaledownunneededtime" in found) == (0 < seconds < limits.MAX_PROVIDER_SECONDS)


def test_unset_options_are_the_autoscalers_own() -> None:
    assert reading.options(wire.NodeGroupAutoscalingOptionsResponse()) == {}


@pytest.mark.parametrize("price", [float("nan"), float("inf"), -1.0])
def test_a_price_that_is_none_is_not_told(price: float) -> None:
    assert reading.price(price) is None


def test_the_configuration_is_the_cluster_autoscalers() -> None:
    text = "address: '[::1]:8086'\ncert: a\nkey: b\ncacert: c\ngrpc_timeout: 10s\nsomething: else\n"
    assert read_config(text) == CloudConfig("[::1]:8086", "a", "b", "c", 10.0)
    assert read_config("address: provider:1\ncacert: c\n").credentials() is None
    assert read_config("address: provider:1\n").timeout == 5.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "a map"),
        ("[1]", "a map"),
        ("cert: a", "address"),
        ("address: provider", "address: 'provider'"),
        ("address: provider:http", "address"),
        ("address: ::1:80", "address"),
        ("address: 8086", "address: must be text"),
        ("address: p:1\ncert: a\nkey: b", "cacert: is needed"),
        ("address: p:1\ncert: a\ncacert: b", "key: is needed"),
        ("address: p:1\nkey: a", "cert: is needed"),
        ("address: p:1\ngrpc_timeout: soon", "grpc_timeout"),
        ("address: p:1\ngrpc_timeout: 0s", "grpc_timeout: must be more than 0"),
        ("a: &a [1]\naddress: *a", "YAML"),
    ],
)
def test_a_configuration_that_can_not_be_used_names_the_field(text: str, expected: str) -> None:
    with pytest.raises(CloudConfigError, match=expected):
        read_config(text)


def test_files_that_are_no_pem_are_named(tmp_path: Path) -> None:
    config = CloudConfig("p:1", str(tmp_path / "missing"), "b", "c")
    with pytest.raises(CloudConfigError, match=r"cert: .*missing"):
        config.credentials()
    (tmp_path / "missing").write_text("hello")
    with pytest.raises(CloudConfigError, match="no PEM"):
        config.credentials()
