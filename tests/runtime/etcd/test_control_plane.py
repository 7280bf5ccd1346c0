"""A ControlPlane in the running program, on the embedded plane: the lock, its first Machine, and what it waits for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from api import names
from controllers.kernel.refs import CLUSTER, CONTROL_PLANE, MACHINE, Key, Ref, annotations_of
from nodewright.runtime.settings import wiring
from tests.builders.objects import cluster
from tests.runtime.town import FAST, Town

CLUSTER_KEY, KEY = Key("default", "prod"), Key("default", "cp")


def body() -> dict[str, Any]:
    template = {"spec": {"providerConfig": {"value": FAST}, "versions": {"kubelet": "1.34.0"}}}
    return {
        "apiVersion": CONTROL_PLANE.api_version,
        "kind": CONTROL_PLANE.name,
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "spec": {"clusterName": "prod", "replicas": 3, "version": "1.34.0", "template": template},
    }


def found(town: Town, kind: Any) -> list[Any]:
    return [obj for obj in town.objects(kind) if obj["metadata"].get("namespace") == "default"]


async def test_one_machine_initializes_and_the_control_plane_goes_after_it(town: Town) -> None:
    town.options = replace(town.options, reconcilers=(*wiring.reconcilers(), wiring.on_request()["controlplane"]()))
    spec = cluster("prod").build()
    meta = {"name": "prod", "namespace": "default"}
    await town.client.create(CLUSTER, {**{k: spec[k] for k in ("apiVersion", "kind", "spec")}, "metadata": meta})
    async with town.controllers():
        await town.client.create(CONTROL_PLANE, body())
        await town.until(lambda: len(found(town, MACHINE)) == 1)
        await town.until(lambda: "initializes" in str(found(town, CONTROL_PLANE)[0].get("status", {}).get("next")))
        [machine] = found(town, MACHINE)
        assert annotations_of(machine)[names.CONTROL_PLANE_INIT] == "true"
        [owner] = found(town, CLUSTER)
        assert annotations_of(owner)[names.CONTROL_PLANE_INIT_LOCK] == f"{machine['metadata']['name']}/1"
        assert machine["spec"]["versions"]["controlPlane"] == "1.34.0"
        await town.client.delete(Ref(CONTROL_PLANE, KEY))
        await town.until(lambda: not found(town, CONTROL_PLANE) and not found(town, MACHINE))
        [owner] = found(town, CLUSTER)
        assert names.CONTROL_PLANE_INIT_LOCK in annotations_of(owner)
