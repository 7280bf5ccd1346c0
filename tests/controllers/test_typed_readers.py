"""Controllers read a spec through a view (``api/views.py``) or ``spec_of``, not by hand.

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
READER = "kernel/refs.py"
"""``spec_of`` stands there."""
LEFT = {
    "autoscaler/explaining.py": 1,
    "autoscaler/observe.py": 2,
    "autoscaler/reconciler.py": 1,
    "autoscaler/requests.py": 5,
    "autoscaler/reserved.py": 1,
    "autoscaler/templates.py": 4,
    "binder/observe.py": 2,
    "certificatesigningrequest/foreign_names.py": 1,
    "certificatesigningrequest/observe.py": 3,
    "certificatesigningrequest/reconciler.py": 1,
    "cloudpool/changes.py": 3,
    "cloudpool/matching.py": 1,
    "cloudpool/pool.py": 5,
    "cloudpool/record.py": 1,
    "cloudpool/world.py": 2,
    "drain/budgets.py": 1,
    "drain/context.py": 1,
    "drain/cordon.py": 2,
    "drain/pods.py": 2,
    "drain/rules.py": 1,
    "drain/volumes.py": 2,
    "kernel/actions.py": 2,
    "kernel/failure_domains.py": 3,
    "kernel/in_place.py": 4,
    "kernel/machine_facts.py": 1,
    "kernel/node_owner.py": 1,
    "kernel/pace.py": 1,
    "kernel/pausing.py": 1,
    "kernel/template.py": 2,
    "kernel/waking.py": 1,
    "machine/creation_limits.py": 3,
    "machine/deletion_guards.py": 1,
    "machine/host_spec.py": 3,
    "machine/node_link.py": 1,
    "machine/node_metadata.py": 1,
    "machine/node_takeover.py": 1,
    "machine/observe.py": 2,
    "machine/reconciler.py": 4,
    "machineclass/reconciler.py": 1,
    "machinedeployment/creation.py": 1,
    "machinedeployment/observe.py": 2,
    "machinedeployment/propagation.py": 2,
    "machinedeployment/rollback.py": 3,
    "machinedeployment/rollout_after.py": 1,
    "machinedeployment/spec.py": 1,
    "machinehealthcheck/spec.py": 1,
    "machineset/creation.py": 3,
    "machineset/in_place.py": 1,
    "machineset/observe.py": 2,
    "machineset/propagation.py": 1,
    "machineset/reconciler.py": 1,
    "scheduling/demand.py": 3,
    "scheduling/disruption.py": 1,
    "scheduling/keeping.py": 1,
    "scheduling/reading.py": 8,
    "scheduling/volumes.py": 3,
}
"""Lines by file that still read a spec by hand."""


def test_no_further_spec_is_read_by_hand() -> None:
    found = {
        str(path.relative_to(CONTROLLERS)): sum(BY_HAND in line for line in path.read_text().splitlines())
        for path in CONTROLLERS.rglob("*.py")
    }
    found.pop(READER)
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
