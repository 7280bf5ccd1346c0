"""Move an object's provider configuration between the fields of KEP-3's generations. Pure; all other fields stay.

| from | to providerConfig | to providerSpec |
|---|---|---|
| ``providerConfig: "<text>"`` | ``providerConfig: {value: {…}}`` | ``providerSpec: {value: {…}}`` |
| ``providerConfig: {value \\| valueFrom}`` | as it is | ``providerSpec: {value \\| valueFrom}`` |
| ``providerSpec: {value \\| valueFrom}`` | ``providerConfig: {value \\| valueFrom}`` | as it is |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from api.providerconfig import ProviderConfig, ProviderConfigError, find, holder

Field = Literal["providerConfig", "providerSpec"]
OF_REQUESTS: Mapping[str, str] = {"provisioningClass": "provisioningClassName", "Parameters": "parameters"}
"""Fields of a ProvisioningRequest's spec as its proposal spelt them \u2192 as they are served."""


def convert(obj: Mapping[str, Any], to: Field) -> Mapping[str, Any]:
    """``obj`` with its configuration in ``to``; the same object if it has none, or has it there already.

    Raises ProviderConfigError with the path from the object's root.
    """
    held_by, path = holder(obj)
    try:
        config, _ = find(obj)
    except ProviderConfigError as fault:
        raise ProviderConfigError(f"{path}.{fault.field}" if path else fault.field, fault.message) from fault
    if config is None:
        return obj
    moved = _moved(held_by, config, to)
    return _with(obj, tuple(path.split(".")) if path else (), moved) if moved != held_by else obj


def convert_request(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """A ProvisioningRequest whose spec has the fields that are served; the same object if it has them already. Where
    both spellings are there, the served one counts.
    """
    spec = obj.get("spec")
    if not isinstance(spec, Mapping) or not OF_REQUESTS.keys() & spec.keys():
        return obj
    found: dict[Any, Any] = {}
    for field, value in spec.items():
        name = OF_REQUESTS.get(field) or field
        if name == field or name not in spec:
            found[name] = value
    return {**obj, "spec": found}


def _moved(held_by: Mapping[str, Any], config: ProviderConfig, to: Field) -> Mapping[str, Any]:
    """In the place of the old field; an empty field of the new name gives way."""
    name = config.source_field.partition(".")[0]
    content = held_by[name]
    if isinstance(content, str):
        content = {"value": config.value}
    elif isinstance(content, Mapping) and isinstance(content.get("value"), str):
        content = {**content, "value": config.value}
    moved: dict[str, Any] = {}
    for field, value in held_by.items():
        if field == name:
            moved[to] = content
        elif field != to:
            moved[field] = value
    return moved


def _with(obj: Mapping[str, Any], path: tuple[str, ...], part: Mapping[str, Any]) -> Mapping[str, Any]:
    if not path:
        return part
    return {**obj, path[0]: _with(obj[path[0]], path[1:], part)}
