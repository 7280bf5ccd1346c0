"""Clusters with an API of their own: each is reached by itself, and one that is lost freezes nobody else."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from controllers.cluster.certificates import SOON
from controllers.kernel.conditions import find
from controllers.kernel.refs import CLUSTER, EVENT, MACHINE, MACHINE_SET, NODE, POD, SECRET, Key, Kind, Obj, Ref, key_of
from nodewright.apiserver.app.faults import Match
from nodewright.apiserver.values import ApiError as ServerError
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.manager import Manager
from nodewright.runtime.reconciling.shell import Controller
from nodewright.runtime.settings.options import ReconcilerOptions
from nodewright.runtime.telemetry import metrics
from tests.runtime.country import PATIENT, Country, Elsewhere
from tests.runtime.town import SECONDS, Town


@pytest.fixture
def country(town: Town, tmp_path: Path) -> Country:
    return Country(town, tmp_path)


def condition(obj: Obj, type_: str) -> dict[str, Any]:
    return dict(find((obj.get("status") or {}).get("conditions"), type_) or {})


async def test_hosts_join_and_leave_the_cluster_that_their_machines_belong_to(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue", "green") as (blue, green), town.controllers():
        await country.machine_set("blue", 2)
        await country.machine_set("green", 1)
        await town.machine_set("home", 1)
        await town.until(lambda: town.ready() == 4)
        assert (len(blue.objects(NODE)), len(green.objects(NODE)), len(country.nodes_in_management_cluster())) == (
            2,
            1,
            1,
        )
        assert {n["spec"]["providerID"] for n in blue.objects(NODE)} == {
            m["spec"]["providerID"] for m in country.machines("blue")
        }
        await town.until(lambda: country.said("blue").get("status") == "True")
        assert country.said("blue")["message"] == "by Secret blue-kubeconfig"
        for node in blue.objects(NODE):
            await blue.run_pod(f"on-{node['metadata']['name']}", node["metadata"]["name"])
        await town.scale("blue", 1)
        await town.until(lambda: len(blue.objects(NODE)) == len(country.machines("blue")) == 1)
        assert [pod["spec"]["nodeName"] for pod in blue.objects(POD)] == [blue.objects(NODE)[0]["metadata"]["name"]]


async def test_a_cluster_that_is_lost_freezes_and_says_so_while_others_go_on(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue", "green") as (blue, green), town.controllers():
        for name in ("blue", "green"):
            await country.machine_set(name, 2)
        await town.until(lambda: town.ready() == 4)
        await blue.stop()
        await town.scale("blue", 1)
        await town.until(lambda: country.said("blue").get("status") == "False")
        await town.until(lambda: _counted() == {"Reachable": 1, "Unreachable": 1})
        await town.until(lambda: any(_holds(machine) for machine in country.machines("blue")))
        await town.scale("green", 4)
        await town.until(lambda: country.ready("green") == 4)
        await town.scale("green", 0)
        await town.until(lambda: not country.machines("green") and not green.objects(NODE))
        assert country.hosts("blue") == len(country.machines("blue")) == 2
        _says_what_is_known(country)
        await blue.start()
        await town.until(lambda: len(country.machines("blue")) == len(blue.objects(NODE)) == 1)
        await town.until(lambda: country.said("blue").get("status") == "True")
        (machine,) = country.machines("blue")
        await town.until(lambda: condition(country.machines("blue")[0], "NodeReady")["status"] == "True")
        assert condition(machine, "Ready")["status"] == "True"


def _counted() -> dict[str, float]:
    """State → Clusters, as the metric says it."""
    samples = (sample for family in metrics.WORKLOAD_CLUSTERS.collect() for sample in family.samples)
    return {sample.labels["state"]: sample.value for sample in samples}


def _holds(machine: Obj) -> bool:
    return condition(machine, "Deleting").get("reason") == "ConnectionDown"


def _says_what_is_known(country: Country) -> None:
    said = country.said("blue")
    assert said["reason"] == "Unreachable"
    assert "last answer at" in said["message"]
    assert country.said("blue", "Ready")["status"] == "False"
    assert country.said("green")["status"] == "True"
    stays = next(m for m in country.machines("blue") if not _holds(m))
    assert (stays["status"]["phase"], condition(stays, "NodeReady")["status"]) == ("Running", "Unknown")
    assert any(
        e["reason"] == "Unreachable" and e["involvedObject"]["name"] == "blue" for e in country.town.objects(EVENT)
    )


async def test_a_cluster_that_hangs_holds_nobody_up(country: Country) -> None:
    """More Machines want to be drained there than there are workers."""
    town = country.town
    town.options = replace(town.options, reconciler=ReconcilerOptions(workers=4))
    async with country.elsewhere("blue", "green") as (blue, _green), town.controllers():
        await country.machine_set("blue", 10)
        await country.machine_set("green", 1)
        await town.until(lambda: town.ready() == 11)
        blue.hang()
        await town.scale("blue", 0)
        await town.scale("green", 5)
        await town.until(lambda: country.ready("green") == 5)
        await town.until(lambda: country.said("blue").get("status") == "False")
        await town.until(lambda: all(_holds(machine) for machine in country.machines("blue")))
        assert country.hosts("blue") == 10
        blue.running.faults.clear()
        await town.until(lambda: not country.machines("blue") and not blue.objects(NODE))


async def test_a_cause_that_shows_after_a_silence_is_named_and_stays(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue") as (blue,), town.controllers():
        await town.until(lambda: country.said("blue").get("status") == "True")
        blue.hang()
        await town.until(lambda: "no answer within" in country.said("blue").get("message", ""))
        blue.running.faults.clear()
        blue.running.faults.answer(ServerError(503, "ServiceUnavailable", "etcd is gone"), Match(), times=10_000)
        await town.until(lambda: "no answer within" not in country.said("blue")["message"])
        named = country.said("blue")
        assert "503" in named["message"] or "ServiceUnavailable" in named["message"], named
        blue.running.faults.clear()
        await town.until(lambda: country.said("blue").get("status") == "True")


async def test_hosts_are_made_for_a_cluster_that_was_never_reached(country: Country) -> None:
    """The first hosts of a cluster are what its API runs on."""
    town = country.town
    async with country.elsewhere("blue") as (blue,):
        await blue.stop()
        async with town.controllers():
            await country.machine_set("blue", 2)
            await town.until(lambda: country.hosts("blue") == 2)
            await town.until(lambda: "no answer since" in country.said("blue").get("message", ""))
            assert country.ready("blue") == 0
            await blue.start()
            await town.until(lambda: country.ready("blue") == 2)
        assert len(blue.objects(NODE)) == 2


async def test_a_cluster_that_goes_for_ever_lets_go_of_its_hosts(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue") as (blue,), town.controllers():
        await country.machine_set("blue", 2)
        await town.until(lambda: country.ready("blue") == 2)
        await town.until(lambda: country.said("blue").get("status") == "True")
        await blue.stop()
        await town.client.delete(Ref(MACHINE_SET, Key("default", "blue")))
        await town.until(lambda: len([m for m in country.machines("blue") if _holds(m)]) == 2)
        await town.client.delete(Ref(CLUSTER, Key("default", "blue")))
        await town.until(lambda: not town.objects(MACHINE) and not town.hosts() and not town.objects(CLUSTER))


async def test_a_bad_kubeconfig_is_named_and_hurts_nobody(country: Country) -> None:
    town = country.town
    await country.cluster("bad")
    await country.secret("bad", b'{"current-context": "a"}')
    async with country.elsewhere("green"), town.controllers():
        await country.machine_set("bad", 1)
        await country.machine_set("green", 1)
        await town.until(lambda: country.ready("green") == 1)
        await town.until(lambda: country.said("bad").get("reason") == "InvalidKubeconfig")
        said = "Secret default/bad-kubeconfig, key value: there is no context named 'a' in contexts"
        assert said in country.said("bad")["message"]


async def test_credentials_are_taken_from_the_secret_when_it_changes(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue") as (blue,), town.controllers():
        await country.machine_set("blue", 1)
        await town.until(lambda: country.ready("blue") == 1)
        await country.rewrite_secret("blue", b"nothing: useful")
        await town.until(lambda: country.said("blue").get("reason") == "InvalidKubeconfig")
        await country.rewrite_secret("blue", blue.kubeconfig())
        await town.until(lambda: country.said("blue").get("status") == "True")
        await town.scale("blue", 2)
        await town.until(lambda: country.ready("blue") == 2)


async def test_a_cluster_whose_secret_went_is_not_taken_for_home(country: Country) -> None:
    """Else all its Nodes would look gone, and its hosts would be let go without a drain."""
    town = country.town
    async with country.elsewhere("blue"):
        async with town.controllers():
            await country.machine_set("blue", 1)
            await town.until(lambda: country.ready("blue") == 1)
            await town.until(lambda: country.said("blue").get("status") == "True")
            await town.client.delete(Ref(SECRET, Key("default", "blue-kubeconfig")))
            await town.until(lambda: country.said("blue").get("reason") == "KubeconfigMissing")
        async with town.controllers():  # nobody remembers it but the Cluster itself
            await town.scale("blue", 0)
            await town.until(lambda: all(_holds(machine) for machine in country.machines("blue")))
        assert country.hosts("blue") == 1


async def test_nothing_is_written_while_nothing_changes_anywhere(country: Country) -> None:
    town = country.town
    town.options = replace(town.options, workloads=PATIENT)
    async with country.elsewhere("blue", "green") as (blue, green):
        async with town.controllers() as manager:
            for name in ("blue", "green"):
                await country.machine_set(name, 2)
            await town.until(lambda: town.ready() == 4)
            await town.until(
                lambda: all(country.said(name, "Ready").get("status") == "True" for name in ("blue", "green"))
            )
            await _settled(town, manager, blue, green)
        before = _versions(town, blue, green)
        town.options = replace(town.options, simulated_kubelets=False)
        async with town.controllers() as manager:
            await _at_rest(town, manager, blue, green)
            _look_at_everything(manager)
            await _at_rest(town, manager, blue, green)
        after = _versions(town, blue, green)
        assert after == before, "neither a restart nor a second look at a settled world writes anything"


def _versions(town: Town, *elsewhere: Elsewhere) -> dict[str, str]:
    """Of the planes, and of their objects, so that a failure names what was written."""
    found = {"plane": str(town.plane.store.resource_version)}
    found |= {f"plane {plane.name}": str(plane.running.store.resource_version) for plane in elsewhere}
    for kind in (CLUSTER, MACHINE, MACHINE_SET, NODE, EVENT):
        found |= {f"{kind.name} {key_of(obj)}": obj["metadata"]["resourceVersion"] for obj in town.objects(kind)}
    for plane in elsewhere:
        for obj in plane.objects(NODE):
            found[f"{plane.name}: Node {key_of(obj)}"] = obj["metadata"]["resourceVersion"]
    return found


def _look_at_everything(manager: Manager) -> None:
    for controller in manager.controllers:
        for key in controller._keys():
            controller.queue.add(key)


async def _settled(town: Town, manager: Manager, *elsewhere: Elsewhere) -> None:
    """Until a look at everything writes nothing: empty queues alone may be those of a watch that lags."""
    before: dict[str, str] = {}
    await _at_rest(town, manager, *elsewhere)
    async with asyncio.timeout(SECONDS):
        while (found := _versions(town, *elsewhere)) != before:
            before = found
            _look_at_everything(manager)
            await _at_rest(town, manager, *elsewhere)


async def _at_rest(town: Town, manager: Manager, *elsewhere: Elsewhere) -> None:
    """Every cache has what its plane has, and nothing waits or is under way."""

    def same(cache: Cache, kind: Kind, there: list[Obj]) -> bool:
        known = {key_of(obj): obj["metadata"]["resourceVersion"] for obj in cache.stores[kind]}
        return known == {key_of(obj): obj["metadata"]["resourceVersion"] for obj in there}

    def rests() -> bool:
        kinds = (CLUSTER, MACHINE, MACHINE_SET, NODE)
        if not all(same(manager.cache, kind, town.objects(kind)) for kind in kinds):
            return False
        for plane in elsewhere:
            site = manager.workloads.look(plane.key)
            if site is None or site.place is None or not same(site.place.cache, NODE, plane.objects(NODE)):
                return False
        return all(c.queue.idle and nothing_due(c) for c in manager.controllers)

    def nothing_due(controller: Controller) -> bool:
        """But that a Cluster looks at its certificates again, a minute after it has read them."""
        due = controller.queue.next_due
        if due is None:
            return True
        return controller.reconciler.name == "cluster" and due - asyncio.get_running_loop().time() > 2 * SOON

    await town.until(rests)


async def test_clusters_that_nobody_names_any_more_are_let_go(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue") as (blue,), town.controllers() as manager:
        await town.until(lambda: country.said("blue").get("status") == "True")
        await manager.workloads.sweep()
        assert blue.running.watches > 0
        await town.client.delete(Ref(CLUSTER, Key("default", "blue")))
        await town.until(lambda: not town.objects(CLUSTER))
        await town.until(lambda: manager.cache.stores[CLUSTER].get(Key("default", "blue")) is None)
        await manager.workloads.sweep()
        await town.until(lambda: blue.running.watches == 0)


async def test_a_secret_that_may_not_be_read_freezes_its_cluster_and_nobody_else(country: Country) -> None:
    """There may be one: the Cluster is not taken for home on a missing right."""
    town = country.town
    refused = Match(resource="secrets")
    town.plane.faults.answer(ServerError(403, "Forbidden", "no right"), refused, times=10_000)
    await country.cluster("blue")
    async with town.controllers():
        await town.machine_set("home", 1)
        await town.until(lambda: town.ready() == 1)
        await town.until(
            lambda: "Secret default/blue-kubeconfig can't be read" in country.said("blue").get("message", "")
        )
        assert "Forbidden" in country.said("blue")["message"]
        town.plane.faults.clear()
        await town.until(lambda: country.said("blue").get("status") == "True")
        assert country.said("blue")["message"] == "its Nodes live in the cluster that holds it"


async def test_no_secret_gets_into_a_log(country: Country) -> None:
    town = country.town
    log = LogCapture()
    structlog.configure(processors=[log], wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG))
    async with country.elsewhere("blue") as (blue,):
        sound = json.loads(blue.kubeconfig())
        hidden = sound["users"][0]["user"]["client-key-data"]
        async with town.controllers():
            await town.until(lambda: country.said("blue").get("status") == "True")
            await country.rewrite_secret("blue", blue.kubeconfig().replace(b"contexts", b"kontexts"))
            await town.until(lambda: country.said("blue").get("reason") == "InvalidKubeconfig")
            await country.rewrite_secret("blue", b"[" + blue.kubeconfig())
            await town.until(lambda: "not YAML" in country.said("blue")["message"])
    written = json.dumps([town.objects(kind) for kind in (CLUSTER, MACHINE, EVENT)])
    told = [str(entry) for entry in log.entries]
    assert any("cluster can't be reached" in line for line in told), "the log was listened to"
    for secret in (hidden, base64.b64decode(hidden).decode().splitlines()[1]):
        assert secret not in written
        assert not any(secret in line for line in told)
