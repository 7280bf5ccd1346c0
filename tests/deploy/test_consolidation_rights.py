"""Consolidation: the rights beside the autoscaler's own are what its plans ask for; the component renders."""

from __future__ import annotations

from pathlib import Path

import pytest

from api import names
from controllers.autoscaler.options import AutoscalerOptions, ConsolidationOptions
from controllers.autoscaler.plan import plan
from controllers.autoscaler.reconciler import AutoscalerReconciler
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.town import observed_of
from tests.deploy.rights import Watched, arguments_in, needed_by, rights_in, with_component
from tests.docs.pages import ROOT

COMPONENT = ROOT / "deploy" / "components" / "consolidation"
AUTOSCALER = (ROOT / "deploy" / "autoscaler" / "rights.yaml", ROOT / "deploy" / "rbac" / "kubeconfigs.yaml")
OPTIONS = AutoscalerOptions(consolidation=ConsolidationOptions(enabled=True))


def lived() -> Watched:
    """One ends on a MachineDeployment and one on a MachineSet that belongs to none."""
    watched = Watched(AutoscalerReconciler(OPTIONS))
    fleet = Fleet(OPTIONS)
    for name in ("web", "alone"):
        fleet.group(name)["metadata"]["annotations"][names.CONSOLIDATION_ANNOTATION] = "over"
    fleet.sets["alone"] = {**fleet.deployments.pop("alone"), "status": {}}
    watched.actions.extend(plan(observed_of(fleet)).actions())
    return watched


def test_beside_the_autoscaler_it_may_do_what_it_needs_and_nothing_else() -> None:
    own, theirs, needed = rights_in(COMPONENT / "rbac.yaml"), rights_in(*AUTOSCALER), needed_by(lived())
    assert sorted(map(str, needed - own - theirs)) == [], "it lacks rights"
    assert sorted(map(str, own - needed)) == [], "it has needless rights"


@pytest.mark.parametrize("base", ["autoscaler", "provisioningrequests"])
def test_the_component_gives_the_autoscaler_its_flag(kubectl_binary: Path, tmp_path: Path, base: str) -> None:
    documents = with_component(kubectl_binary, tmp_path, base, "consolidation")
    assert "--consolidation-enabled" in arguments_in(documents)
    assert "nodewright-consolidation" in {doc["metadata"]["name"] for doc in documents if doc["kind"] == "ClusterRole"}
