"""Fleets of servers through MachineSets on a real OpenStack, in good times and in bad ones."""

from __future__ import annotations

import os
from pathlib import Path

from hack.bench.figures import Figure, keep
from hack.openstack import fleet
from hack.openstack.proxy import Faults, FaultyProxy
from hack.program import Up
from tests.openstack.tier import REAL, TestCloud

pytestmark = REAL

SETS, EACH = 2, int(os.environ.get("NODEWRIGHT_OPENSTACK_SERVERS", "20")) // 2
MOST_REQUESTS = 6.0
BAD_TIMES = Faults(silent=0.01, cut_after=0.03, cut_before=0.02, internal=0.04, conflict=0.02, too_many=0.04, seed=9)


def test_twenty_servers_take_few_requests(openstack_cloud: TestCloud, tmp_path: Path, kubectl_binary: Path) -> None:
    proxy = FaultyProxy(fleet.endpoints(openstack_cloud.clouds_yaml), Faults())
    with fleet.serving(proxy), Up(tmp_path, kubectl_binary, "--in-memory") as up:
        told = fleet.run(up, openstack_cloud.clouds_yaml, proxy, SETS, EACH)
        naive = fleet.naive(openstack_cloud.clouds_yaml, proxy, 3) / 3
    each = told.requests / told.servers
    print(f"\n{told.servers} servers: up in {told.seconds_up:.0f} s, gone in {told.seconds_gone:.0f} s, "
          f"{each:.2f} requests each, a poller for each server {naive:.2f}")  # fmt: skip
    print(*(f"{count:5d} {asked}" for asked, count in proxy.counted.most_common()), sep="\n")
    figure = Figure("openstack_requests_per_server", each, "requests", "lower", "a poller for each server", naive)
    keep([figure], Path("build/bench.json"))
    assert told.duplicates == []
    assert told.left_servers == []
    assert told.left_ports == []
    assert each <= MOST_REQUESTS


def test_faults_make_no_second_server_and_leave_nothing(
    openstack_cloud: TestCloud, tmp_path: Path, kubectl_binary: Path
) -> None:
    proxy = FaultyProxy(fleet.endpoints(openstack_cloud.clouds_yaml), BAD_TIMES)
    with fleet.serving(proxy), Up(tmp_path, kubectl_binary, "--in-memory") as up:
        told = fleet.run(up, openstack_cloud.clouds_yaml, proxy, SETS, EACH)
    print(f"\n{told.servers} servers: up in {told.seconds_up:.0f} s, gone in {told.seconds_gone:.0f} s, "
          f"{told.requests / told.servers:.2f} requests each; {dict(proxy.befell)}")  # fmt: skip
    assert sum(count for fault, count in proxy.befell.items() if fault != "nothing") > told.servers / 4
    assert told.duplicates == []
    assert told.left_servers == []
    assert told.left_ports == []
