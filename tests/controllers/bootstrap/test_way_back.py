"""A control plane's host goes back by itself: the scripts run as they are, on a folder that stands for the host."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from controllers.bootstrap import shell, way_back
from controllers.bootstrap.steps import Command, Script, Step, Steps
from tests.controllers.bootstrap.test_etcd_snapshot import JOIN
from tests.controllers.bootstrap.test_upgrade import steps_of

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
SAID = f"[upgrade/apply] FATAL: couldn't upgrade control plane. {way_back.KUBEADM_WENT_BACK}. Errors faced: timed out\n"


@dataclass
class HostFolder:
    """``kubelet_runs``: what systemctl says. It writes its calls to the file ``calls``."""

    root: Path

    def __post_init__(self) -> None:
        for folder in ("manifests", "settings", "bin"):
            (self.root / folder).mkdir()
        self.runs(True)
        self.is_of("old")

    def runs(self, running: bool) -> None:
        program = self.root / "bin" / "systemctl"
        verdict = f'[ "$1" != is-active ] || exit {0 if running else 3}\n'
        program.write_text(f'#!/bin/sh\necho "$@" >> {self.root}/calls\n{verdict}')
        program.chmod(0o755)

    def is_of(self, version: str) -> None:
        for component in (*COMPONENTS, "etcd"):
            (self.root / "manifests" / f"{component}.yaml").write_text(f"{component} {version}\n")
        (self.root / "kubelet").unlink(missing_ok=True)
        (self.root / "kubelet").write_text(f"kubelet {version}\n")
        (self.root / "kubelet").chmod(0o755)
        (self.root / "settings" / "config.yaml").write_text(f"config {version}\n")

    def run(self, text: str, log: str = "") -> subprocess.CompletedProcess[str]:
        (self.root / "log").write_text(log)
        environment = {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}
        return subprocess.run(["sh", "-c", text], env=environment, capture_output=True, text=True, check=False)

    def keep(self, attempt: str = "v2") -> None:
        done = self.run(self.script(way_back._KEEP, attempt))
        assert done.returncode == 0, done.stderr

    def script(self, text: str, attempt: str = "v2") -> str:
        places = {name: str(self.root / name) for name in ("former", "log", "kubelet", "settings", "manifests")}
        return way_back.script(text, attempt, **places)

    def found(self) -> dict[str, str]:
        listed = [*(self.root / "manifests").iterdir(), self.root / "kubelet", *(self.root / "settings").iterdir()]
        return {path.name: path.read_text().split()[-1] for path in listed}


@pytest.fixture
def host(tmp_path: Path) -> HostFolder:
    return HostFolder(tmp_path)


def test_a_kubelet_that_does_not_run_gives_way_to_the_one_before(host: HostFolder) -> None:
    host.keep()
    host.is_of("new")
    done = host.run(host.script(way_back._KUBELET))
    assert done.returncode == 0
    assert "the host went back to the kubelet of before" in done.stdout
    assert host.found() == {
        **dict.fromkeys([f"{name}.yaml" for name in (*COMPONENTS, "etcd")], "new"),
        "kubelet": "old",
        "config.yaml": "old",
    }
    assert "restart kubelet.service" in (host.root / "calls").read_text()
    assert os.access(host.root / "kubelet", os.X_OK)


def test_static_pods_are_those_of_before_once_kubeadm_says_so(host: HostFolder) -> None:
    """What kubeadm left half is put back, but for etcd, whose data may be of the new version."""
    host.keep()
    host.is_of("new")
    done = host.run(host.script(way_back._CONTROL_PLANE), SAID)
    assert done.returncode == 0
    assert {name: host.found()[f"{name}.yaml"] for name in (*COMPONENTS, "etcd")} == {
        **dict.fromkeys(COMPONENTS, "old"),
        "etcd": "new",
    }


@pytest.mark.parametrize("log", ["", "[ERROR CoreDNSUnsupportedPlugins]: no\n", "timed out waiting\n"])
def test_what_kubeadm_did_not_take_back_is_tried_again(host: HostFolder, log: str) -> None:
    host.keep()
    host.is_of("new")
    assert host.run(host.script(way_back._CONTROL_PLANE), log).returncode != 0
    assert host.found()["kube-apiserver.yaml"] == "new"


def test_what_is_kept_is_of_before_the_attempt_however_often_it_begins(host: HostFolder) -> None:
    host.keep("v2")
    host.is_of("half")
    host.keep("v2")
    assert (host.root / "former" / "kubelet").read_text() == "kubelet old\n"
    host.runs(False)
    host.keep("v3")
    assert (host.root / "former" / "kubelet").read_text() == "kubelet old\n", "one that does not run is no way back"
    host.runs(True)
    host.keep("v3")
    assert (host.root / "former" / "kubelet").read_text() == "kubelet half\n"


def test_nothing_is_put_back_that_was_not_kept_for_this_attempt(host: HostFolder) -> None:
    host.keep("v2")
    host.is_of("new")
    for text in (way_back._KUBELET, way_back._CONTROL_PLANE):
        assert host.run(host.script(text, "v3"), SAID).returncode != 0
    assert set(host.found().values()) == {"new"}


def test_a_control_plane_keeps_things_before_all_changes() -> None:
    steps = steps_of(JOIN).steps
    assert steps[0].name == "keep what the host can go back to"
    assert [step.name for step in steps if step.rescue] == [
        f"upgrade the control plane to v{JOIN.kubelet_version}",
        "wait until the kubelet keeps running",
    ]


# -- in the script of all steps


def render(folder: Path, *steps: Step) -> list[str]:
    text = shell.render(Steps(steps)).replace(shell.STATE, str(folder))
    text = text.replace('mkdir -p "$state" /etc/nodewright', 'mkdir -p "$state"')
    text = text.replace(f"pause={shell.FIRST_PAUSE}", "pause=0")
    return ["sh", "-c", text, "script", shell.KEEP_TRYING]


def failing(folder: Path, rescue: str) -> Step:
    return Step("break it", Script(f"echo tried >> {folder}/tries; echo badly; exit 7"), rescue=rescue)


def test_after_the_way_back_nothing_is_tried_again_and_why_can_be_read(tmp_path: Path) -> None:
    state = tmp_path / "state"
    argv = render(state, failing(tmp_path, "echo the host went back; exit 0"), Step("never", Command(("false",))))
    for _ in range(2):  # the second as after a reboot
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode != 0
    assert (tmp_path / "tries").read_text() == "tried\n"
    text = (state / "gave-up").read_text()
    assert text.startswith("step 1/2 break it failed with 7, and the host went back:\n")
    assert "badly" in text
    assert "the host went back" in text


def test_a_step_that_may_pass_is_tried_so_often_before_the_host_goes_back(tmp_path: Path) -> None:
    step = replace(failing(tmp_path, "exit 0"), rescue_after=3)
    done = subprocess.run(render(tmp_path / "state", step), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 7
    assert (tmp_path / "tries").read_text() == "tried\n" * 3


def test_a_step_without_a_way_back_now_is_tried_again(tmp_path: Path) -> None:
    """The rescue fails the first time: kubeadm has not put back what it changed."""
    rescue = f"[ -e {tmp_path}/second ] || {{ : > {tmp_path}/second; exit 1; }}"
    argv = render(tmp_path / "state", failing(tmp_path, rescue))
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 7
    assert (tmp_path / "tries").read_text() == "tried\n" * 2
