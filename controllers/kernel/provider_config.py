"""Find a Machine's provider config in any of the forms that the API has had.

providerConfig: "<YAML or JSON>"                    2017, the first CRDs
providerConfig: {value: {…}} or {valueFrom: {…}}    2018, apiserver-builder; KEP-3
providerSpec:   {value: {…}} or {valueFrom: {…}}    from November 2018, release-0.1 and kubermatic
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from api.conditions import Reason
from controllers.kernel.machine_class import CONFIG_FIELDS as FIELDS
from controllers.kernel.refs import MACHINE_CLASS, Key, Obj
from controllers.kernel.view import ConfigProblem, View

LONGEST_TEXT = 262_144
"""Characters of a config given as text; as the schema has it."""


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
    given = [name for name in FIELDS if spec.get(name) not in (None, "")]
    if len(given) != 1:
        path = given[1] if given else FIELDS[0]
        also = f"only one of {FIELDS[0]} and {FIELDS[1]} may be given" if given else "is required"
        return Unresolved(ConfigProblem(path, also))
    path = given[0]
    source = spec[path]
    if isinstance(source, str):
        return _read_text(source, path)
    if not isinstance(source, Mapping):
        return Unresolved(ConfigProblem(path, "must be an object or text"))
    value, reference = source.get("value"), source.get("valueFrom")
    if value is not None and reference is not None:
        return Unresolved(ConfigProblem(f"{path}.valueFrom", "only one of value and valueFrom may be given"))
    if reference is not None:
        return _read_class(reference, f"{path}.valueFrom.machineClass", namespace, view)
    if isinstance(value, str):
        return _read_text(value, f"{path}.value")
    if not isinstance(value, Mapping):
        return Unresolved(ConfigProblem(f"{path}.value", "is required" if value is None else "must be an object"))
    return Resolved(value, f"{path}.value")


def _read_class(reference: Any, path: str, namespace: str, view: View) -> Resolved | Unresolved:
    found = reference.get("machineClass") if isinstance(reference, Mapping) else None
    name = found.get("name") if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping) or not isinstance(name, str) or not name:
        return Unresolved(ConfigProblem(f"{path}.name", "is required"))
    if found.get("namespace") not in (None, "", namespace):
        return Unresolved(ConfigProblem(f"{path}.namespace", f"must be the Machine's own namespace {namespace!r}"))
    machine_class = view.get(MACHINE_CLASS, Key(namespace, name))
    if machine_class is None:
        text = f"there is no MachineClass {namespace}/{name}; create it, or name another"
        return Unresolved(ConfigProblem(f"{path}.name", text), Reason.MACHINE_CLASS_NOT_FOUND, waits=True)
    return _config_of_class(machine_class, path, f"{namespace}/{name}")


def _config_of_class(machine_class: Obj, path: str, title: str) -> Resolved | Unresolved:
    # The config stands at the top of a MachineClass, or in ``value`` as in a Machine.
    for name in reversed(FIELDS):
        config = machine_class.get(name)
        if isinstance(config, Mapping) and "kind" not in config and isinstance(config.get("value"), Mapping):
            config = config["value"]
        if isinstance(config, Mapping):
            return Resolved(config, f"{path}({title}).{name}")
    return Unresolved(ConfigProblem(path, f"MachineClass {title} has neither {FIELDS[1]} nor {FIELDS[0]}"))


def _read_text(text: str, path: str) -> Resolved | Unresolved:
    if len(text) > LONGEST_TEXT:
        return Unresolved(ConfigProblem(path, f"must not be longer than {LONGEST_TEXT} characters"))
    try:
        config = yaml.load(text, _PlainLoader)  # noqa: S506 (a SafeLoader without aliases)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        where = getattr(error, "problem_mark", None)
        at = f", line {where.line + 1}" if where else ""
        return Unresolved(ConfigProblem(path, f"is neither YAML nor JSON: {getattr(error, 'problem', error)}{at}"))
    if not isinstance(config, Mapping):
        return Unresolved(ConfigProblem(path, "must hold an object with apiVersion and kind"))
    return Resolved(config, path)


class _PlainLoader(yaml.SafeLoader):
    """YAML that is no more than JSON: aliases could make a small text huge, dates would not be JSON."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed")
        return super().compose_node(parent, index)


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
