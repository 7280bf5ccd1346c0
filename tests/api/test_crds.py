"""The CRDs: current, structural, bounded, described; and the generator's refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from api import limits
from api.kinds import KINDS
from hack import crds as generator
from hack.structural import UnstructuralError, structural
from tests.api.crd_judge import crds, defaulted, schema_of
from tests.api.samples import changed

SHORT = {"Cluster": "cl", "Machine": "ma", "MachineSet": "ms", "MachineDeployment": "md", "MachineClass": "mc"} | {
    "ControlPlane": "cp",
    "MachineHealthCheck": "mhc",
    "MachineDrainRule": "mdr",
}


def _nodes(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _nodes(schema[key], f"{path}.{key}")


ALL_NODES = [(f"{kind}{path}", node) for kind in KINDS for path, node in _nodes(schema_of(kind), "")]


def test_what_is_committed_is_what_the_types_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert generator.main(["--check"]) == 0, capsys.readouterr().out


def test_a_stale_file_is_found_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = generator.outputs()
    path = next(iter(files))
    monkeypatch.setattr(generator, "ROOT", tmp_path)
    moved = {tmp_path / file.relative_to(path.parents[1]): text for file, text in files.items()}
    assert generator.write(moved) == 0
    assert generator.check(moved) == 0
    changed_file = next(iter(moved))
    changed_file.write_text(changed_file.read_text().replace("cluster.k8s.io", "other.k8s.io", 1))
    (tmp_path / "crds" / "cluster.k8s.io_gone.yaml").write_text("")
    assert generator.check(moved) == 1
    output = capsys.readouterr().out
    assert str(changed_file.relative_to(tmp_path)) in output
    assert "cluster.k8s.io_gone.yaml" in output


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_those_of_the_lineage(kind: str) -> None:
    crd = crds()[kind]
    assert crd["metadata"]["name"] == f"{crd['spec']['names']['plural']}.cluster.k8s.io"
    assert crd["metadata"]["annotations"] == {"api-approved.kubernetes.io": "unapproved, KEP-3 legacy API"}
    assert crd["spec"]["names"]["shortNames"] == [SHORT[kind]]
    assert crd["spec"]["names"]["categories"] == ["nodewright"]
    assert crd["spec"]["scope"] == "Namespaced"
    assert [version["name"] for version in crd["spec"]["versions"]] == ["v1alpha1"]


REPORTED_ON = [kind for kind in KINDS if kind != "MachineDrainRule"]
"""A drain rule is only read, as in CAPI; what it does is told by the Machines."""


@pytest.mark.parametrize("kind", REPORTED_ON)
def test_every_kind_has_status_with_conditions(kind: str) -> None:
    version = crds()[kind]["spec"]["versions"][0]
    assert version["subresources"]["status"] == {}
    conditions = schema_of(kind)["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert set(conditions["items"]["required"]) == {"type", "status", "reason", "message", "lastTransitionTime"}


@pytest.mark.parametrize("kind", ["MachineSet", "MachineDeployment"])
def test_scale_points_at_fields_that_exist(kind: str) -> None:
    """Peers' CRDs point at a selector that nothing fills: their autoscalers see no Machines."""
    scale = crds()[kind]["spec"]["versions"][0]["subresources"]["scale"]
    assert scale["labelSelectorPath"] == ".status.labelSelector"
    for path in scale.values():
        node = schema_of(kind)
        for part in path.strip(".").split("."):
            node = node["properties"][part]
        assert node["type"] in ("integer", "string")


@pytest.mark.parametrize(
    "kind", ["Machine", "MachineSet", "MachineDeployment", "MachineHealthCheck", "MachineClass", "Cluster"]
)
def test_get_wide_says_why(kind: str) -> None:
    columns = crds()[kind]["spec"]["versions"][0]["additionalPrinterColumns"]
    [why] = [column["jsonPath"] for column in columns if column["name"] == "Reason"]
    assert why.endswith(".reason")


