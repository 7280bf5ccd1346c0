"""One server of many parts whose creation is interrupted, on a real OpenStack: no part is made twice, none is lost."""

from __future__ import annotations

from pathlib import Path

from hack.openstack import fleet
from hack.openstack.fleet import WHOLE, DesiredServer, Told
from hack.openstack.proxy import Faults, FaultyProxy
from hack.program import Up
from tests.openstack.tier import REAL, TestCloud

pytestmark = REAL

STEPS = {
    "POST network /ports": 2,
    "POST network /trunks": 1,
    "POST network /floatingips": 1,
    "POST compute /servers": 1,
}
"""What making the server takes, in this order; subports are made after their parents."""


def _made(
    cloud: TestCloud, folder: Path, kubectl: Path, faults: Faults, desired: DesiredServer
) -> tuple[Told, dict[str, int], dict[str, int]]:
    """What is told of one server, how often each step was asked for, and what befell the requests."""
    folder.mkdir(exist_ok=True)
    proxy = FaultyProxy(fleet.endpoints(cloud.clouds_yaml), faults)
    with fleet.serving(proxy), Up(folder, kubectl, f"--data-dir={folder / 'data'}") as up:
        told = fleet.run(up, cloud.clouds_yaml, proxy, desired)
    assert told.accounts.duplicates == []
    assert told.accounts.left == ()
    asked = {step: proxy.counted[step] for step in STEPS}
    print(f"\n{told}; {dict(proxy.befell)}")
    print(*(f"{count:5d} {what}" for what, count in proxy.counted.most_common()), sep="\n")
    return told, asked, dict(proxy.befell)


def test_each_attempt_goes_on_where_the_last_one_stopped(
    openstack_cloud: TestCloud, tmp_path: Path, kubectl_binary: Path
) -> None:
    """Every step is refused once; beside it the same server where nothing goes wrong."""
    one = DesiredServer(1, 1, WHOLE)
    _, asked, _ = _made(openstack_cloud, tmp_path / "calm", kubectl_binary, Faults(), one)
    assert asked == STEPS
    refusing = Faults(planned=dict.fromkeys(STEPS, ("refused",)))
    _, asked, befell = _made(openstack_cloud, tmp_path / "refused", kubectl_binary, refusing, one)
    assert befell["refused"] == len(STEPS)
    assert asked == {step: times + 1 for step, times in STEPS.items()}, "nothing that was made is made again"


def test_a_successor_goes_on_with_what_a_killed_program_had_made(
    openstack_cloud: TestCloud, tmp_path: Path, kubectl_binary: Path
) -> None:
    """SIGKILL when ports, trunk and floating IP are there and the answer to the last of them is under way."""
    silent = Faults(planned={"POST network /floatingips": ("silent",)})
    desired = DesiredServer(1, 1, WHOLE, killed=True, killed_at="POST network /floatingips")
    told, asked, befell = _made(openstack_cloud, tmp_path, kubectl_binary, silent, desired)
    assert told.kills == 2
    assert befell["silent"] == 1
    assert asked == STEPS, "nothing is made again"
