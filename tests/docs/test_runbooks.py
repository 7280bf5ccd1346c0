"""Each reason and alert that asks somebody to do something has a heading in docs/runbooks.md."""

from __future__ import annotations

import json
import re

import pytest

from hack.runbooks import FOR_THE_WEB, PAGE, for_the_web, page, rules, written
from nodewright.cli.main import COMMANDS
from nodewright.reports.fleet import found, held, summary
from nodewright.reports.fleet.held import HELD
from nodewright.reports.tree import advice
from nodewright.reports.tree.health import BAD_REASONS
from nodewright.reports.tree.runbooks import FLEET_REASONS, runbook_for, with_runbook
from tests.docs.pages import ROOT, anchors

REASONS = sorted(map(str, {*BAD_REASONS, *HELD, *FLEET_REASONS, *advice._BY_REASON}))
ALERTS = sorted(rules())
WEB = json.loads(FOR_THE_WEB.read_text())


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run `make generate`"


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_that_wants_an_eye_has_a_heading(reason: str) -> None:
    file, _, heading = runbook_for(reason).partition("#")
    assert heading in anchors(ROOT / file)


@pytest.mark.parametrize("reason", REASONS)
def test_the_web_view_has_the_same_heading_with_a_step_and_commands(reason: str) -> None:
    entry = WEB[runbook_for(reason).partition("#")[2]]
    assert (entry["title"], bool(entry["do"]), bool(entry["look"])) == (reason, True, True)
    page, _, heading = entry["page"].partition("#")
    assert (heading or "") in anchors(ROOT / page) | {""}


def test_what_the_web_view_has_is_current() -> None:
    assert FOR_THE_WEB.read_text() == for_the_web(), "run `make generate`"


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_names_its_heading(alert: str) -> None:
    file, _, heading = rules()[alert]["annotations"]["runbook"].partition("#")
    assert heading == alert.lower()
    assert heading in anchors(ROOT / file)


def test_the_page_has_no_heading_of_what_nobody_says() -> None:
    named = {reason for group in written()["reasons"] for reason in group["of"]}
    assert sorted(named) == REASONS
    assert sorted(written()["alerts"]) == ALERTS


def test_no_reason_of_the_fleet_is_forgotten() -> None:
    """Those that stand as text where the lines are made."""
    sources = "".join((ROOT / str(module.__file__)).read_text() for module in (found, held, summary))
    texts = set(re.findall(r'"([A-Z][a-z]+[A-Z][A-Za-z]+)"', sources)) | {"NotServed"}
    assert texts - {"Unavailable"} == FLEET_REASONS


def test_each_entry_says_what_to_do_and_how_to_look() -> None:
    entries = re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    assert len(entries) == len(REASONS) + len(ALERTS)
    lacking = [entry.splitlines()[0] for entry in entries if "\nDo: " not in entry or "\n    " not in entry]
    assert lacking == []


def test_commands_of_the_page_are_commands_of_the_program() -> None:
    used = set(re.findall(r"^    nodewright (\S+)", PAGE.read_text(), re.MULTILINE))
    assert used <= set(COMMANDS)


def test_a_step_names_its_runbook_once() -> None:
    assert with_runbook("Do it.", "QuotaExceeded") == "Do it. See docs/runbooks.md#quotaexceeded."
    assert with_runbook("See docs/x.md.", "QuotaExceeded") == "See docs/x.md."
    assert with_runbook("Do it.", "ScalingUp") == "Do it."
    assert with_runbook("", "QuotaExceeded") == ""
