"""Workers of a pool are changed where they stand, on real hosts: versions, configuration, and the way back."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.names import HOST_FILES_SECRET_TYPE
from hack.hosts.guests import Guest
from hack.hosts.lab import Lab
from hack.hosts.mirror import Mirror, checksums
from hack.program import Kubectl
from tests.hosts import sshpools
from tests.hosts.joining import BEFORE, VERSION, apply, broken, items, joining_cluster, pause_pod, programs, until
from tests.hosts.sshpools import Pool
from tests.hosts.test_ssh import controllers, deployment, is_clean, kubectl, machine, mirror, plane, upgrade

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]
__all__ = ["controllers", "kubectl", "mirror", "plane"]
PROXIES = "for each in containerd kubelet; do systemctl show --property=Environment --value $each | grep -i proxy; done"
REASON = 'jsonpath={.status.conditions[?(@.type=="UpToDate")].reason}=UpdateFailed'
MESSAGE = '-o=jsonpath={.status.conditions[?(@.type=="UpToDate")].message}'


@pytest.fixture(scope="module")
def pool(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    made = Pool(lab, tmp_path_factory.mktemp("keys"), ["rack1", "rack2", "rack3", "rack4"])
    yield made
    made.remove()


def is_ready(node: dict[str, Any]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])


def taking_pods(kubectl: Kubectl) -> int:
    return sum(1 for node in items(kubectl, "nodes") if is_ready(node) and not node["spec"].get("unschedulable"))


def joined(kubectl: Kubectl, pool: Pool, name: str) -> tuple[Guest, dict[str, Any]]:
    """The host of a Machine that has joined, and its Node."""
    kubectl.wait("condition=NodeJoined", f"machine/{name}", timeout=300)
    kubectl.wait("condition=UpToDate", f"machine/{name}", timeout=300)
    node = kubectl.json("get", "machine", name)["status"]["nodeRef"]["name"]
    kubectl.wait("condition=Ready", f"node/{node}", timeout=300)
    return pool.guests[node], kubectl.json("get", "node", node)


def change(kubectl: Kubectl, name: str, spec: dict[str, Any]) -> None:
    kubectl("patch", "machine", name, "--type=merge", f"--patch={json.dumps({'spec': spec})}")


def removed(kubectl: Kubectl, name: str, guest: Guest) -> None:
    kubectl("delete", "machine", name, "--wait", "--timeout=300s", timeout=360)
    is_clean(guest)


def test_four_are_rolled_on_their_hosts_and_never_fewer_than_three_take_pods(
    pool: Pool, mirror: Mirror, kubectl: Kubectl
) -> None:
    apply(kubectl, joining_cluster(mirror, older=True))
    apply(kubectl, deployment("four", 4, BEFORE))
    kubectl.wait("jsonpath={.status.readyReplicas}=4", "md/four", timeout=480)
    kubectl.wait("condition=UpToDate", "machines", "--all", timeout=300)
    until(lambda: taking_pods(kubectl) == 4)
    nodes = {node["metadata"]["uid"]: node["status"]["nodeInfo"]["bootID"] for node in items(kubectl, "nodes")}

    apply(kubectl, joining_cluster(mirror))
    apply(kubectl, deployment("four", 4, VERSION))
    fewest = 4

    def rolled() -> bool:
        nonlocal fewest
        fewest = min(fewest, taking_pods(kubectl))
        return all(node["status"]["nodeInfo"]["kubeletVersion"] == VERSION for node in items(kubectl, "nodes"))

    until(rolled, 600)
    assert fewest == 3
    kubectl.wait("condition=UpToDate", "machines", "--all", timeout=300)
    after = {node["metadata"]["uid"]: node["status"]["nodeInfo"]["bootID"] for node in items(kubectl, "nodes")}
    assert after == nodes
    kubectl("delete", "md", "four", "--wait")
    kubectl("wait", "--for=delete", "machines", "--all", "--timeout=360s", timeout=420)
    for guest in pool.guests.values():
        is_clean(guest)


def containerd_of_another_version(guest: Guest, folder: Path) -> tuple[str, Path]:
    """The host's own containerd, which calls itself otherwise, in an archive."""
    program = (guest.root / "usr/bin/containerd").read_bytes()
    said = guest.execute("containerd --version").stdout.split()[2].encode()
    patch = re.match(rb"(\d+\.\d+\.)(\d+)", said)
    assert patch
    other = patch[1] + str(int(patch[2]) ^ 1).encode().zfill(len(patch[2]))
    archive = folder / "containerd.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        info = tarfile.TarInfo("bin/containerd")
        content = program.replace(said, said.replace(patch[0], other, 1))
        info.size, info.mode = len(content), 0o755
        tar.addfile(info, io.BytesIO(content))
    return other.decode(), archive


