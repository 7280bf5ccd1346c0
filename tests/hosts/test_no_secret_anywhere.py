"""A whole run at the level debug: no token, no key and no content of a secret file in anything that anybody emits.

One host joins a workload cluster; another one fails at a step that prints all secrets it can find, the kubeconfig
becomes one that can't be read, and one that the API server refuses.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.names import HOST_FILES_SECRET_TYPE, TOKEN_MACHINE_UID_LABEL
from hack import binaries
from hack.hosts import cluster
from hack.hosts.lab import Lab
from hack.hosts.mirror import PROGRAMS, Mirror
from hack.program import Kubectl, Run, Up
from tests.cli.processes import nodewright
from tests.hosts.joining import VERSION, apply, deployment, items, joining_cluster, until
from tests.runtime.workload_rights import kubeconfig_of_the_page

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]
CONTENT = "content-of-a-file-that-nobody-may-see"
PRINTS_ALL = "cat /etc/nodewright/report.json /etc/creds; tr '\\0' ' ' < /proc/self/environ; exit 1"
HOME = "machines,machinesets,machinedeployments,clusters,events,configmaps,leases,nodes"
PROD = "events,configmaps,leases,nodes,csr"
HOST_LOGS = "journalctl -o cat --no-pager; cat /var/log/cloud-init*.log; ls -la /var/lib/nodewright/bootstrap"


@dataclass
class Watcher:
    """Command lines and environments of all processes of this machine, those of hosts included, now and then."""

    seen: set[str] = field(default_factory=set)

    @contextmanager
    def watching(self) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(0.5):
            for path in Path("/proc").glob("[0-9]*"):
                for name in ("cmdline", "environ"):
                    try:
                        self.seen.add((path / name).read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                    except OSError:  # it has ended
                        continue


@dataclass
class Found:
    """What must be nowhere, by what it is."""

    secrets: dict[str, set[str]] = field(default_factory=dict)

    def add(self, what: str, *values: str) -> None:
        self.secrets.setdefault(what, set()).update(value for value in values if len(value) >= 12)

    def in_text(self, text: str) -> set[str]:
        forms = {(what, form) for what, values in self.secrets.items() for value in values for form in _forms(value)}
        return {what for what, form in forms if form in text}


def _forms(value: str) -> tuple[str, ...]:
    """As it is, and in base64 at any place: what a shift of up to two bytes leaves the same."""
    raw = value.encode()
    return (value, *(base64.b64encode(raw[start : start + len(raw[start:]) // 3 * 3]).decode() for start in range(3)))


@dataclass(frozen=True, slots=True)
class Scene:
    home: Kubectl
    prod: Kubectl
    run: Run
    mirror: Mirror
    config: dict[str, Any]
    found: Found
    watcher: Watcher


@pytest.fixture
def scene(lab: Lab, tmp_path: Path) -> Iterator[Scene]:
    binary, watcher, found = binaries.ensure("kubectl"), Watcher(), Found()
    with (
        cluster.joinable(lab, tmp_path / "plane") as plane,
        Mirror(tmp_path / "mirror", lab.net.gateway) as mirror,
        Up(tmp_path, binary, "--in-memory", "--no-controllers") as up,
    ):
        mirror.add(VERSION, {name: binaries.ensure(name) for name in PROGRAMS})
        prod = Kubectl(binary, plane.kubeconfig, tmp_path / "prod-cache")
        config = yaml.safe_load(kubeconfig_of_the_page(prod, plane))
        found.add("token of the kubeconfig", config["users"][0]["user"]["token"])
        found.add("key of the CA", *_lines((plane.folder / "ca.key").read_text()))
        _kubeconfig(up.kubectl, yaml.safe_dump(config))
        with (
            Run(tmp_path, up.kubectl, "--controllers=*,certificatesigningrequest", "--log-level=debug") as run,
            watcher.watching(),
        ):
            yield Scene(up.kubectl, prod, run, mirror, config, found, watcher)
            up.kubectl("delete", "md,ms,ma,cl", "--all", "--wait", "--timeout=300s", timeout=360)


def test_a_whole_run_shows_no_secret(lab: Lab, scene: Scene, tmp_path: Path) -> None:
    home, found = scene.home, scene.found
    found.add("content of a file", CONTENT)
    _secret(home, "creds", {"token": CONTENT}, HOST_FILES_SECRET_TYPE)
    body = joining_cluster(scene.mirror, "prod")
    body["spec"]["bootstrap"]["kubeletConfiguration"] = {"serverTLSBootstrap": True}
    source = {"secret": {"name": "creds", "key": "token"}}
    body["spec"]["bootstrap"]["files"].append({"path": "/etc/creds", "contentFrom": source})
    apply(home, body)
    apply(home, deployment(lab, "good", 1, cluster_name="prod"))
    bad = deployment(lab, "bad", 1, cluster_name="prod")
    bad["spec"]["template"]["spec"]["bootstrap"] = {"preJoinCommands": [{"name": "print", "script": PRINTS_ALL}]}
    apply(home, bad)
    until(lambda: len(_note_tokens(scene)) == 2, 300)
    home.wait("jsonpath={.status.readyReplicas}=1", "md/good", timeout=360)
    until(lambda: any("StepFailed" in json.dumps(machine) for machine in items(home, "machines")), 300)
    names = {machine["metadata"]["labels"]["set"]: machine["metadata"]["name"] for machine in items(home, "machines")}
    good = next(lab.guest(seen.record) for seen in lab.hosts() if seen.record.name == names["good"])
    assert good.execute("cat /etc/creds").stdout == CONTENT
    assert good.execute("stat -c '%a %U' /etc/creds").stdout.strip() == "600 root"
    found.add("key of a kubelet", *_lines(good.execute("cat /var/lib/kubelet/pki/*.pem").stdout))
    texts = {
        "render": _said("bootstrap", "render", names["bad"], home),
        "describe": _said("describe", "machine", names["bad"], home),
        "describe of the other": _said("describe", "machine", names["good"], home),
        "logs of the host that joined": good.execute(HOST_LOGS).stdout,
        "console of the host that joined": good.console.read_text(errors="replace"),
        "objects": home("get", HOME, "-A", "-o", "json"),
    }
    _break_the_way_there(scene)
    texts |= {
        "objects in the end": home("get", HOME, "-A", "-o", "json"),
        "objects of the workload cluster": scene.prod("get", PROD, "-A", "-o", "json"),
        "log of the controllers": (tmp_path / "run.log").read_text(errors="replace"),
        "output of the controllers": "\n".join([scene.run.spoken, *scene.run.lines.queue]),
        "command lines and environments": "\n".join(scene.watcher.seen),
    }
    assert all(texts.values()), [name for name, text in texts.items() if not text]
    assert "***" in texts["objects"], "the host that failed has printed its secrets, and hid them in its report"
    assert '"debug"' in texts["log of the controllers"] or "[debug" in texts["log of the controllers"]
    assert len(found.secrets) == 5
    there = found.in_text(home("get", "secrets", "-A", "-o", "json"))
    assert {"content of a file", "token of the kubeconfig"} <= there, "what is there is found, in base64 as well"
    assert {name: shown for name, text in texts.items() if (shown := found.in_text(text))} == {}


def _note_tokens(scene: Scene) -> set[str]:
    """Secrets of bootstrap tokens, for as long as they are there."""
    for secret in scene.prod.items("secrets", "-n", "kube-system", "-l", TOKEN_MACHINE_UID_LABEL):
        if secret.get("type") == "bootstrap.kubernetes.io/token":
            scene.found.add("bootstrap token", base64.b64decode(secret["data"]["token-secret"]).decode())
    return scene.found.secrets.get("bootstrap token", set())


def _break_the_way_there(scene: Scene) -> None:
    """Errors quote what went wrong; none may quote the kubeconfig or what was sent."""
    text = yaml.safe_dump(scene.config)
    for changed, reason in (("[" + text, "InvalidKubeconfig"), (_refused(scene.config), "Unreachable")):
        _kubeconfig(scene.home, changed)
        until(lambda wanted=reason: wanted in scene.home("get", "clusters", "-o", "json"), 300)
    _kubeconfig(scene.home, text)
    scene.home.wait("condition=Reachable", "cluster/prod", timeout=300)


def _refused(config: dict[str, Any]) -> str:
    """With a token that nobody knows; it begins as the good one does."""
    changed = json.loads(json.dumps(config))
    changed["users"][0]["user"]["token"] += "x"
    return str(yaml.safe_dump(changed))


def _kubeconfig(kubectl: Kubectl, text: str) -> None:
    _secret(kubectl, "prod-kubeconfig", {"value": text}, "Opaque")


def _secret(kubectl: Kubectl, name: str, data: dict[str, str], type_: str) -> None:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    meta = {"name": name, "namespace": "default"}
    apply(kubectl, {"apiVersion": "v1", "kind": "Secret", "type": type_, "metadata": meta, "data": encoded})


def _said(*arguments: str | Kubectl) -> str:
    *words, kubectl = arguments
    assert isinstance(kubectl, Kubectl)
    done = nodewright(*map(str, words), "--kubeconfig", str(kubectl.kubeconfig))
    assert done.returncode in {0, 1}, done.stderr  # 1: `describe` has found trouble
    return done.stdout + done.stderr


def _lines(pem: str) -> list[str]:
    """Of private keys; certificates are no secret."""
    found, inside = [], False
    for line in pem.splitlines():
        if line.startswith("-----"):
            inside = line.startswith("-----BEGIN") and "PRIVATE KEY" in line
        elif inside:
            found.append(line)
    return found
