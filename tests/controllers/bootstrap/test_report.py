"""A report is believed with the signature of its own token's secret only, and whatever stands in it is bounded text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from controllers.bootstrap import report
from controllers.kernel.host_report import Report

SECRET, OTHER = "0123456789abcdef", "fedcba9876543210"
SAID = Report("abcdef", 7, 8, 13, "install kubelet 1.36.9", "binary", True, 1, 2, "curl: (22) 404")


def event(text: str, signature: Any) -> dict[str, Any]:
    annotations = {names.REPORT_ANNOTATION: text, names.REPORT_SIGNATURE_ANNOTATION: signature}
    return {"metadata": {"name": "abcdef-x1", "namespace": names.BOOTSTRAP_NAMESPACE, "annotations": annotations}}


def signed(text: str, secret: str = SECRET) -> dict[str, Any]:
    return event(text, report.sign(text, secret))


def test_a_report_comes_through_as_it_was_written() -> None:
    assert report.verified(signed(report.as_text(SAID)), SECRET) == SAID


def test_the_holder_of_another_token_can_not_speak_for_this_one() -> None:
    forged = signed(report.as_text(SAID), OTHER)
    assert report.token_id_of(forged) == SAID.token_id
    assert report.verified(forged, SECRET) is None


@pytest.mark.parametrize("signature", ["", "0" * 64, "é", None, 7, [], report.sign(report.as_text(SAID), SECRET)[:-1]])
def test_anything_else_for_a_signature_is_none(signature: Any) -> None:
    assert report.verified(event(report.as_text(SAID), signature), SECRET) is None


def test_one_changed_character_breaks_the_signature() -> None:
    right = signed(report.as_text(SAID))
    right["metadata"]["annotations"][names.REPORT_ANNOTATION] = report.as_text(SAID).replace("13", "14")
    assert report.verified(right, SECRET) is None


@pytest.mark.parametrize(
    ("said", "done"), [({}, True), ({"failed": True}, False), ({"step": 7}, False), ({"done": 1}, False)]
)
def test_a_host_is_done_only_after_its_last_step_and_without_a_failure(said: dict[str, Any], done: bool) -> None:
    last = Report("abcdef", 7, 13, 13, "join the control plane", done=True)
    found = report.verified(signed(json.dumps({**json.loads(report.as_text(last)), **said})), SECRET)
    assert found is not None
    assert found.done is done


def test_without_a_secret_nothing_is_believed() -> None:
    assert report.verified(signed(report.as_text(SAID), ""), "") is None


def test_a_secret_that_the_host_should_have_hidden_ends_here() -> None:
    said = json.dumps({**json.loads(report.as_text(SAID)), "log": f"a {SECRET} b", "name": f"x {SECRET}"})
    found = report.verified(signed(said), SECRET)
    assert found is not None
    assert (found.log, found.name) == ("a *** b", "x ***")


def test_characters_that_steer_a_terminal_are_written_out() -> None:
    said = json.dumps({**json.loads(report.as_text(SAID)), "log": "\x1b[2J\u202e", "name": "a\nb\x07"})
    found = report.verified(signed(said), SECRET)
    assert found is not None
    assert (found.log, found.name) == ("\\x1b[2J\\u202e", "a b\\x07")


WRONG = [
    "", "null", "[]", "{", "7", "[" * 5000, '{"token": 7}', "x" * (report.LONGEST_REPORT + 1),
    *(
        json.dumps({**json.loads(report.as_text(SAID)), **change})
        for change in (
            {"token": "ABCDEF"}, {"token": "abcdefg"}, {"step": 0}, {"step": 14}, {"step": -1}, {"step": True},
            {"step": "8"}, {"steps": 10**9}, {"name": ""}, {"name": 7}, {"sequence": None}, {"sequence": 1e300},
            {"sequence": -1}, {"log": "x" * 9000},
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_what_is_no_report_is_none_though_it_is_signed(text: str) -> None:
    assert report.verified(signed(text), SECRET) is None


anything = st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=3)


@given(st.dictionaries(st.sampled_from(list(json.loads(report.as_text(SAID)))), anything))
def test_any_content_gives_a_bounded_report_or_none(change: dict[str, Any]) -> None:
    text = json.dumps({**json.loads(report.as_text(SAID)), **change})
    found = report.verified(signed(text), SECRET)
    if found is not None:
        assert len(found.name) <= report.LONGEST_NAME
        assert len(found.log) <= report.LONGEST_LOG
        assert report.of_object(report.to_object(found, "uid", "1")) == found


@pytest.mark.parametrize(
    "obj", [{"metadata": {}}, {"metadata": {"annotations": None}}, {"metadata": {"annotations": 7}}]
)
def test_an_event_of_somebody_else_carries_no_report(obj: Any) -> None:
    assert report.token_id_of(obj) == ""
    assert report.verified(obj, SECRET) is None
