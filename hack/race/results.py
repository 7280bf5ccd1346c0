"""What the race found: one result for each scenario and program, kept in ``build/race.json`` as soon as it is there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.table import Table

COUNTED = "CPU, memory and writes: the program and what plays its Nodes and pods (Karpenter: kwok; Nodewright: itself)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """``seconds`` until the last pod is bound or the last Node gone; ``cost``: of all Nodes, an hour.

    ``stages``: see ``hack.race.stages``. ``plane_cpu``: CPU seconds of each part of Kubernetes meanwhile.
    ``least_running``: the fewest pods that ran at a time. ``problem``: why there is no end to measure; the numbers
    are those until then.
    """

    rival: str
    seconds: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    writes: int = 0
    nodes: int = 0
    cost: float = 0.0
    least_running: int = 0
    stages: Mapping[str, Sequence[float]] = field(default_factory=dict)
    plane_cpu: Mapping[str, float] = field(default_factory=dict)
    problem: str = ""


def table(title: str, results: Sequence[Result]) -> Table:
    found = Table(
        *("", "seconds", "CPU s", "peak MiB", "writes", "Nodes", "cost/h", "fewest running", "problem"),
        title=title,
        caption=COUNTED,
    )
    for each in results:
        measured = (f"{each.seconds:.1f}", f"{each.cpu:.1f}", f"{each.memory:.0f}", str(each.writes), str(each.nodes))
        found.add_row(each.rival, *measured, f"{each.cost:.2f}", str(each.least_running), each.problem)
    return found


def keep(path: Path, results: Mapping[str, Sequence[Result]]) -> None:
    """All that is known so far, in place of what was there; a reader never sees a half."""
    found = {
        "counted": COUNTED,
        "scenarios": {name: [asdict(each) for each in those] for name, those in results.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(found, indent=2))
    partial.replace(path)
