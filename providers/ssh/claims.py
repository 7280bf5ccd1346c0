"""Whose a host is: one line of JSON that lies on the host, and a copy of it in the status of the pool. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from providers.base.contract import HostIdentity

_LONGEST = 16_384
"""Bytes. The file lies on a host that others may write to."""


@dataclass(frozen=True, slots=True)
class Claim:
    """``id``: 12 hex digits, another one for each claim. ``release``: as in SSHMachineConfig. ``spec_hash`` and
    ``kept_hash``: as in HostRequest, of what the host was made for or changed to last.
    """

    id: str
    machine_uid: str
    namespace: str
    machine: str
    management_cluster: str
    spec_hash: str
    created_at: str
    release: str = "Reset"
    kept_hash: str = ""

    def text(self) -> str:
        """One line."""
        return json.dumps(asdict(self), sort_keys=True)

    def is_of(self, identity: HostIdentity) -> bool:
        """A claim without a mark was made before there were any."""
        marks = {self.management_cluster, identity.management_cluster}
        return self.machine_uid == identity.machine_uid and (len(marks) == 1 or not self.management_cluster)

    def rebound(self, identity: HostIdentity) -> Claim:
        """The same claim, as that of another Machine object."""
        return replace(
            self,
            machine_uid=identity.machine_uid,
            namespace=identity.namespace,
            machine=identity.name,
            management_cluster=identity.management_cluster,
        )

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
            fields = json.loads(text)
        except (ValueError, RecursionError):
            return None
        names = cls.__dataclass_fields__.keys()
        if not isinstance(fields, dict):
            return None
        fields = {"kept_hash": "", **fields}
        if not all(isinstance(fields.get(name), str) for name in names):
            return None
        if not fields["id"] or not fields["machine_uid"]:
            return None
        return cls(**{name: fields[name] for name in names})
