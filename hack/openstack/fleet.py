"""The main job on a cloud, through the program: Machines of MachineSets come up on it and go, and what that took.

Everything goes through ``proxy``, which counts and, if told so, lets requests go wrong; what is true at the end is
asked of the cloud itself, past the proxy.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openstack
import yaml

from hack.openstack.proxy import FaultyProxy
from hack.program import Kubectl, Up

MICROVERSION = "2.79"
SECRET = "cloud"


@dataclass(slots=True)
class Told:
    """Of one fleet. ``per_machine``: servers that were ever made, by the UID of their Machine."""

    servers: int
    seconds_up: float = 0.0
    seconds_gone: float = 0.0
    requests: int = 0
    per_machine: Counter[str] = field(default_factory=Counter)
    left_servers: list[str] = field(default_factory=list)
    left_ports: list[str] = field(default_factory=list)

    @property
    def duplicates(self) -> list[str]:
        return [uid for uid, count in self.per_machine.items() if count > 1]


@contextmanager
def serving(proxy: FaultyProxy) -> Iterator[FaultyProxy]:
    """The proxy at work in a thread of its own: kubectl and the program are waited for in this one."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(proxy.__aenter__(), loop).result(30)
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(proxy.__aexit__(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def endpoints(clouds_yaml: Path) -> dict[str, str]:
    """Where Nova and Neutron are, with the versions in their paths."""
    connection = _connect(clouds_yaml, "demo")
    compute = str(connection.compute.get_endpoint()).rstrip("/")
    network = str(connection.network.get_endpoint()).rstrip("/")
    return {"compute": compute, "network": network if network.endswith("/v2.0") else f"{network}/v2.0"}


def run(up: Up, clouds_yaml: Path, proxy: FaultyProxy, sets: int, each: int, patience: float = 900.0) -> Told:
    """``sets`` MachineSets of ``each`` Machines: up, then gone. Raises AssertionError if it takes too long."""
    kubectl, told = up.kubectl, Told(sets * each)
    before = proxy.requests
    _log_in(kubectl, clouds_yaml, proxy)
    started = time.monotonic()
    kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": _sets(sets, each)}))
    try:
        _until(lambda: len(_bound(kubectl)) == told.servers, patience, lambda: _how_it_is(kubectl))
        told.seconds_up = time.monotonic() - started
    finally:
        started = time.monotonic()
        kubectl("delete", "machinesets", "--all", "--wait=false")
        _until(lambda: not kubectl.items("machines"), patience, lambda: _how_it_is(kubectl))
        told.seconds_gone = time.monotonic() - started
    told.requests = proxy.requests - before
    _ask_the_cloud(told, clouds_yaml)
    return told


def naive(clouds_yaml: Path, proxy: FaultyProxy, servers: int) -> int:
    """Requests that the SDK's own way takes: make each server with its port, wait for it, delete it, wait, port."""
    connection = _connect(clouds_yaml, "demo", **proxy.overrides)
    flavor, image = connection.compute.find_flavor("m1.tiny"), connection.image.find_image("debian-12")
    network = connection.network.find_network("nodes")
    before = proxy.requests
    for number in range(servers):
        port = connection.network.create_port(network_id=network.id, name=f"naive-{number}")
        server = connection.compute.create_server(
            name=f"naive-{number}", flavor_id=flavor.id, image_id=image.id, networks=[{"port": port.id}]
        )
        connection.compute.wait_for_server(server, wait=300)
        connection.compute.delete_server(server)
        connection.compute.wait_for_delete(server, wait=300)
        connection.network.delete_port(port)
    return proxy.requests - before


def _connect(clouds_yaml: Path, name: str, **options: Any) -> Any:
    warnings.filterwarnings("ignore", module=r"openstack\.")  # it speaks of its own parts that nobody uses here
    cloud = yaml.safe_load(clouds_yaml.read_text())["clouds"][name]
    return openstack.connect(load_yaml_config=False, load_envvars=False, api_timeout=60, **cloud, **options)


def _log_in(kubectl: Kubectl, clouds_yaml: Path, proxy: FaultyProxy) -> None:
    demo = yaml.safe_load(clouds_yaml.read_text())["clouds"]["demo"]
    login = yaml.safe_dump({"clouds": {"demo": {**demo, **proxy.overrides}}})
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "stringData": {"clouds.yaml": login}}
    kubectl("apply", "-f", "-", stdin=json.dumps(secret))


def _sets(sets: int, each: int) -> list[dict[str, Any]]:
    config = {
        "apiVersion": "openstack.nodewright.dev/v1alpha1",
        "kind": "OpenStackMachineConfig",
        "cloud": {"secretName": SECRET},
        "flavor": "m1.tiny",
        "image": "debian-12",
        "availabilityZones": ["az1", "az2"],
        "ports": [{"network": "nodes", "securityGroups": ["nodes"]}],
    }
    return [
        {
            "apiVersion": "cluster.k8s.io/v1alpha1",
            "kind": "MachineSet",
            "metadata": {"name": f"pool-{number}"},
            "spec": {
                "replicas": each,
                "selector": {"matchLabels": {"pool": str(number)}},
                "template": {
                    "metadata": {"labels": {"pool": str(number)}},
                    "spec": {"versions": {"kubelet": "1.34.0"}, "providerConfig": {"value": config}},
                },
            },
        }
        for number in range(sets)
    ]


def _bound(kubectl: Kubectl) -> list[dict[str, Any]]:
    return [one for one in kubectl.items("machines") if one["spec"].get("providerID")]


def _how_it_is(kubectl: Kubectl) -> str:
    return kubectl("get", "machines,machinesets", "-o", "wide")


def _until(done: Any, seconds: float, tell: Any) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s:\n{tell()}")
        time.sleep(2)


def _ask_the_cloud(told: Told, clouds_yaml: Path) -> None:
    """Every server that ever was, deleted ones too, and what is left now."""
    admin, demo = _connect(clouds_yaml, "admin"), _connect(clouds_yaml, "demo")
    for deleted in ("true", "false"):
        path = f"/servers/detail?all_tenants=1&deleted={deleted}&limit=1000"
        for server in admin.compute.get(path, microversion=MICROVERSION).json()["servers"]:
            uid = server["metadata"].get("nodewright-machine-uid")
            told.per_machine.update([uid] if uid else [])
    told.left_servers = [one["name"] for one in demo.compute.get("/servers").json()["servers"]]
    told.left_ports = [one.name for one in demo.network.ports() if one.description.startswith("nodewright-machine-")]
