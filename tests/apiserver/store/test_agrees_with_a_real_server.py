"""Does the store answer as a real kube-apiserver (1.36) answered when it was asked the same?

`golden/record.py` says how the answers were recorded. Where we differ on purpose, the reason is here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodewright.apiserver.values import Obj
from tests.apiserver.store.golden.dialogue import StoreApi, play
from tests.apiserver.store.golden.steps_builtin import BUILTIN_STEPS
from tests.apiserver.store.golden.steps_custom import CUSTOM_STEPS

REAL: dict[str, Obj] = json.loads((Path(__file__).parent / "golden" / "answers.json").read_text())

SAME_WORDS_BUT = {
    "budget: both": "the value shown is the object that was sent, not a dump of Go's internal type",
    "create: a list": "Go's decoder names its own anonymous struct",
    "create: no kind": "the body is shown once, not twice",
    "create: annotations long": "rules of the schema are judged although metadata is wrong",
    "create: no name": "rules of the schema are judged although metadata is wrong",
    "evict: two budgets": "the error has a reason; the real one has none",
    "patch: status of wrong type": "the message names the field from the root of the object",
    "pod: node by update": "no diff of Go's internal types",
    "update: other uid": "the message does not show the keys of etcd",
}
"""Label → why the message differs although the code, and where there is one the field, is the real server's."""

OTHERWISE = {
    "kind": "our kinds are established at once, so that the answer says so already",
}
"""Label → why the whole answer differs."""


@pytest.fixture(scope="module")
def ours() -> dict[str, Obj]:
    return play(StoreApi(), [*CUSTOM_STEPS, *BUILTIN_STEPS])


def test_the_recorded_dialogue_is_the_one_that_is_played(ours: dict[str, Obj]) -> None:
    assert set(ours) == set(REAL)


@pytest.mark.parametrize("label", sorted(REAL.keys() - SAME_WORDS_BUT.keys() - OTHERWISE.keys()))
def test_the_answer_is_the_same(ours: dict[str, Obj], label: str) -> None:
    assert ours[label] == REAL[label]


@pytest.mark.parametrize("label", sorted(SAME_WORDS_BUT))
def test_the_answer_has_the_same_code_and_field(ours: dict[str, Obj], label: str) -> None:
    mine, theirs = ours[label], REAL[label]
    assert mine != theirs, "it agrees now: take it off the list"
    assert mine["code"] == theirs["code"]
    assert {cause[0] for cause in mine["causes"]} <= {cause[0] for cause in theirs["causes"]}


@pytest.mark.parametrize("label", sorted(OTHERWISE))
def test_the_known_differences_are_still_there(ours: dict[str, Obj], label: str) -> None:
    assert ours[label] != REAL[label], "it agrees now: take it off the list"
