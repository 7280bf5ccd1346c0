"""``nodewright rollout``: what it says of a rollout, which revisions there are, what undo writes. Without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.refs import MACHINE_DEPLOYMENT, MACHINE_SET
from nodewright.cli import main
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.rollout.history import one_of, revisions, to_return_to, undo
from nodewright.cli.rollout.naming import name_of
from nodewright.cli.rollout.rollout_status import rollout_status
from nodewright.cli.rollout.showing import lines as history_lines
from tests.builders import World, machine_deployment
from tests.builders.loop import reconcile_once, settle
from tests.controllers.machinedeployment.test_rollback import BROKEN, rolled

OLD, NEW = "1.34.0", "1.35.0"


def deployment_of(world: World) -> dict[str, Any]:
    return world.get(MACHINE_DEPLOYMENT, "md")


def a_world(*versions: str, **fields: Any) -> World:
    owner = machine_deployment("md").replicas(3).rolling(1, 0).kubelet(versions[0]).history_limit(5)
    world = World(owner.rollout(**fields))
    settle(world)
    for version in versions[1:]:
        change_template(world, version)
        settle(world)
    return world


def change_template(world: World, version: str) -> None:
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"]["template"]["spec"]["versions"].update(kubelet=version))


class TestStanding:
    def test_every_step_of_a_rollout_is_told_until_it_is_done(self) -> None:
        world = a_world(OLD)
        change_template(world, NEW)
        told = [rollout_status(deployment_of(world))]
        for _ in range(40):
            reconcile_once(world)
            told.append(rollout_status(deployment_of(world)))
            world.make_ready()
            world.finish_deletions()
            world.advance(3)
        texts = list(dict.fromkeys(one.text for one in told))
        assert texts[0] == 'Waiting for machinedeployment "md" spec update to be observed...'
        assert texts[-1] == 'machinedeployment "md" successfully rolled out'
        assert any("1 out of 3 new replicas have been updated" in text for text in texts)
        assert [one.state for one in told].index("done") > 5
        assert all(one.state != "failed" for one in told)

    def test_a_rollout_that_stands_still_has_failed_and_says_why(self) -> None:
        said = rollout_status(deployment_of(rolled(BROKEN, on_failure="Pause")))
        assert said.state == "failed"
        assert said.text.startswith('machinedeployment "md" exceeded its progress deadline: no progress since')

    def test_one_that_was_taken_back_has_failed_too(self) -> None:
        said = rollout_status(deployment_of(rolled(BROKEN)))
        assert said.state == "failed"
        assert "was rolled back: revision 2 failed and was taken back to revision 1" in said.text

    def test_a_canary_is_done_when_the_partition_is_reached(self) -> None:
        said = rollout_status(deployment_of(a_world(OLD, NEW, partition=2)))
        assert said.state == "done"
        assert "1 new replicas, 2 stay old" in said.text

    def test_a_paused_rollout_is_on_its_way_and_says_so(self) -> None:
        world = a_world(OLD)
        world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].update(paused=True))
        change_template(world, NEW)
        settle(world)
        said = rollout_status(deployment_of(world))
        assert said.state == "on its way"
        assert "(paused)" in said.text

    def test_on_delete_waits_for_people_and_says_so(self) -> None:
        world = a_world(OLD)
        world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"]["strategy"].update(type="OnDelete"))
        change_template(world, NEW)
        settle(world)
        said = rollout_status(deployment_of(world))
        assert said.state == "on its way"
        assert "wait until somebody deletes them" in said.text

    def test_what_holds_it_up_is_named(self) -> None:
        world = a_world(OLD)
        world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"]["strategy"].update(disruptionBudgets=[{"nodes": 0}]))
        change_template(world, NEW)
        settle(world)
        assert "spec.strategy.disruptionBudgets[0] allows 0 Machines" in rollout_status(deployment_of(world)).text

    def test_an_object_that_nobody_has_looked_at_yet_is_on_its_way(self) -> None:
        assert rollout_status(machine_deployment("md").build()).state == "on its way"


class TestHistory:
    def test_revisions_come_in_order_with_what_they_are(self) -> None:
        world = a_world(OLD, NEW)
        found = revisions(deployment_of(world), world.all(MACHINE_SET))
        assert [(one.number, one.kubelet, one.machines, one.remark) for one in found] == [
            (1, OLD, 0, ""),
            (2, NEW, 3, "wanted"),
        ]
        assert "machine-template-hash" not in found[0].template["metadata"]["labels"]

    def test_after_an_automatic_rollback_it_says_which_is_which(self) -> None:
        world = rolled(BROKEN)
        found = revisions(deployment_of(world), world.all(MACHINE_SET))
        assert {one.kubelet: one.remark for one in found} == {OLD: "in force instead", BROKEN: "failed, taken back"}

    def test_without_causes_the_columns_fit_a_terminal_of_eighty(self) -> None:
        world = rolled(BROKEN)
        head, first, second = history_lines(revisions(deployment_of(world), world.all(MACHINE_SET)), 80)
        assert str(head).split()[-2:] == ["REMARK", "CHANGE-CAUSE"]
        assert str(first).split()[3:] == [BROKEN, "failed,", "taken", "back", "-"]
        assert str(second).split()[3:] == [OLD, "in", "force", "instead", "-"]

    def test_a_number_that_is_not_there_is_refused_with_those_that_are(self) -> None:
        world = a_world(OLD, NEW)
        with pytest.raises(CliError, match="no revision 7") as refused:
            one_of(revisions(deployment_of(world), world.all(MACHINE_SET)), 7)
        assert "1, 2" in refused.value.hint


class TestUndo:
    def undone(self, world: World, number: int = 0) -> str:
        body = deployment_of(world)
        revision = to_return_to(body, revisions(body, world.all(MACHINE_SET)), number)
        patch = undo(body, revision)
        change = patch["spec"]["template"]["spec"]["versions"]
        world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"]["template"]["spec"]["versions"].update(change))
        settle(world)
        (version,) = {
            m["spec"]["template"]["spec"]["versions"]["kubelet"]
            for m in world.all(MACHINE_SET)
            if m["spec"]["replicas"]
        }
        return str(version)

    def test_it_returns_to_the_one_before(self) -> None:
        assert self.undone(a_world("1.1.0", "1.2.0", "1.3.0")) == "1.2.0"

    def test_twice_it_is_where_it_was(self) -> None:
        world = a_world("1.1.0", "1.2.0")
        assert self.undone(world) == "1.1.0"
        assert self.undone(world) == "1.2.0"

    def test_to_a_number(self) -> None:
        assert self.undone(a_world("1.1.0", "1.2.0", "1.3.0"), 1) == "1.1.0"

    def test_after_an_automatic_rollback_the_spec_gets_what_is_in_force(self) -> None:
        world = rolled(BROKEN)
        assert self.undone(world) == OLD
        assert "rollback" not in deployment_of(world)["status"]

    def test_in_place_it_works_alike(self) -> None:
        assert self.undone(a_world("1.1.0", "1.2.0", inPlace="Prefer")) == "1.1.0"

    def test_there_may_be_nothing_to_return_to(self) -> None:
        world = a_world(OLD)
        body = deployment_of(world)
        with pytest.raises(CliError, match="no earlier revision"):
            to_return_to(body, revisions(body, world.all(MACHINE_SET)), 0)

    def test_fields_that_came_later_go_again(self) -> None:
        world = a_world(OLD)
        world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"]["template"]["spec"].update(failureDomain="b"))
        settle(world)
        body = deployment_of(world)
        patch = undo(body, to_return_to(body, revisions(body, world.all(MACHINE_SET)), 0))
        assert patch == {"spec": {"template": {"spec": {"failureDomain": None}}}}


NAMES = {("md/workers",): "workers", ("workers",): "workers", ("machinedeployments", "workers"): "workers"}


@pytest.mark.parametrize("words", NAMES, ids=" ".join)
def test_an_object_is_named_as_for_kubectl(words: tuple[str, ...]) -> None:
    assert name_of(words) == NAMES[words]


@pytest.mark.parametrize("words", [("ms/workers",), ("md", "a", "b"), ("md/",), ("md/a/b",)], ids=" ".join)
def test_what_has_no_rollouts_is_a_usage_error(words: tuple[str, ...]) -> None:
    with pytest.raises(CliError) as refused:
        name_of(words)
    assert refused.value.code == USAGE


def test_a_wrong_timeout_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["rollout", "status", "md/x", "--timeout", "soon"]) == USAGE
    assert "--timeout" in capsys.readouterr().err


def test_as_a_plugin_it_calls_itself_by_what_people_type(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/local/bin/kubectl-nodewright"])
    assert main.run(["--help"]) == 0
    assert "Usage: kubectl nodewright COMMAND" in capsys.readouterr().out
