"""Situations that operators meet: ``nodewright status`` names object, cause, since and next step on one screen.

Each is tried with 1 and with 300 Machines at 80 columns. The conditions have the shape in which the controllers write
them; the page docs/tasks/situations.md has one row for each, and is held to it here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from api import names
from api.conditions import Reason
from controllers.kernel.refs import MACHINE_SET
from nodewright.reports.fleet.held import HELD
from nodewright.reports.fleet.showing import MOST_LINES
from nodewright.reports.fleet.summary import Fleet
from nodewright.reports.tree.advice import advice_for
from nodewright.reports.tree.health import BAD_REASONS
from nodewright.reports.tree.serving import Serving
from nodewright.runtime.election.claims import Claim, Holder
from nodewright.runtime.fleet.findings import Finding, Findings
from tests.builders import NOW, Builder, FakeView, cluster, machine, machine_deployment, machine_set, node
from tests.builders.loop import plan_for
from tests.builders.machines import MachineBuilder
from tests.builders.plans import status_of
from tests.cli.test_status import LEADER, fleet_of, text_of
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "tasks" / "situations.md"
ORPHAN = Finding("prod/h-7", "web-3 carries the UID of a Machine that is not there", "2026-01-01T11:40:00Z")
ORPHANED = Serving(LEADER.lease, LEADER.holder, Findings("0.1.0", orphans=(ORPHAN,), orphans_in_all=1))
FIRST = replace(LEADER, since=NOW - timedelta(hours=2))
SECOND = Serving(
    "nodewright-system/other",
    Holder("y", "nodewright up", claims=(Claim("machine"),)),
    since=NOW - timedelta(minutes=7),
)


@dataclass(frozen=True)
class Situation:
    """``build`` of a number of Machines; ``object``, ``cause`` and ``step`` stand in the text, all on one screen.

    ``held``: it was asked for, so the command ends with 0.
    """

    title: str
    build: Callable[[int], list[Builder]]
    object: str
    cause: str
    step: str
    held: bool = False
    serving: tuple[Serving, ...] = (LEADER,)


def of_set(make: Callable[[MachineBuilder], Builder], *, replicas: int | None = None) -> Callable[[int], list[Builder]]:
    """A MachineSet ``pool`` with the status that its controller decides for such Machines."""

    def build(count: int) -> list[Builder]:
        owner = machine_set("pool").replicas(count if replicas is None else replicas).observed()
        machines = [make(machine(f"m-{n}").of(owner)) for n in range(count)]
        owner.status.update(status_of(plan_for(FakeView(owner, *machines), MACHINE_SET, "pool")))
        return [owner, *machines]

    return build


def deleting(reason: str, message: str) -> Callable[[MachineBuilder], Builder]:
    def make(one: MachineBuilder) -> Builder:
        one.deleting(600).condition("Ready", "False", reason, message)
        return one.condition("Deleting", "True", reason, message)

    return make


def without_host(reason: str, message: str) -> Callable[[MachineBuilder], Builder]:
    return lambda one: one.pending(reason, message, 600)


def conditioned(type_: str, reason: str, message: str, status: str = "False") -> Callable[[MachineBuilder], Builder]:
    return lambda one: one.ready().condition(type_, status, reason, message)


def with_nodes(build: Callable[[int], list[Builder]]) -> Callable[[int], list[Builder]]:
    return lambda count: [*build(count), *(node(f"node-m-{n}").ready() for n in range(count))]


def deployment(reason: str, message: str, type_: str, status: str = "False") -> Callable[[int], list[Builder]]:
    def build(count: int) -> list[Builder]:
        owner = machine_deployment("web").replicas(count).condition(type_, status, reason, message)
        child = machine_set("web-1").of(owner).replicas(count).observed()
        machines = [machine(f"m-{n}").of(child).ready() for n in range(count)]
        return [owner, child, *machines, *(node(f"node-m-{n}").ready() for n in range(count))]

    return build


def set_with(reason: str, message: str, type_: str, status: str) -> Callable[[int], list[Builder]]:
    def build(count: int) -> list[Builder]:
        owner = machine_set("pool").replicas(count).observed().condition(type_, status, reason, message)
        machines = [machine(f"m-{n}").of(owner).ready() for n in range(count)]
        return [owner, *machines, *(node(f"node-m-{n}").ready() for n in range(count))]

    return build


def unreached(message: str) -> Callable[[int], list[Builder]]:
    def build(count: int) -> list[Builder]:
        owner = cluster("edge").condition("Reachable", "False", "Unreachable", message)
        child = machine_set("pool").in_cluster("edge").observed()
        machines = [
            machine(f"m-{n}").of(child).in_cluster("edge").ready().condition("NodeReady", "Unknown", "ConnectionDown")
            for n in range(count)
        ]
        return [owner, child, *machines]

    return build


def scaled(count: int) -> list[Builder]:
    built = deployment("Available", "", "Available", "True")(count)
    built[0].annotated(names.AUTOSCALER_MIN_ANNOTATION, "1").annotated(names.AUTOSCALER_MAX_ANNOTATION, "9")
    return built


HEALTHY = set_with("NotDeleting", "", "Deleting", "False")
PDB = "draining Node n: blocked: default/web-0 (PodDisruptionBudget default/keep); no nodeDrainTimeout is set"
HOOK = "waiting until the annotation pre-drain.nodewright.dev/backup is removed"
SKEW = "spec.versions.kubelet: 1.36.0 is newer than the API server, which is 1.34.2"
BREAKER = "calls to account prod pause until 12:05:00 after 5 failures: connection refused"
TYPO = "spec.verions is not known and has no effect; is versions meant?"
EXPIRED = "x509: certificate has expired; it last answered 2 h ago"
DARK = "zone b rests until 12:05:00: StockOut: none left; Machines go elsewhere"

SITUATIONS = (
    Situation("stuck drain", of_set(deleting("DrainBlocked", PDB), replicas=0), "pool", "default/keep", "room"),
    Situation("stuck hook", of_set(deleting("WaitingForHook", HOOK), replicas=0), "pool", "dev/backup", "remove it"),
    Situation("stuck host", of_set(deleting("Timeout", "h-1 is still listed"), replicas=0), "pool", "h-1", "Nothing"),
    Situation("quota", of_set(without_host("QuotaExceeded", "hosts: 2 of 2 are used")), "pool", "2 of 2", "raise the"),
    Situation("stock-out", of_set(without_host("StockOut", "no m5 left in zone b")), "pool", "no m5", "another size"),
    Situation("bad configuration", of_set(lambda one: one.failed()), "pool", "no such flavor", "validate FILE"),
    Situation("misspelt field", with_nodes(of_set(conditioned("FieldsKnown", "UnknownField", TYPO))), "m-0",
              "spec.verions", "field's name"),
    Situation("API of a workload cluster dead", unreached("connection refused; it last answered 2 h ago"),
              "Cluster/edge", "connection refused", "API server is up"),
    Situation("no controller", HEALTHY, "machines", "no process runs", "nodewright run", serving=()),
    Situation("two controllers", HEALTHY, "Controllers", "only one works", "End one", held=True,
              serving=(FIRST, SECOND)),
    Situation("paused", set_with("Paused", "moving the racks", "Paused", "True"), "MachineSet/pool", "moving the racks",
              "Remove the pause", held=True),
    Situation("dark zone", set_with("FailureDomainExhausted", DARK, "Balanced", "True"), "MachineSet/pool", "zone b",
              "restocked", held=True),
    Situation("orphan host", HEALTHY, "prod/h-7", "OrphanHost", "orphan-hosts=delete", serving=(ORPHANED,)),
    Situation("half rollout", deployment("PartitionReached", "9 Machines stay with an earlier template", "RollingOut"),
              "MachineDeployment/web", "earlier template", "partition", held=True),
    Situation("stuck rollout", deployment("ProgressDeadlineExceeded", "no progress for 600 s", "Progressing"),
              "MachineDeployment/web", "no progress", "rollout undo"),
    Situation("rollback", deployment("RolledBack", "revision 3 failed: 1 is in force", "Progressing"),
              "MachineDeployment/web", "revision 3", "Correct spec.template"),
    Situation("certificate expired", unreached(EXPIRED), "Cluster/edge", "expired", "kubeconfig Secret"),
    Situation("breaker open", of_set(without_host("Unavailable", BREAKER)), "pool", "account prod", "API is up"),
    Situation("frozen set", set_with("CeilingReached", "40 Machines are owned, 40 may ever be", "Frozen", "True"),
              "MachineSet/pool", "40 may", "labels back"),
    Situation("autoscaler idle", scaled, "MachineDeployment/web", "AutoscalerNotRunning", "*,autoscaler", held=True),
    Situation("version skew", of_set(lambda one: one.pending("Pending", "", 600).condition(
              "BootstrapDataReady", "False", "VersionSkew", SKEW)), "m-0", "newer than the API", "3 minor"),
)  # fmt: skip


def as_flat(fleet: Fleet, width: int = 80) -> str:
    return " ".join(text_of(fleet, width).split())


@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.title)
def test_one_command_names_object_cause_since_and_next_step(situation: Situation, count: int) -> None:
    fleet = fleet_of(*situation.build(count), serving=situation.serving)
    drawn = text_of(fleet).splitlines()
    assert len(drawn) <= MOST_LINES
    assert max(len(line) for line in drawn) <= 80
    told = " ".join(" ".join(drawn).split())
    for wanted in (situation.object, situation.cause, situation.step):
        assert wanted in told, text_of(fleet)
    assert bool(fleet.problems) != situation.held, text_of(fleet)
    assert bool(re.search(r" for \d+[smhd]", told)), text_of(fleet)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.title)
def test_no_line_is_wider_than_the_terminal(situation: Situation, width: int) -> None:
    fleet = fleet_of(*situation.build(5), serving=situation.serving)
    assert [line for line in text_of(fleet, width).splitlines() if len(line) > width] == []


def test_the_page_has_a_row_for_each() -> None:
    rows = re.findall(r"^\| ([^|`]+?) \| `nodewright", PAGE.read_text(), re.MULTILINE)
    assert rows == [situation.title for situation in SITUATIONS]


def test_what_is_wrong_or_held_has_a_next_step() -> None:
    assert [reason for reason in sorted(BAD_REASONS | HELD) if not advice_for(reason)] == []


def test_no_reason_is_both_wrong_and_held() -> None:
    assert sorted(BAD_REASONS & HELD) == []
    assert sorted((BAD_REASONS | HELD) - {str(reason) for reason in Reason}) == sorted(
        {"Conflict", "Internal", "NotFound", "QuotaExceeded", "RateLimited", "StockOut", "Timeout", "Unauthorized",
         "Unavailable", "UnsupportedChange"} & (BAD_REASONS | HELD)
    )  # fmt: skip
