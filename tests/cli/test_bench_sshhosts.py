"""The figures of fifty real hosts are those that their test prints."""

from __future__ import annotations

import pytest

from hack.bench.sshhosts import figures_in

PRINTED = """\
10 hosts: 17.0 s, one alone 4.8 s; 10 connections, controllers 183 MiB, hosts 169 MiB more
.
1 passed in 60.35s
"""


def test_the_seconds_and_the_ratio_are_read() -> None:
    found = {figure.name: figure.value for figure in figures_in(PRINTED)}
    assert found["ssh_10_hosts_seconds"] == 17.0
    assert found["ssh_10_hosts_ratio"] == pytest.approx(17.0 / 4.8)
    assert found["ssh_10_hosts_connections"] == 10
