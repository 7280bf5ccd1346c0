"""Controllers killed at points of init, joins and an upgrade of a ControlPlane of three: one cluster, three voters.

The management cluster is a real API server of its own, so nothing but the controllers dies. By replacement, so that
joins and removals of members are among the points (in place: ``test_control_plane_kills.py``).
"""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import run
from sys import executable

import pytest

from controllers.controlplane.observe import JOIN_LIMIT
from hack import binaries
from hack.hosts import images
from hack.hosts.balancer import Balancer
from hack.hosts.lab import Lab
from hack.hosts.mirror import Mirror
from hack.hosts.provider.provider import API_VERSION, KIND
from hack.program import Kubectl, Run
from hack.realplane import RealPlane
from tests.hosts.clusters.making import NAME, cluster_of_machines, control_plane, reached
from tests.hosts.clusters.test_control_plane_kills import identity
from tests.hosts.joining import BEFORE, VERSION, apply, items, programs, until

pytestmark = [pytest.mark.hosts, pytest.mark.hosts_long, pytest.mark.slow, pytest.mark.kubectl]
PORT, HOSTS = 6443, 8
TIME = int(JOIN_LIMIT.total_seconds()) + 600
"""Longer than a host that fails to join is waited for: another is made only then."""
TITLE = f"controlplane/{NAME}"


@dataclass(frozen=True, slots=True)
class Scene:
    """``run``: the controllers. ``endpoint``: a port in front of all hosts."""

    lab: Lab
    run: Run
    mirror: Mirror
    folder: Path
    endpoint: int

    @property
    def home(self) -> Kubectl:
        return self.run.kubectl

    def kill(self) -> None:
        self.run.stop(signal.SIGKILL)
        self.run.start()


