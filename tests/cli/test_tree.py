"""``describe``: the tree shows what belongs together, what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from typing import Any

import pytest

from api.conditions import Reason
from controllers.kernel.conditions import parse_time
from controllers.kernel.refs import (
    CLUSTER,
    CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_DRAIN_RULE,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    NODE,
    Kind,
)
from nodewright.cli.cluster.snapshot import KINDS, fill
from nodewright.cli.commands.describe import kind_of
from nodewright.cli.exits import CliError
from nodewright.cli.screen import console
from nodewright.reports.tree.advice import advice_for
from nodewright.reports.tree.branch import Branch, Mood, wrong
from nodewright.reports.tree.builder import DisplayOptions, grow
from nodewright.reports.tree.drawing import age, lines, rows
from nodewright.reports.tree.values import branch_value
from nodewright.reports.tree.warnings import latest
from nodewright.runtime.cache.cache import Cache
from providers.base.errors import ErrorClass
from tests.builders import NOW, Builder, cluster, machine, machine_deployment, machine_set, node
from tests.builders.clock import ago
from tests.controllers.machinehealthcheck.checks import check

ALL = (CLUSTER, CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE, MACHINE_HEALTH_CHECK, NODE)


def tree_of(
    kind: Kind,
    top: Builder,
    *others: Builder,
    display: DisplayOptions | None = None,
    rules: list[dict[str, Any]] | None = None,
) -> Branch:
    cache = Cache(KINDS)
    objects = [b.build() for b in (top, *others)]
    for known in ALL:
        fill(cache, known, [o for o in objects if o["kind"] == known.name])
    fill(cache, MACHINE_DRAIN_RULE, rules or [])
    return grow(kind, top.build(), cache.view(NOW), display or DisplayOptions())


def names_in(tree: Branch) -> list[str]:
    return [prefix + branch.name for prefix, branch in rows(tree)]


def line(tree: Branch, name: str) -> Branch:
    return next(branch for _, branch in rows(tree) if branch.name == name)


def of_three() -> tuple[Builder, list[Builder]]:
    deployment = machine_deployment("web").in_cluster("dev")
    web = machine_set("web-abc").owned_by(deployment).in_cluster("dev")
    machines = [machine(f"web-abc-{i}").of(web).ready() for i in range(3)]
    nodes = [node(f"node-web-abc-{i}").ready().kubelet("v1.34.0") for i in range(3)]
    return deployment, [web, *machines, *nodes]


def test_a_cluster_shows_its_deployments_sets_machines_hosts_and_nodes() -> None:
    deployment, rest = of_three()
    tree = tree_of(CLUSTER, cluster("dev"), deployment, *rest)
    assert names_in(tree)[:6] == [
        "Cluster/dev",
        "└─MachineDeployment/web",
        "  └─MachineSet/web-abc",
        "    ├─Machine/web-abc-0",
        "    │ ├─Host/simulated:///uid-web-abc-0",
        "    │ └─Node/node-web-abc-0",
    ]


def test_machines_in_the_same_state_are_one_line_unless_all_are_wanted() -> None:
    web = machine_set("web")
    machines = [machine(f"web-{i}").of(web).ready() for i in range(6)]
    assert "└─6 Machines" in names_in(tree_of(MACHINE_SET, web, *machines))
    every = names_in(tree_of(MACHINE_SET, web, *machines, display=DisplayOptions(every_machine=True)))
    assert sum("Machine/" in name for name in every) == 6


def test_a_machine_that_stands_out_is_never_hidden_in_a_group() -> None:
    web = machine_set("web")
    machines = [machine(f"web-{i}").of(web).ready() for i in range(6)]
    tree = tree_of(
        MACHINE_SET, web, *machines, machine("web-6").of(web).failed("InvalidConfiguration", "no such flavor")
    )
    failed = line(tree, "Machine/web-6")
    assert failed.mood is Mood.BAD
    assert failed.message == "no such flavor"
    assert "validate" in failed.advice


def test_what_is_wrong_is_found_wherever_it_is() -> None:
    deployment, rest = of_three()
    rest.append(machine("web-abc-9").of(rest[0]).pending("QuotaExceeded", "cores: 20 of 20 used"))
    assert [b.name for b in wrong(tree_of(CLUSTER, cluster("dev"), deployment, *rest))] == ["Machine/web-abc-9"]


def test_all_well_means_nothing_wrong_and_no_condition_lines() -> None:
    deployment, rest = of_three()
    deployment.condition("Available", "True").condition("RollingOut", "False")
    tree = tree_of(MACHINE_DEPLOYMENT, deployment, *rest)
    assert wrong(tree) == []
    assert "├─RollingOut" not in names_in(tree)
    every = tree_of(MACHINE_DEPLOYMENT, deployment, *rest, display=DisplayOptions(every_condition=True))
    assert "├─RollingOut" in names_in(every)


def test_progress_is_busy_and_not_wrong() -> None:
    deployment = machine_deployment("web").condition("RollingOut", "True", "RollingOut", "2 of 3 updated")
    tree = tree_of(MACHINE_DEPLOYMENT, deployment)
    assert line(tree, "RollingOut").mood is Mood.BUSY
    assert wrong(tree) == []


def test_a_paused_object_says_so() -> None:
    tree = tree_of(MACHINE_DEPLOYMENT, machine_deployment("web").condition("Paused", "True", "Paused", "spec.paused"))
    assert tree.mood is Mood.PAUSED


def test_a_node_that_lags_behind_says_what_it_runs_and_what_is_asked_for() -> None:
    one = machine("m").ready()
    tree = tree_of(MACHINE, one, node("node-m").ready().kubelet("v1.33.0"))
    assert line(tree, "Node/node-m").message == "kubelet v1.33.0, asked for 1.34.0"


def test_a_missing_node_is_wrong() -> None:
    assert line(tree_of(MACHINE, machine("m").ready()), "Node/node-m").mood is Mood.BAD


def short_circuited(name: str, pool: str, **spec: str) -> Builder:
    """2 of 3 are healthy, which is too few."""
    found = check(name)
    found.spec.update({"selector": {"matchLabels": {"pool": pool}}, **spec})
    found.status.update({"expectedMachines": 3, "currentHealthy": 2, "remediationsAllowed": 0})
    return found.condition("RemediationAllowed", "False", "TooManyUnhealthy", "1 of 3 are unhealthy, 0 are allowed")


def test_a_cluster_shows_last_the_health_checks_of_its_machines_and_why_they_hold_back() -> None:
    deployment, rest = of_three()
    here, named = short_circuited("here", "web-abc"), short_circuited("named", "none", clusterName="dev")
    others = short_circuited("other-pool", "none"), short_circuited("other-cluster", "web-abc", clusterName="prod")
    tree = tree_of(CLUSTER, cluster("dev"), deployment, *rest, here, named, *others)
    names = [branch.name for branch in tree.children]
    assert names == ["MachineDeployment/web", "MachineHealthCheck/here", "MachineHealthCheck/named"]
    shown = line(tree, "MachineHealthCheck/here")
    assert (shown.mood, shown.state, shown.reason) == (Mood.BAD, "2/3 healthy, 0 may be replaced", "TooManyUnhealthy")
    assert shown.message == "1 of 3 are unhealthy, 0 are allowed"
    assert shown.advice


def test_a_health_check_shows_the_machines_that_it_looks_at() -> None:
    _, rest = of_three()
    tree = tree_of(MACHINE_HEALTH_CHECK, short_circuited("here", "web-abc"), *rest, machine("stranger"))
    machines = [branch.name for branch in tree.children]
    assert machines == ["Machine/web-abc-0", "Machine/web-abc-1", "Machine/web-abc-2"]


def test_a_health_check_with_nothing_amiss_only_counts() -> None:
    well = check("here").condition("RemediationAllowed", "True")
    well.status.update({"expectedMachines": 3, "currentHealthy": 3, "remediationsAllowed": 3})
    shown = tree_of(MACHINE_HEALTH_CHECK, well)
    assert (shown.mood, shown.state, shown.reason, shown.children) == (Mood.GOOD, "3/3 healthy", "", ())


def test_old_empty_sets_are_left_out_unless_everything_is_wanted() -> None:
    deployment, rest = of_three()
    old = machine_set("web-old").owned_by(deployment)
    old.spec["replicas"] = 0
    old.status["replicas"] = 0
    rest[0].status["replicas"] = 3
    assert not any("web-old" in n for n in names_in(tree_of(MACHINE_DEPLOYMENT, deployment, *rest, old)))
    every = tree_of(MACHINE_DEPLOYMENT, deployment, *rest, old, display=DisplayOptions(every_machine=True))
    assert any("web-old" in n for n in names_in(every))


@pytest.mark.parametrize(
    "status", [{"conditions": "none"}, {"conditions": [None, 3]}, {"phase": 7}, {"addresses": None}]
)
def test_a_status_of_any_shape_is_shown(status: dict[str, Any]) -> None:
    one = machine("m")
    one.body["status"] = status
    assert tree_of(MACHINE, one).name == "Machine/m"


def test_every_class_of_provider_error_has_advice() -> None:
    assert [c for c in ErrorClass if not advice_for(c)] == []


@pytest.mark.parametrize(
    "reason",
    [Reason.HOST_MISSING, Reason.NODE_CONFLICT, Reason.PROVIDER_UNKNOWN, Reason.CEILING_REACHED, Reason.UNREACHABLE],
)
def test_reasons_that_need_a_person_have_advice(reason: Reason) -> None:
    assert advice_for(reason).endswith(".")


def test_many_that_are_ready_but_wrong_alike_say_why_in_their_one_line() -> None:
    owner = machine_set("web").replicas(5)
    lost = "its workload cluster does not answer"
    machines = [
        machine(f"m-{n}").of(owner).ready().condition("NodeReady", "Unknown", "ConnectionDown", lost) for n in range(5)
    ]
    tree = tree_of(MACHINE_SET, owner, *machines)
    (line,) = [branch for _, branch in rows(tree) if branch.name == "5 Machines"]
    assert (line.mood, line.reason) == (Mood.BAD, "ConnectionDown")
    assert lost in line.message
    assert "Reachable" in line.advice


def test_a_field_that_is_wrong_is_not_taken_for_the_provider_configuration() -> None:
    assert advice_for(Reason.INVALID_CONFIGURATION).startswith("Correct the field named")


def test_a_drain_that_nothing_but_a_person_ends_wants_an_eye_and_says_what_to_do() -> None:
    why = "blocked until somebody changes a PodDisruptionBudget: default/web"
    stuck = machine("m").deleting(5).condition("Deleting", "True", "Draining", why)
    tree = tree_of(MACHINE, stuck.condition("Drained", "False", "DrainBlocked", why))
    drained = next(branch for _, branch in rows(tree) if branch.name == "Drained")
    assert drained.mood is Mood.BAD
    assert "nodeDrainTimeout" in drained.advice


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (303, "5m3s"), (3600, "60m"), (4 * 3600 + 600, "4h10m"), (9 * 3600, "9h"),
     (3 * 86400, "3d")],
)  # fmt: skip
def test_ages_read_as_kubectl_writes_them(seconds: float, text: str) -> None:
    assert age(parse_time(ago(seconds)), NOW) == text


def test_the_drawing_has_every_line_and_no_colour_in_a_file() -> None:
    deployment, rest = of_three()
    tree = tree_of(CLUSTER, cluster("dev"), deployment, *rest)
    shown = printed(tree)
    assert "\x1b[" not in shown
    assert all(branch.name in shown for _, branch in rows(tree))


def printed(tree: Branch, width: int = 200) -> str:
    file = StringIO()
    out = console(file)
    for line in lines(tree, NOW, width):
        out.print(line, soft_wrap=True)
    return file.getvalue()


WORDY = Branch(
    "MachineSet/workers-2fnw64cj",
    Mood.BAD,
    "0/5 ready",
    "QuotaExceeded",
    NOW,
    "5× QuotaExceeded: hosts of workers-2fnw64cj-mwjxm-0, workers-2fnw64cj-mwjxm-1 and more",
    "raise the quota",
    (Branch("5 Machines"),),
)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132])
def test_no_name_is_cut_or_broken_however_narrow_the_terminal(width: int) -> None:
    shown = printed(Branch("MachineDeployment/workers", children=(WORDY,)), width)
    for name in (
        "MachineSet/workers-2fnw64cj",
        "workers-2fnw64cj-mwjxm-0,",
        "workers-2fnw64cj-mwjxm-1 ",
        "→ raise the quota",
    ):
        assert name in shown.replace("\n", " \n"), shown


def test_messages_stand_beside_the_tree_where_there_is_room_and_below_their_line_where_there_is_none() -> None:
    wide, narrow = printed(WORDY, 132).splitlines(), printed(WORDY, 80).splitlines()
    assert wide[0].endswith("MESSAGE")
    assert "5× QuotaExceeded: hosts" in wide[1]
    assert "MESSAGE" not in narrow[0]
    assert narrow[2].startswith("│   5× QuotaExceeded: hosts")
    assert all(len(line) <= 80 for line in narrow)


def kinds_meant(words: Iterable[str]) -> set[str]:
    return {kind_of(word).name for word in words}


def test_kinds_have_their_kubectl_names() -> None:
    assert kinds_meant(["md", "machinedeployments", "MachineDeployment"]) == {"MachineDeployment"}
    assert kinds_meant(["cl", "cluster"]) == {"Cluster"}
    assert kinds_meant(["mhc", "machinehealthcheck"]) == {"MachineHealthCheck"}
    with pytest.raises(CliError, match="pod"):
        kinds_meant(["pod"])


def test_the_same_advice_is_given_once_and_where_the_trouble_is() -> None:
    web = machine_set("web").condition("Ready", "False", "QuotaExceeded", "1 of 3 ready: 2× QuotaExceeded")
    machines = [machine(f"web-{i}").of(web).pending("QuotaExceeded", "20 of 20 cores are used") for i in range(2)]
    tree = tree_of(MACHINE_SET, web, *machines)
    assert [b.name for _, b in rows(tree) if b.advice] == ["Machine/web-0"]


def test_under_a_machine_that_is_wrong_conditions_that_merely_wait_say_nothing() -> None:
    one = machine("m").pending("QuotaExceeded", "full").condition("NodeReady", "False", "WaitingForNode", "no Node")
    assert "├─NodeReady" not in names_in(tree_of(MACHINE, one))
    assert "└─NodeReady" not in names_in(tree_of(MACHINE, one))


def test_a_machine_that_is_not_ready_is_not_said_to_be_unavailable_as_well() -> None:
    one = machine("m").pending("WaitingForNode").condition("Available", "False", "NotReady")
    assert not any("Available" in name for name in names_in(tree_of(MACHINE, one)))
    one = machine("m").ready().condition("Available", "False", "WaitingForMinReadySeconds")
    assert any("Available" in name for name in names_in(tree_of(MACHINE, one)))


def event(subject: str, message: str, seconds_ago: float, kind: str = "Warning") -> dict[str, Any]:
    involved = {"kind": "Machine", "name": subject, "namespace": "default"}
    return {"type": kind, "reason": "Odd", "message": message, "lastTimestamp": ago(seconds_ago),
            "involvedObject": involved}  # fmt: skip


def test_the_latest_warnings_are_told_unless_the_tree_says_the_same() -> None:
    tree = tree_of(MACHINE, machine("m").pending("QuotaExceeded", "full"))
    events = [
        event("m", "older", 60), event("m", "newer", 5), event("m", "full", 1), event("other", "not ours", 1),
        event("m", "all well", 1, "Normal"),
    ]  # fmt: skip
    assert [line.message for line in latest(events, tree, "default", {})] == ["newer", "older"]
    assert latest(events, tree, "elsewhere", {}) == []


def test_an_event_of_any_shape_is_shown_or_passed_over() -> None:
    tree = tree_of(MACHINE, machine("m"))
    odd = [{}, {"type": "Warning"}, {"type": "Warning", "involvedObject": {"kind": "Machine", "name": "m"}}]
    assert len(latest(odd, tree, "default", {})) <= 1


def test_a_rollout_that_was_taken_back_wants_somebodys_eye_and_says_what_to_do() -> None:
    deployment = machine_deployment("web").condition("Progressing", "False", "RolledBack", "revision 2 failed")
    tree = tree_of(MACHINE_DEPLOYMENT, deployment)
    assert line(tree, "Progressing").mood is Mood.BAD
    assert "rollout undo" in line(tree, "Progressing").advice


def test_a_node_of_a_workload_cluster_is_told_by_its_machine_and_is_not_called_missing() -> None:
    elsewhere = cluster("prod")
    elsewhere.status["kubeconfigSecret"] = "prod-kubeconfig"
    fine = machine("m-1").in_cluster("prod").ready().on_node("n-1").condition("NodeReady", "True", "Ready")
    lost = machine("m-2").in_cluster("prod").ready().on_node("n-2").condition("NodeReady", "Unknown", "ConnectionDown")
    tree = tree_of(CLUSTER, elsewhere, fine, lost)
    assert (line(tree, "Node/n-1").state, line(tree, "Node/n-1").mood) == ("Ready", Mood.GOOD)
    assert (line(tree, "Node/n-2").state, line(tree, "Node/n-2").reason) == ("Unknown", "ConnectionDown")
    assert "missing" not in {branch.state for _, branch in rows(tree)}


def test_warnings_of_a_deleted_namesake_are_left_out() -> None:
    about = {"kind": "MachineSet", "name": "pool", "namespace": "default"}
    events = [
        {"type": "Warning", "involvedObject": {**about, "uid": uid}, "reason": "X", "message": f"of {uid}"}
        for uid in ("old", "new")
    ]
    tree = Branch("MachineSet/pool")
    assert [line.message for line in latest(events, tree, "default", {"MachineSet/pool": "new"})] == ["of new"]


def test_a_tree_for_programs_holds_every_line_and_nothing_empty() -> None:
    deployment, rest = of_three()
    value = branch_value(tree_of(CLUSTER, cluster("dev"), deployment, *rest))
    assert value["name"] == "Cluster/dev"
    machines = value["children"][0]["children"][0]["children"]
    assert [one["name"] for one in machines] == [f"Machine/web-abc-{n}" for n in range(3)]
    assert all("advice" not in one and one["mood"] == "ok" for one in machines)


def test_the_time_at_which_machines_are_to_be_replaced_is_shown_until_it_has_come() -> None:
    for after, shown in (("2099-01-01T00:00:00Z", True), ("2020-01-01T00:00:00Z", False), ("soon", False)):
        deployment, rest = of_three()
        deployment.spec["rollout"] = {"after": after}
        tree = tree_of(MACHINE_DEPLOYMENT, deployment, *rest)
        found = [child for child in tree.children if child.name == "spec.rollout.after"]
        assert [child.state for child in found] == ([after] if shown else [])
