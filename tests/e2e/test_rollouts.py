"""Rollouts driven by the stock kubectl and by its plugin ``kubectl nodewright``, the same program."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.program import Kubectl, Output
from tests.e2e.manifests import machine_deployment

pytestmark = [pytest.mark.kubectl, pytest.mark.e2e]

FIRST, SECOND = "1.33.1", "1.34.0"
SECONDS = 400


class Plugin:
    """``kubectl nodewright …`` as a person types it: kubectl finds the plugin on PATH."""

    def __init__(self, kubectl: Kubectl, folder: Path) -> None:
        self.kubectl = kubectl
        script = folder / "kubectl-nodewright"
        script.write_text(
            f"#!{sys.executable}\nimport sys\nsys.argv[0] = {str(script)!r}\n"
            "from nodewright.cli.main import main\nmain()\n"
        )
        script.chmod(0o755)
        self.path = f"{folder}{os.pathsep}{os.environ['PATH']}"

    def run(self, *words: str) -> Output:
        done = subprocess.run(
            [str(self.kubectl.binary), "nodewright", *words],
            env={**os.environ, "KUBECONFIG": str(self.kubectl.kubeconfig), "PATH": self.path},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Output(done.returncode, done.stdout, done.stderr)

    def __call__(self, *words: str) -> str:
        done = self.run("rollout", *words)
        assert done.code == 0, f"kubectl nodewright rollout {' '.join(words)}: {done.out}{done.err}"
        return done.out

    def refuses(self, *words: str) -> str:
        done = self.run("rollout", *words)
        assert done.code == 1, f"kubectl nodewright rollout {' '.join(words)}: {done.out}{done.err}"
        return done.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plugin")


@pytest.fixture
def rollout(kubectl: Kubectl, folder: Path) -> Plugin:
    return Plugin(kubectl, folder)


@pytest.fixture
def name(kubectl: Kubectl) -> Iterator[str]:
    """A MachineDeployment of three, rolled out, of its own for each test."""
    unique = f"roll-{uuid.uuid4().hex[:6]}"
    kubectl("apply", "-f", "-", stdin=machine_deployment(unique, 3, kubelet=FIRST))
    kubectl.wait("jsonpath={.status.availableReplicas}=3", f"md/{unique}")
    yield unique
    kubectl("delete", f"md/{unique}", "--wait=false")


def patch(kubectl: Kubectl, name: str, spec: str) -> None:
    kubectl("patch", "md", name, "--type=merge", "-p", f'{{"spec":{spec}}}')


def upgrade(kubectl: Kubectl, name: str, version: str = SECOND) -> None:
    patch(kubectl, name, f'{{"template":{{"spec":{{"versions":{{"kubelet":"{version}"}}}}}}}}')


def machines(kubectl: Kubectl, name: str) -> list[dict[str, Any]]:
    found = kubectl.items("machines", "-l", f"pool={name}")
    return [machine for machine in found if "deletionTimestamp" not in machine["metadata"]]


def kubelets(kubectl: Kubectl, name: str) -> list[str]:
    return sorted(machine["spec"]["versions"]["kubelet"] for machine in machines(kubectl, name))


def test_kubectl_lists_the_plugin(rollout: Plugin) -> None:
    done = subprocess.run(
        [str(rollout.kubectl.binary), "plugin", "list", "--name-only"],
        env={**os.environ, "PATH": rollout.path},
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert "kubectl-nodewright" in done.stdout.splitlines()


def test_status_follows_a_rollout_to_its_end_and_undo_takes_it_back(
    kubectl: Kubectl, rollout: Plugin, name: str
) -> None:
    upgrade(kubectl, name)
    shown = rollout("status", f"md/{name}", "--timeout=300s")
    assert shown.splitlines()[-1] == f'machinedeployment "{name}" successfully rolled out'
    assert kubelets(kubectl, name) == [SECOND] * 3
    listed = rollout("history", f"md/{name}")
    assert [line.split()[0] for line in listed.splitlines()] == ["REVISION", "1", "2"]
    assert f"kubelet: {FIRST}" in rollout("history", f"md/{name}", "--revision=1")
    assert f"kubelet: {FIRST}" in rollout("undo", f"md/{name}", "--dry-run")

    sets = {body["metadata"]["uid"] for body in kubectl.items("ms", "-l", f"pool={name}")}
    assert rollout("undo", f"md/{name}") == f"machinedeployment/{name} rolled back\n"
    rollout("status", f"md/{name}", "--timeout=300s")
    assert kubelets(kubectl, name) == [FIRST] * 3
    assert {body["metadata"]["uid"] for body in kubectl.items("ms", "-l", f"pool={name}")} == sets


def test_undo_to_a_revision_that_is_not_there_is_refused(rollout: Plugin, name: str) -> None:
    assert "there is no revision 9. There are: 1" in rollout.refuses("undo", name, "--to-revision=9")
    assert "has no earlier revision" in rollout.refuses("undo", name)


@pytest.mark.slow
def test_a_paused_rollout_waits_and_goes_on(kubectl: Kubectl, rollout: Plugin, name: str) -> None:
    assert rollout("pause", f"md/{name}") == f"machinedeployment/{name} paused\n"
    assert "already paused" in rollout.refuses("pause", f"md/{name}")
    upgrade(kubectl, name)
    kubectl.wait("condition=Paused", f"md/{name}")
    waited = rollout.run("rollout", "status", f"md/{name}", "--timeout=10s")
    assert waited.code == 1
    assert "(paused)" in waited.out
    assert "is not rolled out after 10s" in waited.err
    assert "is paused and can't be undone" in rollout.refuses("undo", f"md/{name}")
    assert kubelets(kubectl, name) == [FIRST] * 3
    assert rollout("resume", f"md/{name}") == f"machinedeployment/{name} resumed\n"
    rollout("status", f"md/{name}", "--timeout=300s")
    assert kubelets(kubectl, name) == [SECOND] * 3


@pytest.mark.slow
def test_a_restart_replaces_every_machine(kubectl: Kubectl, rollout: Plugin, name: str) -> None:
    before = {machine["metadata"]["uid"] for machine in machines(kubectl, name)}
    assert rollout("restart", f"md/{name}") == f"machinedeployment/{name} restarted\n"
    rollout("status", f"md/{name}", "--timeout=300s")
    assert not before & {machine["metadata"]["uid"] for machine in machines(kubectl, name)}
    assert kubelets(kubectl, name) == [FIRST] * 3


@pytest.mark.slow
def test_a_canary_stops_at_its_partition_until_that_goes(kubectl: Kubectl, rollout: Plugin, name: str) -> None:
    patch(kubectl, name, '{"strategy":{"rollingUpdate":{"partition":"60%"}}}')
    upgrade(kubectl, name)
    assert "partitioned roll out" in rollout("status", f"md/{name}", "--timeout=300s")
    assert kubelets(kubectl, name) == [FIRST, FIRST, SECOND]
    patch(kubectl, name, '{"strategy":{"rollingUpdate":{"partition":0}}}')
    rollout("status", f"md/{name}", "--timeout=300s")
    assert kubelets(kubectl, name) == [SECOND] * 3


@pytest.mark.slow
def test_a_rollout_past_its_deadline_is_taken_back_and_the_manifest_may_be_applied_again(
    kubectl: Kubectl, rollout: Plugin, name: str
) -> None:
    """The broken template asks for hosts that take an hour to boot."""
    patch(kubectl, name, '{"progressDeadlineSeconds":4,"strategy":{"rollingUpdate":{"onFailure":"Rollback"}}}')
    broken = '{"template":{"spec":{"providerConfig":{"value":{"bootSeconds":3600}}}}}'
    patch(kubectl, name, broken)
    assert "was rolled back" in rollout.refuses("status", f"md/{name}", "--timeout=300s")
    kubectl.wait("jsonpath={.status.updatedReplicas}=3", f"md/{name}")
    kubectl.wait("jsonpath={.status.replicas}=3", f"md/{name}")
    body = kubectl.json("get", "md", name)
    assert body["spec"]["template"]["spec"]["providerConfig"]["value"]["bootSeconds"] == 3600
    assert body["status"]["rollback"]["toRevision"] == 1
    listed = rollout("history", name)
    assert "in force instead" in listed
    assert "failed, taken back" in listed

    patch(kubectl, name, broken)
    assert kubectl.json("get", "md", name)["metadata"]["generation"] == body["metadata"]["generation"]
    assert rollout("undo", name) == f"machinedeployment/{name} rolled back\n"
    rollout("status", f"md/{name}", "--timeout=300s")
    assert "rollback" not in kubectl.json("get", "md", name)["status"]


@pytest.mark.slow
def test_in_place_the_same_machines_and_hosts_get_the_new_kubelet(kubectl: Kubectl, rollout: Plugin, name: str) -> None:
    limits = '{"inPlace":"Require","maxUnavailable":1}'
    patch(kubectl, name, f'{{"strategy":{{"rollingUpdate":{limits}}}}}')
    before = {(m["metadata"]["uid"], m["spec"]["providerID"]) for m in machines(kubectl, name)}
    upgrade(kubectl, name)
    rollout("status", f"md/{name}", "--timeout=300s")
    assert {(m["metadata"]["uid"], m["spec"]["providerID"]) for m in machines(kubectl, name)} == before
    # A host is changed before its Node says so.
    kubectl.wait(f"jsonpath={{.status.versions.kubelet}}=v{SECOND}", "machines", "-l", f"pool={name}")
    rollout("undo", f"md/{name}")
    rollout("status", f"md/{name}", "--timeout=300s")
    assert {(m["metadata"]["uid"], m["spec"]["providerID"]) for m in machines(kubectl, name)} == before
    assert kubelets(kubectl, name) == [FIRST] * 3


@pytest.mark.slow
def test_in_place_a_provider_that_can_t_stops_the_rollout_before_the_second_machine(
    kubectl: Kubectl, rollout: Plugin, name: str
) -> None:
    patch(kubectl, name, '{"strategy":{"rollingUpdate":{"inPlace":"Require","maxUnavailable":1}}}')
    before = {m["spec"]["providerID"] for m in machines(kubectl, name)}
    changed = f'{{"versions":{{"kubelet":"{SECOND}"}},"providerConfig":{{"value":{{"updates":"Replace"}}}}}}'
    patch(kubectl, name, f'{{"template":{{"spec":{changed}}}}}')
    kubectl.wait("condition=MachinesUpToDate=false", f"md/{name}")
    kubectl.wait('jsonpath={.status.conditions[?(@.type=="MachinesUpToDate")].reason}=NeedsReplacement', f"md/{name}")
    assert kubelets(kubectl, name) == [FIRST, FIRST, SECOND]
    assert {m["spec"]["providerID"] for m in machines(kubectl, name)} == before
    rollout("undo", f"md/{name}")
    rollout("status", f"md/{name}", "--timeout=300s")
    assert {m["spec"]["providerID"] for m in machines(kubectl, name)} == before


BAD = {
    "a schedule that is none": ('{"nodes":1,"schedule":"soon","duration":"1h"}', "disruptionBudgets"),
    "a schedule without a duration": ('{"nodes":1,"schedule":"0 2 * * *"}', "schedule and duration need each other"),
    "no nodes": ('{"schedule":"0 2 * * *","duration":"1h"}', "nodes"),
    "a reason that nobody knows": ('{"nodes":1,"reasons":["Boredom"]}', "reasons"),
}


def test_budgets_that_can_t_be_meant_are_refused_with_their_field(kubectl: Kubectl, name: str) -> None:
    for budget, field in BAD.values():
        spec = f'{{"spec":{{"strategy":{{"disruptionBudgets":[{budget}]}}}}}}'
        assert field in kubectl.fails("patch", "md", name, "--type=merge", "-p", spec)


@pytest.mark.slow
def test_a_schedule_only_a_calendar_can_refuse_stops_rollouts_and_is_named(
    kubectl: Kubectl, rollout: Plugin, name: str
) -> None:
    patch(kubectl, name, '{"strategy":{"disruptionBudgets":[{"nodes":3,"schedule":"0 0 30 2 *","duration":"1h"}]}}')
    upgrade(kubectl, name)
    kubectl.wait("condition=DisruptionAllowed=false", f"md/{name}")
    kubectl("scale", f"md/{name}", "--replicas=4")
    kubectl.wait("jsonpath={.status.availableReplicas}=4", f"md/{name}")
    assert kubelets(kubectl, name) == [FIRST] * 4
    assert "disruptionBudgets[0].schedule" in rollout("status", f"md/{name}", "--no-watch")
