"""A worker goes back by itself: the scripts run as they are, on a folder that stands for the host."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from controllers.bootstrap import worker_change, worker_users, worker_way_back
from controllers.bootstrap.prepare import LISTED

KUBELET, CONTAINERD, CONFIG = "/usr/bin/kubelet", "/usr/bin/containerd", "/var/lib/kubelet/config.yaml"
OWN = "/etc/example/own.conf"


@dataclass
class HostFolder:
    """``root`` has the files of the host; systemctl writes its calls to ``calls``."""

    root: Path

    def __post_init__(self) -> None:
        (self.root / "bin").mkdir()
        self.runs(True)
        for path in (KUBELET, CONTAINERD, CONFIG):
            self.write(path, "old")

    @property
    def former(self) -> Path:
        return self.root / "former"

    def runs(self, running: bool) -> None:
        program = self.root / "bin" / "systemctl"
        verdict = f'[ "$1" != is-active ] || exit {0 if running else 3}\n'
        program.write_text(f'#!/bin/sh\necho "$@" >> {self.root}/calls\n{verdict}')
        program.chmod(0o755)
        (self.root / "kernel").mkdir(exist_ok=True)
        kernel = self.root / "bin" / "sysctl"  # settings are files of a folder
        kernel.write_text(
            f'#!/bin/sh\ncd {self.root}/kernel\nif [ "$1" = -n ]; then cat "$2"; exit; fi\n'
            'for file in "$@"; do :; done\n'
            'while read -r name _ value; do echo "$value" > "$name"; done < "$file"\n'
        )
        kernel.chmod(0o755)
        (self.root / "bin" / "sleep").write_text("#!/bin/sh\n")
        (self.root / "bin" / "sleep").chmod(0o755)

    def write(self, path: str, text: str) -> None:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def read(self, path: str) -> str | None:
        place = self.root / path.lstrip("/")
        return place.read_text() if place.exists() else None

    def run(self, text: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}
        return subprocess.run(["sh", "-c", text], env=environment, capture_output=True, text=True, check=False)

    def keep(self, attempt: str, *files: str, sysctls: tuple[str, ...] = ()) -> None:
        folders = {"root": str(self.root), "former": str(self.former)}
        text = worker_way_back.keeping(attempt, files, sysctls=sysctls, **folders)
        done = self.run(text)
        assert done.returncode == 0, done.stderr

    def put_back(self, attempt: str) -> subprocess.CompletedProcess[str]:
        return self.run(worker_way_back.put_back(attempt).replace(worker_way_back.FORMER, str(self.former)))


@pytest.fixture
def host(tmp_path: Path) -> HostFolder:
    return HostFolder(tmp_path)


def test_programs_configuration_and_files_are_those_of_before(host: HostFolder) -> None:
    host.write(OWN, "old")
    (host.root / KUBELET.lstrip("/")).chmod(0o755)
    host.keep("a", OWN, "/etc/example/new.conf")
    for path in (KUBELET, CONTAINERD, CONFIG, OWN, "/etc/example/new.conf", "/usr/local/bin/containerd"):
        host.write(path, "new")
    done = host.put_back("a")
    assert done.returncode == 0, done.stderr
    assert "the host went back" in done.stdout
    assert [host.read(path) for path in (KUBELET, CONTAINERD, CONFIG, OWN)] == ["old"] * 4
    assert host.read("/etc/example/new.conf") is None
    assert host.read("/usr/local/bin/containerd") is None, "it would hide the one before"
    assert os.access(host.root / KUBELET.lstrip("/"), os.X_OK)
    assert "restart kubelet.service" in (host.root / "calls").read_text()


def test_the_kernel_has_the_settings_of_before_also_those_that_a_half_change_had_set(host: HostFolder) -> None:
    one, other = host.root / "kernel/vm.one", host.root / "kernel/net.other"
    one.write_text("1\t2\n")
    other.write_text("3\n")
    host.keep("a", sysctls=("vm.one", "not.there"))
    one.write_text("half\n")
    host.keep("b", sysctls=("vm.one", "net.other"))
    one.write_text("new\n")
    other.write_text("new\n")
    done = host.put_back("b")
    assert done.returncode == 0, done.stderr
    assert (one.read_text(), other.read_text()) == ("1\t2\n", "3\n")


def test_a_change_that_takes_the_place_of_a_half_one_goes_back_before_both(host: HostFolder) -> None:
    host.keep("a")
    host.write(KUBELET, "half")
    host.write(OWN, "of before")
    host.keep("b", OWN)
    assert host.put_back("a").returncode != 0, "that is not what is tried"
    host.write(OWN, "new")
    assert host.put_back("b").returncode == 0
    assert (host.read(KUBELET), host.read(OWN)) == ("old", "of before")


def test_after_a_change_that_is_done_the_next_one_goes_back_to_it(host: HostFolder) -> None:
    host.keep("a")
    host.write(KUBELET, "new")
    assert host.run(worker_way_back.OVER.replace(worker_way_back.FORMER, str(host.former))).returncode == 0
    assert host.put_back("a").returncode != 0
    host.keep("a")
    host.write(KUBELET, "newest")
    assert host.put_back("a").returncode == 0
    assert host.read(KUBELET) == "new"


def test_a_host_whose_kubelet_does_not_run_has_nothing_to_go_back_to(host: HostFolder) -> None:
    host.runs(False)
    host.keep("a")
    host.write(KUBELET, "new")
    assert host.put_back("a").returncode != 0
    assert host.read(KUBELET) == "new"


def test_it_is_no_way_back_if_the_kubelet_of_before_does_not_run_either(host: HostFolder) -> None:
    host.keep("a")
    host.runs(False)
    done = host.put_back("a")
    assert done.returncode != 0
    assert "does not run either" in done.stdout


def test_being_killed_while_it_keeps_things_loses_nothing(host: HostFolder) -> None:
    """What a run before has left half is no part of what is kept."""
    (host.root / "former.new/root/usr/bin").mkdir(parents=True)
    (host.root / "former.new/root/usr/bin/kubelet").write_text("half")
    host.keep("a")
    host.write(KUBELET, "new")
    assert host.put_back("a").returncode == 0
    assert host.read(KUBELET) == "old"


def test_a_file_that_is_asked_for_no_longer_goes_and_one_that_nobody_listed_stays(tmp_path: Path) -> None:
    for name in ("kept", "gone", "other"):
        (tmp_path / name).touch()
    listed = tmp_path / "files"
    listed.write_text(f"{tmp_path}/kept\n{tmp_path}/gone\n")
    text = worker_way_back.script(worker_change._UNLIST, listed=str(listed), wanted=f"{tmp_path}/kept\n")
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}/gone was removed\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["files", "kept", "other"]
    assert LISTED == "/var/lib/nodewright/files"


def test_users_get_back_to_what_they_had_once_the_kubelet_of_before_runs(host: HostFolder) -> None:
    had, ran = "/var/lib/nodewright/users", host.root / "ran"
    host.write(had, "user ops\n")
    host.write(worker_users.TAKER, f'#!/bin/sh\ncat "$1" > {ran}\n')
    host.keep("a")
    host.write(had, "user ops\nuser half\n")
    host.keep("b")
    assert host.put_back("b").returncode == 0
    assert ran.read_text() == "user ops\n", "all that is not among these lines is taken away"
    assert host.read(had) == "user ops\nuser half\n", "the program writes it"


def test_users_that_can_not_be_taken_away_are_tried_again(host: HostFolder) -> None:
    host.write(worker_users.TAKER, "#!/bin/sh\nexit 1\n")
    host.keep("a")
    assert host.put_back("a").returncode != 0
    assert host.put_back("a").returncode != 0


def test_a_time_service_reads_its_servers_of_before(host: HostFolder) -> None:
    host.write("/etc/chrony/chrony.conf", "old")
    host.keep("a")
    host.write("/etc/chrony/chrony.conf", "new")
    assert host.put_back("a").returncode == 0
    assert host.read("/etc/chrony/chrony.conf") == "old"
    assert "try-restart chrony.service" in (host.root / "calls").read_text()
