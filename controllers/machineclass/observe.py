"""A MachineClass, the Machines that name it, and what its provider says of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.providerconfig import ProviderConfigError, read_class
from controllers.kernel.machine_facts import MachineFacts, read
from controllers.kernel.ownership import paused_by
from controllers.kernel.refs import MACHINE, MACHINE_CLASS, Key, Obj, Ref, is_deleting, ref_of
from controllers.kernel.view import (
    MACHINE_CLASS_REF,
    NOBODY_ASKED,
    ConfigProblem,
    HostNeed,
    HostReads,
    LiveCheck,
    View,
)

READS = (MACHINE_CLASS, MACHINE)
ALWAYS = float("inf")
"""No list of hosts is needed."""


@dataclass(frozen=True, slots=True)
class Observed:
    """``problems``: what its schema finds wrong, ``live``: what its provider finds missing; paths are those below the
    class. ``machines`` name it.
    """

    now: datetime
    body: Obj
    paused: str
    problems: tuple[ConfigProblem, ...]
    machines: tuple[MachineFacts, ...]
    live: LiveCheck = NOBODY_ASKED

    @property
    def ref(self) -> Ref:
        return ref_of(MACHINE_CLASS, self.body)

    @property
    def status(self) -> Mapping[str, Any]:
        status = self.body.get("status")
        return status if isinstance(status, Mapping) else {}


def needs(key: Key, view: View) -> HostNeed | None:
    """A check of the configuration, and nobody's host; None if there is nothing to check."""
    body = view.get(MACHINE_CLASS, key)
    if body is None:
        return None
    path, config = config_of(body)
    if config is None or not all(isinstance(config.get(name), str) for name in ("apiVersion", "kind")):
        return None
    return HostNeed("", config, ALWAYS, config_path=path, namespace=key.namespace, live=not is_deleting(body))


def observe(key: Key, view: View, hosts: HostReads | None) -> Observed | None:
    """None if the MachineClass is gone."""
    body = view.get(MACHINE_CLASS, key)
    if body is None:
        return None
    missing = _missing(body)
    return Observed(
        now=view.now,
        body=body,
        paused=paused_by((body,)),
        problems=hosts.problems if hosts is not None else (missing,),
        machines=tuple(read(machine) for machine in view.indexed(MACHINE, MACHINE_CLASS_REF, str(key))),
        live=hosts.live if hosts is not None else NOBODY_ASKED,
    )


def config_of(body: Obj) -> tuple[str, Mapping[str, Any] | None]:
    """Where the configuration stands, and what it is; None where it can't be read."""
    try:
        found = read_class(body)
    except ProviderConfigError as error:
        return error.field, None
    return found.source_field, found.value


def _missing(body: Obj) -> ConfigProblem:
    """What is said of a class whose configuration names no provider."""
    try:
        return ConfigProblem(read_class(body).source_field, "must be an object with apiVersion and kind")
    except ProviderConfigError as error:
        return ConfigProblem(error.field, f"{error.message}; it must be an object with apiVersion and kind")
