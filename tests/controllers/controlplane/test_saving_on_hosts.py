"""Before a step of a rollout a host saves etcd, where ``spec.etcd.snapshot.path`` asks for it: which one, and how long
what it has counts.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from api import names
from api.conditions import ControlPlaneCondition, Reason
from controllers.controlplane.course import course_of
from controllers.kernel.actions import Delete, Patch, TakeEtcdSnapshot
from controllers.kernel.conditions import format_time
from controllers.kernel.etcd_snapshots import HostTarget, SnapshotFailed, SnapshotTaken
from controllers.kernel.plan import Plan
from tests.builders.clock import NOW
from tests.builders.machines import MachineBuilder
from tests.builders.plans import condition_of, status_of
from tests.controllers.controlplane.test_reconciler import ControlPlaneBuilder, machine, members, three, world
from tests.controllers.controlplane.test_saving import AGE_KEY, asked, changes, observed, planned, saying

FOLDER = "/var/backups/etcd"
ON_HOST = {"snapshot": {"path": FOLDER, "keep": 5}}
FILE = f"{FOLDER}/etcd-20260101T000000Z-before-v1.36.0.db"


def upgrading(**rollout: Any) -> ControlPlaneBuilder:
    return ControlPlaneBuilder(etcd=ON_HOST, rollout=rollout)


def of_before(control_plane: ControlPlaneBuilder) -> list[MachineBuilder]:
    return three(control_plane, "1.35.4")


def ordered(plan: Plan) -> tuple[TakeEtcdSnapshot, HostTarget]:
    [action] = asked(plan)
    assert isinstance(action.target, HostTarget)
    return action, action.target


def taken(action: TakeEtcdSnapshot, target: HostTarget, age: timedelta = timedelta()) -> SnapshotTaken:
    return SnapshotTaken(action.key, NOW - age, 4096, 77, f"{target.host.name}:{FILE}", target.machine)


def write_down(control_plane: ControlPlaneBuilder, plan: Plan) -> tuple[TakeEtcdSnapshot, HostTarget]:
    """What ``plan`` has asked for was taken, and is in the status."""
    action, target = ordered(plan)
    control_plane.status["etcdSnapshot"] = {
        "step": action.key, "time": format_time(NOW), "sizeBytes": 4096, "revision": 77,
        "location": f"{target.host.name}:{FILE}", "machine": target.machine,
    }  # fmt: skip
    return action, target


@pytest.mark.parametrize("rollout", [{"inPlace": "Require"}, {"maxSurge": 1}, {"maxSurge": 0}], ids=str)
def test_the_first_step_of_every_kind_of_rollout_waits_for_a_host_to_save_etcd(rollout: dict[str, Any]) -> None:
    control_plane = upgrading(**rollout)
    machines = of_before(control_plane)
    plan = planned(control_plane, machines)
    action, target = ordered(plan)
    assert changes(plan) == []
    assert saying(plan)["reason"] == Reason.SNAPSHOT_UNDER_WAY
    assert target.host in action.hosts
    assert target.host.uid in {each.metadata["uid"] for each in machines}
    assert f"folder={FOLDER} keep=5 version=v1.36.0" in target.script
    assert f"key={action.key}" in target.script
    write_down(control_plane, plan)
    plan = planned(control_plane, machines)
    assert asked(plan) == []
    assert len(changes(plan)) == 1


def test_one_that_is_updated_in_place_saves_etcd_itself_and_is_handed_the_same_folder() -> None:
    control_plane = upgrading(inPlace="Require")
    machines = of_before(control_plane)
    _, target = write_down(control_plane, planned(control_plane, machines))
    [patch] = changes(planned(control_plane, machines))
    assert isinstance(patch, Patch)
    assert patch.target.key.name == target.machine
    assert patch.patch["metadata"]["annotations"][names.ETCD_SNAPSHOT] == f"5:{FOLDER}"


def test_a_host_that_is_to_go_keeps_none_and_one_of_the_present_template_comes_first() -> None:
    control_plane = upgrading(maxSurge=0)
    machines = of_before(control_plane)
    _, target = write_down(control_plane, planned(control_plane, machines))
    [goes] = changes(planned(control_plane, machines))
    assert goes.target.key.name != target.machine
    control_plane = upgrading(maxSurge=1)
    _, target = ordered(planned(control_plane, [machine(control_plane, 1), *of_before(control_plane)[1:]]))
    assert target.machine == "cp-1"


def test_what_was_written_down_names_the_machine_and_the_condition_the_host_and_the_path() -> None:
    control_plane = upgrading(maxSurge=1)
    machines = of_before(control_plane)
    said = taken(*ordered(planned(control_plane, machines)))
    plan = planned(control_plane, machines, said)
    assert (asked(plan), changes(plan)) == ([], [])
    assert status_of(plan)["etcdSnapshot"]["machine"] == said.machine
    control_plane.status["etcdSnapshot"] = status_of(plan)["etcdSnapshot"]
    plan = planned(control_plane, machines, said)
    assert saying(plan)["status"] == "True"
    assert saying(plan)["message"] == f"{format_time(NOW)}: 4096 bytes, revision 77, in node-{said.machine}:{FILE}"
    assert len(changes(plan)) == 1


def test_with_one_replica_the_new_host_saves_etcd_before_the_old_one_goes_with_its_own() -> None:
    control_plane = ControlPlaneBuilder(replicas=1, etcd=ON_HOST, rollout={"maxSurge": 1})
    old = machine(control_plane, 1, "1.35.4")
    action, target = write_down(control_plane, planned(control_plane, [old], etcd=members(True)))
    assert target.machine == "cp-1"
    assert len(changes(planned(control_plane, [old], etcd=members(True)))) == 1
    both = [old, machine(control_plane, 2)]
    plan = planned(control_plane, both, taken(action, target), etcd=members(True, True))
    _, target = write_down(control_plane, plan)
    assert (target.machine, changes(plan)) == ("cp-2", [])
    plan = planned(control_plane, both, etcd=members(True, True))
    [goes] = [each for each in changes(plan) if isinstance(each, Delete)]
    assert goes.target.key.name == "cp-1"


def test_a_snapshot_that_has_gone_with_its_host_counts_for_nothing() -> None:
    control_plane = upgrading(inPlace="Require")
    machines = of_before(control_plane)
    write_down(control_plane, planned(control_plane, machines))
    control_plane.status["etcdSnapshot"]["machine"] = "cp-9"
    assert len(asked(planned(control_plane, machines))) == 1
    steady = ControlPlaneBuilder(etcd=ON_HOST)
    steady.status["etcdSnapshot"] = control_plane.status["etcdSnapshot"]
    found = saying(planned(steady, three(steady)))
    assert (found["status"], found["reason"]) == ("Unknown", Reason.NO_SNAPSHOT)
    assert "has gone with the host of Machine cp-9" in found["message"]


def test_where_its_provider_runs_nothing_on_hosts_only_an_update_in_place_goes_on() -> None:
    """There the host's own steps begin with a snapshot; a replacement would have none."""
    for rollout, goes_on in (({"inPlace": "Require"}, True), ({"maxSurge": 1}, False)):
        control_plane = upgrading(**rollout)
        machines = of_before(control_plane)
        action, _ = ordered(planned(control_plane, machines))
        unable = SnapshotFailed(action.key, "its provider runs nothing on hosts", NOW + timedelta(seconds=60), True)
        plan = planned(control_plane, machines, unable)
        assert asked(plan) == []
        assert bool(changes(plan)) is goes_on
        if not goes_on:
            assert saying(plan)["reason"] == Reason.SNAPSHOT_FAILED
            assert "runs nothing on hosts" in status_of(plan)["next"]


