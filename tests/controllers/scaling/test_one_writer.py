"""Marks and sizes are written in one place: read from the source, so that a new scaler can't forget it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from api import names

ROOT = Path(__file__).parents[3]
MARK = "DELETE_MACHINE_ANNOTATION"
SCALERS = {
    "the autoscaler": ("controllers/autoscaler", "controllers/autoscaler/plan.py"),
    "ProvisioningRequests": ("controllers/provisioningrequest", "controllers/provisioningrequest/plan.py"),
    "the gRPC gateway": ("controllers/externalgrpc", "controllers/externalgrpc/decide.py"),
    "the cloudpool gateway": ("controllers/cloudpool", "controllers/cloudpool/sizing.py"),
}
NAMES_THE_MARK = {
    "api/names.py",
    "controllers/kernel/machine_facts.py",  # reads it, in both spellings
    "controllers/scaling/resize.py",
}
SHOWN = {"controllers/autoscaler/external.py", "controllers/autoscaler/capacity_reports.py"}
"""Groups of another provider as MachineSets in memory: these objects are written nowhere, their size is asked for. And
the status of CapacityBuffers, whose replicas are chunks.
"""
PEOPLE = {"nodewright/sim/users.py", "nodewright/sim/invariants.py"}
"""The simulation plays people who mark Machines, and looks at what becomes of them."""


def sources(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def says(tree: ast.Module, name: str, text: str) -> bool:
    """Whether it names the constant or spells its value. Text within sentences (docstrings) does not count."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == name:
            return True
        if isinstance(node, ast.Name) and node.id == name:
            return True
        if isinstance(node, ast.Constant) and node.value == text:
            return True
    return False


def sets_replicas(tree: ast.Module) -> bool:
    """Builds a Scale, or a dict with ``replicas`` in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Scale":
            return True
        if isinstance(node, ast.Dict) and any(isinstance(k, ast.Constant) and k.value == "replicas" for k in node.keys):
            return True
    return False


def test_the_delete_mark_is_named_where_it_is_written_and_where_it_is_read() -> None:
    folders = ("api", "controllers", "nodewright", "providers")
    found = {path for path, tree in sources(*folders) if says(tree, MARK, names.DELETE_MACHINE_ANNOTATION)}
    assert found - PEOPLE == NAMES_THE_MARK


def test_no_scaler_and_no_gateway_builds_a_size_itself() -> None:
    folders = [folder for folder, _ in SCALERS.values()]
    found = {path for path, tree in sources(*folders, "nodewright/gateways") if sets_replicas(tree)}
    assert found == SHOWN
    assert sets_replicas(ast.parse((ROOT / "controllers/scaling/resize.py").read_text()))


@pytest.mark.parametrize("scaler", SCALERS)
def test_each_scaler_takes_its_writes_from_there(scaler: str) -> None:
    _, path = SCALERS[scaler]
    imported = {
        (node.module, alias.name)
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {("controllers.scaling.resize", "Scaling"), ("controllers.scaling.resize", "Resize")} <= imported
