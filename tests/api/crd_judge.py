"""Judge an object by a CRD as an API server does: structural schema, defaults, list maps, CEL with transition rules.

Small on purpose and independent of our own control plane, so that each can be held to the other; a real server is the
arbiter (``test_real_server``).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cel
import jsonschema
import yaml

FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
CRDS = Path(__file__).resolve().parents[2] / "crds"


@cache
def crds() -> dict[str, dict[str, Any]]:
    """CRDs by kind, as committed."""
    loaded = [yaml.load(file.read_text(), FAST_LOADER) for file in sorted(CRDS.glob("*.yaml"))]
    return {crd["spec"]["names"]["kind"]: crd for crd in loaded}


def schema_of(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = crds()[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def judge(obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    """Paths of the fields that are refused; ``old`` makes it an update. CEL runs only on what the schema accepts."""
    schema = schema_of(obj["kind"])
    obj, old = defaulted(obj, schema), defaulted(old, schema) if old else None
    found = [*_schema_faults(obj, schema), *_duplicates(obj, schema, "")]
    return sorted(set(found or _rule_faults(obj, old, schema, "")))


def defaulted(value: Any, schema: dict[str, Any]) -> Any:
    """A copy with the schema's defaults filled in, nested ones as well."""
    if isinstance(value, dict):
        result = copy.deepcopy(value)
        for name, child in schema.get("properties", {}).items():
            if result.get(name) is None and "default" in child:
                result[name] = copy.deepcopy(child["default"])
            if name in result:
                result[name] = defaulted(result[name], child)
        return result
    if isinstance(value, list) and "items" in schema:
        return [defaulted(item, schema["items"]) for item in value]
    return value


def _schema_faults(obj: Any, schema: dict[str, Any]) -> Iterator[str]:
    for error in jsonschema.Draft202012Validator(_plain(schema)).iter_errors(obj):
        path = _path(error.absolute_path)
        if error.validator == "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            yield from (f"{path}.{name}".lstrip(".") for name in missing)
        else:
            yield path
            # Of alternatives the server also tells what is wrong in the first of those that came nearest.
            yield from (_path(inner.absolute_path) for inner in error.context[:1] if error.validator == "anyOf")


def _plain(schema: Any) -> Any:
    """OpenAPI's ``nullable`` in the words of JSON Schema."""
    if isinstance(schema, dict):
        result = {key: _plain(value) for key, value in schema.items()}
        if result.pop("nullable", False) is True:
            result["type"] = [result["type"], "null"]
        return result
    return [_plain(item) for item in schema] if isinstance(schema, list) else schema


def _path(parts: Any) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")


def _duplicates(value: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, child in schema.get("properties", {}).items():
            yield from _duplicates(value.get(name), child, f"{path}.{name}".lstrip("."))
    if isinstance(value, list) and schema.get("x-kubernetes-list-type") == "map":
        seen = []
        for index, item in enumerate(value):
            identity = [item.get(key) for key in schema["x-kubernetes-list-map-keys"]]
            if identity in seen:
                yield f"{path}[{index}]"
            seen.append(identity)


def _rule_faults(value: Any, old: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    if value is None:
        return
    for rule in schema.get("x-kubernetes-validations", []):
        if not _holds(rule, value, old):
            yield f"{path}{rule.get('fieldPath', '')}".lstrip(".") or _named(rule)
    if isinstance(value, dict):
        for name, child in schema.get("properties", {}).items():
            before = old.get(name) if isinstance(old, dict) else None
            yield from _rule_faults(value.get(name), before, child, f"{path}.{name}")
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _rule_faults(item, None, schema.get("items", {}), f"{path}[{index}]")


def _named(rule: dict[str, Any]) -> str:
    """A rule on the whole object can't carry ``metadata.name`` as its path; its message begins with it."""
    return str(rule["message"].split()[0])


def _holds(rule: dict[str, Any], value: Any, old: Any) -> bool:
    if "oldSelf" not in rule["rule"]:
        return bool(cel.evaluate(rule["rule"], {"self": value}))
    if rule.get("optionalOldSelf"):
        text = "optional.none()" if old is None else "optional.of(before)"
        return bool(cel.evaluate(rule["rule"].replace("oldSelf", text), {"self": value, "before": old}))
    return old is None or bool(cel.evaluate(rule["rule"], {"self": value, "oldSelf": old}))
