"""What commands print, as files: ``golden/SCREEN-WIDTH.txt`` at 60, 80, 120 and 200 columns.

If a change is meant, write them anew: ``python -m tests.cli.test_golden_screens``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from api import names
from controllers.autoscaler.explaining import explain_pod
from controllers.kernel.refs import CLUSTER
from nodewright.cli.commands.autoscaler import as_branch
from nodewright.cli.rollout.history import Revision
from nodewright.cli.rollout.showing import lines as history_lines
from nodewright.cli.running_autoscaler import running
from nodewright.cli.screen import printable
from nodewright.reports.fleet.showing import as_lines
from nodewright.reports.timeline.entries import Entry, Source
from nodewright.reports.timeline.showing import as_lines as timeline_lines
from nodewright.reports.tree.branch import Branch, Mood
from nodewright.reports.tree.builder import shown_once
from nodewright.reports.tree.drawing import lines, sentences
from tests.builders import NOW, cluster
from tests.cli.test_running_autoscaler import PLAIN, lease, published
from tests.cli.test_situations import SITUATIONS
from tests.cli.test_status import fleet_of, healthy
from tests.cli.test_tree import of_three, tree_of
from tests.cli.test_tree_of_deletions import blocked_deployment
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.town import observed_of

GOLDEN = Path(__file__).parent / "golden"
WIDTHS = (60, 80, 120, 200)


def texts(drawn: Iterable[object]) -> str:
    return "".join(f"{line}".rstrip() + "\n" for line in drawn)


def status_of_a_quiet_fleet(width: int) -> str:
    return texts(as_lines(fleet_of(*healthy()), width))


def status_of_trouble(width: int) -> str:
    """30 Machines behind a budget, and a host that no Machine knows."""
    drain, orphan = (
        next(each for each in SITUATIONS if each.title == title) for title in ("stuck drain", "orphan host")
    )
    return texts(as_lines(fleet_of(*drain.build(30), serving=orphan.serving), width))


def describe_a_cluster(width: int) -> str:
    deployment, rest = of_three()
    return texts(lines(tree_of(CLUSTER, cluster("dev"), deployment, *rest), NOW, width))


def describe_a_deep_tree(width: int) -> str:
    """With names as long as the controllers make them, and what serves it."""
    set_name = "workers-7k79gdr7"
    machine_name = f"{set_name}-fsfzs-0"
    leaf = (
        Branch("Host/simulated://default/sim-000005", state=f"10.64.0.5, {machine_name}"),
        Branch(f"Node/{machine_name}", Mood.GOOD, "Ready, cordoned", since=NOW, message="kubelet v1.34.1"),
    )
    blocked = Branch(f"Machine/{machine_name}", Mood.BAD, "Deleting", "DrainBlocked", since=NOW, children=leaf)
    owner = Branch(f"MachineSet/{set_name}", Mood.BAD, "0/0 ready, 1 going", since=NOW, children=(blocked,))
    serving = Branch("Served by", children=(
        Branch("Lease/nodewright-system/nodewright", Mood.GOOD, "nodewright up (process 24520 on host web)",
               message="cluster, machine with labels !machine.k8s.io/controller"),))  # fmt: skip
    trees = (Branch("Cluster/demo", Mood.GOOD, "Provisioned", since=NOW, children=(owner,)), serving)
    return texts(line for tree in trees for line in lines(tree, NOW, width))


def describe_a_blocked_drain(width: int) -> str:
    return texts(lines(shown_once(blocked_deployment(30)), NOW, width))


def plan_of_a_set(width: int) -> str:
    tree = Branch(
        "If this object were applied to an empty cluster",
        children=(
            Branch(
                "MachineDeployment/default/workers",
                children=(
                    Branch("create MachineSet workers-2fnw64cj", message="the template has no MachineSet yet"),
                    Branch(f'patch MachineDeployment workers: metadata.annotations["{names.REVISION_ANNOTATION}"]',
                           message="the revision or the pause is shown in annotations"),
                ),
            ),
            Branch("Machine/default/workers-2fnw64cj-x79p6-0", children=(
                Branch("create host for workers-2fnw64cj-x79p6-0", message="make the host of the Machine"),)),
        ),
    )  # fmt: skip
    return texts(sentences(tree, width))


def logs_of_a_machine(width: int) -> str:
    entries = (
        Entry(NOW, Source.OBJECT, "Machine/web-0", "Created", "MachineSet web needs 3 Machines"),
        Entry(NOW, Source.OPERATION, "Machine/web-0", "Create Failed", "QuotaExceeded: hosts: 2 of 2 used", wrong=True),
    )
    return texts(line for entry in entries for line in timeline_lines(entry, width))


def explain_of_a_pod(width: int) -> str:
    """A pod that no group helps, and the autoscaler that runs."""
    fleet = Fleet()
    for name, cpu in (("web", "4"), ("small", "1")):
        fleet.group(name, 0, 3, cpu=cpu)
    fleet.pod("huge", cpu="4500m")
    answer = explain_pod(observed_of(fleet), fleet.pods["huge"])
    found = running(published(), [lease()], PLAIN, NOW)
    return texts(line for tree in (answer, found.description) for line in sentences(as_branch(tree), width))


def rollout_history(width: int) -> str:
    cause = "kubelets of July, for the hole in the runtime: kubectl apply --filename=workers.yaml by ops@example.com"
    known = [
        Revision(1, "workers-7dxxlkrr", 0, "v1.34.1", "", "in force instead", {}),
        Revision(2, "workers-2fnw64cj", 3, "v1.34.2", cause, "failed, taken back", {}),
    ]
    return texts(history_lines(known, width))


SCREENS: dict[str, Callable[[int], str]] = {
    "status-quiet": status_of_a_quiet_fleet,
    "status-trouble": status_of_trouble,
    "describe-cluster": describe_a_cluster,
    "describe-deep": describe_a_deep_tree,
    "describe-blocked-drain": describe_a_blocked_drain,
    "plan": plan_of_a_set,
    "logs": logs_of_a_machine,
    "explain": explain_of_a_pod,
    "history": rollout_history,
}


def golden_of(screen: str, width: int) -> Path:
    return GOLDEN / f"{screen}-{width}.txt"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_is_as_its_file(screen: str, width: int) -> None:
    assert SCREENS[screen](width) == golden_of(screen, width).read_text(), "if this is meant, see the top of this file"


@pytest.mark.parametrize("screen", SCREENS)
def test_no_file_is_wider_than_its_terminal_but_for_what_has_no_space(screen: str) -> None:
    for width in WIDTHS:
        wide = [line for line in golden_of(screen, width).read_text().splitlines() if len(line) > width]
        assert [line for line in wide if len(max(line.split(), key=len)) < width - 20] == []


def test_there_is_no_file_without_a_screen() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {golden_of(s, w).name for s in SCREENS for w in WIDTHS}


@pytest.mark.parametrize("screen", SCREENS)
def test_a_terminal_without_our_marks_gets_as_many_columns(screen: str) -> None:
    text = golden_of(screen, 80).read_text()
    plain = printable(text, "ascii")
    assert plain.isascii()
    assert "\\u" not in plain
    assert [len(line) for line in plain.splitlines()] == [len(line) for line in text.splitlines()]


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for title, draw in SCREENS.items():
        for columns in WIDTHS:
            golden_of(title, columns).write_text(draw(columns))