def test_another_container_runtime_runs_on_the_same_host(
    pool: Pool, mirror: Mirror, kubectl: Kubectl, tmp_path: Path
) -> None:
    apply(kubectl, joining_cluster(mirror))
    apply(kubectl, machine("runtime"))
    guest, before = joined(kubectl, pool, "runtime")
    version, archive = containerd_of_another_version(guest, tmp_path)
    (mirror.folder / archive.name).symlink_to(archive)
    source = {"url": f"{mirror.url}/{archive.name}", "sha256": hashlib.sha256(archive.read_bytes()).hexdigest()}
    change(
        kubectl,
        "runtime",
        {
            "versions": {"containerRuntime": {"name": "containerd", "version": version}},
            "bootstrap": {"archives": {"containerd": source}},
        },
    )

    def reports() -> bool:
        info = kubectl.json("get", "node", guest.name)["status"]["nodeInfo"]
        return bool(info["containerRuntimeVersion"].startswith(f"containerd://{version}"))

    until(reports, 300)
    kubectl.wait("condition=UpToDate", "machine/runtime", timeout=300)
    until(lambda: taking_pods(kubectl) == 1)
    after = kubectl.json("get", "node", guest.name)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["nodeInfo"]["bootID"] == before["status"]["nodeInfo"]["bootID"]
    removed(kubectl, "runtime", guest)


def test_configuration_and_files_are_changed_under_running_pods(pool: Pool, mirror: Mirror, kubectl: Kubectl) -> None:
    apply(kubectl, joining_cluster(mirror))
    apply(kubectl, machine("configured"))
    guest, _ = joined(kubectl, pool, "configured")
    apply(kubectl, pause_pod("stays", guest.name))
    kubectl.wait("condition=Ready", "pod/stays", timeout=300)
    before = kubectl.json("get", "pod", "stays")
    files = [{"path": "/etc/example/own.conf", "content": "mine\n", "permissions": "0640"}]
    kernel = {"sysctls": {"net.ipv4.tcp_fin_timeout": "33"}, "proxy": {"http": "http://127.0.0.1:9", "noProxy": ["*"]}}
    change(kubectl, "configured", {"bootstrap": {"kubeletConfiguration": {"maxPods": 42}, "files": files, **kernel}})

    def pods() -> str:
        return str(kubectl.json("get", "node", guest.name)["status"]["capacity"]["pods"])

    until(lambda: pods() == "42", 300)
    kubectl.wait("condition=UpToDate", "machine/configured", timeout=300)
    assert guest.execute("cat /etc/example/own.conf").stdout == "mine\n"
    assert guest.execute("sysctl -n net.ipv4.tcp_fin_timeout").stdout == "33\n"
    assert "http://127.0.0.1:9" in guest.execute(PROXIES).stdout
    change(kubectl, "configured", {"bootstrap": None})
    until(lambda: pods() == "110", 300)
    kubectl.wait("condition=UpToDate", "machine/configured", timeout=300)
    assert guest.execute("cat /etc/example/own.conf").stdout == ""
    assert guest.execute(PROXIES).stdout.strip() == ""
    after = kubectl.json("get", "pod", "stays")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert [each["restartCount"] for each in after["status"]["containerStatuses"]] == [0]
    kubectl("delete", "pod", "stays", "--wait")
    removed(kubectl, "configured", guest)


