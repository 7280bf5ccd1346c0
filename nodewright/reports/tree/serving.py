"""Which processes serve an object: read from the Leases of the controllers, so that no object has to say it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from api import names
from api.selectors import SelectorError, parse
from controllers.kernel.conditions import parse_time
from controllers.kernel.refs import (
    CLUSTER,
    CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    Kind,
    Obj,
    key_of,
    labels_of,
    mapping,
)
from nodewright.reports.tree.branch import Branch, Mood
from nodewright.runtime.election.claims import Claim, Holder, holder_of, last_holder_of
from nodewright.runtime.election.lease import Terms, duration_of, spec_of
from nodewright.runtime.election.process_identity import is_gone
from nodewright.runtime.fleet.findings import Findings, findings_of

_CLOCKS = timedelta(seconds=15)
"""How far the clock of a holder may be off before its Lease looks old here."""

_NEEDED: Mapping[Kind, tuple[str, ...]] = {
    CLUSTER: ("cluster", "machinedeployment", "machineset", "machine"),
    CONTROL_PLANE: ("controlplane", "machine"),
    MACHINE_DEPLOYMENT: ("machinedeployment", "machineset", "machine"),
    MACHINE_SET: ("machineset", "machine"),
    MACHINE: ("machine",),
    MACHINE_HEALTH_CHECK: ("machinehealthcheck",),
}
"""The controllers without which nothing happens to an object of that kind and to what it owns."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A live Lease. ``since``: when its holder began, None if it does not say."""

    lease: str
    holder: Holder
    findings: Findings = field(default_factory=Findings)
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A Lease that nobody holds any more: who was the last, and when it was renewed or released for the last time."""

    holder: Holder
    at: datetime


def live(leases: Iterable[Obj], now: datetime) -> tuple[Serving, ...]:
    """Those whose holder says what it serves, and that have not run out."""
    return tuple(
        Serving(str(key_of(lease)), holder, findings_of(lease), parse_time(spec_of(lease).get("acquireTime")))
        for lease in leases
        if (holder := holder_of(lease)).claims and _is_fresh(lease, now) and not is_gone(holder.process)
    )


def ended(leases: Iterable[Obj], now: datetime) -> tuple[Ended, ...]:
    """The others: what ran until when, so that silence has a beginning."""
    return tuple(
        Ended(holder, at)
        for lease in leases
        if (holder := last_holder_of(lease)).claims
        and (at := parse_time(spec_of(lease).get("renewTime"))) is not None
        and not (holder_of(lease).claims and _is_fresh(lease, now) and not is_gone(holder.process))
    )


def served_by(kind: Kind, obj: Obj, serving: Iterable[Serving], ended: Iterable[Ended] = ()) -> Branch:
    """One line for each process that serves ``obj``, and one for the controllers that nobody runs for it.

    That one tells since when: ``ended`` says until when they ran.
    """
    found = tuple(serving)
    lines: list[Branch] = []
    missing = set(_NEEDED[kind])
    for each in found:
        does = [claim for claim in each.holder.claims if claim.controller in _NEEDED[kind] and _fits(claim, kind, obj)]
        missing -= {claim.controller for claim in does}
        if does:
            lines.append(Branch(f"Lease/{each.lease}", Mood.GOOD, state=str(each.holder), message=_controllers(does)))
    if missing:
        what = ", ".join(name for name in _NEEDED[kind] if name in missing)
        lines.append(_nobody(what, _unserved_since(kind, obj, missing, ended)))
    return Branch("Served by", children=tuple(lines))


def _nobody(what: str, since: datetime | None) -> Branch:
    return Branch(
        "nobody",
        Mood.BAD,
        reason="NotServed",
        since=since,
        message=f"no process runs for it: {what}",
        advice=f"Start `nodewright run` (or `up`); Leases outside of {names.SYSTEM_NAMESPACE} are not seen.",
    )


def served_in(leases: Sequence[Obj], now: datetime, kind: Kind, obj: Obj) -> Branch:
    """``served_by`` for all Leases of the controllers as they are read."""
    return served_by(kind, obj, live(leases, now), ended(leases, now))


def _unserved_since(kind: Kind, obj: Obj, missing: set[str], ended: Iterable[Ended]) -> datetime | None:
    """The first moment at which ``obj`` was there and one of the controllers ``missing`` did not run.

    Worked example: made at 09:00; ``machine`` ran until 10:00 and ``machineset`` until 11:00: since 10:00. Of what has
    never run it is the moment at which the object was made.
    """
    last: dict[str, datetime] = {}
    for each in ended:
        for claim in each.holder.claims:
            if claim.controller in missing and _fits(claim, kind, obj):
                last[claim.controller] = max(each.at, last.get(claim.controller, each.at))
    made = created_of(obj)
    if made is None or not missing <= set(last):
        return made
    return max(made, min(last.values()))


def created_of(obj: Obj) -> datetime | None:
    return parse_time(mapping(obj.get("metadata")).get("creationTimestamp"))


def not_known(why: str) -> Branch:
    line = Branch("not known", message=f"the Leases in {names.SYSTEM_NAMESPACE} can't be read: {why}")
    return Branch("Served by", children=(line,))


def _fits(claim: Claim, kind: Kind, obj: Obj) -> bool:
    if claim.namespace and claim.namespace != key_of(obj).namespace:
        return False
    if kind != MACHINE or not claim.machines:
        return True
    try:
        return parse(claim.machines).matches(labels_of(obj))
    except SelectorError:
        return False


def _controllers(claims: Iterable[Claim]) -> str:
    return ", ".join(str(claim) for claim in claims)


def _is_fresh(lease: Obj, now: datetime) -> bool:
    renewed = parse_time(spec_of(lease).get("renewTime"))
    lasts = timedelta(seconds=duration_of(lease, Terms()))
    return renewed is not None and now - renewed <= lasts + _CLOCKS
