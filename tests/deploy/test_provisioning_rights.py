"""ProvisioningRequests: the rights beside the autoscaler's are what the plans ask for, and the folder renders."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from api import provisioning_names
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.provisioningrequest.reconciler import ProvisioningRequestReconciler
from tests.controllers.provisioningrequest.office import Office
from tests.deploy.rights import Watched, granted, needed_by
from tests.docs.pages import ROOT

FOLDER = ROOT / "deploy" / "provisioningrequests"
AUTOSCALER = ROOT / "deploy" / "autoscaler" / "rights.yaml"


def roles(path: Path) -> list[Any]:
    return [doc for doc in yaml.safe_load_all(path.read_text()) if doc["kind"] in ("ClusterRole", "Role")]


class _Noting(Office):
    """Its rounds are those of one room that is watched."""

    watched = Watched(ProvisioningRequestReconciler(AutoscalerOptions(provisioning_requests=True)))

    def plan(self) -> Any:
        return self.watched.plan(self.observed())


def lived() -> Watched:
    """Sets of both kinds grow for a request, a part fails, all goes again; in the end the request is deleted."""
    office = _Noting()
    office.watched.actions.clear()
    office.template("big")
    for name in ("web", "alone"):
        office.fleet.group(name, most=2)
    office.request("job", ("big", 4), ValidUntilSeconds="3600")
    office.fleet.sets["alone"] = {**office.fleet.deployments.pop("alone"), "status": {}}
    office.plan()
    office.fleet.sets.pop("alone")
    office.fleet.group("alone", most=2)
    office.round()
    office.make("web", fails=1)
    for _ in range(4):
        office.round()
    office.request("check", ("big", 1), class_name=provisioning_names.CHECK_CAPACITY, noRetry="true")
    office.round()
    office.round(after=timedelta(days=7))
    office.round()
    return office.watched


@pytest.fixture(scope="module")
def needed() -> set[Any]:
    return needed_by(lived())


def test_beside_the_autoscaler_it_may_do_what_it_needs_and_nothing_else(needed: set[Any]) -> None:
    own = {each for role in roles(FOLDER / "rights.yaml") for each in granted(role)}
    theirs = {each for role in roles(AUTOSCALER) for each in granted(role)}
    theirs |= {*granted(yaml.safe_load((ROOT / "deploy" / "rbac" / "kubeconfigs.yaml").read_text()))}
    assert sorted(map(str, needed - own - theirs)) == [], "it lacks rights"
    assert sorted(map(str, own - needed)) == [], "it has needless rights"


def test_the_autoscaler_beside_it_reads_no_more_than_it() -> None:
    reconciler = AutoscalerReconciler(AutoscalerOptions(provisioning_requests=True))
    assert set(reconciler.reads) <= set(ProvisioningRequestReconciler().reads)


def test_the_folder_renders_to_one_deployment_with_both_controllers(kubectl_binary: Path) -> None:
    done = subprocess.run(
        [kubectl_binary, "kustomize", FOLDER], capture_output=True, text=True, timeout=180, check=True
    )
    rendered = [doc for doc in yaml.safe_load_all(done.stdout) if doc]
    (deployment,) = [doc for doc in rendered if doc["kind"] == "Deployment"]
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--controllers=autoscaler,provisioningrequest" in arguments
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    bound = {
        doc["roleRef"]["name"]
        for doc in rendered
        if doc["kind"] == "ClusterRoleBinding" and doc["subjects"][0]["name"] == account
    }
    assert bound == {"nodewright-autoscaler", "nodewright-kubeconfigs", "nodewright-provisioningrequest"}
    assert not [doc for doc in rendered if doc["kind"] == "CustomResourceDefinition"], "somebody else may have it"
