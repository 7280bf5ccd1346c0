"""The classes of provider errors and their reactions."""

from __future__ import annotations

import pytest

from providers.base.errors import REACTIONS, ErrorClass


def test_every_class_and_no_other_has_a_reaction() -> None:
    assert list(REACTIONS) == list(ErrorClass)


@pytest.mark.parametrize("error_class", ErrorClass)
def test_every_class_has_a_reaction_and_its_waits_grow(error_class: ErrorClass) -> None:
    reaction = REACTIONS[error_class]
    assert 0 < reaction.first < reaction.longest
    assert reaction.meaning
    assert not (reaction.terminal and reaction.opens_breaker), "one Machine's fault is not the account's"
