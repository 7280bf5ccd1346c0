"""What would happen, for people (lines of a tree) and for programs (plain data)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from controllers.kernel.conditions import some_of
from controllers.kernel.plan import Failed
from nodewright.cli.dryrun.foresee import Deed, Prospect
from nodewright.reports.tree.branch import Branch, Mood

ALIKE = 4
"""So many objects of one kind with the same future, and more, are shown as one."""


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    """``everything``: also status writes, events, notes of objects with nothing to do, and no grouping."""

    everything: bool = False


def as_tree(prospects: Iterable[Prospect], title: str, display: DisplayOptions) -> Branch:
    """One branch per object that something happens to, with the reasons."""
    branches = [branch for prospect in prospects if (branch := branch_of(prospect, display)) is not None]
    children = tuple(branches if display.everything else _grouped(branches))
    if not children:
        children = (Branch("nothing to do: everything is as it is declared", Mood.GOOD),)
    return Branch(title, children=children)


def as_data(prospects: Iterable[Prospect]) -> list[dict[str, Any]]:
    return [prospect_data(each) for each in prospects]


def prospect_data(p: Prospect) -> dict[str, Any]:
    return {
        "kind": p.kind.name,
        "namespace": p.key.namespace,
        "name": p.key.name,
        "actions": [{"what": d.what, "why": d.why, "quiet": d.quiet} for d in p.deeds],
        "notes": p.notes,
        "trouble": {"reason": p.trouble.reason, "message": p.trouble.message} if p.trouble else None,
        "outcome": type(p.outcome).__name__,
        "waitsFor": p.waits_for,
        **_course_data(p),
    }


def _course_data(prospect: Prospect) -> dict[str, Any]:
    course = prospect.course
    if course is None:
        return {}
    stages = [{"what": stage.what, "how": list(stage.how)} for stage in course.stages]
    return {"course": {"stages": stages, "held": course.held}}


def branch_of(prospect: Prospect, display: DisplayOptions) -> Branch | None:
    """One object with its reasons; None if nothing happens to it."""
    deeds = [deed for deed in prospect.deeds if display.everything or not deed.quiet]
    if not deeds and not prospect.waits_for and not (display.everything and prospect.notes):
        return None
    lines = [*_trouble(prospect), *_deeds(deeds)]
    if display.everything:
        lines.extend(Branch("note", message=note) for note in prospect.notes)
    if prospect.waits_for:
        failed = isinstance(prospect.outcome, Failed)
        reason = prospect.outcome.reason if isinstance(prospect.outcome, Failed) else ""
        name, mood = ("can't go on", Mood.BAD) if failed else ("then waits", Mood.BUSY)
        lines.append(Branch(name, mood, reason=reason, message=prospect.waits_for))
    lines.extend(_course(prospect))
    where = f"{prospect.key.namespace}/" if prospect.key.namespace else ""
    return Branch(f"{prospect.kind.name}/{where}{prospect.key.name}", children=tuple(lines))


def _course(prospect: Prospect) -> Iterator[Branch]:
    """Every change that follows, numbered, and what is done for each of them."""
    course = prospect.course
    if course is None or not (course.stages or course.held):
        return
    stages = [
        Branch(f"{number}. {stage.what}", children=tuple(Branch(how) for how in stage.how))
        for number, stage in enumerate(course.stages, 1)
    ]
    held = [Branch("no further" if stages else "not begun", Mood.BAD, message=course.held)] if course.held else []
    yield Branch("the course, if every step succeeds", children=(*stages, *held))


def _trouble(prospect: Prospect) -> Iterator[Branch]:
    """What its status says is wrong now: the same may befall it again."""
    if prospect.trouble is not None:
        yield Branch("at present", Mood.BAD, reason=prospect.trouble.reason, message=prospect.trouble.message)


def _deeds(deeds: Iterable[Deed]) -> Iterator[Branch]:
    """Equal reasons in a row are one line."""
    together: dict[tuple[str, str], list[Deed]] = {}
    for deed in deeds:
        verb = deed.what.rsplit(" ", 1)[0]
        together.setdefault((verb, deed.why), []).append(deed)
    for (verb, why), group in together.items():
        what = group[0].what
        if len(group) > 1:
            names = [deed.what.rsplit(" ", 1)[1] for deed in group]
            what = f"{verb}: {some_of(names, ALIKE)}"
        yield Branch(what, Mood.PLAIN, message=why)


def _grouped(branches: list[Branch]) -> Iterator[Branch]:
    alike: dict[tuple[object, ...], list[Branch]] = {}
    for branch in branches:
        alike.setdefault(_fingerprint(branch), []).append(branch)
    for group in alike.values():
        if len(group) < ALIKE:
            yield from group
            continue
        kind = group[0].name.split("/", 1)[0]
        example = group[0].name.rsplit("/", 1)[-1]
        yield replace(group[0], name=f"{len(group)} {kind}s like {example}")


def _fingerprint(branch: Branch) -> tuple[object, ...]:
    """The same future, names aside."""
    name = branch.name.rsplit("/", 1)[-1]
    kind = branch.name.split("/", 1)[0]
    return (kind, *((b.name.replace(name, "·"), b.mood, b.message.replace(name, "·")) for b in branch.children))
