"""All of it together, against the embedded control plane: hosts become Nodes, and faults cost nothing but time."""

from __future__ import annotations

import asyncio
from typing import Any

from api import names
from controllers.kernel.refs import EVENT, MACHINE, MACHINE_SET, NODE, Key, Ref, key_of
from nodewright.apiserver.app.faults import Match
from nodewright.apiserver.values import ApiError as ServerError
from nodewright.runtime.kube.errors import ApiError
from nodewright.runtime.manager import Manager, run_controllers
from nodewright.runtime.telemetry import metrics
from tests.builders.objects import machine
from tests.runtime.town import SECONDS, Town


async def test_a_machine_set_becomes_nodes_grows_shrinks_and_goes(town: Town) -> None:
    async with town.controllers():
        await town.machine_set("ms", 3)
        await town.until(lambda: town.ready() == 3)
        assert {node["spec"]["providerID"] for node in town.objects(NODE)} == {
            machine["spec"]["providerID"] for machine in town.objects(MACHINE)
        }
        await town.scale("ms", 1)
        await town.until(lambda: len(town.objects(MACHINE)) == len(town.objects(NODE)) == town.hosts() == 1)
        await town.client.delete(Ref(MACHINE_SET, Key("default", "ms")))
        await town.until(lambda: not town.objects(MACHINE) and not town.objects(NODE) and not town.hosts())


async def test_watches_that_are_cut_in_the_middle_of_it_all_lose_nothing(town: Town) -> None:
    async with town.controllers():
        await town.machine_set("ms", 8)
        for number in range(1, 7):
            await town.until(lambda: len(town.objects(MACHINE)) >= number)  # noqa: B023  (awaited at once)
            town.plane.faults.cut_watches()
            town.plane.faults.cut_watches("machines.cluster.k8s.io", ServerError(410, "Expired", "too old"))
        await town.until(lambda: town.ready() == 8)
        assert len(town.objects(MACHINE)) == town.hosts() == 8


async def test_creates_whose_answers_are_lost_make_no_second_machine(town: Town) -> None:
    town.plane.faults.lose_answer(Match(verb="create", resource="machines.cluster.k8s.io"), times=4)
    async with town.controllers():
        await town.machine_set("ms", 6)
        await town.until(lambda: town.ready() == 6)
        assert town.plane.faults.hits == 4
        assert len(town.objects(MACHINE)) == town.hosts() == 6


async def test_a_server_that_refuses_for_a_while_is_waited_for(town: Town) -> None:
    async with town.controllers():
        town.plane.faults.answer(ServerError.too_many_requests("slow down", 0), Match(verb="create"), times=3)
        town.plane.faults.answer(ServerError(500, "InternalError", "etcd"), Match(verb="patch"), times=5)
        await _create_in_spite_of(town, "ms", 3)
        await town.until(lambda: town.ready() == 3)


async def _create_in_spite_of(town: Town, name: str, replicas: int) -> None:
    for _ in range(5):
        try:
            await town.machine_set(name, replicas)
        except ApiError:
            continue
        return


async def test_after_a_restart_work_goes_on_where_it_was(town: Town) -> None:
    async with town.controllers() as manager:
        await town.machine_set("ms", 5, bootSeconds=0.5)
        await town.until(lambda: len(town.objects(MACHINE)) == 5)
        assert manager.ready
    async with town.controllers():
        await town.until(lambda: town.ready() == 5)
        assert len(town.objects(MACHINE)) == town.hosts() == 5


async def test_a_host_is_not_lost_when_its_config_was_broken_while_nobody_watched(town: Town) -> None:
    """After a restart nobody lists the scope that the broken config named: absent there must not mean gone."""
    await _edited_while_nobody_watched(town, {"apiVersion": "nobody.example.com/v1"})
    async with town.controllers():
        await town.client.delete(Ref(MACHINE_SET, Key("default", "ms")), "Orphan")
        (machine,) = town.objects(MACHINE)
        await town.client.delete(Ref(MACHINE, key_of(machine)))
        await town.until(lambda: _says(town, "no config of that is known now"))
        assert town.hosts() == 1
        letting_go = {"metadata": {"annotations": {names.ABANDON_HOST_ANNOTATION: "yes"}}}
        await town.client.merge_patch(Ref(MACHINE, key_of(machine)), letting_go)
        await town.until(lambda: not town.objects(MACHINE))
        assert town.hosts() == 1, "let go, not deleted"


