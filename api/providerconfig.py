"""Read a provider's configuration in all three generations of KEP-3's lineage.

1. ``providerConfig: "<YAML or JSON>"``: a plain string;
2. ``providerConfig: {value: {…}}`` or ``{valueFrom: {machineClass: {name}}}``;
3. ``providerSpec``, of the second form.

What is inside ``value`` is its provider's business alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

MAX_TEXT: Final = 262144
"""Characters of a configuration given as a string; the CRD has the same bound."""
MAX_DEPTH: Final = 64
"""Levels of nesting in a configuration given as a string."""
FIELDS: Final = ("providerConfig", "providerSpec")
"""Fields that may hold the configuration."""


class ProviderConfigError(ValueError):
    """A configuration that can't be read. ``field`` is its path from where the search began."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class MachineClassRef:
    """Names the MachineClass that holds the configuration; ``namespace`` "" means that of the object itself."""

    name: str
    namespace: str = ""
    provider: str = ""


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """What was given: exactly one of ``value`` (read only) and ``machine_class_ref`` is set.

    ``source_field``: path below the spec where it was found, like ``providerSpec.value``, for messages.
    """

    value: Mapping[str, Any] | None
    machine_class_ref: MachineClassRef | None
    source_field: str

    @property
    def api_version(self) -> str:
        """``apiVersion`` of the value, "" if it has none; names the provider together with ``kind``."""
        return _text(self.value, "apiVersion")

    @property
    def kind(self) -> str:
        """``kind`` of the value, "" if it has none."""
        return _text(self.value, "kind")


def read(spec: Mapping[str, Any]) -> ProviderConfig | None:
    """The configuration in the spec of a Machine or Cluster; None if none is given. Raises ProviderConfigError."""
    given = [name for name in FIELDS if not _absent(spec.get(name))]
    if len(given) > 1:
        raise ProviderConfigError("providerSpec", "at most one of providerConfig and providerSpec may be given")
    return _from_field(given[0], spec[given[0]]) if given else None


