"""Whose a host is: one line of JSON that lies on the host, and a copy of it in the status of the pool."""

from __future__ import annotations

import json
import secrets as dice
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from providers.base.contract import HostIdentity, HostRequest
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh.config import SSHMachineConfig

_LATER = ("kept_hash", "fixed_hash", "pods_hash", "release_command", "kubelet", "steps")
"""Fields that claims of earlier versions have not."""
LONGEST = 16_384
"""Characters of a claim: the status of a pool takes no more, and the file lies on a host that others may write to."""
_HEADROOM = 1024
"""Characters that a claim may grow by: other hashes, and an identity of longer names."""
_MOST = {"namespace": 63, "machine": 253}
"""Characters of these fields, which the status shows together."""


@dataclass(frozen=True, slots=True)
class Claim:
    """``id``: 12 hex digits, another one for each claim. ``release``: as in SSHMachineConfig; ``release_command``: its
    words as a list of JSON, "" for none. The hashes: as in HostRequest, of what the host was made for or changed to
    last.
    """

    id: str
    machine_uid: str
    namespace: str
    machine: str
    management_cluster: str
    spec_hash: str
    created_at: str
    release: str = "Reset"
    release_command: str = ""
    kubelet: str = ""
    """Version that was asked for, without v."""
    kept_hash: str = ""
    fixed_hash: str = ""
    pods_hash: str = ""
    steps: str = ""
    """``join`` if the provider starts steps on the host, else "". Until they are started the host is Unfinished."""

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

    def changed_to(self, request: HostRequest) -> Claim:
        """The claim once the host is as ``request`` asks for."""
        hashes = {name: getattr(request, name) for name in ("spec_hash", "kept_hash", "fixed_hash", "pods_hash")}
        return replace(self, **hashes, kubelet=request.versions.kubelet)

    def command(self) -> tuple[str, ...]:
        """Words of ``release_command``; () where it is none: the host may say what it likes."""
        try:
            words = json.loads(self.release_command or "[]")
        except (ValueError, RecursionError):
            return ()
        return tuple(map(str, words)) if isinstance(words, list) else ()

    def made(self) -> datetime | None:
        try:
            found = datetime.fromisoformat(self.created_at)
        except ValueError:
            return None
        return found if found.tzinfo is not None else None

    @classmethod
    def read(cls, text: str) -> Claim | None:
        """None if it is no claim of ours."""
        if len(text) > LONGEST:
            return None
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            return None
        names = cls.__dataclass_fields__.keys()
        if not isinstance(fields, dict):
            return None
        fields = {**dict.fromkeys(_LATER, ""), **fields}
        if not all(isinstance(fields.get(name), str) for name in names):
            return None
        if not fields["id"] or not fields["machine_uid"]:
            return None
        claim = cls(**{name: fields[name] for name in names})
        fits = all(len(fields[name]) <= most for name, most in _MOST.items())
        return claim if fits and len(claim.text()) <= LONGEST else None


def claim_for(request: HostRequest, config: SSHMachineConfig) -> Claim:
    """Raises ProviderError for one that could not be read again: the host would be nobody's."""
    identity = request.identity
    claim = Claim(
        id=dice.token_hex(6),
        machine_uid=identity.machine_uid,
        namespace=identity.namespace,
        machine=identity.name,
        management_cluster=identity.management_cluster,
        spec_hash=request.spec_hash,
        created_at=datetime.now(UTC).isoformat(),
        release=config.release,
        release_command=json.dumps(config.release_command) if config.release_command else "",
        kept_hash=request.kept_hash,
        fixed_hash=request.fixed_hash,
        pods_hash=request.pods_hash,
        kubelet=request.versions.kubelet,
        steps="join" if request.bootstrap is not None or request.preparation else "",
    )
    if len(claim.text()) > LONGEST - _HEADROOM:
        text = f"releaseCommand: is too long: the claim on the host may have {LONGEST} characters in all"
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, text)
    return claim
