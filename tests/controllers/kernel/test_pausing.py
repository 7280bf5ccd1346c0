"""Who is paused, and by what."""

from __future__ import annotations

import pytest

from controllers.kernel.ownership import SPEC_PAUSED_STAMP, cluster_name_of, cluster_of, paused_by
from tests.builders import FakeView, cluster, machine, machine_deployment, machine_set
from tests.builders.objects import Builder

PAUSED = {
    "its own annotation": (machine("m").annotated("nodewright.dev/paused"), "nodewright.dev/paused"),
    "an annotation without a value": (machine("m").annotated("cluster.x-k8s.io/paused", ""), "cluster.x-k8s.io/paused"),
    "what a person wrote": (
        machine("m").annotated("nodewright.dev/paused", "moving\nthe racks"),
        "has the annotation nodewright.dev/paused: moving the racks",
    ),
    "a text that is too long": (machine("m").annotated("nodewright.dev/paused", "x" * 300), f"paused: {'x' * 200}…"),
    "a cluster's annotation": (cluster("c").annotated("cluster.x-k8s.io/paused"), "Cluster default/c"),
    "a cluster's spec": (cluster("c").paused(), "Cluster default/c has spec.paused"),
    "initializers": (
        machine("m").annotated("machine-controller.kubermatic.io/initializers", "dns"),
        "Machine default/m waits for initializers: dns",
    ),
}
NOT_PAUSED = {
    "nothing says so": machine("m"),
    "no initializer is left": machine("m").annotated("machine-controller.kubermatic.io/initializers", ""),
    "initializers of what is no Machine": machine_set("ms").annotated(
        "machine-controller.kubermatic.io/initializers", "dns"
    ),
    "spec.paused of a deployment stops only its rollout": machine_deployment("md").paused(),
    "the stamp of spec.paused says nothing new": machine_deployment("md").annotated(
        "cluster.x-k8s.io/paused", SPEC_PAUSED_STAMP
    ),
}


@pytest.mark.parametrize(("builder", "why"), PAUSED.values(), ids=PAUSED.keys())
def test_paused(builder: Builder, why: str) -> None:
    assert why in paused_by((None, builder.build()))


@pytest.mark.parametrize("value", ["", "true", "True", "yes"])
def test_a_mere_yes_is_not_repeated(value: str) -> None:
    said = paused_by((machine("m").annotated("nodewright.dev/paused", value).build(),))
    assert said.endswith("has the annotation nodewright.dev/paused")


@pytest.mark.parametrize("builder", NOT_PAUSED.values(), ids=NOT_PAUSED.keys())
def test_not_paused(builder: Builder) -> None:
    assert paused_by((builder.build(), None)) == ""


def test_the_cluster_is_found_by_label_by_name_or_through_the_template() -> None:
    by_name = machine_set("ms")
    by_name.template["spec"]["clusterName"] = "c"
    by_label = machine_set("ms").template_label("cluster.k8s.io/cluster-name", "c")
    for builder in (machine("m").in_cluster("c"), by_name, by_label):
        assert cluster_name_of(builder.build()) == "c"
        assert cluster_of(builder.build(), FakeView(cluster("c"))) is not None
    assert cluster_of(machine("m").build(), FakeView(cluster("c"))) is None
