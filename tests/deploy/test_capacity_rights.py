"""CapacityBuffers and CapacityQuotas: the rights beside the autoscaler's are what its plans ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.autoscaler.plan import plan
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.refs import CAPACITY_BUFFER, CAPACITY_QUOTA, POD_TEMPLATE
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.test_buffers import buffer, template
from tests.controllers.autoscaler.test_quotas import quota
from tests.controllers.autoscaler.town import observed_of
from tests.deploy.rights import Watched, arguments_in, needed_by, rights_in, with_component
from tests.docs.pages import ROOT

COMPONENT = ROOT / "deploy" / "components" / "capacity"
AUTOSCALER = (ROOT / "deploy" / "autoscaler" / "rights.yaml", ROOT / "deploy" / "rbac" / "kubeconfigs.yaml")
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
    own, theirs, needed = rights_in(COMPONENT / "rbac.yaml"), rights_in(*AUTOSCALER), needed_by(lived())
    assert sorted(map(str, needed - own - theirs)) == [], "it lacks rights"
    assert sorted(map(str, own - needed)) == [], "it has needless rights"


@pytest.mark.parametrize("base", ["autoscaler", "provisioningrequests"])
def test_the_component_gives_the_autoscaler_its_flags(kubectl_binary: Path, tmp_path: Path, base: str) -> None:
    documents = with_component(kubectl_binary, tmp_path, base, "capacity")
    assert {"--capacity-buffers-enabled", "--capacity-quotas-enabled"} <= arguments_in(documents)
