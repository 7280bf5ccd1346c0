"""Groups of the autoscaler's making: the rights beside its own are what its plans ask for; the component renders."""

from __future__ import annotations

from pathlib import Path

import pytest

from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.autoscaler.plan import plan
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.actions import Create, Delete
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.town import observed_of
from tests.deploy.rights import Watched, arguments_in, needed_by, rights_in, with_component
from tests.docs.pages import ROOT

COMPONENT = ROOT / "deploy" / "components" / "autoprovisioning"
AUTOSCALER = (ROOT / "deploy" / "autoscaler" / "rights.yaml", ROOT / "deploy" / "rbac" / "kubeconfigs.yaml")
OPTIONS = AutoscalerOptions(GrowthOptions(own_groups=3))


def lived() -> Watched:
    """A group is made, gets its Nodes, and is deleted."""
    watched = Watched(AutoscalerReconciler(OPTIONS))
    fleet = Fleet(OPTIONS)
    fleet.offer("large")
    fleet.pod("p")
    watched.actions.extend(plan(observed_of(fleet)).actions())
    fleet.round()
    fleet.pods.clear()
    for body in fleet.deployments.values():
        body["spec"]["replicas"] = 0
    watched.actions.extend(plan(observed_of(fleet)).actions())
    assert {type(each) for each in watched.actions} > {Create, Delete}
    return watched


def test_beside_the_autoscaler_it_may_do_what_it_needs_and_nothing_else() -> None:
    own, theirs, needed = rights_in(COMPONENT / "rbac.yaml"), rights_in(*AUTOSCALER), needed_by(lived())
    assert sorted(map(str, needed - own - theirs)) == [], "it lacks rights"
    assert sorted(map(str, own - needed)) == [], "it has needless rights"


@pytest.mark.parametrize("base", ["autoscaler", "provisioningrequests"])
def test_the_component_gives_the_autoscaler_its_flag(kubectl_binary: Path, tmp_path: Path, base: str) -> None:
    documents = with_component(kubectl_binary, tmp_path, base, "autoprovisioning")
    assert "--max-autoprovisioned-node-group-count=15" in arguments_in(documents)
    assert "nodewright-autoprovisioning" in {
        doc["metadata"]["name"] for doc in documents if doc["kind"] == "ClusterRole"
    }
