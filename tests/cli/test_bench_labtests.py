"""Cases of the benchmarks that read their figures from tests on the lab's hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hack.bench import controlplane, creating, sshhosts
from tests.docs.pages import ROOT

CASES = [controlplane, creating, sshhosts]


@pytest.mark.parametrize("figures_in", [case.figures_in for case in CASES])
def test_a_run_without_figures_is_no_measurement(figures_in: Callable[[str], Any]) -> None:
    with pytest.raises(RuntimeError, match="no figures"):
        figures_in("1 skipped in 0.30s")


@pytest.mark.parametrize("test", [case.TEST for case in CASES])
def test_the_test_that_a_case_runs_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