@pytest.mark.parametrize("kind", KINDS)
def test_columns_point_at_fields_that_exist(kind: str) -> None:
    for column in crds()[kind]["spec"]["versions"][0]["additionalPrinterColumns"]:
        if column["jsonPath"].startswith(".metadata"):
            continue
        node: dict[str, Any] = schema_of(kind)
        for part in re.sub(r"\[[^]]*\]", "[]", column["jsonPath"]).strip(".").split("."):
            node = node.get("properties", {}).get(
                part.removesuffix("[]"), {"x-kubernetes-preserve-unknown-fields": True}
            )
            node = node.get("items", node) if part.endswith("[]") else node
            if node.get("x-kubernetes-preserve-unknown-fields"):
                break
        else:
            assert column["type"] in (node.get("type", "string"), "date", "string"), column


def test_every_field_is_described() -> None:
    unnamed = ("items", "additionalProperties", "metadata")
    missing = [path for path, node in ALL_NODES if "description" not in node and path.rpartition(".")[2] not in unnamed]
    assert missing == []


def test_every_list_and_map_and_string_that_a_person_writes_is_bounded() -> None:
    """CEL's cost estimate on a real server needs the bounds, and so does the memory of every cache."""
    loose = []
    for path, node in ALL_NODES:
        if "type" not in node or node.get("x-kubernetes-preserve-unknown-fields") or "enum" in node:
            continue
        if node["type"] == "array" and "maxItems" not in node:
            loose.append(path)
        if isinstance(node.get("additionalProperties"), dict) and "maxProperties" not in node:
            loose.append(path)
        free = path.endswith((".apiVersion", ".kind", "annotations.additionalProperties")) or "format" in node
        if node["type"] == "string" and "maxLength" not in node and not free:
            loose.append(path)
    assert loose == []


def test_every_list_says_how_server_side_apply_merges_it() -> None:
    missing = [path for path, node in ALL_NODES if node.get("type") == "array" and "x-kubernetes-list-type" not in node]
    assert missing == []


def test_keys_of_list_maps_are_required() -> None:
    for path, node in ALL_NODES:
        keys = node.get("x-kubernetes-list-map-keys", [])
        assert set(keys) <= set(node.get("items", {}).get("required", [])), path


def test_the_server_fills_in_nested_defaults() -> None:
    spec = defaulted(changed("deployment", {}), schema_of("MachineDeployment"))["spec"]
    want = {"maxSurge": 1, "maxUnavailable": 0, "partition": 0, "onFailure": "Continue", "inPlace": "Never"}
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": want}
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 1, 600)


@pytest.mark.parametrize("kind", ["MachineSet", "MachineDeployment", "Machine"])
def test_unknown_fields_survive_in_a_machines_spec(kind: str) -> None:
    spec = schema_of(kind)["properties"]["spec"]
    spec = spec["properties"]["template"]["properties"]["spec"] if kind != "Machine" else spec
    assert spec["x-kubernetes-preserve-unknown-fields"] is True
    assert "type" not in spec["properties"]["providerConfig"]


def test_name_limits_leave_room_for_derived_names() -> None:
    ordinal = "9" * limits.MAX_ORDINAL_DIGITS
    longest_set = f"{'d' * limits.MAX_MACHINEDEPLOYMENT_NAME}-{'h' * limits.MAX_TEMPLATE_HASH_LENGTH}"
    assert len(longest_set) == limits.MAX_MACHINESET_NAME
    assert len(f"{longest_set}-{'u' * limits.OWNER_DIGEST_LENGTH}-{ordinal}") == limits.MAX_NODE_NAME


class _Union(BaseModel):
    value: int | list[str]


class _Loop(BaseModel):
    inner: _Loop | None = None


class _Above(BaseModel):
    value: Annotated[int, Field(gt=3)]


class _Constant(BaseModel):
    value: Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (_Union, "_Union.value: a union of"),
        (_Loop, "_Loop.inner: _Loop contains itself"),
        (_Above, "_Above.value: use minimum in place of exclusiveMinimum"),
        (_Constant, r"_Constant.value: keywords \['contentEncoding'\] are not structural"),
    ],
)
def test_what_no_crd_can_say_is_an_error_with_its_path(model: type[BaseModel], message: str) -> None:
    with pytest.raises(UnstructuralError, match=message):
        structural(model)
