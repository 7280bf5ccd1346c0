"""Controllers read a spec through a view (``api/views.py``) or ``spec_of`` (``api/reading.py``), not by hand.

By hand it is read where it was before the views came. The list below may shrink, never grow.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from controllers.machinedeployment import spec as machinedeployment
from controllers.machineset import observe as machineset

CONTROLLERS = Path(__file__).resolve().parents[2] / "controllers"
BY_HAND = '.get("spec")'
LEFT = {
    "autoscaler/explaining.py": 1,
    "autoscaler/observe.py": 1,
    "autoscaler/reconciler.py": 1,
    "autoscaler/requests.py": 5,
    "autoscaler/templates.py": 5,
    "certificatesigningrequest/foreign_names.py": 1,
    "certificatesigningrequest/observe.py": 3,
    "certificatesigningrequest/reconciler.py": 1,
    "drain/context.py": 1,
    "kernel/template.py": 1,
    "machine/host_spec.py": 3,
}
"""Lines by file that still read a spec by hand."""


def test_no_further_spec_is_read_by_hand() -> None:
    found = {
        str(path.relative_to(CONTROLLERS)): sum(BY_HAND in line for line in path.read_text().splitlines())
        for path in CONTROLLERS.rglob("*.py")
    }
    assert {path: lines for path, lines in found.items() if lines > LEFT.get(path, 0)} == {}


OWNED: dict[str, Any] = {
    "selector": {"matchLabels": {"pool": "a"}},
    "template": {"metadata": {"labels": {"pool": "a"}}, "spec": {}},
}
READERS: dict[str, Any] = {"MachineSet": machineset.parse_spec, "MachineDeployment": machinedeployment.parse_spec}


@pytest.mark.parametrize("kind", READERS)
def test_what_the_schema_allows_is_no_problem(kind: str) -> None:
    """The readers had bounds of their own: a MachineDeployment refused more than 100000 seconds."""
    found = READERS[kind]({"spec": {**OWNED, "minReadySeconds": 2**31 - 1}})
    assert (found.problem, found.min_ready) == ("", timedelta(seconds=2**31 - 1))


@pytest.mark.parametrize("kind", READERS)
def test_a_number_that_no_time_can_hold_names_its_field(kind: str) -> None:
    assert READERS[kind]({"spec": {**OWNED, "minReadySeconds": 10**30}}).problem.startswith("spec.minReadySeconds: ")


@pytest.mark.parametrize("kind", READERS)
def test_null_is_the_default(kind: str) -> None:
    nulls = {"replicas": None, "minReadySeconds": None, "failureDomains": None}
    assert READERS[kind]({"spec": {**OWNED, **nulls}}) == READERS[kind]({"spec": OWNED})
