"""Whole rollouts: each case in a fixed order, told in ``golden``, and in orders drawn from seeds (see the names)."""

from __future__ import annotations

import random

import pytest

from api import names
from controllers.kernel.refs import MACHINE, MACHINE_SET
from tests.builders.loop import reconcile_once
from tests.controllers.machinedeployment.rollouts import CASES, GOLDEN, Case, Play, golden_of

QUICK_SEEDS = range(1)
MANY_SEEDS = range(100)


@pytest.mark.parametrize("name", CASES)
def test_the_story_of(name: str) -> None:
    play = Play(CASES[name]).run()
    assert play.told() == golden_of(name).read_text(), "if this is meant, write the stories anew (rollouts.py says how)"
    check_the_end(play, CASES[name])


@pytest.mark.parametrize("seed", QUICK_SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_any_order(name: str, seed: int) -> None:
    check_the_end(Play(CASES[name], random.Random(seed)).run(), CASES[name])


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY_SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_a_hundred_orders(name: str, seed: int) -> None:
    check_the_end(Play(CASES[name], random.Random(seed)).run(), CASES[name])


def test_every_story_belongs_to_a_case() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {golden_of(name).name for name in CASES}


def check_the_end(play: Play, case: Case) -> None:
    """What was asked for is there, all of it is up, and nobody writes any more."""
    assert play.versions() == case.want, play.told()
    assert len(play.up()) == sum(case.want.values()), play.told()
    assert reconcile_once(play.world) == 0
    forgotten = [m for m in play.world.all(MACHINE_SET) if not m["spec"]["replicas"]]
    assert len(forgotten) <= 2
    marks = {names.DISABLE_CREATE_ANNOTATION}
    assert not any(marks & set(m["metadata"].get("annotations", {})) for m in play.world.all(MACHINE))
