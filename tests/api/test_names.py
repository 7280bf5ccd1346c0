"""Names that cross the wire: well formed, documented, and exactly those that other programs look for."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import ModuleType

import pytest

from api import conditions, limits, names, provisioning_names
from api.selectors import label_key_error, label_value_error

ROOT = Path(__file__).resolve().parents[2]
MODULES = (names, limits, provisioning_names)
KEYS = {
    name: value
    for module in MODULES
    for name, value in vars(module).items()
    if name.endswith(("_LABEL", "_ANNOTATION")) and isinstance(value, str) and name.isupper()
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_every_key_is_a_valid_label_or_annotation_key(key: str) -> None:
    assert label_key_error(key.lower()) == ""


def test_no_two_names_mean_the_same_key() -> None:
    assert len(set(KEYS.values())) == len(KEYS)


@pytest.mark.parametrize(
    ("constant", "value"),
    [
        ("MACHINE_FINALIZER", "machine.cluster.k8s.io"),
        ("CLUSTER_FINALIZER", "cluster.cluster.k8s.io"),
        ("CLUSTER_NAME_LABEL", "cluster.k8s.io/cluster-name"),
        ("TEMPLATE_HASH_LABEL", "machine-template-hash"),
        ("DELETE_MACHINE_ANNOTATION", "cluster.k8s.io/delete-machine"),
        ("NODE_MACHINE_ANNOTATION", "cluster.k8s.io/machine"),
        ("NODE_MACHINE_UID_ANNOTATION", "cluster.k8s.io/machine-uid"),
        ("REVISION_ANNOTATION", "machinedeployment.clusters.k8s.io/revision"),
        ("CAPI_REVISION_ANNOTATION", "machinedeployment.clusters.x-k8s.io/revision"),
        ("CAPI_DEPLOYMENT_NAME_LABEL", "cluster.x-k8s.io/deployment-name"),
        ("CAPI_PAUSED_ANNOTATION", "cluster.x-k8s.io/paused"),
        ("AUTOSCALER_MIN_ANNOTATION", "cluster.k8s.io/cluster-api-autoscaler-node-group-min-size"),
        ("CAPI_AUTOSCALER_MAX_ANNOTATION", "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"),
        ("CAPACITY_MAX_PODS_ANNOTATION", "capacity.cluster-autoscaler.kubernetes.io/maxPods"),
        ("NODE_OWNED_BY_LABEL", "machine-controller/owned-by"),
    ],
)
def test_names_that_others_hard_code_are_spelt_as_they_spell_them(constant: str, value: str) -> None:
    """The Cluster Autoscaler's rollout guard (autoscaler#8494) and kubermatic's objects depend on them."""
    assert getattr(names, constant) == value


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_constant_says_what_it_means(module: ModuleType) -> None:
    body = ast.parse(inspect.getsource(module)).body
    silent = [
        ast.unparse(node.target)
        for node, after in zip(body, [*body[1:], None], strict=True)
        if isinstance(node, ast.AnnAssign)
        and not (
            isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
        )
    ]
    assert silent == []


def test_every_key_and_condition_type_is_documented() -> None:
    page = (ROOT / "docs" / "api" / "names.md").read_text()
    types = [
        member.value
        for enum in (
            conditions.MachineCondition,
            conditions.SetCondition,
            conditions.DeploymentCondition,
            conditions.ClusterCondition,
            conditions.ClassCondition,
            conditions.HealthCheckCondition,
        )
        for member in enum
    ]
    assert [name for name in [*KEYS.values(), *types] if f"`{name}`" not in page] == []


@pytest.mark.parametrize("reason", list(conditions.Reason))
def test_every_reason_fits_the_type_of_conditions(reason: conditions.Reason) -> None:
    assert reason.value.isidentifier()
    assert reason.value[0].isupper()
    assert label_value_error(reason.value) == ""