def holder(obj: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The part of an object of our group that may hold a configuration, and its path; empty where there is none."""
    spec: Any = obj.get("spec")
    if obj.get("kind") in ("MachineSet", "MachineDeployment"):
        template = spec.get("template") if isinstance(spec, Mapping) else None
        inner = template.get("spec") if isinstance(template, Mapping) else None
        return (inner if isinstance(inner, Mapping) else {}), "spec.template.spec"
    if obj.get("kind") == "MachineClass":
        return obj, ""
    return (spec if isinstance(spec, Mapping) else {}), "spec"


def find(obj: Mapping[str, Any]) -> tuple[ProviderConfig | None, str]:
    """The configuration of an object of any kind, and its path from the object's root. Raises ProviderConfigError."""
    held_by, prefix = holder(obj)
    config = read_class(obj) if obj.get("kind") == "MachineClass" else read(held_by)
    return config, ".".join(part for part in (prefix, config.source_field if config else "") if part)


def read_class(machine_class: Mapping[str, Any]) -> ProviderConfig:
    """The configuration in a MachineClass, where it stands without ``value``. Raises ProviderConfigError."""
    given = [name for name in FIELDS if not _absent(machine_class.get(name))]
    if len(given) != 1:
        raise ProviderConfigError("providerSpec", "exactly one of providerSpec and providerConfig must be given")
    name, content = given[0], machine_class[given[0]]
    if isinstance(content, Mapping) and set(content) == {"value"} and isinstance(content["value"], Mapping):
        return ProviderConfig(content["value"], None, f"{name}.value")
    if not isinstance(content, Mapping):
        raise ProviderConfigError(name, "must be an object")
    return ProviderConfig(content, None, name)


def _absent(content: Any) -> bool:
    """``providerSpec: {}`` is what empty structs of older clients look like."""
    return content is None or content in ("", {})


def _from_field(name: str, content: Any) -> ProviderConfig | None:
    if isinstance(content, str):
        if name == "providerSpec":
            raise ProviderConfigError(
                name, "must be an object with value or valueFrom; only providerConfig may be text"
            )
        return ProviderConfig(_parsed(name, content), None, name)
    if not isinstance(content, Mapping):
        allowed = "a string or an object" if name == "providerConfig" else "an object"
        raise ProviderConfigError(name, f"must be {allowed}")
    value, source = content.get("value"), content.get("valueFrom")
    if value is not None and source not in (None, {}):
        raise ProviderConfigError(f"{name}.valueFrom", "may not be given together with value")
    if value is not None:
        if isinstance(value, str):
            value = _parsed(f"{name}.value", value)
        if not isinstance(value, Mapping):
            raise ProviderConfigError(f"{name}.value", "must be an object")
        return ProviderConfig(value, None, f"{name}.value")
    if source not in (None, {}):
        return ProviderConfig(None, _class_ref(f"{name}.valueFrom", source), f"{name}.valueFrom")
    if set(content) - {"value", "valueFrom"}:
        raise ProviderConfigError(
            f"{name}.value", "the configuration belongs under value, or a reference under valueFrom"
        )
    return None


def _class_ref(path: str, source: Any) -> MachineClassRef:
    reference = source.get("machineClass") if isinstance(source, Mapping) else None
    if not isinstance(reference, Mapping):
        raise ProviderConfigError(f"{path}.machineClass", "must name a MachineClass")
    for key in ("name", "namespace", "provider"):
        if not isinstance(reference.get(key, ""), str):
            raise ProviderConfigError(f"{path}.machineClass.{key}", "must be a string")
    if not reference.get("name"):
        raise ProviderConfigError(f"{path}.machineClass.name", "must name a MachineClass")
    return MachineClassRef(reference["name"], reference.get("namespace", ""), reference.get("provider", ""))


def _text(value: Mapping[str, Any] | None, key: str) -> str:
    found = (value or {}).get(key)
    return found if isinstance(found, str) else ""


def _parsed(path: str, text: str) -> Mapping[str, Any]:
    if len(text) > MAX_TEXT:
        raise ProviderConfigError(path, f"has more than {MAX_TEXT} characters")
    value, fault = _parse(text)
    if value is None:
        raise ProviderConfigError(path, fault)
    return value


@lru_cache(maxsize=256)
def _parse(text: str) -> tuple[Mapping[str, Any] | None, str]:
    """The object in the text, or why there is none. Cached: all Machines of a set carry the same text."""
    try:
        value = json.loads(text) if text.lstrip().startswith("{") else _parse_yaml(text)
    except json.JSONDecodeError:
        try:
            value = _parse_yaml(text)  # a YAML flow mapping starts with a brace, too
        except (ValueError, RecursionError) as fault:
            return None, _one_line(fault)
    except (ValueError, RecursionError) as fault:
        return None, _one_line(fault)
    if not isinstance(value, dict):
        return None, "the text must hold an object (YAML or JSON)"
    if fault_text := _not_json(value, "", 0):
        return None, fault_text
    return value, ""


def _parse_yaml(text: str) -> Any:
    """Raises ValueError. Aliases are refused: a few lines of them can stand for gigabytes."""
    import yaml  # noqa: PLC0415 - most configurations are objects and need no parser

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = type("Loader", (base,), {"yaml_implicit_resolvers": _without_times(base.yaml_implicit_resolvers)})
    depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"{_line(event.start_mark)}aliases are not allowed")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise ValueError(f"{_line(event.start_mark)}nested more than {MAX_DEPTH} levels deep")
        return yaml.load(text, Loader=loader)  # noqa: S506 - a subclass of the safe loader
    except yaml.YAMLError as error:
        where = _line(getattr(error, "problem_mark", None))
        said = [getattr(error, part, None) for part in ("context", "problem")]
        raise ValueError(f"{where}{', '.join(filter(None, said)) or error}") from error


def _line(mark: Any) -> str:
    return f"line {mark.line + 1}: " if mark else ""


def _without_times(resolvers: Mapping[str, Any]) -> dict[str, Any]:
    """``2026-01-01`` stays text, as it does for Kubernetes' own YAML reader."""
    return {
        first: [(tag, regexp) for tag, regexp in entries if tag != "tag:yaml.org,2002:timestamp"]
        for first, entries in resolvers.items()
    }


def _not_json(value: Any, path: str, depth: int) -> str:
    """Where and why a value can't be JSON; "" if it can."""
    if depth > MAX_DEPTH:
        return f"{path}: nested more than {MAX_DEPTH} levels deep"
    if isinstance(value, dict):
        for key, child in value.items():
            if not isinstance(key, str):
                return f"{path or 'the object'}: key {key!r} is not a string"
            if fault := _not_json(child, f"{path}.{key}".lstrip("."), depth + 1):
                return fault
        return ""
    if isinstance(value, list):
        faults = (_not_json(child, f"{path}[{index}]", depth + 1) for index, child in enumerate(value))
        return next(filter(None, faults), "")
    if isinstance(value, float) and not math.isfinite(value):
        return f"{path}: {value} is not a number in JSON"
    if value is not None and not isinstance(value, str | int | float):
        return f"{path}: {type(value).__name__} is not a type of JSON"
    return ""


def _one_line(fault: BaseException) -> str:
    text = "nested too deep" if isinstance(fault, RecursionError) else " ".join(str(fault).split())
    return f"the text is neither YAML nor JSON: {text}"
