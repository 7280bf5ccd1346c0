"""A host that boots from the bare tree gets its kubelet from a signed apt repository, all of it set, and joins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from controllers.bootstrap import shell
from controllers.bootstrap.join import Join
from controllers.bootstrap.plan import join_steps
from controllers.bootstrap.settings import effective
from controllers.bootstrap.steps import Steps
from hack import binaries
from hack.hosts import cluster, files
from hack.hosts.lab import Lab, Record
from hack.hosts.mirror import PROGRAMS, Mirror
from hack.program import Kubectl
from hack.realplane import RealPlane
from tests.hosts import chroots

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]

VERSION = binaries.kubernetes_version().removeprefix("v")


@pytest.fixture(scope="module")
def plane(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPlane]:
    with cluster.joinable(lab, tmp_path_factory.mktemp("plane")) as running:
        yield running


def join_of(plane: RealPlane, url: str, key: str) -> Join:
    bootstrap = {
        "packages": {"repository": {"url": f"{url}/v{{minor}}/{{format}}/", "signingKey": key}},
        "files": [files.CONTAINERD_FILE],
        "users": [{"name": "ops", "sshAuthorizedKeys": ["ssh-ed25519 AAAA ops"]}],
        "proxy": {"http": "http://127.0.0.1:9", "noProxy": [url.split("/")[2].split(":", maxsplit=1)[0]]},
        "kubeletConfiguration": {"maxPods": 42},
        "patches": [{"target": "kubeletconfiguration", "patch": "podsPerCore: 21"}],
        "nodeRegistration": {
            "kubeletExtraArgs": [{"name": "v", "value": "1"}],
            "ignorePreflightErrors": [cluster.NO_CGROUP_2],
        },
        "preInstallCommands": [{"argv": ["rm", "-f", "/etc/apt/sources.list"]}],  # there is no way out of the lab
        "postJoinCommands": [{"script": "test -s /etc/kubernetes/kubelet.conf && echo joined > /root/joined\n"}],
    }
    settings = effective({}, {"bootstrap": bootstrap})
    ca = (plane.folder / "ca.crt").read_text()
    return Join(VERSION, plane.url, ca, cluster.token(plane), cluster_version=VERSION, settings=settings)


def test_a_host_with_packages_of_a_repository_joins_as_its_spec_says(
    lab: Lab, plane: RealPlane, tmp_path: Path
) -> None:
    flat = tmp_path / "packages" / f"v{VERSION.rpartition('.')[0]}" / "deb"
    flat.mkdir(parents=True)
    for name in PROGRAMS:
        chroots.package(flat, name, f"{VERSION}-1.1", binaries.ensure(name))
    with chroots.signer() as home:
        chroots.index(flat, home)
        key = chroots.public_key(home)
    kubectl = Kubectl(binaries.ensure("kubectl"), plane.kubeconfig, tmp_path / "kubectl-cache")
    record = lab.start(Record("packaged", "packaged", 0, "2026-01-01T00:00:00+00:00", {}), {})
    guest = lab.guest(record)
    try:
        with Mirror(tmp_path / "packages", lab.net.gateway) as server:
            steps = join_steps(join_of(plane, server.url, key))
            assert isinstance(steps, Steps), steps
            guest.wait_booted()
            (guest.root / "root/join.sh").write_text(shell.render(steps))
            for _ in range(2):  # the second run finds all done
                done = guest.execute("sh /root/join.sh")
                assert done.returncode == 0, done.stdout
        kubectl.wait("condition=Ready", "node/packaged", timeout=300)
        node = json.loads(kubectl("get", "node", "packaged", "-o", "json"))
        assert node["status"]["capacity"]["pods"] == "42"
        assert node["status"]["nodeInfo"]["kubeletVersion"] == f"v{VERSION}"
        assert "podsPerCore: 21" in guest.execute("cat /var/lib/kubelet/config.yaml").stdout
        assert guest.execute("cat /root/joined; apt-mark showhold").stdout.split() == [
            "joined", "containerd", "kubeadm", "kubelet",
        ]  # fmt: skip
        assert "HTTP_PROXY=http://127.0.0.1:9" in guest.execute("systemctl show kubelet -p Environment").stdout
    finally:
        lab.remove("packaged")
        kubectl("delete", "node", "packaged", "--ignore-not-found")
