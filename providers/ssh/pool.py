"""An SSHHostPool as it was read: its hosts, and what its status remembers of claims. Pure.

The claim that counts is the file on the host itself. The status is written before a host is claimed, so that a host
that does not answer is still known to be somebody's, also after this process has been started anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from api.sshhostpool import SSHHost, SSHHostPool, SSHHostReboot
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh.claims import Claim

POOL_KIND: Final = "SSHHostPool"
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class Pool:
    """``object``: as it was read, for the guarded write of its status. ``reboots``: the last one of each host."""

    name: str
    secret: str
    hosts: Mapping[str, SSHHost]
    remembered: Mapping[str, Claim]
    object: Mapping[str, Any]
    reboots: Mapping[str, SSHHostReboot]
    kubelet_starts: int = 0
    """Starts within an hour of a kubelet that does not run; 0: none."""

    @property
    def namespace(self) -> str:
        return str((self.object.get("metadata") or {}).get("namespace") or "")

    def matching(self, labels: Mapping[str, str], zone: str) -> tuple[SSHHost, ...]:
        """Hosts with all of ``labels``, in ``zone`` if one is asked for, in the order of the pool."""
        return tuple(
            host
            for host in self.hosts.values()
            if labels.items() <= (host.labels or {}).items() and (not zone or host.zone == zone)
        )


def read(obj: Mapping[str, Any]) -> Pool:
    """Raises ProviderError (InvalidConfiguration) naming the field of the pool."""
    name = str((obj.get("metadata") or {}).get("name") or "")
    try:
        parsed = SSHHostPool.model_validate(obj)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        text = f"SSHHostPool {name}: {path}: {first['msg']}"
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, text) from error
    hosts = {host.name: _with_cas(host, parsed.spec.host_cas) for host in parsed.spec.hosts}
    kept = (parsed.status.hosts if parsed.status else None) or {}
    claims = {each: Claim.read(seen.claim) for each, seen in kept.items() if seen.claim and each in hosts}
    remembered = {each: claim for each, claim in claims.items() if claim is not None}
    reboots = {each: seen.reboot for each, seen in kept.items() if seen.reboot is not None}
    starts = parsed.spec.kubelet_starts_per_hour or 0
    return Pool(name, parsed.spec.secret_name, hosts, remembered, obj, reboots, starts)


def _with_cas(host: SSHHost, shared: list[str] | None) -> SSHHost:
    """``shared``: of the pool, for hosts and proxy jumps that have none of their own."""
    if not shared:
        return host
    way = [jump if jump.host_cas else jump.model_copy(update={"host_cas": shared}) for jump in host.way]
    own = {"host_cas": host.host_cas or shared, "proxy_jump": None, "proxy_jumps": way or None}
    return host.model_copy(update=own)


def some(names: list[str]) -> str:
    """At most five of ``names`` and how many more there are."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
