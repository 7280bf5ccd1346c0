"""Which labels and taints of a Machine may reach its Node."""

from __future__ import annotations

import pytest

from api.conditions import MachineCondition, Reason
from controllers.kernel.actions import Patch
from controllers.kernel.node_policy import DEFAULT, NodePolicy, Rule, filtered, only_allowed, read_rule
from controllers.kernel.refs import NODE, Key
from controllers.kernel.view import HostAbsent, HostPresent, HostReads
from controllers.machine.host_spec import desired_host
from controllers.machine.reconciler import MachineReconciler
from providers.base.contract import Host, HostState, NodeRegistration, Taint
from tests.builders import FakeView, machine, node
from tests.builders.machines import MachineBuilder

LABELS = {
    "pool": True,
    "example.com/pool": True,
    "machine-controller/owned-by": True,
    "topology.kubernetes.io/zone": True,
    "node.kubernetes.io/instance-type": True,
    "kubelet.kubernetes.io/x": True,
    "node-role.kubernetes.io/worker": True,
    "node-role.kubernetes.io/control-plane": False,
    "node-role.kubernetes.io/master": False,
    "node-restriction.kubernetes.io/payments": False,
    "team.node-restriction.kubernetes.io/payments": False,
    "kubernetes.io/hostname": False,
    "kubernetes.io/role": False,
    "cluster.k8s.io/machine": False,
    "evilkubernetes.io/x": True,
    "kubernetes.io": True,
}


@pytest.mark.parametrize(("key", "passes"), LABELS.items())
def test_label(key: str, passes: bool) -> None:
    assert DEFAULT.allows_label("team", key) is passes


TAINTS = {
    ("dedicated", "NoExecute"): True,
    ("node-role.kubernetes.io/control-plane", "NoSchedule"): True,
    ("node-role.kubernetes.io/control-plane", "NoExecute"): False,
    ("node.kubernetes.io/out-of-service", "NoExecute"): False,
    ("node.kubernetes.io/unschedulable", "NoSchedule"): False,
    ("node.cloudprovider.kubernetes.io/shutdown", "NoSchedule"): False,
}


@pytest.mark.parametrize(("taint", "passes"), TAINTS.items())
def test_taint(taint: tuple[str, str], passes: bool) -> None:
    assert DEFAULT.allows_taint("team", *taint) is passes


def test_the_administrator_allows_more_in_one_namespace() -> None:
    policy = NodePolicy((read_rule("infra=node-restriction.kubernetes.io/*"),))
    assert policy.allows_label("infra", "node-restriction.kubernetes.io/x")
    assert not policy.allows_label("team", "node-restriction.kubernetes.io/x")


def test_the_administrator_protects_more_and_an_allowance_wins() -> None:
    policy = NodePolicy((read_rule("infra=pci.example.com/*"),), (read_rule("pci.example.com/*"),))
    assert not policy.allows_label("team", "pci.example.com/zone")
    assert policy.allows_label("infra", "pci.example.com/zone")
    evicts = NodePolicy(protected_taints=(read_rule("*:NoExecute"),))
    assert not evicts.allows_taint("team", "dedicated", "NoExecute")
    assert evicts.allows_taint("team", "dedicated", "NoSchedule")


@pytest.mark.parametrize("text", ["", "=x", "a=", "a b"])
def test_a_rule_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="PATTERN"):
        read_rule(text)


def test_a_rule_is_read() -> None:
    assert read_rule("team=x/*") == Rule("x/*", "team")
    assert read_rule("x/*") == Rule("x/*")


def test_what_is_left_off_is_named() -> None:
    asked = NodeRegistration({"a": "", "kubernetes.io/role": "x"}, {}, (Taint("node.kubernetes.io/x", "NoExecute"),))
    kept, left_off = filtered(DEFAULT, "team", asked)
    assert (dict(kept.labels), kept.taints) == ({"a": ""}, ())
    assert left_off == ("label kubernetes.io/role", "taint node.kubernetes.io/x:NoExecute")


@pytest.mark.parametrize("junk", [None, [], "x", {"labels": "x"}, {"labels": [1, None]}, {"taints": {"a": 1}}])
def test_a_record_of_any_shape_is_read(junk: object) -> None:
    assert set(only_allowed(DEFAULT, "team", junk)) == {"labels", "annotations", "taints"}


def asking(**labels: str) -> MachineBuilder:
    body = machine("m-1").created(60).provider_id("sim://1")
    body.spec["metadata"] = {"labels": {key.replace("__", "/"): value for key, value in labels.items()}}
    return body


def test_a_label_that_grants_rights_reaches_neither_the_node_nor_the_request_for_its_host() -> None:
    body = asking(**{"node-restriction.kubernetes.io__payments": "", "pool": "a"})
    own = node("m-1").of(body).created(30).ready()
    view = FakeView(body, own)
    shown = Host("h", "uid-m-1", "m-1", "sim://1", HostState.RUNNING, desired_host(body.build(), view).spec_hash)
    reconciler = MachineReconciler()
    observed = reconciler.observe(Key("default", "m-1"), view, HostReads(HostPresent(shown)))
    assert observed is not None
    patches = [action for action in reconciler.plan(observed).actions() if isinstance(action, Patch)]
    (written,) = [patch.patch for patch in patches if patch.target.kind is NODE]
    assert written == {"metadata": {"labels": {"pool": "a"}}}
    (status,) = [patch.patch["status"] for patch in patches if patch.target.kind is not NODE]
    (said,) = [c for c in status["conditions"] if c["type"] == MachineCondition.NODE_METADATA_ALLOWED]
    assert (said["status"], said["reason"]) == ("False", Reason.NOT_ALLOWED)
    assert "node-restriction.kubernetes.io/payments" in said["message"]
    assert observed.desired.request is not None
    assert "node-restriction.kubernetes.io/payments" not in observed.desired.request.node.labels


def test_a_status_that_a_user_wrote_takes_no_protected_label_or_taint_from_the_node() -> None:
    body = asking()
    body.status["appliedNodeMetadata"] = {
        "labels": ["node-role.kubernetes.io/control-plane", "kubernetes.io/hostname"],
        "taints": ["node.kubernetes.io/unschedulable:NoSchedule"],
    }
    own = node("m-1").of(body).created(30).ready().tainted("node.kubernetes.io/unschedulable")
    own.labelled({"node-role.kubernetes.io/control-plane": "", "kubernetes.io/hostname": "m-1"})
    view = FakeView(body, own)
    shown = Host("h", "uid-m-1", "m-1", "sim://1", HostState.RUNNING, desired_host(body.build(), view).spec_hash)
    observed = MachineReconciler().observe(Key("default", "m-1"), view, HostReads(HostPresent(shown)))
    assert observed is not None
    assert not [
        a for a in MachineReconciler().plan(observed).actions() if isinstance(a, Patch) and a.target.kind is NODE
    ]


def test_the_condition_goes_with_its_cause() -> None:
    body = asking().condition("NodeMetadataAllowed", "False", "NotAllowed")
    observed = MachineReconciler().observe(Key("default", "m-1"), FakeView(body), HostReads(HostAbsent()))
    assert observed is not None
    (status,) = [a.patch["status"] for a in MachineReconciler().plan(observed).actions() if isinstance(a, Patch)]
    assert "NodeMetadataAllowed" not in {c["type"] for c in status["conditions"]}
