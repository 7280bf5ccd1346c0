"""The figures of an upgrade in place are those that its test prints."""

from __future__ import annotations

import pytest

from hack.bench.controlplane import TEST, figures_in
from tests.docs.pages import ROOT

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


def test_a_run_without_figures_is_no_measurement() -> None:
    with pytest.raises(RuntimeError, match="no figures"):
        figures_in("1 skipped in 0.30s")


def test_the_test_that_it_runs_exists() -> None:
    file, _, name = TEST.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
