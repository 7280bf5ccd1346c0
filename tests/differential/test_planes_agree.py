"""The same requests to the embedded plane and to a real kube-apiserver: the same answers, but for what is listed.

`docs/embedded-differences.md` is the list. A difference that it lacks fails here, and so does a row that nothing shows
any more.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.differential.comparing import TALLY, Both, Case, explained, tally
from tests.differential.exceptions import known
from tests.differential.speech import Story
from tests.differential.stories import STORIES
from tests.realplane import require

pytestmark = [pytest.mark.realplane, pytest.mark.e2e]

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def played(both: Both) -> dict[str, list[Case]]:
    """The cases of the stories that were played so far."""
    return {}


def cases_of(story: Story, both: Both, played: dict[str, list[Case]]) -> list[Case]:
    if story.background:
        require()
    if story.name not in played:
        played[story.name] = both.compare(story)
    return played[story.name]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_story_goes_the_same_way(
    both: Both, played: dict[str, list[Case]], story: Story, record_property: Record
) -> None:
    cases = cases_of(story, both, played)
    record_property(TALLY, tally(cases))
    unlisted = [case.tell() for case in cases if case.unlisted]
    assert not unlisted, "\n".join([f"{len(unlisted)} of {len(cases)} answers differ:", *unlisted])


def test_every_listed_difference_is_still_there(both: Both, played: dict[str, list[Case]]) -> None:
    seen = {name for story in STORIES for name in explained(cases_of(story, both, played))}
    gone = [row.name for row in known() if row.name not in seen]
    assert gone == [], "they agree now: take it off docs/embedded-differences.md"
