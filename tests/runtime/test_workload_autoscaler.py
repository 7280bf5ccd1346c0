"""An autoscaler for one Cluster: it looks at its own API, and scales what the management cluster holds of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from api import names
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.refs import CONFIG_MAP, EVENT, MACHINE, NODE, POD, Key, Ref, key_of
from nodewright.runtime.kube.client import ClientLimits
from nodewright.runtime.settings import wiring
from tests.runtime.country import IMPATIENT, Country, Elsewhere
from tests.runtime.replicas import pod_of, replica_set
from tests.runtime.test_autoscaler import (
    QUICK,
    events,
    group,
    reconciles,
    scaling_active,
    size,
    with_autoscaler,
    writes,
)
from tests.runtime.town import Town

PATIENT = replace(IMPATIENT, probe_timeout=10.0, unreachable_after=30.0, client=ClientLimits(in_flight=16))
"""For tests that lose no cluster: on a busy machine one that is only slow must not count as lost."""
BLUE = replace(QUICK, cluster=Key("default", "blue"))


@pytest.fixture
def country(town: Town, tmp_path: Path) -> Country:
    country = Country(town, tmp_path)
    with_autoscaler(town, BLUE)
    return country


def bound(plane: Elsewhere) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in plane.objects(POD))


def reasons(plane: Elsewhere) -> set[tuple[str, str]]:
    return {(event["reason"], event["source"]["component"]) for event in plane.objects(EVENT)}


def explained(town: Town, *what: str) -> str:
    command = [sys.executable, "-m", "nodewright.cli", "autoscaler", "explain", *what, "--cluster=default/blue"]
    done = subprocess.run(
        [*command, f"--kubeconfig={town.plane.kubeconfig_path}"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def _is_told(town: Town, *words: str) -> None:
    """`explain` reads the Machines, whose links to their Nodes follow the binding of pods."""
    async with asyncio.timeout(300):
        while True:
            told = await asyncio.to_thread(explained, town, "md", "blue")
            if all(word in told for word in words):
                return


async def test_pods_that_wait_there_make_its_groups_grow_and_they_shrink_when_those_are_gone(country: Country) -> None:
    town = country.town
    town.options = replace(town.options, workloads=PATIENT)
    await group(town, "near", 0, 4, cpus=4)
    async with country.elsewhere("blue", "green") as (blue, _green), blue.scheduler() as there, town.controllers():
        for name in ("blue", "green"):
            await group(town, name, 0, 10, cluster=name, cpus=4)
        web = await replica_set(there, "web")
        for number in range(6):
            await pod_of(there, web, f"web-{number}")
        await town.until(lambda: bound(blue) == 6)
        await town.until(lambda: (size(town, "blue"), len(blue.objects(NODE))) == (2, 2))
        assert (size(town, "green"), size(town, "near")) == (0, 0)
        assert not country.nodes_in_management_cluster()
        await town.until(lambda: ("TriggeredScaleUp", "nodewright-autoscaler") in reasons(blue))
        # Of a group, where the group is; events are written beside the decisions, not before them.
        await town.until(lambda: "ScaledUpGroup" in {event["reason"] for event in town.objects(EVENT)})
        await _is_told(town, "asks for 2 Nodes, between 0 and 10", "2 joined, 0 on their way")
        for pod in blue.objects(POD):
            await there.delete(Ref(POD, key_of(pod)))
        await town.until(lambda: size(town, "blue") == 0 and not town.objects(MACHINE) and not blue.objects(NODE))
        memory, told = f"{names.AUTOSCALER_MEMORY}.default.blue", f"{names.AUTOSCALER_STATUS}.default.blue"
        await town.until(lambda: {body["metadata"]["name"] for body in town.objects(CONFIG_MAP)} == {memory, told})
    assert not scaling_active(town, "green"), "who is for another Cluster does not speak of it"


async def test_while_its_cluster_is_lost_it_says_so_and_removes_nothing(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue") as (blue,):
        await group(town, "blue", 0, 10, cluster="blue", cpus=4)
        async with town.controllers():
            async with blue.scheduler() as there:
                await pod_of(there, await replica_set(there, "web"), "web-0")
                await town.until(lambda: bound(blue) == 1)
            await blue.stop()
            await town.until(lambda: scaling_active(town, "blue").get("reason") == "ConnectionDown")
            assert "Cluster default/blue can't be reached: " in scaling_active(town, "blue")["message"]
            seen = reconciles()
            await town.until(lambda: reconciles() > seen + 3)
            assert (size(town, "blue"), country.hosts("blue")) == (1, 1)
            await blue.start()
            await town.until(lambda: scaling_active(town, "blue")["status"] == "True")
            await country.rewrite_secret("blue", b"nothing: useful")
            await town.until(lambda: "blue-kubeconfig" in scaling_active(town, "blue")["message"])
            assert (size(town, "blue"), country.hosts("blue")) == (1, 1)
            await country.rewrite_secret("blue", blue.kubeconfig())
            async with blue.scheduler() as there:
                await there.delete(Ref(POD, Key("default", "web-0")))
                await town.until(lambda: size(town, "blue") == 0 and not blue.objects(NODE))


@pytest.mark.slow
async def test_the_autoscaler_at_home_beside_it_does_not_contradict_it(country: Country) -> None:
    """Both may speak of the same group; neither writes what the other has to take back."""
    town = country.town
    town.options = replace(
        town.options, reconcilers=(*wiring.reconcilers(), AutoscalerReconciler(QUICK)), workloads=PATIENT
    )
    async with country.elsewhere("blue") as (blue,):
        await group(town, "blue", 0, 10, cluster="blue", cpus=4)
        async with town.controllers():
            await town.until(lambda: scaling_active(town, "blue").get("reason") == "NodesElsewhere")
            assert "--cluster=default/blue" in scaling_active(town, "blue")["message"]
            await town.until(lambda: "blue" in events(town, "NodesElsewhere"))
        town.options = replace(
            town.options, reconcilers=(*(town.options.reconcilers or ()), AutoscalerReconciler(BLUE))
        )
        async with blue.scheduler() as there, town.controllers():
            await pod_of(there, await replica_set(there, "web"), "web-0")
            await town.until(lambda: bound(blue) == 1)
            await town.until(lambda: scaling_active(town, "blue")["status"] == "True")
            await town.until(lambda: _activity(town) == "NoActivity" and town.ready() == 1)
            seen = reconciles()
            await town.until(lambda: reconciles() > seen + 6)
            before, seen = writes(), reconciles()
            await town.until(lambda: reconciles() > seen + 20)
            assert writes() == before


async def test_of_a_cluster_that_has_no_api_of_its_own_nothing_is_scaled_and_nothing_said(country: Country) -> None:
    """Its Nodes are at home, and so is the autoscaler that speaks of its groups."""
    town = country.town
    await country.cluster("blue")
    await group(town, "blue", 0, 10, cluster="blue", cpus=4)
    async with town.controllers():
        await pod_of(town, await replica_set(town, "web"), "web-0")
        await town.until(lambda: _told(town).startswith("Cluster default/blue can't be reached: there is no Secret"))
        assert size(town, "blue") == 0
        assert not scaling_active(town, "blue")


async def test_the_way_to_its_cluster_is_kept_though_no_object_names_that_yet(country: Country) -> None:
    """Else it would be found out anew each minute until the first Machine is made."""
    town = country.town
    await country.secret("blue", b"nothing: useful")
    assert BLUE.cluster is not None
    async with town.controllers() as manager:
        manager.workloads.look(BLUE.cluster)
        manager.workloads.look(Key("default", "green"))
        await town.until(lambda: manager.workloads.look(Key("default", "green")) is not None)
        await town.until(lambda: manager.workloads.look(Key("default", "blue")) is not None)
        await manager.workloads.sweep()
        assert manager.workloads.look(BLUE.cluster) is not None
        assert manager.workloads.look(Key("default", "green")) is None


def _activity(town: Town) -> str:
    """Whether the group of blue grows, as its autoscaler has it."""
    found = [body for body in town.objects(CONFIG_MAP) if body["metadata"]["name"] == BLUE.status_key.name]
    return str(yaml.safe_load(found[0]["data"]["status"])["clusterWide"]["scaleUp"]["status"]) if found else ""


def _told(town: Town) -> str:
    found: list[Any] = [event["message"] for event in town.objects(EVENT) if event["reason"] == "ClusterUnhealthy"]
    return str(found[0]) if found else ""
