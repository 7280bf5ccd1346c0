"""Read a provider's configuration in all three generations of KEP-3's lineage.

1. ``providerConfig: "<YAML or JSON>"``: a plain string;
2. ``providerConfig: {value: {…}}`` or ``{valueFrom: {machineClass: {name}}}``;
3. ``providerSpec``, of the second form.

What is inside ``value`` is its provider's business alone.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from api import yamltext
from api.limits import MAX_PARSED_CONFIG_BYTES, MAX_PROVIDER_CONFIG, MAX_PROVIDER_CONFIG_VALUES

FIELDS: Final = ("providerConfig", "providerSpec")
"""Fields that may hold the configuration."""
REQUIRED: Final = "is required: it names the provider and says what host to make"
"""What is said of a Machine without one."""


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


def missing(obj: Mapping[str, Any], config: ProviderConfig | None) -> str:
    """Path of the configuration that an object of a kind that makes hosts has not; "" if none is missing."""
    makes_hosts = obj.get("kind") in ("Machine", "MachineSet", "MachineDeployment")
    return f"{holder(obj)[1]}.{FIELDS[0]}" if config is None and makes_hosts else ""


def read_class(machine_class: Mapping[str, Any]) -> ProviderConfig:
    """The configuration in a MachineClass, where it stands without ``value``. Raises ProviderConfigError."""
    given = [name for name in FIELDS if not _absent(machine_class.get(name))]
    if len(given) != 1:
        raise ProviderConfigError("providerSpec", "exactly one of providerSpec and providerConfig must be given")
    name, content = given[0], machine_class[given[0]]
    if not isinstance(content, Mapping):
        raise ProviderConfigError(name, "must be an object")
    if "kind" not in content and isinstance(content.get("value"), Mapping):
        return ProviderConfig(_sized(f"{name}.value", content["value"]), None, f"{name}.value")
    return ProviderConfig(_sized(name, content), None, name)


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
            return ProviderConfig(value, None, f"{name}.value")
        if not isinstance(value, Mapping):
            raise ProviderConfigError(f"{name}.value", "must be an object")
        return ProviderConfig(_sized(f"{name}.value", value), None, f"{name}.value")
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


# --- what is in it ----------------------------------------------------------------------------------------------------

_BOUNDS: Final = yamltext.Bounds(size=4 * MAX_PROVIDER_CONFIG, values=MAX_PROVIDER_CONFIG_VALUES)
_COST_OF_A_VALUE: Final = 256
"""Bytes that a small value takes as a Python object, roughly."""


class ParsedTexts:
    """Configurations given as text that were parsed, by the text's digest; those asked for last stay.

    All Machines of a set carry the same text. ``capacity`` is in bytes, by estimate; a fault is remembered as well.
    """

    def __init__(self, capacity: int = MAX_PARSED_CONFIG_BYTES) -> None:
        self._capacity = capacity
        self._found: OrderedDict[bytes, tuple[Mapping[str, Any] | None, str, int]] = OrderedDict()
        self.size = 0
        self.parsed = 0

    def get(self, text: str) -> tuple[Mapping[str, Any] | None, str]:
        """The object in the text, or why there is none."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        known = self._found.get(digest)
        if known is not None:
            self._found.move_to_end(digest)
            return known[0], known[1]
        self.parsed += 1
        value, fault = _parse(text)
        cost = 4 * len(text) + _COST_OF_A_VALUE * (1 + sum(1 for one in text if one in ":,-\n"))
        self._found[digest] = (value, fault, cost)
        self.size += cost
        while self.size > self._capacity and self._found:
            self.size -= self._found.popitem(last=False)[1][2]
        return value, fault


_TEXTS: Final = ParsedTexts()


def _parsed(path: str, text: str) -> Mapping[str, Any]:
    if len(text) > MAX_PROVIDER_CONFIG:
        raise ProviderConfigError(path, f"has more than {MAX_PROVIDER_CONFIG} characters")
    value, fault = _TEXTS.get(text)
    if value is None:
        raise ProviderConfigError(path, fault)
    return value


def _parse(text: str) -> tuple[Mapping[str, Any] | None, str]:
    try:
        value = yamltext.load(text, _BOUNDS)
    except yamltext.TextError as error:
        return None, f"the text is neither YAML nor JSON: {error}"
    if not isinstance(value, dict):
        return None, "the text must hold an object (YAML or JSON)"
    return value, ""


def _sized(path: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object that was given as such. Raises ProviderConfigError if it is larger than a configuration may be."""
    try:
        size = len(orjson.dumps(value))
    except (orjson.JSONEncodeError, RecursionError):
        raise ProviderConfigError(path, yamltext.check(value, _BOUNDS) or "can't be written as JSON") from None
    if size > MAX_PROVIDER_CONFIG:
        raise ProviderConfigError(path, f"has {size} bytes as JSON, more than {MAX_PROVIDER_CONFIG}")
    if fault := yamltext.check(value, _BOUNDS):
        raise ProviderConfigError(path, fault)
    return value