def test_with_a_bucket_too_the_bucket_is_what_steps_wait_for() -> None:
    both = {"snapshot": {"path": FOLDER, "s3": {"secretName": "backups", "recipients": [AGE_KEY]}}}
    control_plane = ControlPlaneBuilder(etcd=both, rollout={"maxSurge": 1})
    machines = of_before(control_plane)
    [action] = asked(planned(control_plane, machines))
    assert not isinstance(action.target, HostTarget)
    on_host = SnapshotTaken(action.key, NOW, 1, 1, f"node-cp-1:{FILE}", "cp-1")
    assert len(asked(planned(control_plane, machines, on_host))) == 1


def test_nobody_is_told_of_snapshots_that_nobody_asks_for() -> None:
    control_plane = ControlPlaneBuilder(rollout={"maxSurge": 1})
    assert not condition_of(planned(control_plane, of_before(control_plane)), ControlPlaneCondition.ETCD_SAVED)


@pytest.mark.parametrize("rollout", [{"inPlace": "Require"}, {"maxSurge": 1}, {"maxSurge": 0}], ids=str)
def test_the_course_names_one_snapshot_for_each_machine(rollout: dict[str, Any]) -> None:
    control_plane = upgrading(**rollout)
    machines = of_before(control_plane)
    _, found = observed(control_plane, machines)
    course = course_of(found, world(control_plane, *machines))
    assert sum(how.startswith(f"etcd is saved in {FOLDER}") for each in course.stages for how in each.how) == 3
