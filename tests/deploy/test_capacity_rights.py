"""CapacityBuffers and CapacityQuotas: the rights beside the autoscaler's are what its plans ask for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.autoscaler.plan import plan
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.refs import CAPACITY_BUFFER, CAPACITY_QUOTA, POD_TEMPLATE
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.test_buffers import buffer, template
from tests.controllers.autoscaler.test_quotas import quota
from tests.controllers.autoscaler.town import observed_of
from tests.deploy.rights import Watched, granted, needed_by
from tests.docs.pages import ROOT

COMPONENT = ROOT / "deploy" / "components" / "capacity"
AUTOSCALER = ROOT / "deploy" / "autoscaler" / "rights.yaml"
OPTIONS = AutoscalerOptions(GrowthOptions(buffers=True, quotas=True))


def lived() -> Watched:
    """Nodes are added for a buffer within a quota, and the status of both is written."""
    watched = Watched(AutoscalerReconciler(OPTIONS))
    fleet = Fleet(OPTIONS)
    fleet.group("a")
    shown = [(CAPACITY_BUFFER, buffer(replicas=3)), (POD_TEMPLATE, template()), (CAPACITY_QUOTA, quota("q", cpu=4))]
    watched.actions.extend(plan(observed_of(fleet, *shown)).actions())
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
def test_the_component_gives_the_autoscaler_its_flags(kubectl_binary: Path, tmp_path: Path, base: str) -> None:
    above = Path("../" * (len(tmp_path.parts) - 1)) / ROOT.relative_to("/")
    text = f"resources: [{above}/deploy/{base}]\ncomponents: [{above}/deploy/components/capacity]\n"
    (tmp_path / "kustomization.yaml").write_text(text)
    done = subprocess.run(
        [kubectl_binary, "kustomize", tmp_path], capture_output=True, text=True, timeout=60, check=True
    )
    (deployment,) = [doc for doc in yaml.safe_load_all(done.stdout) if doc["kind"] == "Deployment"]
    args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {"--capacity-buffers-enabled", "--capacity-quotas-enabled"} <= {*args}
