"""The table of built-in types against an independent reading of the same API: the models of kubernetes_asyncio."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from nodewright.apiserver.openapi import builtins, descriptions
from nodewright.apiserver.openapi.builtins import Field, TypeRef

TYPES = [builtins.get(name) for name in sorted(builtins.names())]
PYTHON = {
    "string": {"str"},
    "bool": {"bool"},
    "int32": {"int"},
    "int64": {"int"},
    "double": {"float"},
    "bytes": {"str"},
    "time": {"datetime"},
    "microtime": {"datetime"},
    "quantity": {"str"},
    "intstr": {"object"},
    "raw": {"object"},
    "fieldsv1": {"object"},
    "json": {"object"},
    "extra": {"list[str]"},
}
EMPTY = "apiextensions.v1.CustomResourceSubresourceStatus"
"""A type without fields, for which the client has no model: it shows an object."""
WITHOUT_A_MODEL = {"meta.v1.ShardInfo", EMPTY}


def source_of(name: str) -> str | None:
    found = next((path for path in descriptions._files(name) if path.is_file()), None)
    return found.read_text() if found else None


def python_type(ref: TypeRef, shown: str) -> bool:
    """Tell whether a type of the table is the same as one in a model."""
    if ref.shape == "scalar":
        return shown in PYTHON[ref.name]
    if ref.element is not None:
        prefix = "list[" if ref.shape == "list" else "dict(str, "
        return shown.startswith(prefix) and python_type(ref.element, shown.removeprefix(prefix)[:-1])
    return shown.endswith(ref.name.rpartition(".")[2]) or (ref.name, shown) == (EMPTY, "object")


def attributes(source: str, mapping: str) -> dict[str, str]:
    block = re.search(rf"{mapping} = \{{(.*?)\n    \}}", source, re.DOTALL)
    assert block is not None
    return dict(re.findall(r"'(\w+)': '([^']+)'", block.group(1)))


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_a_type_has_the_fields_that_the_python_client_knows(kind: builtins.Type) -> None:
    source = source_of(kind.name)
    if source is None:
        assert kind.name in WITHOUT_A_MODEL
        return
    names, types = attributes(source, "attribute_map"), attributes(source, "openapi_types")
    known = {shown: types[attribute] for attribute, shown in names.items()}
    if kind.group_version:
        known = {shown: kept for shown, kept in known.items() if shown not in ("apiVersion", "kind")}
    fields = {name: field for name, field in kind.fields.items() if name not in ("apiVersion", "kind")}
    known = {shown: kept for shown, kept in known.items() if shown not in ("apiVersion", "kind")}
    unlike = {n for n in fields.keys() & known.keys() if not python_type(fields[n].type, known[n])}
    assert (sorted(fields.keys() ^ known.keys()), sorted(unlike)) == ([], [])


def test_every_reference_leads_to_a_type_and_every_number_is_used_once() -> None:
    for kind in TYPES:
        numbers = [field.number for field in kind.fields.values()]
        assert len(set(numbers)) == len(numbers), kind.name
        assert all(number > 0 for path in numbers for number in path), kind.name
        for field in kind.fields.values():
            ref = field.type
            while ref.element is not None:
                ref = ref.element
            assert ref.shape != "message" or builtins.get(ref.name), f"{kind.name}.{field.name}"


def test_lists_that_merge_by_key_have_that_key_in_their_items() -> None:
    for kind in TYPES:
        for field in kind.fields.values():
            for key in (*field.list_map_keys, *([field.patch_merge_key] if field.patch_merge_key else [])):
                assert field.type.element is not None
                assert key in builtins.get(field.type.element.name).fields or element_is_a_map(field), field.name


def element_is_a_map(field: Field) -> bool:
    return field.type.element is not None and field.type.element.shape != "message"


@pytest.mark.parametrize(
    ("group", "version", "kind"),
    [("", "v1", "Pod"), ("apps", "v1", "Deployment"), ("rbac.authorization.k8s.io", "v1", "Role"), ("x", "v1", "Pod")],
)
def test_a_kind_is_found_by_its_group_and_version(group: str, version: str, kind: str) -> None:
    found = builtins.find(group, version, kind)
    assert (found is None) == (group == "x")
    assert (builtins.schema(group, version, kind) is None) == (group == "x")


def test_the_texts_of_fields_are_there_without_importing_the_client() -> None:
    assert find_spec("kubernetes_asyncio") is not None
    told = descriptions.of_fields("core.v1.NodeSpec")
    assert "podCIDR" in told
    assert "noqa" not in "".join(told.values())
    assert descriptions.of_fields("core.v1.NoSuchType") == {}
    assert Path(next(descriptions._files("core.v1.AWSElasticBlockStoreVolumeSource"))).name == (
        "v1_aws_elastic_block_store_volume_source.py"
    )
