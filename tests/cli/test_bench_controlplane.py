"""The figures of an upgrade in place are those that its test prints."""

from __future__ import annotations

import pytest

from hack.bench.controlplane import figures_in

PRINTED = """\
613 s, kubeadm ran 514 s: controlplane_upgrade_ratio 1.19
999 writes and reads, 2 needed a second try, 0 failed
.
1 passed in 800.00s
"""


def test_the_ratio_and_the_failed_requests_are_read() -> None:
    found = {figure.name: figure.value for figure in figures_in(PRINTED)}
    assert found["controlplane_upgrade_ratio"] == pytest.approx(613 / 514)
    assert found["controlplane_upgrade_second_tries"] == 2
    assert found["controlplane_upgrade_failed_requests"] == 0
