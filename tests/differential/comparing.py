"""Play stories to both planes and judge the answers by the list of known differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.differential import exceptions
from tests.differential.plain import Difference, Plainer, differences
from tests.differential.speech import Request, Server, Story, play

TALLY = "differential"
"""The name under which a test reports its counts: verb → cases, equal, listed, not listed."""


@dataclass(frozen=True, slots=True)
class Case:
    """One request of a story and where the answers differ."""

    story: str
    request: Request
    found: tuple[Difference, ...]

    @property
    def name(self) -> str:
        return f"{self.story}: {self.request.label}"

    @property
    def unlisted(self) -> list[Difference]:
        return [difference for difference in self.found if not exceptions.of(self.name, difference.part)]

    @property
    def verdict(self) -> str:
        return "not listed" if self.unlisted else "listed" if self.found else "equal"

    def tell(self) -> str:
        """What differs, one line each."""
        lines = [f"{self.name} ({self.request.method} {self.request.path})"]
        for difference in self.unlisted:
            lines += [
                f"  {difference.part}",
                f"    embedded: {difference.ours!r}",
                f"    real:     {difference.theirs!r}",
            ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Both:
    """The embedded plane is ours."""

    ours: Server
    theirs: Server

    def compare(self, story: Story) -> list[Case]:
        """Play the story to one after the other."""
        mine, their = play(self.ours, story.requests), play(self.theirs, story.requests)
        my_words, their_words = Plainer(), Plainer()
        cases = []
        for request in story.requests:
            ours, theirs = my_words.answer(mine[request.label]), their_words.answer(their[request.label])
            cases.append(Case(story.name, request, tuple(differences(ours, theirs))))
        return cases


def tally(cases: list[Case]) -> dict[str, dict[str, int]]:
    """By verb: how many cases, and how many with each verdict."""
    counts: dict[str, Counter[str]] = {}
    for case in cases:
        counts.setdefault(case.request.verb, Counter()).update(("cases", case.verdict))
    return {verb: dict(found) for verb, found in counts.items()}


def explained(cases: list[Case]) -> Iterator[str]:
    """The names of the known differences that were seen."""
    for case in cases:
        for difference in case.found:
            yield from (row.name for row in exceptions.of(case.name, difference.part))
