"""Certificates of hosts that are near their end: which Machine is to get new ones, and whether it has them.

A Machine is asked by an annotation, which changes no generation, so only the certificates themselves tell that it was
done: until all that its host shows end later than those it was asked for, the Machine counts as being updated.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from api import names
from controllers.kernel.certificates import Certificate, CertificatesRead, CertificatesUnread
from controllers.kernel.conditions import format_time, parse_time
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import annotations_of

_PREFIX: Final = "ends-"
_SERVERS: Final = 2
"""A host of a control plane shows a certificate of its API server and one of its etcd member."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """``due``: when the first certificate of its host ends, if it is time to renew it. ``under_way``: it was asked for,
    and the host does not show new ones yet."""

    due: datetime | None = None
    under_way: bool = False


NOTHING: Final = Renewal()


def renewal_of(
    machine: MachineFacts, read: CertificatesRead | CertificatesUnread | None, before: timedelta, now: datetime
) -> Renewal:
    """``before``: how long before its end a certificate is renewed; 0 asks for nothing.

    With ``before`` of 60 days and a certificate of a year it is due when 60 days are left; one of 30 days when a third
    of them is left, 10 days: else it would be renewed all the time.
    """
    if read is None:
        return NOTHING
    shown = read.certificates if isinstance(read, CertificatesRead) else ()
    own = [each for each in shown if each.machine == machine.key.name]
    asked = _asked(machine)
    if asked is not None and (len(own) < _SERVERS or min(each.ends for each in own) <= asked):
        return Renewal(under_way=True)
    due = [each.ends for each in own if _is_due(each, before, now)]
    return Renewal(due=min(due)) if due else NOTHING


def is_finding_out(read: CertificatesRead | CertificatesUnread | None) -> bool:
    """Soon it is known. Until then a Machine that was asked for new certificates may or may not have them."""
    return isinstance(read, CertificatesUnread) and read.finding_out


def was_asked(machine: MachineFacts) -> bool:
    return _asked(machine) is not None


def annotation(due: datetime) -> dict[str, str]:
    """What asks a Machine: ``ends-2026-12-24T10:00:00Z``. The same end asks once."""
    return {names.RENEW_CERTIFICATES: f"{_PREFIX}{format_time(due)}"}


def _asked(machine: MachineFacts) -> datetime | None:
    """The end for which new ones were asked for. A value of a person's says nothing of it."""
    text = annotations_of(machine.body).get(names.RENEW_CERTIFICATES)
    return parse_time(text[len(_PREFIX) :]) if isinstance(text, str) and text.startswith(_PREFIX) else None


def _is_due(certificate: Certificate, before: timedelta, now: datetime) -> bool:
    if certificate.begins is None or before <= timedelta(0):
        return False
    third = (certificate.ends - certificate.begins) / 3
    return certificate.ends - now <= min(before, third)
