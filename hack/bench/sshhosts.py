"""Fifty real hosts over SSH that join at once, beside one that joins alone: sshd, systemd, containerd, kubelet.

The hosts are those of `tests/hosts/test_ssh_at_once.py`, which also holds that no host has two Machines: this case runs
it and reads its figures. `NODEWRIGHT_SSH_HOSTS` says how many.
"""

from __future__ import annotations

import re

from hack.bench.figures import Figure
from hack.bench.labtests import printed_by

TEST = "tests/hosts/test_ssh_at_once.py::test_fifty_hosts_join_at_once_and_each_has_one_machine"
GOAL = 12.0
_FIGURES = re.compile(
    r"(?P<hosts>\d+) hosts: (?P<every>[\d.]+) s, one alone (?P<one>[\d.]+) s; "
    r"(?P<kept>\d+) connections, controllers (?P<size>\d+) MiB, hosts (?P<used>-?\d+) MiB more"
)


def joins() -> list[Figure]:
    """Some minutes; needs the lab. Raises RuntimeError if they did not all join."""
    return figures_in(printed_by(TEST))


def figures_in(text: str) -> list[Figure]:
    """From what the test prints, by its number of hosts. Raises RuntimeError if its figures are not there."""
    found = _FIGURES.search(text)
    if found is None:
        raise RuntimeError(f"no figures in {text[-400:]!r}")
    hosts, every, one = int(found["hosts"]), float(found["every"]), float(found["one"])
    return [
        Figure(f"ssh_{hosts}_hosts_seconds", every, "s", "lower", "one", one),
        Figure(f"ssh_{hosts}_hosts_ratio", every / one, "", "lower", "goal", GOAL),
        Figure(f"ssh_{hosts}_hosts_connections", float(found["kept"]), "", "lower", "hosts", float(hosts)),
        Figure(f"ssh_{hosts}_hosts_controllers_mib", float(found["size"]), "MiB", "lower"),
        Figure(f"ssh_{hosts}_hosts_mib", float(found["used"]), "MiB", "lower"),
    ]
