"""Which way a host is rebooted for an attempt, and whether it was: a record in the pool's status. Pure.

The record is written before anything is done. Over SSH the host itself compares its boot id with the one in the
record, so that a repeated order boots it once. A power command can't tell: it is run by whoever wrote the record, and
never again for that attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from api.secrets import without_secrets
from api.sshhostpool import SSHHostReboot
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh.trouble import Trouble

if TYPE_CHECKING:
    from providers.ssh.looks import Seen

BY_SSH: Final = "SSH"
BY_POWER: Final = "Power"
SILENT = frozenset({Trouble.UNREACHABLE, Trouble.FAILED})
"""Troubles of a host that hangs. One that shows another key or lets nobody in is not mended by a reboot."""


def begin(found: Seen, attempt: str) -> SSHHostReboot:
    """The record of a new attempt. One that answers is asked itself, unless an earlier attempt came to nothing so.

    Raises ProviderError (Timeout) if nothing reaches the host.
    """
    assert found.claim is not None
    before = found.reboot
    in_vain = before is not None and before.by == BY_SSH and before.boot_id == found.boot
    by_power = found.host.power is not None and (found.silent or (in_vain and not found.trouble))
    if found.trouble and not by_power:
        why = "it has no power command" if found.silent else "such a host is not rebooted"
        raise ProviderError(ErrorClass.TIMEOUT, f"{found.trouble}; {why}")
    by = BY_POWER if by_power else BY_SSH
    return SSHHostReboot(attempt=attempt, by=by, claim=found.claim.id, boot_id=found.boot, problem="")


def done(record: SSHHostReboot | None, boot: str) -> str:
    """The attempt that has taken place, as a host tells that has booted as ``boot``; "" if none has."""
    if record is None or not boot or record.problem or record.boot_id == boot:
        return ""
    return record.attempt


def shown(record: SSHHostReboot) -> dict[str, Any]:
    """As the status has it, with each field: a patch must leave nothing of the record before."""
    return {
        "attempt": record.attempt,
        "by": record.by,
        "claim": record.claim,
        "bootID": record.boot_id,
        "problem": without_secrets(record.problem)[:1024],
    }
