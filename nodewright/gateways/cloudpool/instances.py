"""The pools that are served, by name: which object each is, and whether it is started. Kept in a file on request."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from controllers.cloudpool.messages import MessageError, typed
from controllers.cloudpool.pool import KINDS
from controllers.kernel.refs import Key, Kind

NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9_\-.]{1,253}\Z")
_TITLE = "config"
_NAMES = {"md": "MachineDeployment", "ms": "MachineSet"}


class InstanceError(Exception):
    """A pool that can't be meant, or a file that can't be used."""


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """Which object the pool is."""

    kind: str
    namespace: str
    name: str

    @property
    def what(self) -> tuple[Kind, Key]:
        return KINDS[self.kind], Key(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Instance:
    """``config`` None: nobody has said yet which object it is."""

    name: str
    config: PoolConfig | None = None
    started: bool = False

    def __str__(self) -> str:
        stopped = "" if self.started else ", stopped"
        return f"{self.name} ({self.config}{stopped})" if self.config else f"{self.name} (not configured)"


class Instances:
    """All of them. ``file`` None: what clients change is forgotten when the process ends."""

    def __init__(self, given: Mapping[str, PoolConfig], started: bool = True, file: Path | None = None) -> None:
        self._file = file
        self._known = {name: Instance(name, config, started) for name, config in given.items()}
        if file is not None and file.exists():
            self._known.update(_read(file))

    def __str__(self) -> str:
        return ", ".join(str(self._known[name]) for name in self.names()) or "(none yet)"

    def names(self) -> list[str]:
        return sorted(self._known)

    def get(self, name: str) -> Instance | None:
        return self._known.get(name)

    @property
    def only(self) -> Instance | None:
        """The one pool, if there is but one: it is served at the root too."""
        return next(iter(self._known.values())) if len(self._known) == 1 else None

    def create(self, name: str) -> None:
        if not NAME.match(name):
            raise InstanceError(f"{name!r} is not a name of letters, digits, '-', '_' and '.', other than '.' and '..'")
        if name in self._known:
            raise InstanceError(f"there is a cloudpool {name} already")
        self._change(Instance(name))

    def delete(self, name: str) -> None:
        del self._known[name]
        self._save()

    def configure(self, name: str, config: PoolConfig) -> None:
        self._change(replace(self._known[name], config=config))

    def start(self, name: str, started: bool) -> None:
        self._change(replace(self._known[name], started=started))

    def _change(self, instance: Instance) -> None:
        self._known[instance.name] = instance
        self._save()

    def _save(self) -> None:
        """Whole or not at all: a process that dies here leaves the file as it was."""
        if self._file is None:
            return
        text = json.dumps({name: asdict(instance) for name, instance in self._known.items()}, indent=2)
        draft = self._file.with_name(f"{self._file.name}.new")
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._file)


def read_config(fields: Mapping[str, Any]) -> PoolConfig:
    """The body of a configuration. Raises MessageError naming the field."""
    kind, namespace, name = (typed(fields, each, str, _TITLE) for each in ("kind", "namespace", "name"))
    if kind not in KINDS:
        raise MessageError("illegal input: config", f"kind: one of {', '.join(KINDS)} is needed")
    if not name:
        raise MessageError("illegal input: config", "name: it is required")
    return PoolConfig(kind, namespace or "default", name)


def parse_pool(text: str) -> tuple[str, PoolConfig]:
    """``[NAME=]KIND/[NAMESPACE/]OBJECT`` as on the command line. Raises InstanceError."""
    name, equals, target = text.rpartition("=")
    parts = target.split("/")
    kinds = {**{each.lower(): each for each in KINDS}, **_NAMES}
    kind = kinds.get(parts[0].lower())
    if len(parts) not in (2, 3) or kind is None or not all(parts) or (equals and not NAME.match(name)):
        raise InstanceError(f"{text!r} is not [NAME=]KIND/[NAMESPACE/]OBJECT, with md or ms as KIND")
    config = PoolConfig(kind, parts[1] if len(parts) == 3 else "default", parts[-1])
    return name or config.name, config


def _read(file: Path) -> dict[str, Instance]:
    try:
        found = json.loads(file.read_text())
        return {
            name: Instance(name, PoolConfig(**body["config"]) if body["config"] else None, bool(body["started"]))
            for name, body in found.items()
            if body["config"] is None or body["config"]["kind"] in KINDS
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InstanceError(f"{file}: it can't be used: {error}") from error
