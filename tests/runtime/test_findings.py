"""What a working process says in its Lease: accounts that pause and orphan hosts; bounded, total over any JSON."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given

from api.names import LEASE_FINDINGS_ANNOTATION
from controllers.orphans.sweep import HostList, Orphan
from nodewright.runtime.fleet.findings import MOST, MOST_TEXT, Finder, Findings, findings_of
from providers.base.capabilities import Quota
from providers.base.contract import Host, HostState
from tests.builders import NOW, hostile


class Accounts:
    def __init__(self) -> None:
        self.listed: tuple[HostList, ...] = ()
        self.pauses: dict[str, str] = {}

    def lists(self) -> tuple[HostList, ...]:
        return self.listed

    def paused(self) -> dict[str, str]:
        return self.pauses

    def quotas(self) -> dict[str, tuple[Quota, ...]]:
        return {}


def lease(text: object) -> Any:
    return {"metadata": {"name": "l", "annotations": {LEASE_FINDINGS_ANNOTATION: text}}}


def orphan(number: int, *, ours: bool = True) -> Orphan:
    host = Host(f"h-{number}", f"u-{number}", f"web-{number}", "", HostState.RUNNING, "")
    return Orphan("prod", host, "no Machine", ours)


def test_what_was_published_is_read_back() -> None:
    accounts = Accounts()
    accounts.listed = (HostList("fine"), HostList("dark", problem="connection refused"))
    accounts.pauses = {"prod": "calls pause: Unavailable: 503"}
    finder = Finder("0.1.0", accounts, lambda: NOW)
    finder.orphans = lambda: [(orphan(2), NOW), (orphan(1, ours=False), NOW - timedelta(hours=1))]
    found = findings_of(lease(finder.text()))
    assert found.version == "0.1.0"
    assert [(one.what, one.why) for one in found.accounts] == [
        ("dark", "connection refused"),
        ("prod", "calls pause: Unavailable: 503"),
    ]
    assert [one.what for one in found.orphans] == ["prod/h-1", "prod/h-2"], "the oldest first"
    assert "no mark of this cluster" in found.orphans[0].why
    assert (found.orphans_in_all, found.removes) == (2, False)


def test_since_when_stays_while_the_problem_does_and_begins_anew_after_it() -> None:
    accounts, clock = Accounts(), [NOW]
    finder = Finder("", accounts, lambda: clock[0])
    accounts.pauses = {"prod": "503"}
    first = finder.text()
    clock[0] += timedelta(minutes=5)
    assert finder.text() == first, "nothing new, so nothing is written"
    accounts.pauses = {}
    assert findings_of(lease(finder.text())).accounts == ()
    accounts.pauses = {"prod": "503"}
    assert findings_of(lease(finder.text())).accounts[0].since != findings_of(lease(first)).accounts[0].since


def test_a_thousand_orphans_and_long_texts_stay_small() -> None:
    accounts = Accounts()
    accounts.pauses = {f"account-{n}": "x" * 5000 for n in range(1000)}
    finder = Finder("0.1.0", accounts, lambda: NOW)
    finder.orphans = lambda: [(orphan(n), NOW) for n in range(1000)]
    text = finder.text()
    assert len(text) < 2 * MOST * 2 * MOST_TEXT
    found = findings_of(lease(text))
    assert (len(found.orphans), found.orphans_in_all, len(found.accounts)) == (MOST, 1000, MOST)


@given(hostile.json)
def test_any_annotation_can_be_read(value: Any) -> None:
    assert isinstance(findings_of(lease(value)), Findings)
    assert isinstance(findings_of({"metadata": value}), Findings)


@given(hostile.json)
def test_any_json_in_the_annotation_can_be_read(value: Any) -> None:
    import json  # noqa: PLC0415

    found = findings_of(
        lease(json.dumps({"accounts": value, "orphans": [value], "orphans_in_all": value, "quotas": [value]}))
    )
    assert all(usage.share >= 0 for usage in found.quotas)
    assert all(len(one.why) <= MOST_TEXT for one in (*found.accounts, *found.orphans))
