"""``nodewright logs``: which entries a Machine's timeline has, and how they look."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewright.cli import main
from nodewright.cli.exits import USAGE
from nodewright.reports.timeline.entries import LONGEST_MESSAGE, Entry, History, Source, entries_of
from nodewright.reports.timeline.showing import as_lines, as_value
from tests.builders import machine, machine_set, node

TIME = "2026-06-01T11:{:02}:00Z"


def event(kind: str, name: str, uid: str, minute: int, **more: Any) -> dict[str, Any]:
    about = {"kind": kind, "name": name, "uid": uid, "namespace": "default"}
    said = {"type": "Normal", "reason": "Said", "message": "something", "lastTimestamp": TIME.format(minute)}
    return {"involvedObject": about, **said, **more}


def a_machine(**status: Any) -> dict[str, Any]:
    body = machine("web-0").of(machine_set("web")).build()
    body["metadata"] |= {"uid": "u-1", "creationTimestamp": TIME.format(0)}
    body["status"] = {"nodeRef": {"name": "n-0"}, **status}
    return body


def told(*events: dict[str, Any], **more: Any) -> list[Entry]:
    owner = machine_set("web").build()
    owner["metadata"]["uid"] = "s-1"
    parts = {"machine": a_machine(), "node_name": "n-0", "node": None, "owners": [owner], **more}
    return entries_of(History("web-0", events=events, **parts))


def of_events(entries: list[Entry]) -> list[str]:
    return [f"{one.object} {one.message}" for one in entries if one.source is Source.EVENT]


def test_events_conditions_and_calls_stand_in_the_order_of_time() -> None:
    ready = {"type": "Ready", "status": "True", "reason": "NodeReady", "lastTransitionTime": TIME.format(9)}
    call = {"type": "Create", "state": "Successful", "description": "host p://1", "lastUpdated": TIME.format(3)}
    body = a_machine(conditions=[ready], lastOperation=call)
    found = told(event("Machine", "web-0", "u-1", 5), machine=body)
    assert [(one.source, one.reason) for one in found] == [
        ("object", "Created"),
        ("operation", "Create Successful"),
        ("event", "Said"),
        ("condition", "Ready=True"),
    ]


def test_events_of_a_deleted_namesake_are_left_out() -> None:
    found = told(event("Machine", "web-0", "u-0", 1, message="old"), event("Machine", "web-0", "u-1", 2, message="new"))
    assert of_events(found) == ["Machine/web-0 new"]


def test_of_a_machine_that_is_gone_the_latest_of_its_name_is_told() -> None:
    events = [event("Machine", "web-0", "u-0", 1, message="old"), event("Machine", "web-0", "u-1", 2, message="new")]
    assert of_events(told(*events, machine=None, node_name="", owners=[])) == ["Machine/web-0 new"]


def test_the_kubelet_names_its_node_by_name_in_place_of_the_uid() -> None:
    body = node("n-0").build()
    body["metadata"]["uid"] = "n-uid"
    uids = ("n-0", "n-uid", "of-another")
    events = [event("Node", "n-0", uid, minute, message=uid) for minute, uid in enumerate(uids)]
    assert of_events(told(*events, node=body)) == ["Node/n-0 n-0", "Node/n-0 n-uid"]


@pytest.mark.parametrize(
    ("message", "is_told"),
    [
        ("created Machine web-0", True),
        ("Machine web-0: the quota is used up", True),
        ("default/web-0.", True),
        ("created Machine web-01", False),
        ("created Machine my-web-0", False),
        ("created Machine web-0-a", False),
        ("created Machine web-0.b", False),
    ],
)
def test_of_its_owner_only_what_names_it_is_told(message: str, is_told: bool) -> None:
    assert bool(of_events(told(event("MachineSet", "web", "s-1", 1, message=message)))) == is_told


def test_conditions_that_changed_together_for_one_reason_are_one_entry() -> None:
    why = {"status": "False", "reason": "QuotaExceeded", "message": "cores", "lastTransitionTime": TIME.format(1)}
    found = told(machine=a_machine(conditions=[{"type": "Ready", **why}, {"type": "InfrastructureReady", **why}]))
    assert [(one.reason, one.message) for one in found if one.source is Source.CONDITION] == [
        ("InfrastructureReady, Ready=False", "QuotaExceeded: cores")
    ]


def test_every_stage_of_a_deletion_has_its_time() -> None:
    stages = {"nodeDrainStartTime": TIME.format(1), "hostDeletionStartTime": TIME.format(2)}
    body = a_machine(deletion=stages)
    body["metadata"]["deletionTimestamp"] = TIME.format(1)
    reasons = [one.reason for one in told(machine=body)]
    assert reasons == ["Created", "DeletionRequested", "DrainStarted", "HostDeletionStarted"]


def test_no_credential_and_no_endless_text_is_shown() -> None:
    message = "Authorization: Bearer abcdefghijklmnop\n" + "x" * 100_000
    (found,) = [one for one in told(event("Machine", "web-0", "u-1", 1, message=message)) if one.message]
    assert "abcdefgh" not in found.message
    assert len(found.message) <= LONGEST_MESSAGE + 1
    assert "\n" not in found.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(["metadata", "status", "series", "involvedObject", "lastTimestamp", "count", "reason", "kind"])


@given(events=st.lists(st.dictionaries(FIELDS, JSON), max_size=3), body=st.dictionaries(FIELDS, JSON), status=JSON)
def test_any_json_has_a_timeline(events: list[dict[str, Any]], body: dict[str, Any], status: Any) -> None:
    for machine_ in (body, {**a_machine(), "status": status}, a_machine(conditions=status, lastOperation=status)):
        for entry in entries_of(History("web-0", machine_, "n-0", body, [body], events)):
            assert as_lines(entry, 80)
            assert as_value(entry)["object"]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_lines_fit_the_terminal_and_lose_no_word(width: int) -> None:
    message = "quota of cores is used up: 40 of 40 are used by this project, and " * 4
    (found,) = [one for one in told(event("Machine", "web-0", "u-1", 1, message=message, count=3)) if one.message]
    lines = [str(line) for line in as_lines(found, width)]
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("2026-06-01T11:01:00Z   Machine/web-0 Said (3×): quota")
    assert " ".join(" ".join(lines).split()).endswith(message.strip())


@pytest.mark.parametrize("words", ["logs md web", "logs machine", "logs ma/a/b", "logs ma a --tail 0"])
def test_wrong_usage_is_told(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(words.split()) == USAGE
    assert "internal" not in capsys.readouterr().err
