"""Find a Machine's provider config, in its spec or its MachineClass. ``api.providerconfig`` reads it.

providerConfig: "<YAML or JSON>"                    2017, the first CRDs
providerConfig: {value: {…}} or {valueFrom: {…}}    2018, apiserver-builder; KEP-3
providerSpec:   {value: {…}} or {valueFrom: {…}}    from November 2018, release-0.1 and kubermatic
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.conditions import Reason
from api.providerconfig import FIELDS, REQUIRED, MachineClassRef, ProviderConfigError, read, read_class
from controllers.kernel.refs import MACHINE_CLASS, Key, Obj
from controllers.kernel.view import ConfigProblem, View


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
