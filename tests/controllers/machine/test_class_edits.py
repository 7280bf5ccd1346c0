"""An edit of a MachineClass: hosts that run follow when their set says so, or at once where nobody else decides."""

from __future__ import annotations

from controllers.kernel.actions import UpdateHost
from controllers.kernel.provider_config import class_digest
from controllers.kernel.refs import Key
from tests.builders import machine, machine_class, machine_set
from tests.builders.objects import MachineBuilder
from tests.controllers.machine.arena import Arena

GIVEN = "nodewright.dev/machine-class"


def classed(name: str = "m-1") -> MachineBuilder:
    builder = machine(name)
    builder.spec["providerConfig"] = {"valueFrom": {"machineClass": {"name": "small"}}}
    return builder


def small(cpus: int) -> object:
    return machine_class("small").provider_config(bootSeconds=0.2, updateSeconds=0.2, cpus=cpus).build()


def a_world(builder: MachineBuilder) -> tuple[Arena, Key, str]:
    """A Machine that runs as its class asks; the digest of the class."""
    arena = Arena()
    arena.view.put(small(1))  # type: ignore[arg-type]
    digest = class_digest(builder.spec, "default", arena.view)
    if builder.metadata.get("ownerReferences"):
        builder.annotated(GIVEN, digest)
    key = arena.apply(builder)
    arena.run(key, 60)
    assert arena.condition(key, "UpToDate")["status"] == "True"
    return arena, key, digest


def edit(arena: Arena, key: Key) -> str:
    arena.view.put(small(2))  # type: ignore[arg-type]
    arena.run(key, 60)
    return class_digest(arena.machine(key)["spec"], "default", arena.view)


def hosts(arena: Arena) -> list[int]:
    """The cpus that each was last asked to have."""
    found = (arena.world.host(host.machine_uid) for host in arena.world.hosts())
    return [host.request_at(arena.now).config["cpus"] for host in found if host is not None]


def test_the_status_says_which_class_the_host_has_at_no_cost() -> None:
    arena, key, digest = a_world(classed().owned_by(machine_set("pool")))
    assert arena.machine(key)["status"]["machineClassDigest"] == digest
    assert sum(arena.writes.values()) <= 4


def test_a_machine_of_a_set_stays_as_it_is_until_it_is_given_the_class() -> None:
    arena, key, before = a_world(classed().owned_by(machine_set("pool")))
    after = edit(arena, key)
    assert hosts(arena) == [1]
    said = arena.condition(key, "UpToDate")
    assert (said["status"], said["reason"]) == ("False", "WaitingForRollout")
    assert arena.condition(key, "Ready")["status"] == "True"
    assert arena.machine(key)["status"]["machineClassDigest"] == before
    written = arena.writes.total()
    arena.run(key, 600)
    assert arena.writes.total() == written, "it waits without a write"
    arena.edit(key, {"metadata": {"annotations": {GIVEN: after}}})
    arena.run(key, 60)
    assert hosts(arena) == [2]
    assert arena.machine(key)["status"]["machineClassDigest"] == after
    assert arena.condition(key, "UpToDate")["status"] == "True"


def test_a_machine_alone_follows_at_once() -> None:
    arena, key, _ = a_world(classed())
    edit(arena, key)
    assert hosts(arena) == [2]


def test_without_a_word_of_its_set_it_stays_as_well() -> None:
    """It was made before there was such a class, or by hand, or by an earlier version."""
    arena, key, _ = a_world(classed().owned_by(machine_set("pool")))
    arena.edit(key, {"metadata": {"annotations": {GIVEN: None}}})
    edit(arena, key)
    assert hosts(arena) == [1]
    assert arena.condition(key, "UpToDate")["reason"] == "WaitingForRollout"


def test_a_person_may_still_change_one_machine_of_a_class_that_is_as_it_was() -> None:
    arena, key, _ = a_world(classed().owned_by(machine_set("pool")))
    arena.edit(key, {"spec": {"versions": {"kubelet": "1.35.0"}}})
    arena.run(key, 60)
    assert arena.condition(key, "UpToDate")["status"] == "True"
    assert [type(action) for action in arena.done if isinstance(action, UpdateHost)] == [UpdateHost]


def test_a_host_that_is_still_to_be_made_gets_the_class_as_it_is() -> None:
    arena = Arena()
    arena.view.put(small(2))  # type: ignore[arg-type]
    key = arena.apply(classed().owned_by(machine_set("pool")).annotated(GIVEN, "of-another-day"))
    arena.run(key, 60)
    assert hosts(arena) == [2]
    assert arena.condition(key, "UpToDate")["status"] == "True"
    assert not any(isinstance(action, UpdateHost) for action in arena.done)


def test_a_crd_of_before_that_drops_the_digest_makes_no_endless_writing() -> None:
    """A status that differs by that alone bears no new times: the API server changes nothing, so nobody is woken."""
    arena, key, digest = a_world(classed())
    kept = dict(arena.machine(key)["status"])
    assert kept.pop("machineClassDigest") == digest
    arena.view.put({**arena.machine(key), "status": kept})
    arena.forward(5)
    arena.round(key)
    assert arena.machine(key)["status"] == {**kept, "machineClassDigest": digest}


def test_a_digest_that_changes_is_news() -> None:
    arena, key, digest = a_world(classed())
    old = {**arena.machine(key)["status"], "machineClassDigest": "of-before"}
    arena.view.put({**arena.machine(key), "status": old})
    arena.forward(5)
    arena.round(key)
    status = arena.machine(key)["status"]
    assert status["machineClassDigest"] == digest
    assert status["lastUpdated"] != old["lastUpdated"]