def rotated(kubectl: Kubectl, text: str) -> None:
    data = {"conf": base64.b64encode(text.encode()).decode()}
    kind = {"apiVersion": "v1", "kind": "Secret", "type": HOST_FILES_SECRET_TYPE}
    apply(kubectl, {**kind, "metadata": {"name": "rotated", "namespace": "default"}, "data": data})


def secret_file(revision: str) -> dict[str, Any]:
    source = {"secret": {"name": "rotated", "key": "conf"}, "revision": revision}
    return {"path": "/etc/example/secret.conf", "contentFrom": source}


def test_users_and_files_of_secrets_are_changed_under_running_pods_and_users_go_with_the_machine(
    pool: Pool, mirror: Mirror, kubectl: Kubectl
) -> None:
    rotated(kubectl, "first\n")
    apply(kubectl, joining_cluster(mirror))
    apply(kubectl, machine("people"))
    guest, _ = joined(kubectl, pool, "people")
    apply(kubectl, pause_pod("stays", guest.name))
    kubectl.wait("condition=Ready", "pod/stays", timeout=300)
    before = kubectl.json("get", "pod", "stays")
    ops = {"name": "ops", "sudo": "ALL=(ALL) NOPASSWD:ALL", "sshAuthorizedKeys": ["ssh-ed25519 AAAA ops"]}

    def becomes(content: str, **bootstrap: Any) -> None:
        change(kubectl, "people", {"bootstrap": bootstrap})
        until(lambda: guest.execute("cat /etc/example/secret.conf").stdout == content, 300)
        until(lambda: not (guest.root / "var/lib/nodewright/ssh/changing").exists(), 300)
        kubectl.wait("condition=UpToDate", "machine/people", timeout=300)

    becomes("first\n", users=[ops], files=[secret_file("1")])
    assert guest.execute("sudo -n -u ops sudo -n id -u").stdout == "0\n"
    assert guest.execute("cat /home/ops/.ssh/authorized_keys").stdout == "ssh-ed25519 AAAA ops\n"
    rotated(kubectl, "second\n")
    becomes("second\n", users=[], files=[secret_file("2")])
    assert guest.execute("id ops").returncode != 0
    assert "nodewright" not in guest.execute("ls /etc/sudoers.d").stdout
    becomes("second\n", users=[ops], files=[secret_file("2")])
    until(lambda: guest.execute("id ops").returncode == 0)
    after = kubectl.json("get", "pod", "stays")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert [each["restartCount"] for each in after["status"]["containerStatuses"]] == [0]
    kubectl("delete", "pod", "stays", "--wait")
    removed(kubectl, "people", guest)
    assert guest.execute("id ops").returncode != 0, "whoever has the host next has no users of others"
    guest.execute("rm -rf /home/ops.was-* /etc/example")


def test_a_change_that_has_no_time_service_leaves_no_users(pool: Pool, mirror: Mirror, kubectl: Kubectl) -> None:
    apply(kubectl, joining_cluster(mirror))
    apply(kubectl, machine("timeless"))
    guest, _ = joined(kubectl, pool, "timeless")
    change(kubectl, "timeless", {"bootstrap": {"users": [{"name": "half"}], "ntp": {"servers": ["time.example"]}}})
    kubectl.wait(REASON, "machine/timeless", timeout=300)
    message = kubectl.until("the host went back", "get", "machine", "timeless", MESSAGE)
    assert "neither chrony nor systemd-timesyncd is there" in message
    assert guest.execute("id half").returncode != 0
    removed(kubectl, "timeless", guest)


