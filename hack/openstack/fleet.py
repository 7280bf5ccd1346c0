"""The main job on a cloud, through the program: Machines of MachineSets come up on it and go, and what that took.

Everything goes through ``proxy``, which counts requests and, if configured, lets some fail; what is true at the end is
asked of the cloud itself, past the proxy.
"""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hack.openstack.accounts import FLEET, Accounts, connect, zones_of
from hack.openstack.proxy import FaultyProxy
from hack.program import Kubectl, Up

SECRET = "cloud"
PATIENCE = 1800.0
"""Seconds; two busy cores take their time."""
PLAIN: Mapping[str, Any] = {
    "apiVersion": "openstack.nodewright.dev/v1alpha1",
    "kind": "OpenStackMachineConfig",
    "cloud": {"secretName": SECRET},
    "flavor": "m1.tiny",
    "image": "debian-12",
    "availabilityZones": ["az1", "az2"],
    "ports": [{"network": "nodes", "securityGroups": ["nodes"]}],
}
WHOLE: Mapping[str, Any] = {
    **PLAIN,
    "bootVolume": {"sizeGiB": 2},
    "volumes": [{"sizeGiB": 1}],
    "ports": [
        {
            "network": "nodes",
            "subports": [{"network": "storage", "segmentationID": 100}],
            "floatingIP": {"network": "public"},
        },
        {"network": "nodes"},
    ],
}
"""A server with all that can be made beside it: two ports, a trunk with a subport, a floating IP, two volumes."""


@dataclass(frozen=True, slots=True)
class DesiredServer:
    """``sets`` MachineSets of ``each`` Machines.

    ``killed``: the program dies while they come and while they go; while they come once half of the requests
    ``killed_at`` went out.
    """

    sets: int
    each: int
    config: Mapping[str, Any] = field(default_factory=lambda: PLAIN)
    killed: bool = False
    killed_at: str = "POST compute /servers"

    @property
    def servers(self) -> int:
        return self.sets * self.each


@dataclass(slots=True)
class Told:
    """Of one fleet. ``accounts``: what the cloud says of it when it has gone. ``zones``: servers of each zone."""

    servers: int
    zones: Mapping[str, int]
    accounts: Accounts
    seconds_up: float
    seconds_gone: float
    requests: int
    kills: int

    def __str__(self) -> str:
        zones = ", ".join(f"{count} in {zone}" for zone, count in sorted(self.zones.items()))
        killed = f", the program killed {self.kills} times" if self.kills else ""
        return (
            f"{self.servers} servers ({zones}): up in {self.seconds_up:.0f} s, gone in {self.seconds_gone:.0f} s, "
            f"{self.requests / self.servers:.2f} requests each; {len(self.accounts.duplicates)} duplicates, "
            f"{len(self.accounts.left)} things left{killed}"
        )


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
    """Where Nova and Neutron are, with the versions in their paths. Others are asked once in a long while."""
    connection = connect(clouds_yaml, "demo")
    compute = str(connection.compute.get_endpoint()).rstrip("/")
    network = str(connection.network.get_endpoint()).rstrip("/")
    return {"compute": compute, "network": network if network.endswith("/v2.0") else f"{network}/v2.0"}


def run(up: Up, clouds_yaml: Path, proxy: FaultyProxy, desired: DesiredServer) -> Told:
    """Up, then gone. Raises AssertionError if it takes too long."""
    kubectl, before, kills = up.kubectl, proxy.requests, 0
    zones: Mapping[str, int] = {}
    _log_in(kubectl, clouds_yaml, proxy)
    started = time.monotonic()
    kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": _sets(desired)}))
    try:
        kills += _kill_after(up, proxy, desired.killed_at, desired)
        _until(lambda: len(_bound(kubectl)) == desired.servers, lambda: _how_it_is(kubectl))
        zones = zones_of(clouds_yaml)
    finally:
        up_at = time.monotonic()
        kubectl("delete", "machinesets", "--all", "--wait=false")
        kills += _kill_after(up, proxy, "DELETE compute /servers/{id}", desired)
        _until(lambda: not kubectl.items("machines"), lambda: _how_it_is(kubectl))
    gone_at, requests = time.monotonic(), proxy.requests - before
    return Told(desired.servers, zones, Accounts.of(clouds_yaml), up_at - started, gone_at - up_at, requests, kills)


def _kill_after(up: Up, proxy: FaultyProxy, what: str, desired: DesiredServer) -> int:
    """SIGKILL when half of such requests have gone out, and a new start."""
    if not desired.killed:
        return 0
    enough = proxy.counted[what] + max(1, desired.servers // 2)
    _until(lambda: proxy.counted[what] >= enough, lambda: f"{proxy.counted[what]} × {what}", pause=0.05)
    up.stop(signal.SIGKILL)
    up.start()
    return 1


def naive(clouds_yaml: Path, proxy: FaultyProxy, servers: int) -> int:
    """Requests that the SDK's own way takes: make each server with its port, wait for it, delete it, wait, port."""
    connection = connect(clouds_yaml, "demo", **proxy.overrides)
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


def _log_in(kubectl: Kubectl, clouds_yaml: Path, proxy: FaultyProxy) -> None:
    demo = yaml.safe_load(clouds_yaml.read_text())["clouds"]["demo"]
    login = yaml.safe_dump({"clouds": {"demo": {**demo, **proxy.overrides}}})
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "stringData": {"clouds.yaml": login}}
    kubectl("apply", "-f", "-", stdin=json.dumps(secret))


def _sets(desired: DesiredServer) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "cluster.k8s.io/v1alpha1",
            "kind": "MachineSet",
            "metadata": {"name": f"{FLEET}{number}"},
            "spec": {
                "replicas": desired.each,
                "selector": {"matchLabels": {"pool": str(number)}},
                "template": {
                    "metadata": {"labels": {"pool": str(number)}},
                    "spec": {"versions": {"kubelet": "1.34.0"}, "providerConfig": {"value": dict(desired.config)}},
                },
            },
        }
        for number in range(desired.sets)
    ]


def _bound(kubectl: Kubectl) -> list[dict[str, Any]]:
    return [one for one in kubectl.items("machines") if one["spec"].get("providerID")]


def _how_it_is(kubectl: Kubectl) -> str:
    return kubectl("get", "machines,machinesets", "-o", "wide")


def _until(done: Callable[[], bool], tell: Callable[[], str], pause: float = 2.0) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE:.0f} s:\n{tell()}")
        time.sleep(pause)
