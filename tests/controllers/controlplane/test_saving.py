"""Before a step of a rollout etcd is saved in a bucket, where that is asked for: when, how often, and what is said."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from api.conditions import ControlPlaneCondition, Reason
from controllers.controlplane.course import course_of
from controllers.controlplane.observe import Observed
from controllers.controlplane.reconciler import ControlPlaneReconciler
from controllers.kernel.actions import Create, Delete, Event, Patch, TakeEtcdSnapshot
from controllers.kernel.conditions import format_time
from controllers.kernel.etcd import EtcdRead, EtcdUnread
from controllers.kernel.etcd_snapshots import (
    SnapshotFailed,
    SnapshotRead,
    SnapshotTaken,
    SnapshotUnderWay,
)
from controllers.kernel.plan import Plan
from controllers.kernel.refs import MACHINE, Key
from tests.builders.clock import NOW
from tests.builders.machines import MachineBuilder
from tests.builders.plans import condition_of, status_of
from tests.controllers.controlplane.test_reconciler import (
    KEY,
    ControlPlaneBuilder,
    Etcd,
    machine,
    members,
    three,
    world,
)

AGE_KEY = "age1" + "q" * 58
S3 = {"s3": {"secretName": "backups", "recipients": [AGE_KEY]}}
HEALTHY = members(True, True, True)
URL = "https://s3.example.com/bucket/default/prod/etcd.db.age"


@dataclass
class Saved:
    """``SnapshotsView`` with what a test says."""

    said: SnapshotRead | None = None

    def snapshot(self, cluster: Key) -> SnapshotRead | None:
        return self.said


def observed(
    control_plane: ControlPlaneBuilder, machines: list[MachineBuilder], said: SnapshotRead | None = None,
    etcd: EtcdRead = HEALTHY,
) -> tuple[ControlPlaneReconciler, Observed]:  # fmt: skip
    reconciler = ControlPlaneReconciler(Etcd(etcd), snapshots=Saved(said))
    found = reconciler.observe(KEY, world(control_plane, *machines), None)
    assert found is not None
    return reconciler, found


def planned(*given: Any, **named: Any) -> Plan:
    reconciler, found = observed(*given, **named)
    return reconciler.plan(found)


def asked(plan: Plan) -> list[TakeEtcdSnapshot]:
    return [action for action in plan.actions() if isinstance(action, TakeEtcdSnapshot)]


def changes(plan: Plan) -> list[Any]:
    """What it does to Machines."""
    return [
        action for action in plan.actions()
        if isinstance(action, Create | Delete) or (isinstance(action, Patch) and action.target.kind == MACHINE)
    ]  # fmt: skip


def upgrading(**rollout: Any) -> ControlPlaneBuilder:
    """Three Machines of 1.35.4 are there, and 1.36.0 is asked for."""
    return ControlPlaneBuilder(etcd={"snapshot": S3}, rollout=rollout)


def of_before(control_plane: ControlPlaneBuilder) -> list[MachineBuilder]:
    return three(control_plane, "1.35.4")


def saying(plan: Plan) -> dict[str, Any]:
    found = condition_of(plan, ControlPlaneCondition.ETCD_SAVED)
    assert found
    return found


@pytest.mark.parametrize("rollout", [{"inPlace": "Require"}, {"maxSurge": 1}, {"maxSurge": 0}], ids=str)
def test_the_first_step_of_every_kind_of_rollout_waits_for_a_snapshot(rollout: dict[str, Any]) -> None:
    control_plane = upgrading(**rollout)
    plan = planned(control_plane, of_before(control_plane))
    [action] = asked(plan)
    assert changes(plan) == []
    assert "pending" not in status_of(plan)
    assert action.target.secret == Key("default", "backups")
    assert action.target.recipients == (AGE_KEY,)
    assert action.before == "v1.36.0"
    assert [host.address for host in action.hosts] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    assert saying(plan)["reason"] == Reason.SNAPSHOT_UNDER_WAY
    assert "etcd is saved before: " in status_of(plan)["next"]


def recorded(control_plane: ControlPlaneBuilder, machines: list[MachineBuilder], age: timedelta = timedelta()) -> str:
    """The snapshot that the next step asks for is in the status."""
    [action] = asked(planned(control_plane, machines))
    control_plane.status["etcdSnapshot"] = {
        "step": action.key, "time": format_time(NOW - age), "sizeBytes": 1, "revision": 1, "location": URL
    }  # fmt: skip
    return action.key


@pytest.mark.parametrize("rollout", [{"inPlace": "Require"}, {"maxSurge": 1}, {"maxSurge": 0}], ids=str)
def test_once_its_snapshot_is_written_down_the_step_is_taken(rollout: dict[str, Any]) -> None:
    control_plane = upgrading(**rollout)
    machines = of_before(control_plane)
    recorded(control_plane, machines)
    plan = planned(control_plane, machines)
    assert asked(plan) == []
    assert len(changes(plan)) == 1
    assert saying(plan)["reason"] == Reason.SNAPSHOT_TAKEN


def test_a_snapshot_that_was_taken_is_written_down_before_the_step_so_that_a_crash_takes_no_second_one() -> None:
    control_plane = upgrading(inPlace="Require")
    machines = of_before(control_plane)
    [action] = asked(planned(control_plane, machines))
    plan = planned(control_plane, machines, SnapshotTaken(action.key, NOW, 4096, 77, URL))
    assert (asked(plan), changes(plan)) == ([], [])
    assert status_of(plan)["etcdSnapshot"] == {
        "step": action.key, "time": format_time(NOW), "sizeBytes": 4096, "revision": 77, "location": URL
    }  # fmt: skip


def test_the_condition_names_time_size_revision_and_place_of_the_last_snapshot() -> None:
    control_plane = ControlPlaneBuilder(etcd={"snapshot": S3})
    plan = planned(control_plane, three(control_plane), SnapshotTaken("k", NOW, 4096, 77, URL))
    assert saying(plan)["status"] == "True"
    assert saying(plan)["message"] == f"{format_time(NOW)}: 4096 bytes, revision 77, in {URL}"


def test_an_old_snapshot_and_one_of_another_step_do_not_count() -> None:
    control_plane = upgrading(inPlace="Require")
    machines = of_before(control_plane)
    first = recorded(control_plane, machines, timedelta(minutes=61))
    assert [action.key for action in asked(planned(control_plane, machines))] == [first]
    control_plane.status["etcdSnapshot"]["time"] = format_time(NOW)
    one_is_done = [machine(control_plane, 1), *machines[1:]]
    [second] = asked(planned(control_plane, one_is_done))
    assert second.key != first


def test_the_machine_that_goes_for_one_that_has_joined_needs_no_snapshot_of_its_own() -> None:
    control_plane = upgrading(maxSurge=1)
    machines = of_before(control_plane)
    recorded(control_plane, machines)
    joined = [*machines, machine(control_plane, 4)]
    plan = planned(control_plane, joined, etcd=members(True, True, True, True))
    assert asked(plan) == []
    assert [type(action) for action in changes(plan) if not isinstance(action, Patch)] == [Delete]


def test_nothing_is_asked_for_twice_while_it_is_under_way() -> None:
    control_plane = upgrading(inPlace="Require")
    plan = planned(control_plane, of_before(control_plane), SnapshotUnderWay("k"))
    assert (asked(plan), changes(plan)) == ([], [])


def test_a_snapshot_that_fails_holds_the_step_up_says_why_and_is_tried_again() -> None:
    control_plane = upgrading(inPlace="Require")
    machines = of_before(control_plane)
    [action] = asked(planned(control_plane, machines))
    failed = SnapshotFailed(action.key, "https://s3.example.com: AccessDenied", NOW + timedelta(seconds=60))
    plan = planned(control_plane, machines, failed)
    assert (asked(plan), changes(plan)) == ([], [])
    assert saying(plan)["reason"] == Reason.SNAPSHOT_FAILED
    assert "AccessDenied" in saying(plan)["message"]
    assert "AccessDenied" in status_of(plan)["next"]
    [event] = [each for each in plan.actions() if isinstance(each, Event)]
    assert (event.type, event.reason) == ("Warning", str(Reason.SNAPSHOT_FAILED))
    again = SnapshotFailed(action.key, "AccessDenied", NOW)
    assert len(asked(planned(control_plane, machines, again))) == 1


def test_what_heals_waits_for_no_snapshot() -> None:
    control_plane = upgrading(maxSurge=1)
    machines = of_before(control_plane)
    machines[2].condition("InfrastructureReady", "False", "HostMissing")
    plan = planned(control_plane, machines, etcd=members(True, True, False))
    assert asked(plan) == []
    assert len([action for action in changes(plan) if isinstance(action, Delete)]) == 1


@pytest.mark.parametrize("listed", [None, [], "age1", {"a": 1}, 7], ids=str)
def test_what_names_no_keys_never_means_in_plain(listed: Any) -> None:
    s3 = {"secretName": "backups", "recipients": listed}
    control_plane = ControlPlaneBuilder(etcd={"snapshot": {"s3": s3}}, rollout={"maxSurge": 1})
    [action] = asked(planned(control_plane, of_before(control_plane)))
    assert (action.target.recipients, action.target.plain) == ((), False)


def test_no_snapshot_is_taken_where_none_is_asked_for_or_nothing_is_to_be_done() -> None:
    for spec in ({}, {"snapshot": {"s3": {"plain": True}}}):
        control_plane = ControlPlaneBuilder(etcd=spec, rollout={"maxSurge": 1})
        plan = planned(control_plane, of_before(control_plane))
        assert asked(plan) == []
        assert not condition_of(plan, ControlPlaneCondition.ETCD_SAVED)
    control_plane = upgrading()
    assert asked(planned(control_plane, three(control_plane))) == []
    assert saying(planned(control_plane, three(control_plane)))["reason"] == Reason.NO_SNAPSHOT
    assert asked(planned(control_plane, of_before(control_plane), etcd=EtcdUnread("no answer"))) == []


@pytest.mark.parametrize("rollout", [{"inPlace": "Require"}, {"maxSurge": 1}, {"maxSurge": 0}], ids=str)
def test_the_course_names_one_snapshot_for_each_machine(rollout: dict[str, Any]) -> None:
    control_plane = upgrading(**rollout)
    machines = of_before(control_plane)
    _, found = observed(control_plane, machines)
    course = course_of(found, world(control_plane, *machines))
    assert (
        sum(how == "etcd is saved in the bucket of Secret backups" for each in course.stages for how in each.how) == 3
    )