async def test_a_host_is_not_called_missing_when_its_config_names_another_account(town: Town) -> None:
    await _edited_while_nobody_watched(town, {"cloud": {"name": "other"}})
    async with town.controllers() as manager:
        await town.until(lambda: all(c.queue.idle for c in manager.controllers))
        (machine,) = town.objects(MACHINE)
        assert machine["status"]["phase"] == "Running"
        assert not machine["status"].get("errorReason")
    assert town.hosts() == 1


async def _edited_while_nobody_watched(town: Town, config: dict[str, Any]) -> None:
    """One Ready Machine in the cloud ``small``; then its config is merged with ``config``, no controller running."""
    async with town.controllers():
        await town.machine_set("ms", 1, cloud={"name": "small"})
        await town.until(lambda: town.ready() == 1)
    (machine,) = town.objects(MACHINE)
    assert machine["status"]["hostScope"] == "simulated/small"
    await town.client.merge_patch(Ref(MACHINE, key_of(machine)), {"spec": {"providerConfig": {"value": config}}})


def _says(town: Town, words: str) -> bool:
    return any(words in str(machine.get("status", {}).get("conditions")) for machine in town.objects(MACHINE))


async def test_an_object_that_was_deleted_while_nobody_watched_is_cleaned_up(town: Town) -> None:
    async with town.controllers():
        await town.machine_set("ms", 2)
        await town.until(lambda: town.ready() == 2)
    await town.client.delete(Ref(MACHINE_SET, Key("default", "ms")))
    async with town.controllers():
        await town.until(lambda: not town.objects(MACHINE) and not town.hosts() and not town.objects(NODE))


async def test_failures_of_the_provider_become_events_and_end_well(town: Town) -> None:
    async with town.controllers():
        await town.machine_set("ms", 3, cloud={"name": "moody", "quota": {"hosts": 2}})
        await town.until(lambda: town.ready() == 2)
        await town.until(lambda: any("QuotaExceeded" in str(event["reason"]) for event in town.objects(EVENT)))
        assert town.hosts() == 2


async def test_nothing_is_written_while_nothing_changes(town: Town) -> None:
    async with town.controllers() as manager:
        await town.machine_set("ms", 3)
        await town.until(lambda: town.ready() == 3)
        machine_sets = town.objects(MACHINE_SET)
        await town.until(lambda: town.objects(MACHINE_SET)[0]["status"].get("readyReplicas") == 3)
        await town.until(lambda: all(c.queue.idle and c.queue.next_due is None for c in manager.controllers))
        assert machine_sets
        before = town.plane.store.resource_version
        for controller in manager.controllers:
            for key in controller._keys():
                controller.queue.add(key)
        await town.until(lambda: all(c.queue.idle for c in manager.controllers))
        assert town.plane.store.resource_version == before, "a second look at a settled world writes nothing"


async def test_the_manager_says_what_it_waits_for(town: Town) -> None:
    town.plane.faults.answer(ServerError(403, "Forbidden", "no"), Match(verb="list", resource="nodes"), times=10_000)
    stop = asyncio.Event()
    found: list[Manager] = []
    task = asyncio.create_task(run_controllers(town.connection, town.options, stop=stop, on_manager=found.append))
    await town.until(lambda: bool(found) and any(p.startswith("nodes: Forbidden") for p in found[0].problems()))
    assert not found[0].ready
    stop.set()
    await asyncio.wait_for(task, SECONDS)


async def test_a_machine_with_an_unknown_field_of_any_type_harms_nobody(town: Town) -> None:
    """``spec.template`` is no field of a Machine; readers that look for one in sets and deployments must not fail."""
    errors = _room_errors()
    odd = machine("odd").build()
    odd["spec"] |= {"template": [1], "clusterName": "other"}
    odd["metadata"] = {"name": "odd", "namespace": "default", "labels": {"app": "odd"}}
    odd.pop("status", None)
    async with town.controllers():
        await town.client.create(MACHINE, odd)
        await town.machine_set("ms", 2)
        await town.until(lambda: town.ready() == 3)
        stored = next(each for each in town.objects(MACHINE) if each["metadata"]["name"] == "odd")
        assert stored["spec"]["template"] == [1], "the server keeps it"
    assert _room_errors() == errors


def _room_errors() -> float:
    """Of all controllers."""
    found = (sample for family in metrics.RECONCILER_ERRORS.collect() for sample in family.samples)
    return sum(sample.value for sample in found if sample.name.endswith("_total"))
