"""Three control planes of real hosts, upgraded in place by one minor version: our time beside kubeadm's own.

The upgrade is that of `tests/hosts/clusters/test_control_plane_rolls.py`, which also holds that no request of a client
failed twice meanwhile: this case runs it and reads its figures.
"""

from __future__ import annotations

import re

from hack.bench.figures import Figure
from hack.bench.labtests import printed_by

TEST = "tests/hosts/clusters/test_control_plane_rolls.py::test_three_are_upgraded_on_their_hosts"
GOAL = 1.3
_TIMES = re.compile(r"^\.?(?P<whole>\d+) s, kubeadm ran (?P<kubeadm>\d+) s: controlplane_upgrade_ratio ", re.MULTILINE)
_REQUESTS = re.compile(r"(?P<asked>\d+) writes and reads, (?P<late>\d+) needed a second try, (?P<failed>\d+) failed")


def upgrade() -> list[Figure]:
    """Ten minutes and more; needs the lab. Raises RuntimeError if the upgrade did not come to its end."""
    return figures_in(printed_by(TEST))


def figures_in(text: str) -> list[Figure]:
    """From what the test prints. Raises RuntimeError if its figures are not there."""
    times, requests = _TIMES.search(text), _REQUESTS.search(text)
    if times is None or requests is None:
        raise RuntimeError(f"no figures in {text[-400:]!r}")
    whole, kubeadm = float(times["whole"]), float(times["kubeadm"])
    asked, late, failed = (float(requests[name]) for name in ("asked", "late", "failed"))
    return [
        Figure("controlplane_upgrade_ratio", whole / kubeadm, "×", "lower", "goal", GOAL),
        Figure("controlplane_upgrade_seconds", whole, "s", "lower", "kubeadm upgrade, all hosts", kubeadm),
        Figure("controlplane_upgrade_second_tries", late, "requests", "lower", "of", asked),
        Figure("controlplane_upgrade_failed_requests", failed, "requests", "lower", "goal", 0.0),
    ]
