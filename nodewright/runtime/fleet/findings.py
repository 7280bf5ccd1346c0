"""What the working process has found that no object of the API shows: accounts that pause, quotas, lost hosts.

It stands in an annotation of the Lease that the process holds and goes out with a renewal, so it costs no request and
needs no further right; ``nodewright status`` reads it. Lists are bounded: a Lease is no database.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Protocol, TypeGuard

from api import names
from controllers.kernel.conditions import format_time, parse_time
from controllers.kernel.refs import Obj
from controllers.orphans.sweep import HostList, Orphan
from providers.base.capabilities import Quota

MOST: Final = 10
"""Accounts and hosts that are named; all are counted."""
MOST_TEXT: Final = 300
"""Characters of one reason."""
_MOST_READ: Final = 65536


@dataclass(frozen=True, slots=True)
class Finding:
    """``what``: an account, or a host as ``account/id``. ``since``: RFC 3339, "" if it is not known."""

    what: str
    why: str
    since: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a limit of an account is used."""

    account: str
    resource: str
    used: int
    limit: int
    unit: str = ""

    @property
    def share(self) -> float:
        """1.0 where nothing is left, though the limit is 0."""
        return self.used / self.limit if self.limit else 1.0

    def __str__(self) -> str:
        return f"{self.account} {self.resource} {self.used} of {self.limit} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Findings:
    """``version``: of the program. ``accounts``: providers' accounts whose calls pause or whose hosts can't be listed.

    ``orphans``: the first of ``orphans_in_all`` hosts that no Machine knows. ``removes``: the process removes those
    with the mark of its cluster. ``quotas``: those of which the largest share is used come first.
    """

    version: str = ""
    accounts: tuple[Finding, ...] = ()
    orphans: tuple[Finding, ...] = ()
    orphans_in_all: int = 0
    removes: bool = False
    quotas: tuple[Usage, ...] = ()

    def annotation(self) -> str:
        return json.dumps({name: value for name, value in asdict(self).items() if value}, separators=(",", ":"))


class _Hosts(Protocol):
    def lists(self) -> tuple[HostList, ...]: ...

    def paused(self) -> Mapping[str, str]: ...

    def quotas(self) -> Mapping[str, tuple[Quota, ...]]: ...


class Finder:
    """Collects what there is to say at a renewal. ``orphans`` and ``removes`` are set by the one who looks for them."""

    def __init__(self, version: str, hosts: _Hosts, now: Callable[[], datetime]) -> None:
        self._version = version
        self._hosts = hosts
        self._now = now
        self._since: dict[str, str] = {}
        """When an account was first seen with a problem."""
        self.orphans: Callable[[], Iterable[tuple[Orphan, datetime]]] = tuple
        """Proven orphans, and since when each has looked like one."""
        self.removes = False

    def text(self) -> str:
        """The annotation; the same as before if nothing has changed."""
        problems = {one.scope: one.problem for one in self._hosts.lists() if one.problem} | dict(self._hosts.paused())
        moment = format_time(self._now())
        self._since = {scope: self._since.get(scope, moment) for scope in problems}
        orphans = sorted(self.orphans(), key=lambda found: (found[1], found[0].host.id))
        return Findings(
            self._version,
            tuple(Finding(scope, _cut(problems[scope]), self._since[scope]) for scope in sorted(problems)[:MOST]),
            tuple(_of_orphan(orphan, since) for orphan, since in orphans[:MOST]),
            len(orphans),
            self.removes,
            _usages(self._hosts.quotas()),
        ).annotation()


def _usages(quotas: Mapping[str, Iterable[Quota]]) -> tuple[Usage, ...]:
    found = [
        Usage(_cut(account), _cut(each.resource), each.used, each.limit, _cut(each.unit))
        for account, of_account in quotas.items()
        for each in of_account
    ]
    return tuple(sorted(found, key=lambda each: (-each.share, each.account, each.resource))[:MOST])


def _of_orphan(orphan: Orphan, since: datetime) -> Finding:
    why = f"{_cut(orphan.host.name or orphan.host.id)} carries the UID of a Machine that is not there"
    more = "" if orphan.ours else "; it has no mark of this cluster"
    return Finding(_cut(f"{orphan.scope}/{orphan.host.id}"), why + more, format_time(since))


def findings_of(lease: Obj) -> Findings:
    """What the holder of ``lease`` has published; total over any JSON."""
    meta = lease.get("metadata")
    annotations = meta.get("annotations") if isinstance(meta, Mapping) else None
    text = annotations.get(names.LEASE_FINDINGS_ANNOTATION) if isinstance(annotations, Mapping) else None
    parsed = _parsed(text)
    accounts, orphans = _findings(parsed.get("accounts")), _findings(parsed.get("orphans"))
    in_all = parsed.get("orphans_in_all")
    count = in_all if _is_count(in_all) else 0
    version = parsed.get("version")
    return Findings(
        version if isinstance(version, str) else "",
        accounts,
        orphans,
        max(count, len(orphans)),
        parsed.get("removes") is True,
        _read_usages(parsed.get("quotas")),
    )


def _findings(listed: object) -> tuple[Finding, ...]:
    found = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return tuple(Finding(*(_text(each.get(name)) for name in ("what", "why", "since"))) for each in found[:MOST])


def _read_usages(listed: object) -> tuple[Usage, ...]:
    found = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return tuple(
        Usage(_text(each.get("account")), _text(each.get("resource")), used, limit, _text(each.get("unit")))
        for each in found[:MOST]
        if _is_count(used := each.get("used")) and _is_count(limit := each.get("limit"))
    )


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def since_of(finding: Finding) -> datetime | None:
    return parse_time(finding.since)


def _text(value: object) -> str:
    return _cut(value) if isinstance(value, str) else ""


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def _parsed(text: object) -> Mapping[str, Any]:
    try:
        decoded = json.loads(text) if isinstance(text, str) and len(text) <= _MOST_READ else {}
    except (ValueError, RecursionError):
        return {}
    return decoded if isinstance(decoded, Mapping) else {}
