"""The commands that read a cluster, on one where the whole program is at work."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from api.kinds import KINDS, OTHERS
from hack.program import Kubectl, Up
from tests.cli.processes import EXAMPLE, following, nodewright
from tests.docs.pages import ROOT

LONELY = """\
apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata:
  name: lonely
  finalizers: [example.com/held]
spec:
  providerConfig:
    value: {apiVersion: simulated.nodewright.dev/v1alpha1, kind: SimulatedMachineConfig}
"""
"""Its deletion waits for the test."""
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJeYq0DqF8tC3WcZ4n0q6y1pWqzHhC0N1wqO9wq0p5Yk"
CRD = ROOT / "crds" / "autoscaling.x-k8s.io_provisioningrequests.yaml"


@pytest.fixture(scope="module")
def at_work(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Kubectl]:
    with Up(tmp_path_factory.mktemp("work"), kubectl_binary, "--in-memory") as running:
        kubectl = running.kubectl
        kubectl("apply", "-f", str(EXAMPLE))
        kubectl.wait("jsonpath={.status.availableReplicas}=3", "machinedeployment/workers")
        yield kubectl


def test_describe_shows_the_whole_cluster_and_that_all_is_well(at_work: Kubectl) -> None:
    shown = nodewright("describe", "cluster", "demo", "--all-machines", "--kubeconfig", str(at_work.kubeconfig))
    assert shown.returncode == 0, shown.stderr
    assert "MachineDeployment/workers" in shown.stdout
    assert "3/3 ready" in shown.stdout
    assert shown.stdout.count("─Node/") == 3


def test_describe_of_a_selector_shows_all_that_match(at_work: Kubectl) -> None:
    way = ("--kubeconfig", str(at_work.kubeconfig))
    shown = nodewright("describe", "ms", "-A", *way)
    assert shown.returncode == 0, shown.stderr
    assert "MachineSet/workers-" in shown.stdout
    some = nodewright("describe", "machines", "-l", "cluster.k8s.io/cluster-name=demo", "-o", "json", *way)
    items = json.loads(some.stdout)["items"]
    assert [item["namespace"] for item in items] == ["default"] * 3
    assert len({item["object"]["name"] for item in items}) == 3
    none = nodewright("describe", "machines", "-l", "pool=none", *way)
    assert none.returncode == 1
    assert "3 have other labels" in none.stderr
    for wrong in (("md", "workers", "-A"), ("md", "-l", "a in b"), ("md",)):
        assert nodewright("describe", *wrong, *way).returncode == 2


def test_plan_of_a_namespace_shows_no_other(at_work: Kubectl) -> None:
    way = ("-o", "yaml", "--kubeconfig", str(at_work.kubeconfig))
    names = [
        {each["namespace"] for each in yaml.safe_load(nodewright("plan", *some, *way).stdout)["objects"]} - {""}
        for some in ((), ("-n", "elsewhere"), ("-n", "elsewhere", "-A"))
    ]
    assert names == [{"default"}, set(), {"default"}]


def test_a_rollout_is_followed_by_programs_too(at_work: Kubectl) -> None:
    way = ("--kubeconfig", str(at_work.kubeconfig))
    followed = nodewright("rollout", "status", "md/workers", "-o", "json", *way)
    assert followed.returncode == 0, followed.stderr
    last = json.loads(followed.stdout.splitlines()[-1])
    assert (last["name"], last["state"]) == ("workers", "done")
    once = nodewright("rollout", "status", "md/workers", "-o", "yaml", "--no-watch", *way)
    assert yaml.safe_load(once.stdout) == last


def test_rollouts_are_steered_by_labels(at_work: Kubectl) -> None:
    way = ("-l", "team=a", "--kubeconfig", str(at_work.kubeconfig))
    none = nodewright("rollout", "pause", *way)
    assert (none.returncode, "1 have other labels" in none.stderr) == (1, True)
    at_work("label", "md/workers", "team=a")
    assert nodewright("rollout", "pause", "md", *way).stdout == "machinedeployment/workers paused\n"
    again = nodewright("rollout", "pause", *way)
    assert (again.returncode, "is already paused" in again.stderr) == (1, True)
    assert nodewright("rollout", "resume", *way).stdout == "machinedeployment/workers resumed\n"
    assert nodewright("rollout", "status", "md/workers", *way[2:]).returncode == 0  # it has been taken note of
    for wrong in (("restart", "md/workers", *way), ("restart", *way[2:])):
        assert nodewright("rollout", *wrong).returncode == 2
    at_work("label", "md/workers", "team-")


def test_describe_of_something_that_is_not_there_says_what_is(at_work: Kubectl) -> None:
    shown = nodewright("describe", "md", "wob", "--kubeconfig", str(at_work.kubeconfig))
    assert shown.returncode == 1
    assert "There are: workers" in shown.stderr


def test_plan_of_a_settled_cluster_has_nothing_to_do(at_work: Kubectl) -> None:
    deadline = time.monotonic() + 300
    while True:
        shown = nodewright("plan", "-o", "json", "--kubeconfig", str(at_work.kubeconfig))
        assert shown.returncode == 0, shown.stderr
        loud = [a for o in json.loads(shown.stdout)["objects"] for a in o["actions"] if not a["quiet"]]
        if loud == []:
            return
        assert time.monotonic() < deadline, loud


def test_plan_of_a_new_template_names_the_new_set_and_changes_nothing(at_work: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "next.yaml"
    file.write_text(EXAMPLE.read_text().replace("1.32.4", "1.34.0"))
    before = at_work("get", "machinesets,machines", "-o", "name")
    shown = nodewright("plan", str(file), "--kubeconfig", str(at_work.kubeconfig))
    assert shown.returncode == 0, shown.stderr
    assert "create MachineSet workers-" in shown.stdout
    assert "create Machine workers-" in shown.stdout
    assert at_work("get", "machinesets,machines", "-o", "name") == before


def test_install_again_changes_nothing(at_work: Kubectl) -> None:
    again = nodewright("install", "--force", "--kubeconfig", str(at_work.kubeconfig))
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("unchanged") == len(KINDS) + len(OTHERS), again.stdout
    assert "ready" in again.stdout


def test_install_leaves_a_definition_of_another_group_to_whoever_installed_it(at_work: Kubectl) -> None:
    name, config = "provisioningrequests.autoscaling.x-k8s.io", f"--kubeconfig={at_work.kubeconfig}"
    assert nodewright("install", "--force", config).returncode == 0, "those of the plane itself are ours from now on"
    at_work("delete", "crd", name, "--wait")
    at_work("create", "-f", str(CRD))
    left = nodewright("install", config)
    assert left.returncode == 0, left.stderr
    assert f"{name} left as it is: installed by kubectl-create" in left.stdout
    assert left.stdout.count("unchanged") == len(KINDS) + len(OTHERS) - 1, left.stdout
    taken = nodewright("install", "--force", config)
    assert f"{name} unchanged" in taken.stdout
    assert f"{name} unchanged" in nodewright("install", config).stdout, "now it is ours"


def test_install_takes_a_definition_of_our_own_domain_from_whoever_installed_it(at_work: Kubectl) -> None:
    name = "sshhostpools.ssh.nodewright.dev"
    at_work("delete", "crd", name, "--wait")
    at_work("create", "-f", str(ROOT / "crds" / "ssh.nodewright.dev_sshhostpools.yaml"))
    done = nodewright("install", f"--kubeconfig={at_work.kubeconfig}")
    assert done.returncode == 0, done.stderr
    assert f"{name} unchanged" in done.stdout


def test_the_version_of_the_server_and_its_definitions_are_told(at_work: Kubectl) -> None:
    shown = nodewright("version", "--server", "-o", "json", "--kubeconfig", str(at_work.kubeconfig))
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    assert told["server"].startswith("v1.")
    assert told["crds"]["machines.cluster.k8s.io"] == "v1alpha1 served"
    assert [name for name, state in told["crds"].items() if not state.endswith(" served")] == []


def test_a_cluster_that_is_named_and_not_asked_is_wrong_usage(at_work: Kubectl) -> None:
    refused = nodewright("version", "--kubeconfig", str(at_work.kubeconfig))
    assert (refused.returncode, "--server" in refused.stderr) == (2, True)


def test_commands_without_a_cluster_say_how_to_get_one(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    for command in (["describe", "md", "workers"], ["plan"], ["install"], ["status"], ["version", "--server"]):
        refused = nodewright(*command, "--kubeconfig", str(missing))
        assert refused.returncode == 1
        assert str(missing) in refused.stderr
        assert "nodewright up" in refused.stderr


def test_run_refuses_a_controller_that_does_not_exist() -> None:
    refused = nodewright("run", "--controllers", "machine,nonsense")
    assert refused.returncode == 2
    assert "no controller named nonsense" in refused.stderr
    assert "machineset" in refused.stderr


def test_explain_says_why_a_group_and_a_node_stay_as_they_are(at_work: Kubectl) -> None:
    config = ("--kubeconfig", str(at_work.kubeconfig))
    told = nodewright("autoscaler", "explain", "md", "workers", "--nodes=1:5:default/workers", *config)
    assert told.returncode == 0, told.stderr
    assert "asks for 3 Nodes, between 1 and 5" in told.stdout
    assert "does not grow: no pod waits for a Node" in told.stdout
    assert "NotUnneededLongEnough" in told.stdout
    other = nodewright("autoscaler", "explain", "md", "workers", *config)
    assert "is no group: no annotation and no --nodes gives it a minimum" in other.stdout
    missing = nodewright("autoscaler", "explain", "pod", "nobody", *config)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "Pod default/nobody does not exist" in missing.stderr


def test_logs_tell_the_story_of_a_machine_in_order(at_work: Kubectl) -> None:
    name = at_work("get", "machines", "-o", "name").split()[0].partition("/")[2]
    shown = nodewright("logs", "machine", name, "-o", "json", "--kubeconfig", str(at_work.kubeconfig))
    assert shown.returncode == 0, shown.stderr
    entries = json.loads(shown.stdout)["entries"]
    assert entries[0]["reason"] == "Created"
    assert {one["object"].partition("/")[0] for one in entries} >= {"Machine", "MachineSet", "Node"}
    assert any("Ready" in one["reason"] and one["source"] == "condition" for one in entries)
    assert [one["at"] for one in entries] == sorted(one["at"] for one in entries)


def test_logs_are_followed_until_the_machine_is_gone(at_work: Kubectl) -> None:
    at_work("apply", "-f", "-", stdin=LONELY)
    asked = ("logs", "ma/lonely", "--follow", "-o", "json", "--kubeconfig", str(at_work.kubeconfig))
    with following(*asked) as story:
        assert story.stdout is not None
        assert json.loads(story.stdout.readline())["reason"] == "Created"
        at_work("delete", "machine", "lonely", "--wait=false")
        assert any('"DeletionRequested"' in line for line in story.stdout)
        at_work("patch", "machine", "lonely", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
        _, said = story.communicate(timeout=300)
    assert story.returncode == 0, said
    assert "Machine default/lonely is gone" in said


def test_logs_of_what_nobody_knows_say_so(at_work: Kubectl) -> None:
    shown = nodewright("logs", "machine", "nobody", "--kubeconfig", str(at_work.kubeconfig))
    assert shown.returncode == 1
    assert "nothing is known of Machine default/nobody" in shown.stderr


def test_diff_of_a_file_and_what_was_made_of_it_finds_nothing_until_somebody_edits_it(at_work: Kubectl) -> None:
    way = ("--kubeconfig", str(at_work.kubeconfig))
    same = nodewright("diff", str(EXAMPLE), "default/demo", *way)
    assert (same.returncode, same.stdout, same.stderr) == (0, "", "")
    at_work("annotate", "machinedeployment/workers", "team=a")
    changed = nodewright("diff", str(EXAMPLE), "namespace/default", *way)
    assert changed.returncode == 1, changed.stderr
    assert "MachineDeployment/workers — 1 field" in changed.stdout
    assert 'metadata.annotations — only in B: {"team": "a"}' in changed.stdout
    at_work("annotate", "machinedeployment/workers", "team-")
    one = nodewright("diff", "md/workers", "md/workers", *way)
    assert (one.returncode, one.stdout) == (0, "")
    missing = nodewright("diff", "md/workers", "md/wob", *way)
    assert (missing.returncode, "MachineDeployment default/wob does not exist" in missing.stderr) == (2, True)


def test_get_clusters_lists_what_is_there_beside_what_does_not_answer(at_work: Kubectl, tmp_path: Path) -> None:
    missing = tmp_path / "none"
    shown = nodewright("get", "clusters", "--kubeconfig", str(at_work.kubeconfig), "--kubeconfig", str(missing))
    assert shown.returncode == 1
    head, demo, unreachable, *why = shown.stdout.splitlines()
    assert demo.split()[1:3] == ["default", "demo"]
    assert [demo.split()[head.split().index(title)] for title in ("WORKERS", "CONDITION")] == ["3/3", "Ready"]
    assert ("Unreachable" in unreachable, str(missing) in " ".join(why)) == (True, True)
    elsewhere = nodewright("get", "clusters", "-n", "elsewhere", "--kubeconfig", str(at_work.kubeconfig))
    assert (elsewhere.returncode, "there is no Cluster" in elsewhere.stdout) == (0, True)


def test_upgrade_plan_says_what_may_come_and_changes_nothing(at_work: Kubectl) -> None:
    way = ("--kubeconfig", str(at_work.kubeconfig))
    before = at_work("get", "machinedeployments,machinesets", "-o", "yaml")
    shown = nodewright("upgrade", "plan", "demo", "--kubernetes-version", "1.33.1", "-o", "json", *way)
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    assert [each["holder"] for each in told["nodewright"]["controllers"]] == ["nodewright-system/nodewright"]
    (demo,) = told["clusters"]
    (move,) = demo["moves"]
    assert (move["name"], move["version"]) == ("workers", "1.33.1")
    assert any(each["what"].startswith("create MachineSet") for each in move["foreseen"]["actions"])
    refused = nodewright("upgrade", "plan", "--kubernetes-version", "1.99.1", *way)
    assert (refused.returncode, "knows kubeadm from" in refused.stdout) == (1, True)
    assert at_work("get", "machinedeployments,machinesets", "-o", "yaml") == before


def test_upgrade_apply_stores_objects_anew_before_their_version_goes(at_work: Kubectl) -> None:
    """An earlier version of ours is the storage version, and this one no longer has it."""
    name, way = "sshhostpools.ssh.nodewright.dev", ("--kubeconfig", str(at_work.kubeconfig))
    live = json.loads(at_work("get", "crd", name, "-o", "json"))
    (version,) = live["spec"]["versions"]
    older = {**version, "name": "v1alpha0", "storage": True}
    live["spec"]["versions"] = [older, {**version, "storage": False}]
    at_work("replace", "-f", "-", stdin=json.dumps(live))
    pool = {
        "apiVersion": "ssh.nodewright.dev/v1alpha1",
        "kind": "SSHHostPool",
        "metadata": {"name": "racks"},
        "spec": {"secretName": "key", "hosts": [{"name": "r1", "address": "10.0.0.1", "hostKeys": [HOST_KEY]}]},
    }
    at_work("create", "-f", "-", stdin=json.dumps(pool))
    refused = nodewright("install", "--force", *way)
    assert (refused.returncode, "storedVersions" in refused.stderr) == (1, True), refused.stdout
    planned = nodewright("upgrade", "plan", *way)
    assert f"{name} — RewrittenBefore" in planned.stdout
    assert "nodewright upgrade apply" in planned.stdout
    done = nodewright("upgrade", "apply", *way)
    assert done.returncode == 0, done.stderr
    assert f"{name}: 1 objects stored anew as v1alpha1" in done.stdout
    now = json.loads(at_work("get", "crd", name, "-o", "json"))
    assert now["status"]["storedVersions"] == ["v1alpha1"]
    assert [each["name"] for each in now["spec"]["versions"]] == ["v1alpha1"]
    assert at_work("get", "sshhostpool", "racks", "-o", "name").strip().endswith("/racks")
    again = nodewright("upgrade", "apply", *way)
    assert (again.returncode, "stored anew" in again.stdout) == (0, False)
    at_work("delete", "sshhostpool", "racks")


def test_a_cluster_with_add_ons_in_its_spec_is_refused_where_no_command_reads_them(at_work: Kubectl) -> None:
    addons = [{"name": "network", "file": "net.yaml"}]
    body = {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "c"},
        "spec": {"addons": addons},
    }
    refused = at_work.run("create", "-f", "-", stdin=json.dumps(body))
    assert (refused.code, "no controller acts on them" in refused.err) == (1, True), refused.err
    body["spec"] = {"addons": []}
    assert at_work.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(body)).code == 0
