"""Plans of upgrades, as trees for people and as values for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from controllers.kernel.conditions import counted
from controllers.kernel.version import Version, dotted
from nodewright.cli.dryrun.foresee import Prospect
from nodewright.cli.dryrun.showing import DisplayOptions, branch_of, prospect_data
from nodewright.cli.upgrading.kubernetes import Next, Part
from nodewright.cli.upgrading.own import Controllers, Definition, Verdict
from nodewright.cli.upgrading.planning import Move, Plan
from nodewright.reports.tree.branch import Branch, Mood

_GOOD = (Verdict.SAFE, Verdict.CREATED)
_MOODS = {Verdict.REFUSED: Mood.BAD, Verdict.LEFT: Mood.PLAIN}


def own_tree(version: str, there: Sequence[Controllers], found: Sequence[Definition], against: Sequence[str]) -> Branch:
    counts = Counter(each.verdict for each in found)
    lines = [Branch(f"controllers {each.holder}", message=each.version or "of unknown version") for each in there]
    lines += [Branch("controllers", message="none with a Lease serve this cluster")] if not there else []
    for verdict in _GOOD:
        if counts[verdict]:
            what = "as they are" if verdict is Verdict.SAFE else "are created"
            lines.append(Branch(f"{counted(counts[verdict], 'definition')} {what}", Mood.GOOD))
    lines += [
        Branch(each.name, _MOODS.get(each.verdict, Mood.BUSY), reason=str(each.verdict), message=each.why)
        for each in found
        if each.verdict not in _GOOD
    ]
    refused = {f"{each.name}: {each.why}" for each in found if each.verdict is Verdict.REFUSED}
    lines += [Branch("refused", Mood.BAD, message=text) for text in against if text not in refused]
    return Branch(f"Nodewright {version}", Mood.BAD if against else Mood.GOOD, children=tuple(lines))


def plan_tree(plan: Plan) -> Branch:
    cluster = plan.cluster
    lines: list[Branch] = []
    if plan.under_way:
        lines.append(Branch("under way", Mood.BUSY, message=plan.under_way))
    if plan.asked is not None:
        lines.append(_next(plan.asked))
    elif plan.offered:
        lines.append(Branch("may come next", children=tuple(map(_next, plan.offered))))
    else:
        lines.append(Branch("no version is known of it"))
    moving = {move.part.key for move in plan.moves}
    lines += [_move(move) for move in plan.moves]
    rest = [part for part in (*cluster.planes, *cluster.workers) if part.key not in moving]
    lines += [
        Branch(part.title, message=f"{_stands(part)}; {part.how}" if part.how else _stands(part)) for part in rest
    ]
    return Branch(f"Cluster/{cluster.key}", children=tuple(lines))


def own_data(version: str, there: Sequence[Controllers], found: Sequence[Definition], against: Sequence[str]) -> Any:
    definitions = [
        {**asdict(each), "verdict": str(each.verdict), "stored": list(each.stored), "served": list(each.served)}
        for each in found
    ]
    return {
        "version": version,
        "controllers": [asdict(each) for each in there],
        "definitions": [
            {**each, "stored": list(each["stored"]), "served": list(each["served"])} for each in definitions
        ],
        "hindrances": list(against),
    }


def plan_data(plan: Plan) -> dict[str, Any]:
    cluster = plan.cluster
    return {
        "namespace": cluster.key.namespace,
        "name": cluster.key.name,
        "controlPlane": [_part_data(part) for part in cluster.planes],
        "workers": [_part_data(part) for part in cluster.workers],
        "asked": _next_data(plan.asked) if plan.asked is not None else None,
        "next": [_next_data(each) for each in plan.offered],
        "underWay": plan.under_way,
        "moves": [_move_data(move) for move in plan.moves],
        "commands": list(plan.commands),
    }


def _next(each: Next) -> Branch:
    warnings = tuple(Branch("mind", Mood.BUSY, message=text) for text in each.warned)
    if each.refused:
        return Branch(each.version, Mood.BAD, message="; ".join(each.refused), children=warnings)
    return Branch(each.version, Mood.GOOD, children=warnings)


def _move(move: Move) -> Branch:
    lines = [Branch(move.part.how)] if move.part.how else []
    lines.append(Branch("provider", message=move.part.provider.text))
    if move.waits:
        lines.append(Branch("not yet", Mood.BUSY, message=f"it {move.waits}"))
    else:
        lines += _foreseen(move.foreseen)
    title = f"{_stands(move.part)} → {move.version}"
    return Branch(move.part.title, message=title, children=tuple(lines))


def _foreseen(prospect: Prospect | None) -> Iterator[Branch]:
    found = branch_of(prospect, DisplayOptions()) if prospect is not None else None
    if found is not None:
        yield from found.children


def _stands(part: Part) -> str:
    if not part.runs:
        return f"{dotted(part.asked)}, not seen to run" if part.asked else "no version"
    return " to ".join(dict.fromkeys(dotted(each) for each in (part.runs[0], part.runs[-1])))


def _part_data(part: Part) -> dict[str, Any]:
    return {
        "kind": part.kind.name,
        "name": part.key.name,
        "asked": _version(part.asked),
        "runs": [dotted(each) for each in part.runs],
        "how": part.how,
        "provider": {"inPlace": part.provider.in_place, "why": part.provider.why},
    }


def _version(version: Version | None) -> str | None:
    return dotted(version) if version is not None else None


def _next_data(each: Next) -> dict[str, Any]:
    return {"version": each.version, "refused": list(each.refused), "warnings": list(each.warned)}


def _move_data(move: Move) -> dict[str, Any]:
    foreseen = prospect_data(move.foreseen) if move.foreseen is not None else None
    return {"kind": move.part.kind.name, "name": move.part.key.name, "version": move.version, "waitsFor": move.waits,
            "foreseen": foreseen}  # fmt: skip
