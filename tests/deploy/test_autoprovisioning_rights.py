"""Groups of the autoscaler's making: the rights beside its own are what its plans ask for; the component renders."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.autoscaler.plan import plan
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.actions import Create, Delete
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.town import observed_of
from tests.deploy.rights import Watched, granted, needed_by
from tests.docs.pages import ROOT

COMPONENT = ROOT / "deploy" / "components" / "autoprovisioning"
AUTOSCALER = ROOT / "deploy" / "autoscaler" / "rights.yaml"
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
    role = next(yaml.safe_load_all((COMPONENT / "rbac.yaml").read_text()))
    own = set(granted(role))
    theirs = {each for doc in yaml.safe_load_all(AUTOSCALER.read_text()) if "rules" in doc for each in granted(doc)}
    theirs |= {*granted(yaml.safe_load((ROOT / "deploy" / "rbac" / "kubeconfigs.yaml").read_text()))}
    needed = needed_by(lived())
    assert sorted(map(str, needed - own - theirs)) == [], "it lacks rights"
    assert sorted(map(str, own - needed)) == [], "it has needless rights"


@pytest.mark.parametrize("base", ["autoscaler", "provisioningrequests"])
def test_the_component_gives_the_autoscaler_its_flag(kubectl_binary: Path, tmp_path: Path, base: str) -> None:
    above = Path("../" * (len(tmp_path.parts) - 1)) / ROOT.relative_to("/")
    text = f"resources: [{above}/deploy/{base}]\ncomponents: [{above}/deploy/components/autoprovisioning]\n"
    (tmp_path / "kustomization.yaml").write_text(text)
    done = subprocess.run(
        [kubectl_binary, "kustomize", tmp_path], capture_output=True, text=True, timeout=60, check=True
    )
    documents = list(yaml.safe_load_all(done.stdout))
    (deployment,) = [doc for doc in documents if doc["kind"] == "Deployment"]
    args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--max-autoprovisioned-node-group-count=15" in args
    assert "nodewright-autoprovisioning" in {
        doc["metadata"]["name"] for doc in documents if doc["kind"] == "ClusterRole"
    }
