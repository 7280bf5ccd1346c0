"""Where a Machine's provider config comes from, and what its provider finds of what it names.

Which MachineClass a spec names, and whether a Machine may have its host follow a change of it.

Find a Machine's provider config, in its spec or its MachineClass. ``api.providerconfig`` reads it.

providerConfig: "<YAML or JSON>"                    2017, the first CRDs
providerConfig: {value: {…}} or {valueFrom: {…}}    2018, apiserver-builder; KEP-3
providerSpec:   {value: {…}} or {valueFrom: {…}}    from November 2018, release-0.1 and kubermatic

What a provider found when it looked in its cloud for what a config names, as a condition. Never in admission.

An image that is missing now may be there tomorrow: nothing is refused for it, and nothing terminal is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.conditions import Reason
from api.providerconfig import FIELDS, REQUIRED, MachineClassRef, ProviderConfigError, read, read_class
from controllers.kernel.conditions import Condition, in_words
from controllers.kernel.memory import digest
from controllers.kernel.refs import MACHINE_CLASS, Key, Obj
from controllers.kernel.view import ConfigChecked, ConfigProblem, LiveCheck, LoginRefused, NotChecked, View
from providers.base.errors import ErrorClass

CONFIG_FIELDS = ("providerConfig", "providerSpec")
"""Where a provider's configuration stands in a Machine's spec, and at the top of a MachineClass."""
DIGEST_LENGTH = 10


def class_key(spec: Mapping[str, Any], namespace: str) -> Key | None:
    """The MachineClass that a Machine's spec names."""
    for name in CONFIG_FIELDS:
        source = spec.get(name)
        reference = source.get("valueFrom") if isinstance(source, Mapping) else None
        found = reference.get("machineClass") if isinstance(reference, Mapping) else None
        if isinstance(found, Mapping) and isinstance(found.get("name"), str):
            return Key(namespace, found["name"])
    return None


def class_digest(spec: object, namespace: str, view: View) -> str:
    """Digest of the configuration in the MachineClass that ``spec`` names; "" if it names none, or one that is gone."""
    named = class_key(spec, namespace) if isinstance(spec, Mapping) else None
    found = view.get(MACHINE_CLASS, named) if named is not None else None
    if found is None:
        return ""
    try:
        return digest([found.get(name) for name in CONFIG_FIELDS], DIGEST_LENGTH)
    except (TypeError, ValueError):
        return ""


@dataclass(frozen=True, slots=True)
class Resolved:
    """``path`` is where the config stands below spec, for error messages."""

    config: Mapping[str, Any]
    path: str


@dataclass(frozen=True, slots=True)
class Unresolved:
    """``reason`` is a condition reason; ``waits`` if it may come right without another spec."""

    problem: ConfigProblem
    reason: str = Reason.INVALID_CONFIGURATION
    waits: bool = False


def resolve(spec: Mapping[str, Any], namespace: str, view: View) -> Resolved | Unresolved:
    """The config of a Machine in ``namespace``; a MachineClass is looked up there only."""
    try:
        found = read(spec)
    except ProviderConfigError as error:
        return Unresolved(ConfigProblem(error.field, error.message))
    if found is None:
        return Unresolved(ConfigProblem(FIELDS[0], REQUIRED))
    if found.machine_class_ref is not None:
        return _read_class(found.machine_class_ref, f"{found.source_field}.machineClass", namespace, view)
    return Resolved(found.value or {}, found.source_field)


def _read_class(reference: MachineClassRef, path: str, namespace: str, view: View) -> Resolved | Unresolved:
    name = reference.name
    if reference.namespace not in ("", namespace):
        return Unresolved(ConfigProblem(f"{path}.namespace", f"must be the Machine's own namespace {namespace!r}"))
    machine_class = view.get(MACHINE_CLASS, Key(namespace, name))
    if machine_class is None:
        text = f"there is no MachineClass {namespace}/{name}; create it, or name another"
        return Unresolved(ConfigProblem(f"{path}.name", text), Reason.MACHINE_CLASS_NOT_FOUND, waits=True)
    return _config_of_class(machine_class, path, f"{namespace}/{name}")


def _config_of_class(machine_class: Obj, path: str, title: str) -> Resolved | Unresolved:
    try:
        found = read_class(machine_class)
    except ProviderConfigError as error:
        return Unresolved(ConfigProblem(path, f"MachineClass {title}: {error}"))
    return Resolved(found.value or {}, f"{path}({title}).{found.source_field.partition('.')[0]}")


def found_condition(type_: str, live: LiveCheck, below: str = "") -> Condition | None:
    """None if nobody can say. ``below`` goes before the fields that are named."""
    match live:
        case NotChecked():
            return None
        case LoginRefused(why):
            return Condition(str(type_), "False", str(ErrorClass.UNAUTHORIZED), why)
        case ConfigChecked(()):
            return Condition(str(type_), "True", str(Reason.FOUND))
        case ConfigChecked(problems):
            return Condition(str(type_), "False", str(Reason.INVALID_CONFIGURATION), in_words(problems, below))
