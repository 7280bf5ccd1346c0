"""The version with which hosts join a control plane: raised before the first newer one joins, and never lowered."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import yamltext
from controllers.bootstrap.calls import Change, Post, Refused
from controllers.bootstrap.cluster_version import CONFIG, agree
from controllers.kernel.refs import Key
from tests.controllers.bootstrap.conversations import Cut, Servers

BINDING = Key("", "kubeadm:apiserver-kubelet-client")
CONFIGURATION = """\
apiServer:
  certSANs: [api.example]
apiVersion: kubeadm.k8s.io/v1beta4
clusterName: prod
kind: ClusterConfiguration
kubernetesVersion: v1.35.4
networking:
  podSubnet: 10.244.0.0/16
"""


def servers(text: Any = CONFIGURATION) -> Servers:
    found = Servers()
    metadata = {"namespace": CONFIG.namespace, "name": CONFIG.name}
    found.put("nodes", {"metadata": metadata, "data": {"ClusterConfiguration": text}})
    return found


def configuration(found: Servers) -> Any:
    return yamltext.load(found.objects["nodes", CONFIG]["data"]["ClusterConfiguration"])


@pytest.mark.parametrize("version", ["1.36.3", "1.36.0", "1.35.5"])
def test_a_newer_version_is_written_and_all_else_stays(version: str) -> None:
    found = servers()
    assert found.run(agree(version)) is True
    assert configuration(found) == {**yamltext.load(CONFIGURATION), "kubernetesVersion": f"v{version}"}


def test_the_user_that_a_newer_api_server_reads_logs_as_is_allowed_to_before() -> None:
    found = servers()
    found.run(agree("1.36.3"))
    binding = found.objects["nodes", BINDING]
    assert binding["roleRef"]["name"] == "system:kubelet-api-admin"
    assert [each["name"] for each in binding["subjects"]] == ["kube-apiserver-kubelet-client"]
    assert [type(call) for call in found.calls][1:] == [Post, Change]


def test_the_version_that_is_there_costs_one_read() -> None:
    found = servers()
    assert found.run(agree("1.35.4")) is True
    assert len(found.calls) == 1


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("1.35.3", "1.35.3 is older"),
        ("1.34.9", "1.34.9 is older"),
        ("1.37.0", "the next is 1.36"),
        ("2.0.0", "the next is 1.36"),
    ],
)
def test_no_other_way_is_gone(version: str, words: str) -> None:
    found = servers()
    said = found.run(agree(version))
    assert isinstance(said, Refused)
    assert (said.reason, words in said.message) == ("VersionSkew", True)
    assert configuration(found)["kubernetesVersion"] == "v1.35.4"


def test_while_kubeadm_init_has_not_ended_nobody_joins() -> None:
    said = Servers().run(agree("1.36.3"))
    assert isinstance(said, Refused)
    assert said.reason == "WaitingForControlPlane"


def test_somebody_who_was_faster_is_not_overwritten() -> None:
    found, told = servers(), agree("1.36.3")
    call = next(told)
    while not isinstance(call, Change):
        call = told.send(found.answer(call))
    found.put("nodes", found.objects["nodes", CONFIG])
    with pytest.raises(StopIteration) as ended:
        told.send(found.answer(call))
    assert ended.value.value is False


@pytest.mark.parametrize("cut", range(3))
def test_a_crash_before_any_call_leaves_what_is_taken_up_again(cut: int) -> None:
    found = servers()
    found.cut_before = cut
    with pytest.raises(Cut):
        found.run(agree("1.36.3"))
    found.cut_before = None
    assert found.run(agree("1.36.3")) is True
    assert configuration(found)["kubernetesVersion"] == "v1.36.3"


@given(
    st.one_of(
        st.none(),
        st.integers(),
        st.text(max_size=60),
        st.sampled_from(["a: &a [*a]", "[1]", "kubernetesVersion: [1]", "kubernetesVersion: " + "9" * 400, "{"]),
    )
)
def test_whatever_lies_there_is_answered(text: Any) -> None:
    found = servers(text)
    before = found.objects["nodes", CONFIG]["data"]
    said = found.run(agree("1.36.3"))
    assert isinstance(said, Refused)
    assert "kube-system/kubeadm-config" in said.message
    assert found.objects["nodes", CONFIG]["data"] == before
