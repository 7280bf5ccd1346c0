"""Pods that are not made yet: the rights beside the autoscaler's are what it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.autoscaler.plan import plan
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.refs import REPLICA_SET
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.test_expected_pods import owner
from tests.controllers.autoscaler.town import observed_of
from tests.deploy.rights import Watched, arguments_in, needed_by, rights_in, with_component
from tests.docs.pages import ROOT

COMPONENT = ROOT / "deploy" / "components" / "proactive"
AUTOSCALER = (ROOT / "deploy" / "autoscaler" / "rights.yaml", ROOT / "deploy" / "rbac" / "kubeconfigs.yaml")
OPTIONS = AutoscalerOptions(GrowthOptions(proactive=True))


def lived() -> Watched:
    """Nodes are added for a ReplicaSet without pods."""
    watched = Watched(AutoscalerReconciler(OPTIONS))
    fleet = Fleet(OPTIONS)
    fleet.group("a")
    watched.actions.extend(plan(observed_of(fleet, (REPLICA_SET, owner()))).actions())
    return watched


def test_beside_the_autoscaler_it_may_do_what_it_needs_and_nothing_else() -> None:
    own, theirs, needed = rights_in(COMPONENT / "rbac.yaml"), rights_in(*AUTOSCALER), needed_by(lived())
    assert sorted(map(str, needed - own - theirs)) == [], "it lacks rights"
    assert sorted(map(str, own - needed)) == [], "it has needless rights"


@pytest.mark.parametrize("base", ["autoscaler", "provisioningrequests"])
def test_the_component_gives_the_autoscaler_its_flag(kubectl_binary: Path, tmp_path: Path, base: str) -> None:
    assert "--enable-proactive-scaleup" in arguments_in(with_component(kubectl_binary, tmp_path, base, "proactive"))