@pytest.fixture
def scene(tmp_path: Path, lab_folder: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        lab = Lab.make(tmp_path / "lab")
        stack.callback(lab.clean)
        for number, tools in enumerate((binaries.PREVIOUS, binaries.TOOLS)):
            shutil.copy(images.ensure_control_plane(tools), lab.payload / f"control-plane-{number}.tar")
        mirror = stack.enter_context(Mirror(tmp_path / "mirror", lab.net.gateway))
        mirror.add(VERSION, programs())
        mirror.add(BEFORE, programs(older=True))
        backends = [(lab.net.address(number), PORT) for number in range(1, HOSTS + 1)]
        balancer = stack.enter_context(Balancer(lab.net.gateway, backends))
        plane = stack.enter_context(RealPlane(tmp_path / "plane"))
        run(
            [executable, "-m", "nodewright.cli", "install", f"--kubeconfig={plane.kubeconfig}"], check=True, timeout=600
        )
        kubectl = Kubectl(binaries.ensure("kubectl"), plane.kubeconfig, tmp_path / "kubectl-cache")
        running = stack.enter_context(Run(tmp_path, kubectl, "--controllers=*,controlplane"))
        yield Scene(lab, running, mirror, tmp_path, balancer.port)


Point = Callable[[], bool]


def made_in_order(home: Kubectl) -> dict[str, Point]:
    """What is seen while three are made: the first one's creation, each join's order, its host, its Node."""

    def machines(count: int) -> Point:
        return lambda: len(items(home, "machines")) >= count

    def nodes(count: int) -> Point:
        return lambda: sum("nodeRef" in each.get("status", {}) for each in items(home, "machines")) >= count

    def ready(count: int) -> Point:
        return lambda: home.json("get", TITLE).get("status", {}).get("readyReplicas", 0) >= count

    authority: Point = lambda: home.run("get", "secret", f"{NAME}-ca").code == 0  # noqa: E731
    return {
        "the first Machine is there": machines(1),
        "the cluster's CA is made": authority,
        "the first has its Node": nodes(1),
        "the first works": ready(1),
        "the second Machine is there": machines(2),
        "the second has its Node": nodes(2),
        "the third Machine is there": machines(3),
        "all three work": ready(3),
    }


def replaced_in_order(home: Kubectl, before: frozenset[str]) -> dict[str, Point]:
    """The same of an upgrade: each new Machine that is there, and each old one that is deleted."""

    def new(count: int) -> Point:
        return lambda: len({each["metadata"]["uid"] for each in items(home, "machines")} - before) >= count

    def left(count: int) -> Point:
        def seen() -> bool:
            staying = [each for each in items(home, "machines") if "deletionTimestamp" not in each["metadata"]]
            return len({each["metadata"]["uid"] for each in staying} & before) <= count

        return seen

    found: dict[str, Point] = {}
    for count in range(1, 4):
        found[f"{count} new Machines are there"] = new(count)
        found[f"{count} old Machines are deleted"] = left(3 - count)
    return found


def killed_at(scene: Scene, points: dict[str, Point]) -> None:
    """In their order, each once it is seen. A point that does not come fails with what the hosts and objects say."""
    for name, point in points.items():
        began = time.monotonic()
        try:
            until(point, TIME)
        except AssertionError:
            raise AssertionError(f"{name}: not within {TIME} s\n{state(scene)}") from None
        print(f"{name}: after {time.monotonic() - began:.0f} s")
        scene.kill()


def state(scene: Scene) -> str:
    """The ControlPlane, its Machines, the end of the controllers' log, and the end of what each host printed."""
    consoles = [
        f"{seen.record.name}:\n{scene.lab.guest(seen.record).console.read_text(errors='replace')[-3000:]}"
        for seen in scene.lab.hosts()
    ]
    described = scene.home.run("describe", TITLE).out[-4000:]
    return "\n".join([described, scene.home.run("get", "machines", "-o", "wide").out, scene.run.log(), *consoles])


def voters(there: Kubectl) -> int:
    """Hosts that say they are voters; asked through the cluster's own API."""
    status = there.json("get", "pods", "--namespace=kube-system", "--selector=component=etcd")["items"]
    return sum(
        any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"]["conditions"]) for pod in status
    )


def test_three_are_made_once_and_replaced_whenever_the_controllers_are_killed(scene: Scene) -> None:
    home, host = scene.home, scene.lab.net.gateway
    apply(home, cluster_of_machines(scene.mirror, host, scene.endpoint, older=True))
    config = {"apiVersion": API_VERSION, "kind": KIND, "lab": str(scene.lab.folder)}
    apply(home, control_plane(3, config, older=True, rollout={"inPlace": "Never", "maxSurge": 1}))
    killed_at(scene, made_in_order(home))
    home.wait("jsonpath={.status.readyReplicas}=3", TITLE, timeout=TIME)
    home.wait("condition=EtcdHealthy", TITLE, timeout=TIME)
    there = reached(home, scene.folder)
    first = identity(there)
    there("create", "configmap", "kept", "--from-literal=data=intact")
    assert len(items(home, "machines")) == 3

    before = frozenset(each["metadata"]["uid"] for each in items(home, "machines"))
    apply(home, cluster_of_machines(scene.mirror, host, scene.endpoint))
    home("patch", TITLE, "--type=merge", f"--patch={json.dumps({'spec': {'version': VERSION.removeprefix('v')}})}")
    killed_at(scene, replaced_in_order(home, before))
    home.wait(f"jsonpath={{.status.version}}={VERSION}", TITLE, timeout=TIME)
    home.wait("jsonpath={.status.readyReplicas}=3", TITLE, timeout=TIME)
    home.wait("condition=EtcdHealthy", TITLE, timeout=TIME)
    until(lambda: len(items(home, "machines")) == 3 and len(items(there, "nodes")) == 3, 600)
    until(lambda: voters(there) == 3, 300)
    assert identity(there) == first, "no second kubeadm init"
    assert there.json("get", "configmap", "kept")["data"] == {"data": "intact"}
    assert not before & {each["metadata"]["uid"] for each in items(home, "machines")}
