"""The script that saves etcd on its host, run beside a real etcd."""

from __future__ import annotations

import hashlib
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from controllers.bootstrap.etcd_snapshot import EtcdSnapshot, Layout, saved_of, script
from hack import credentials
from tests.runtime.etcd.test_reading import LOCALS, Members, members, pem_of
from tests.runtime.stub_server import until

__all__ = ["members"]
pytestmark = pytest.mark.realplane
NEEDLE = b"a value that is found again"


class Host:
    """What the script finds on a host of kubeadm, below ``folder``."""

    def __init__(self, folder: Path, members: Members) -> None:
        self.folder = folder / "host"
        self.backups = self.folder / "backups"
        self.pki = self.folder / "pki"
        self.pki.mkdir(parents=True)
        self.url = f"https://{LOCALS[0]}:{members.client}"
        shutil.copy(members.folder / "ca.crt", self.pki / "ca.crt")
        certificate, key = pem_of(credentials.issue("kube-etcd-healthcheck-client", issuer=members.ca))
        (self.pki / "healthcheck-client.crt").write_bytes(certificate)
        credentials.private(self.pki / "healthcheck-client.key", key)

    def take(
        self, version: str = "v1.36.3", keep: int = 2, url: str = "", key: str = ""
    ) -> subprocess.CompletedProcess[str]:
        layout = Layout(url or self.url, str(self.pki), str(self.folder / "mark"))
        text = script(EtcdSnapshot(str(self.backups), keep), version, key, layout)
        return subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, check=False, timeout=300)

    def put(self) -> bool:
        """Whether etcd has taken a value."""
        body = '{"key": "a2V5", "value": "YSB2YWx1ZSB0aGF0IGlzIGZvdW5kIGFnYWlu"}'
        command = [
            "curl", "-sf", "--cacert", str(self.pki / "ca.crt"), "--cert", str(self.pki / "healthcheck-client.crt"),
            "--key", str(self.pki / "healthcheck-client.key"), "--data", body, f"{self.url}/v3/kv/put",
        ]  # fmt: skip
        return subprocess.run(command, capture_output=True, check=False, timeout=300).returncode == 0

    def files(self) -> list[Path]:
        return sorted(self.backups.iterdir()) if self.backups.exists() else []


@pytest.fixture
async def host(tmp_path: Path, members: Members) -> Host:
    found = Host(tmp_path, members)
    await until(found.put, 60.0)
    return found


async def test_a_snapshot_is_whole_for_nobody_else_to_read_and_taken_once_for_a_version(host: Host) -> None:
    done = host.take()
    assert done.returncode == 0, done.stdout + done.stderr
    [file] = host.files()
    assert file.name.endswith("-before-v1.36.3.db")
    content = file.read_bytes()
    assert NEEDLE in content
    assert hashlib.sha256(content[:-32]).digest() == content[-32:]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert str(file) in done.stdout
    again = host.take()
    assert (again.returncode, host.files()) == (0, [file])
    assert "taken before" in again.stdout


async def test_as_many_stay_as_are_to_be_kept_and_files_of_others_are_left(host: Host) -> None:
    host.backups.mkdir()
    foreign = host.backups / "etcd-mine.db"
    foreign.write_text("mine")
    for day in (1, 2, 3):
        (host.backups / f"etcd-2026010{day}T000000Z-before-v1.35.{day}.db").write_text("old")
    assert host.take().returncode == 0
    names = [file.name for file in host.files()]
    assert len(names) == 3
    assert foreign.name in names
    assert "etcd-20260103T000000Z-before-v1.35.3.db" in names


async def test_no_etcd_no_answer_and_no_room_leave_nothing_behind(host: Host) -> None:
    done = host.take(url="https://127.0.0.1:1")
    assert done.returncode == 1
    assert "gives no snapshot" in done.stdout
    assert host.files() == []
    (host.pki / "ca.crt").write_bytes(pem_of(credentials.issue("another"))[0])
    assert host.take().returncode == 1
    (host.pki / "healthcheck-client.key").unlink()
    done = host.take()
    assert done.returncode == 0
    assert "nothing to take" in done.stdout


async def test_who_waits_for_one_reads_where_it_is_and_the_step_of_the_same_version_takes_it_for_its_own(
    host: Host,
) -> None:
    done = host.take(key="step-1")
    saved = saved_of(done.stdout)
    assert saved is not None, done.stdout + done.stderr
    [file] = host.files()
    assert saved.path == str(file)
    assert saved.size_bytes == file.stat().st_size
    assert saved.revision >= 2
    assert len(done.stdout.splitlines()) == 1
    again = saved_of(host.take(key="step-1").stdout)
    assert again is not None
    assert replace(again, age=saved.age) == saved, "a crash takes no second one"
    assert "taken before" in host.take().stdout
    assert host.files() == [file]
    assert saved_of(host.take(key="step-2").stdout)
    assert "taken before" not in host.take(key="step-3").stderr
    failed = host.take(key="step-4", url="https://127.0.0.1:1")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "gives no snapshot" in failed.stderr
