"""Clusters that lab hosts make: their objects, the way to their API, and somebody who uses it all the time."""

from __future__ import annotations

import base64
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from hack import binaries
from hack.hosts import cluster, files, images
from hack.hosts.lab import Lab
from hack.hosts.mirror import Mirror
from hack.hosts.provider.provider import API_VERSION, KIND
from hack.program import Kubectl
from tests.hosts.joining import BEFORE, VERSION, programs
from tests.hosts.sshpools import Pool

NAME = "prod"
IMPORT_SECONDS = 900.0
"""For hosts that import images of a gigabyte, all at once."""


@contextmanager
def machines_of_people(
    folder: Path, names: Sequence[str], *, older: bool = False, payload: Sequence[Path] = ()
) -> Iterator[tuple[Pool, Mirror]]:
    """Hosts of a lab of their own that can be logged in to, and a mirror with kubelet and kubeadm.

    They have the images of a control plane, and those of archives in ``payload``; ``older``: of both versions.
    """
    lab = Lab.make(folder / "lab")
    for number, tools in enumerate((binaries.PREVIOUS, binaries.TOOLS) if older else (binaries.TOOLS,)):
        shutil.copy(images.ensure_control_plane(tools), lab.payload / f"control-plane-{number}.tar")
    for archive in payload:
        shutil.copy(archive, lab.payload)
    try:
        pool = Pool(lab, folder, [*names], IMPORT_SECONDS)
        with Mirror(folder / "mirror", lab.net.gateway) as mirror:
            mirror.add(VERSION, programs())
            if older:
                mirror.add(BEFORE, programs(older=True))
            yield pool, mirror
    finally:
        lab.clean()


def cluster_of_machines(mirror: Mirror, host: str, port: int, *, older: bool = False) -> dict[str, Any]:
    """With the checksums of one version: a mirror of http needs them."""
    bootstrap = {
        "archives": mirror.archives(programs(older=older)),
        "files": [files.CONTAINERD_FILE],
        "nodeRegistration": {"ignorePreflightErrors": [cluster.NO_CGROUP_2]},
        "kubeletConfiguration": {"failCgroupV1": False, "failSwapOn": False},
        "controlPlane": {"disabledAddons": ["CoreDNS", "KubeProxy"]},
    }
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {"controlPlaneEndpoint": {"host": host, "port": port}, "bootstrap": bootstrap},
    }


def control_plane(replicas: int, config: dict[str, Any], *, older: bool = False, **spec: Any) -> dict[str, Any]:
    """A ControlPlane whose Machines have this providerConfig."""
    version = (BEFORE if older else VERSION).removeprefix("v")
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "ControlPlane",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {
            "clusterName": NAME,
            "replicas": replicas,
            "version": version,
            "template": {"spec": {"providerConfig": {"value": config}, "versions": {"kubelet": version}}},
            **spec,
        },
    }


def control_plane_machine(lab: Lab, name: str) -> dict[str, Any]:
    """One that a person declares by hand."""
    config, number = {"apiVersion": API_VERSION, "kind": KIND, "lab": str(lab.folder)}, VERSION.removeprefix("v")
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "default", "labels": {"cluster.k8s.io/cluster-name": NAME}},
        "spec": {"providerConfig": {"value": config}, "versions": {"kubelet": number, "controlPlane": number}},
    }


def reached(home: Kubectl, folder: Path) -> Kubectl:
    """kubectl for the cluster, by the kubeconfig that lies beside its object."""
    secret = home.json("get", "secret", f"{NAME}-kubeconfig")
    path = folder / f"{NAME}.kubeconfig"
    path.write_bytes(base64.b64decode(secret["data"]["value"]))
    return Kubectl(binaries.ensure("kubectl"), path, folder / f"{NAME}-cache")


@dataclass
class Prober:
    """``with Prober(there)``: writes a number and reads it back all the time, over new connections.

    ``asked``: how often; ``late``: how often a second try was needed; ``failed``: what went wrong twice.
    """

    there: Kubectl
    asked: int = 0
    late: int = 0
    failed: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Prober:
        self.there("create", "configmap", "probe", "--from-literal=number=0")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._over.is_set():
            self.asked += 1
            if self._try():
                self.late += 1
                time.sleep(1)
                wrong = self._try()
                if wrong:
                    self.failed.append(f"number {self.asked}: {wrong}")
            self._over.wait(0.2)

    def _try(self) -> str:
        """What went wrong, "" if nothing did."""
        try:
            patch = f'{{"data":{{"number":"{self.asked}"}}}}'
            self.there("patch", "configmap", "probe", "--type=merge", f"--patch={patch}", "--request-timeout=10s")
            found = self.there("get", "configmap", "probe", "-o", "jsonpath={.data.number}", "--request-timeout=10s")
        except Exception as error:
            return str(error)[-300:]
        return "" if found == str(self.asked) else f"read {found!r}"


@dataclass
class Watch:
    """``with Watch()``: how long it took (``whole``), and how long ``kubeadm upgrade`` ran on hosts of this machine."""

    whole: float = 0.0
    kubeadm: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Watch:
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(60)
        self.whole = time.monotonic() - self._began

    def _run(self) -> None:
        before = time.monotonic()
        while not self._over.wait(0.2):
            now = time.monotonic()
            self.kubeadm += (now - before) * _upgrades_that_run()
            before = now


def _upgrades_that_run() -> int:
    found = 0
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:
            continue
        found += words[0].endswith(b"kubeadm") and words[1:2] == [b"upgrade"]
    return found
