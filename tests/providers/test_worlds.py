"""Clouds by name, and hosts that outlive the program."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from providers.base.contract import HostIdentity, HostRequest
from providers.simulated import registration
from providers.simulated.config import API_VERSION, KIND, Cloud
from providers.simulated.worlds import Worlds
from tests.providers.clocks import Clock


def request(number: int, spec_hash: str = "a", **config: Any) -> HostRequest:
    full = {"apiVersion": API_VERSION, "kind": KIND, "bootSeconds": {"median": 1, "p99": 3}, **config}
    return HostRequest(HostIdentity(f"uid-{number}", "default", f"m-{number}"), full, spec_hash)


def test_one_name_is_one_cloud() -> None:
    worlds = Worlds(Clock())
    assert worlds.open(Cloud(name="a")) is worlds.open(Cloud(name="a"))
    assert worlds.open(Cloud(name="a")) is not worlds.open(Cloud(name="b"))
    assert set(worlds.all) == {"a", "b"}


def test_the_scope_of_a_config_is_its_clouds_name() -> None:
    assert registration.scope_of({"apiVersion": API_VERSION, "kind": KIND}) == "default"
    assert registration.scope_of({"apiVersion": API_VERSION, "kind": KIND, "cloud": {"name": "east"}}) == "east"


def test_hosts_outlive_the_program_in_every_state(tmp_path: Path) -> None:
    clock = Clock()
    with Worlds(clock, tmp_path) as worlds:
        cloud = worlds.open(Cloud(name="a"))
        for number in range(4):
            cloud.create(request(number))
        clock.forward(10)
        cloud.update(request(1, "b", updateSeconds=100), "sim-000002", False)
        cloud.delete("sim-000001")
        cloud.lose_host("uid-2")
        before = cloud.hosts()
        with Worlds(clock) as again:
            again.keep_in(tmp_path)
            assert again.all["a"].hosts() == before
            assert again.all["a"].create(request(9)).id == "sim-000005", "a host id is never used again"


def test_a_line_that_was_cut_off_did_not_happen(tmp_path: Path) -> None:
    with Worlds(Clock(), tmp_path) as worlds:
        worlds.open(Cloud(name="a")).create(request(1))
    with (tmp_path / "a.jsonl").open("ab") as file:
        file.write(b'{"put": {"id": "sim-0')
    with Worlds(Clock(), tmp_path) as again:
        assert [host.name for host in again.open(Cloud(name="a")).hosts()] == ["m-1"]


def test_a_damaged_journal_is_refused_by_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"put": {"id": "sim-1"}}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl, line 1"):
        Worlds(Clock(), tmp_path).open(Cloud(name="a"))


def test_a_journal_is_private_and_does_not_grow_for_ever(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "a.jsonl"
    with Worlds(clock, tmp_path) as worlds:
        cloud = worlds.open(Cloud(name="a"))
        for number in range(50):
            cloud.create(request(number))
            cloud.lose_host(f"uid-{number}")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(path.read_text().splitlines()) > 50
    with Worlds(clock, tmp_path) as again:
        again.open(Cloud(name="a"))
        assert path.read_text() == ""


def test_clouds_that_are_open_are_not_moved(tmp_path: Path) -> None:
    worlds = Worlds(Clock())
    worlds.open(Cloud(name="a"))
    with pytest.raises(RuntimeError, match="open already: a"):
        worlds.keep_in(tmp_path)


def test_two_programs_cannot_keep_their_hosts_in_one_directory(tmp_path: Path) -> None:
    """Each would number its hosts alone, and there would be two hosts of one name."""
    with Worlds(Clock()) as first, Worlds(Clock()) as second:
        first.keep_in(tmp_path)
        with pytest.raises(RuntimeError, match="another process keeps its simulated hosts"):
            second.keep_in(tmp_path)
        first.close()
        second.keep_in(tmp_path)