def test_a_sysctl_that_can_not_be_set_gives_way_to_the_kernel_proxies_and_files_of_before(
    pool: Pool, mirror: Mirror, kubectl: Kubectl
) -> None:
    apply(kubectl, joining_cluster(mirror))
    apply(kubectl, machine("refused"))
    guest, _ = joined(kubectl, pool, "refused")
    had = guest.execute("sysctl -n net.ipv4.tcp_fin_timeout").stdout
    wrong = {"net.ipv4.tcp_fin_timeout": "34", "net.ipv4.there_is_none": "1"}
    files = [{"path": "/etc/example/own.conf", "content": "mine\n"}]
    change(
        kubectl, "refused", {"bootstrap": {"sysctls": wrong, "proxy": {"http": "http://127.0.0.1:9"}, "files": files}}
    )
    kubectl.wait(REASON, "machine/refused", timeout=300)
    message = kubectl.until("the host went back", "get", "machine", "refused", MESSAGE)
    assert "apply kernel settings" in message
    assert guest.execute("sysctl -n net.ipv4.tcp_fin_timeout").stdout == had
    assert guest.execute(PROXIES).stdout.strip() == ""
    assert guest.execute("cat /etc/example/own.conf").stdout == ""
    until(lambda: taking_pods(kubectl) == 1)
    removed(kubectl, "refused", guest)


def test_a_kubelet_that_does_not_run_gives_way_to_the_one_before_and_a_good_one_comes_after(
    pool: Pool, mirror: Mirror, kubectl: Kubectl, tmp_path: Path
) -> None:
    apply(kubectl, joining_cluster(mirror, older=True))
    apply(kubectl, machine("unlucky", BEFORE))
    guest, before = joined(kubectl, pool, "unlucky")
    bad = broken(tmp_path)
    mirror.add(VERSION, bad)
    cluster = joining_cluster(mirror)
    cluster["spec"]["bootstrap"]["archives"]["kubernetes"]["sha256"] = checksums(bad)
    apply(kubectl, cluster)
    upgrade(kubectl, "unlucky", VERSION)
    kubectl.wait(REASON, "machine/unlucky", timeout=480)
    message = kubectl.until("the host went back", "get", "machine", "unlucky", MESSAGE)
    assert "wait until the kubelet keeps running" in message
    assert guest.execute("/usr/bin/kubelet --version").stdout.split()[-1] == BEFORE
    until(lambda: taking_pods(kubectl) == 1)
    until(lambda: kubectl.json("get", "node", guest.name)["status"]["nodeInfo"]["kubeletVersion"] == BEFORE)
    after = kubectl.json("get", "node", guest.name)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]

    mirror.add(VERSION, programs())
    own = {"archives": {"kubernetes": mirror.archives(programs())["kubernetes"]}}
    change(kubectl, "unlucky", {"bootstrap": own})
    kubectl.wait(f"jsonpath={{.status.nodeInfo.kubeletVersion}}={VERSION}", f"node/{guest.name}", timeout=300)
    kubectl.wait("condition=UpToDate", "machine/unlucky", timeout=300)
    removed(kubectl, "unlucky", guest)


def test_a_host_is_free_once_it_has_booted_anew_with_the_command_of_its_machine(
    pool: Pool, mirror: Mirror, kubectl: Kubectl
) -> None:
    apply(kubectl, joining_cluster(mirror))
    body = machine("rebooted")
    config = body["spec"]["providerConfig"]["value"]
    config |= {"release": "Reboot", "releaseCommand": ["touch", "/root/was here"]}
    apply(kubectl, body)
    guest, _ = joined(kubectl, pool, "rebooted")
    kubectl("delete", "machine", "rebooted", "--wait=false")
    until(lambda: not guest.is_running(), 120)  # one without --keep-unit would start again by itself
    guest.boot(pool.lab.payload)
    kubectl("wait", "--for=delete", "machine/rebooted", "--timeout=300s", timeout=360)
    is_clean(guest)
    assert guest.execute("ls /root/").stdout.split("\n")[0] == "was here"
    assert sshpools.claim(guest) is None
