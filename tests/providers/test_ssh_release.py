"""What becomes of a host that is given back: the parts of its script, run on folders, and what the provider sends."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from providers.base.errors import ErrorClass, ProviderError
from providers.ssh import cleaning, remote
from providers.ssh.claims import Claim
from providers.ssh.config import parse
from providers.ssh.provider import SSHProvider
from tests.providers.sshworld import World
from tests.providers.test_ssh_faults import SCRIPTS, request
from tests.providers.test_ssh_in_place import provider, world

__all__ = ["provider", "world"]
CONFIG = {"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHMachineConfig", "pool": "racks"}


def run(folder: Path, how: str, command: tuple[str, ...] = (), boot: str = "one") -> subprocess.CompletedProcess[str]:
    """The script of a release on ``folder``, without the parts that take Kubernetes off a host."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "systemctl").write_text(f'#!/bin/sh\necho "$*" >> {folder}/calls\n[ "$1" != is-active ] || exit 3\n')
    (programs / "systemctl").chmod(0o755)
    (folder / "boot").write_text(boot)
    text = remote.release("abc", how, command)
    found = re.search(r"^script=(.*)$", text, re.MULTILINE)
    assert found
    script = base64.b64decode(found[1]).decode()
    script = re.sub(r"\nreset\n", "\n:\n", script).replace(remote.HOME, str(folder)).replace(remote.UNITS, str(folder))
    script = script.replace("/proc/sys/kernel/random/boot_id", f"{folder}/boot")
    script = script.replace(remote.BOOTSTRAP, f"{folder}/b")
    script = script.replace("PATH=${PATH:+$PATH:}", f"PATH={programs}:")
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "claim").write_text("abc\n{}\n")
    (tmp_path / "releasing").touch()
    return tmp_path


def test_a_command_of_the_user_runs_and_no_shell_reads_it(home: Path) -> None:
    name = "it ran; touch badly; $(touch badly) 'it'"
    done = run(home, "Leave", ("touch", f"{home}/{name}"))
    assert done.returncode == 0, done.stderr
    assert (home / name).exists()
    assert not {"claim", "quarantine"} & {path.name for path in home.iterdir()}


def test_a_host_on_which_it_fails_is_nobodys_and_says_why(home: Path) -> None:
    run(home, "Reset", ("sh", "-c", "echo the disk is not there; exit 9"))
    text = (home / "quarantine").read_text()
    assert text == "releaseCommand ended with 9: the disk is not there \n"
    assert not (home / "claim").exists()


def test_a_host_is_free_once_it_has_booted_anew_and_its_command_ran_once(home: Path) -> None:
    command = ("sh", "-c", f"echo ran >> {home}/ran")
    for _ in range(2):  # the second time: it was asked to reboot, and did not yet
        assert run(home, "Reboot", command).returncode == 1
        assert (home / "claim").exists()
    assert (home / "calls").read_text().splitlines().count("reboot") == 2
    assert run(home, "Reboot", command, boot="two").returncode == 0
    assert not (home / "claim").exists()
    assert (home / "calls").read_text().splitlines().count("reboot") == 2
    assert (home / "ran").read_text() == "ran\n"
    assert not {"rebooting", "commanded", "releasing"} & {path.name for path in home.iterdir()}


def test_a_host_that_is_not_clean_is_not_rebooted_but_quarantined(home: Path) -> None:
    assert run(home, "Reboot", ("false",)).returncode == 0
    assert "reboot" not in (home / "calls").read_text().splitlines()
    assert (home / "quarantine").exists()


async def test_the_claim_knows_what_was_asked_for(world: World, provider: SSHProvider) -> None:
    """A Machine may be gone from its MachineClass by then; what counts is what it was when the host was claimed."""
    asked = replace(request(), config={**CONFIG, "release": "Reboot", "releaseCommand": ["wipe", "/dev/a b"]})
    host = await provider.create(asked)
    claim = Claim.read(world.hosts[host.name].claim())
    assert claim is not None
    assert (claim.release, claim.command()) == ("Reboot", ("wipe", "/dev/a b"))
    await provider.delete(host)
    script = (world.hosts[host.name].home / "clean.sh").read_text()
    assert "commanded wipe '/dev/a b'" in script
    assert "systemctl reboot" in script


@pytest.mark.parametrize("text", ["", "nothing", "{}", "7", "[" * 9999])
def test_a_claim_with_another_command_has_none(text: str) -> None:
    assert Claim("i", "u", "n", "m", "c", "h", "t", release_command=text).command() == ()


@pytest.mark.parametrize("config", [{"release": "Burn"}, {"releaseCommand": [""]}, {"releaseCommand": ["a\nb"]}])
def test_other_values_are_refused_by_name(config: Mapping[str, Any]) -> None:
    with pytest.raises(ProviderError) as told:
        parse({**CONFIG, **config})
    assert told.value.error_class is ErrorClass.INVALID_CONFIGURATION
    assert next(iter(config)) in told.value.message


def test_leave_takes_nothing_off() -> None:
    assert "kubeadm reset" not in cleaning.script("Leave")
    assert "kubeadm reset" in cleaning.script("Reboot")
    assert SCRIPTS
