"""A real sshd with host certificates of ssh-keygen, and a login by a key of ssh-keygen with a passphrase."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hack.hosts.guests import Guest
from hack.hosts.lab import Lab
from providers.ssh.provider import SSHProvider
from tests.hosts import sshpools
from tests.providers.sshworld import HeldObjects, HeldSecrets

pytestmark = [pytest.mark.hosts, pytest.mark.slow]

PHRASE = "correct horse"


@pytest.fixture(scope="module")
def pool(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshpools.Pool]:
    made = sshpools.Pool(lab, tmp_path_factory.mktemp("keys"), ["c1", "c2", "c3"])
    _keygen("-p", "-P", "", "-N", PHRASE, "-f", str(made.key))
    yield made
    made.remove()


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    _keygen("-t", "ed25519", "-N", "", "-f", str(tmp_path / "ca"))
    return tmp_path / "ca"


@pytest.fixture
def objects(pool: sshpools.Pool, ca: Path) -> HeldObjects:
    """The pool with its CA alone: no host key is pinned."""
    _, made = pool.objects()
    for entry in made["spec"]["hosts"]:
        del entry["hostKeys"]
    made["spec"]["hostCAs"] = [" ".join(ca.with_suffix(".pub").read_text().split()[:2])]
    held = HeldObjects()
    held.pool = {**made, "metadata": {**made["metadata"], "resourceVersion": "1"}}
    return held


@pytest_asyncio.fixture
async def provider(pool: sshpools.Pool, objects: HeldObjects) -> AsyncIterator[SSHProvider]:
    key = {"ssh-privatekey": pool.key.read_bytes(), "ssh-passphrase": PHRASE.encode()}
    made = SSHProvider(sshpools.POOL, HeldSecrets({sshpools.SECRET: key}), objects)
    yield made
    await made.close()


def _keygen(*options: str) -> None:
    subprocess.run(["ssh-keygen", "-q", *options], check=True, capture_output=True)


def signed(guest: Guest, ca: Path, *terms: str) -> None:
    """Its sshd shows a certificate of ``ca`` from now on."""
    _keygen("-s", str(ca), "-I", guest.name, "-h", *terms, str(guest.root / "etc/ssh/ssh_host_ed25519_key.pub"))
    folder = guest.root / "etc/ssh/sshd_config.d"
    (folder / "certificate.conf").write_text("HostCertificate /etc/ssh/ssh_host_ed25519_key-cert.pub\n")
    done = guest.execute("systemctl restart ssh")
    assert done.returncode == 0, done.stderr
    sshpools.wait_for_sshd(guest)


async def test_hosts_are_known_by_certificates_of_the_pools_ca_and_others_are_refused_by_name(
    pool: sshpools.Pool, provider: SSHProvider, objects: HeldObjects, ca: Path
) -> None:
    right, other, over = (pool.guests[name] for name in ("c1", "c2", "c3"))
    await asyncio.to_thread(signed, right, ca, "-n", f"c1.example.com,{right.address}")
    await asyncio.to_thread(signed, other, ca, "-n", "c1.example.com")
    await asyncio.to_thread(signed, over, ca, "-n", over.address, "-V", "-2d:-1d")
    deadline = time.monotonic() + 300
    while True:
        await provider.list()
        seen: dict[str, Any] = objects.pool["status"]["hosts"]
        if seen["c1"]["state"] == "Free" and all("certificate" in seen[name]["reason"] for name in ("c2", "c3")):
            break
        assert time.monotonic() < deadline, seen
    where = f"host c2 ({other.address}:22) shows a host certificate"
    assert f"{where} that is for 'c1.example.com', and not for '{other.address}'" in seen["c2"]["reason"]
    assert f"host c3 ({over.address}:22) shows a host certificate that has expired" in seen["c3"]["reason"]
