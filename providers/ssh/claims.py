"""Whose a host is: one line of JSON that lies on the host, and a copy of it in the status of the pool. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

_LONGEST = 16_384
"""Bytes. The file lies on a host that others may write to."""


@dataclass(frozen=True, slots=True)
class Claim:
    """``id``: 12 hex digits, another one for each claim. ``asked``: the part of the request that the host was made
    for, to tell what has changed of it. ``release``: as in SSHMachineConfig.
    """

    id: str
    machine_uid: str
    namespace: str
    machine: str
    management_cluster: str
    spec_hash: str
    created_at: str
    release: str = "Reset"
    asked: Mapping[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """One line."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def title(self) -> str:
        return f"Machine {self.namespace}/{self.machine} ({self.machine_uid})"

    def made(self) -> datetime | None:
        try:
            found = datetime.fromisoformat(self.created_at)
        except ValueError:
            return None
        return found if found.tzinfo is not None else None

    @classmethod
    def read(cls, text: str) -> Claim | None:
        """None if it is no claim of ours."""
        if len(text) > _LONGEST:
            return None
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            return None
        names = cls.__dataclass_fields__.keys() - {"asked"}
        if not isinstance(told, dict) or not all(isinstance(told.get(name), str) for name in names):
            return None
        if not told["id"] or not told["machine_uid"] or not isinstance(told.get("asked"), dict):
            return None
        return cls(**{name: told[name] for name in (*names, "asked")})
