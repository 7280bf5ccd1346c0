"""Fleets of servers through MachineSets on a real OpenStack, in good times and in bad ones."""

from __future__ import annotations

import os
from pathlib import Path

from hack.bench.figures import Figure, keep
from hack.openstack import fleet
from hack.openstack.fleet import WHOLE, DesiredServer, Told
from hack.openstack.proxy import Faults, FaultyProxy
from hack.program import Up
from tests.openstack.tier import REAL, TestCloud

pytestmark = REAL

SETS, EACH = 2, int(os.environ.get("NODEWRIGHT_OPENSTACK_SERVERS", "20")) // 2
WAVES = int(os.environ.get("NODEWRIGHT_OPENSTACK_WAVES", "1"))
"""Fleets that come and go one after the other in bad times."""
MOST_REQUESTS = 6.0
BAD_TIMES = Faults(silent=0.01, cut_after=0.03, cut_before=0.02, internal=0.04, conflict=0.02, too_many=0.04, seed=9)
HARD_TIMES = Faults(cut_after=0.02, cut_before=0.01, internal=0.02, conflict=0.01, too_many=0.02, seed=9)
"""Not as bad, for servers of many requests each: what was made for half of one goes before it is tried again."""


def _hold(told: Told) -> None:
    assert told.accounts.duplicates == []
    assert told.accounts.left == ()


def test_twenty_servers_take_few_requests(openstack_cloud: TestCloud, tmp_path: Path, kubectl_binary: Path) -> None:
    proxy = FaultyProxy(fleet.endpoints(openstack_cloud.clouds_yaml), Faults())
    with fleet.serving(proxy), Up(tmp_path, kubectl_binary, "--in-memory") as up:
        told = fleet.run(up, openstack_cloud.clouds_yaml, proxy, DesiredServer(SETS, EACH))
        each, asked = told.requests / told.servers, proxy.counted.most_common()
        naive = fleet.naive(openstack_cloud.clouds_yaml, proxy, 3) / 3
    print(f"\n{told}; a poller for each server: {naive:.2f}")
    print(*(f"{count:5d} {what}" for what, count in asked), sep="\n")
    figure = Figure("openstack_requests_per_server", each, "requests", "lower", "a poller for each server", naive)
    keep([figure], Path("build/bench.json"))
    _hold(told)
    assert each <= MOST_REQUESTS
    assert told.zones == dict.fromkeys(("az1", "az2"), told.servers // 2), "nothing went wrong, so they are spread"


def test_faults_make_no_second_server_and_leave_nothing(
    openstack_cloud: TestCloud, tmp_path: Path, kubectl_binary: Path
) -> None:
    proxy = FaultyProxy(fleet.endpoints(openstack_cloud.clouds_yaml), BAD_TIMES)
    with fleet.serving(proxy), Up(tmp_path, kubectl_binary, "--in-memory") as up:
        waves = [fleet.run(up, openstack_cloud.clouds_yaml, proxy, DesiredServer(SETS, EACH)) for _ in range(WAVES)]
    print(*(f"\n{told}" for told in waves), f"\n{dict(proxy.befell)}")
    assert sum(count for fault, count in proxy.befell.items() if fault != "nothing") > SETS * EACH * WAVES / 4
    for told in waves:
        _hold(told)


def test_a_program_that_is_killed_makes_no_second_server_and_leaves_nothing(
    openstack_cloud: TestCloud, tmp_path: Path, kubectl_binary: Path
) -> None:
    """SIGKILL while servers are being made, and while they are being deleted, in bad times."""
    proxy = FaultyProxy(fleet.endpoints(openstack_cloud.clouds_yaml), BAD_TIMES)
    with fleet.serving(proxy), Up(tmp_path, kubectl_binary, f"--data-dir={tmp_path / 'data'}") as up:
        told = fleet.run(up, openstack_cloud.clouds_yaml, proxy, DesiredServer(SETS, min(EACH, 10), killed=True))
    print(f"\n{told}; {dict(proxy.befell)}")
    assert told.kills == 2
    _hold(told)


def test_what_is_made_beside_servers_goes_with_them(
    openstack_cloud: TestCloud, tmp_path: Path, kubectl_binary: Path
) -> None:
    """Trunks, floating IPs, volumes to boot from and others: in hard times."""
    proxy = FaultyProxy(fleet.endpoints(openstack_cloud.clouds_yaml), HARD_TIMES)
    with fleet.serving(proxy), Up(tmp_path, kubectl_binary, "--in-memory") as up:
        told = fleet.run(up, openstack_cloud.clouds_yaml, proxy, DesiredServer(SETS, min(EACH, 3), WHOLE))
    print(f"\n{told}; {dict(proxy.befell)}")
    assert proxy.counted["POST network /trunks"] >= told.servers
    assert proxy.counted["POST network /floatingips"] >= told.servers
    _hold(told)
