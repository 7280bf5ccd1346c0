"""Which Cluster an object belongs to, and which kinds live in a cluster of its own."""

from __future__ import annotations

import pytest

from api.names import GROUP
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.node_policy import cluster_key_of, kubeconfig_secret_of, recorded_secret
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_SET, SECRET, WORKLOAD_KINDS, Key, Kind
from nodewright.runtime.settings.wiring import clusters_of, kinds_in, kinds_of, reconcilers
from tests.builders import Builder, cluster, machine, machine_set

PROD, OTHER = Key("default", "prod"), Key("default", "other")


@pytest.mark.parametrize("kind", kinds_of(reconcilers()), ids=str)
def test_each_kind_that_rooms_read_lives_in_one_place(kind: Kind) -> None:
    """Ours lie with the Machines. A kind of Kubernetes' own that is missing here would be read in the wrong cluster."""
    assert (kind.group == GROUP or kind == SECRET) != (kind in WORKLOAD_KINDS)


@pytest.mark.parametrize(
    ("kind", "obj", "belongs_to"),
    [
        (MACHINE, machine("m").in_cluster("prod"), PROD),
        (MACHINE_SET, machine_set("s").in_cluster("prod"), PROD),
        (CLUSTER, cluster("prod"), PROD),
        (MACHINE, machine("m"), None),
    ],
)
def test_an_object_belongs_to_the_cluster_that_it_names(kind: Kind, obj: Builder, belongs_to: Key | None) -> None:
    assert cluster_key_of(kind, obj.build()) == belongs_to


def test_the_secret_has_the_name_that_cluster_api_gives_it() -> None:
    assert kubeconfig_secret_of(PROD) == Key("default", "prod-kubeconfig")


def test_a_cluster_remembers_that_it_had_a_secret() -> None:
    assert recorded_secret({"metadata": {}, "status": {"kubeconfigSecret": "prod-kubeconfig"}}) == "prod-kubeconfig"
    assert recorded_secret(cluster("prod").build()) == recorded_secret(None) == ""


def test_for_rooms_that_see_one_cluster_nothing_is_watched_elsewhere() -> None:
    """Neither rights nor memory are needed for it there; others need what they did."""
    there, home = AutoscalerReconciler(AutoscalerOptions(cluster=PROD)), AutoscalerReconciler()
    assert not WORKLOAD_KINDS & {*kinds_of((there,))}
    assert {*kinds_of((there,))} == {*home.reads} - WORKLOAD_KINDS
    assert {*kinds_in((there,), PROD)} == {*there.reads} & WORKLOAD_KINDS
    assert kinds_in((there,), OTHER) == kinds_in((home,), PROD) == ()
    assert {*kinds_of((home,))} == {*home.reads}
    usual = {*kinds_in(reconcilers(), OTHER)}
    assert usual == {*kinds_in((*reconcilers(), home, there), OTHER)} < {*kinds_in((*reconcilers(), there), PROD)}
    assert clusters_of((*reconcilers(), home, there)) == {PROD}
