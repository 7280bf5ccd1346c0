"""A control plane in the tree of its Cluster, and what is wrong with its etcd and certificates."""

from __future__ import annotations

from controllers.kernel.refs import CLUSTER
from nodewright.reports.tree.branch import Mood
from nodewright.reports.tree.drawing import rows
from tests.builders import cluster, machine
from tests.cli.test_tree import line, tree_of
from tests.controllers.controlplane.test_reconciler import ControlPlaneBuilder


def test_a_control_plane_is_shown_with_its_machines_below_its_cluster() -> None:
    prod = cluster("prod")
    plane = ControlPlaneBuilder(version="1.36.0")
    plane.body["spec"]["clusterName"] = "prod"
    plane.condition("ControlPlaneReady", "False", "ControlPlaneNotReady", "Machine cp-2 does not work")
    plane.condition("EtcdHealthy", "False", "EtcdQuorumLost", "1 of 3 voters are healthy, quorum is 2")
    machines = [machine(f"cp-{n}").in_cluster("prod").owned_by(plane.build()).ready() for n in (1, 2)]
    tree = tree_of(CLUSTER, prod, plane, *machines)
    (found,) = [branch for _, branch in rows(tree) if branch.name == "ControlPlane/cp"]
    assert found.mood is Mood.BAD
    assert [child.name for child in found.children] == ["EtcdHealthy", "Machine/cp-1", "Machine/cp-2"]
    assert "restore a snapshot" in line(tree, "EtcdHealthy").advice
    assert [branch.name for _, branch in rows(tree)].count("Machine/cp-1") == 1


def test_a_cluster_whose_certificates_last_has_no_line_of_them() -> None:
    prod = cluster("prod").condition("CertificatesValid", "True").condition("CertificatesExpiring", "False")
    assert not [branch for _, branch in rows(tree_of(CLUSTER, prod)) if "Certificates" in branch.name]
    prod.condition("CertificatesExpiring", "True", "CertificatesExpiring", "the kubeconfig ends in 3 days")
    assert line(tree_of(CLUSTER, prod), "CertificatesExpiring").mood is Mood.BAD
