"""``python -m hack.bench.curves``: how the autoscaler's loops grow with what they look at, as SVG pictures.

Each point is measured in a process of its own. ``docs/pictures/bench-*.svg`` are written, and the numbers printed.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from rich.console import Console

from hack.bench import autoscaler, manygroups, spread

PICTURES = Path("docs/pictures")
INCHES = (6.4, 3.2)
mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "nodewright", "font.family": "sans-serif"})


def groups(count: int) -> float:
    """CPU seconds of a loop over so many groups while 5000 pods wait."""
    return manygroups.measured(replace(manygroups.MANY_GROUPS, groups=count))[0]


def pending(count: int) -> float:
    """CPU seconds of a loop while so many pods wait, 20 of each Deployment."""
    return manygroups.measured(replace(manygroups.MANY_PODS, waiting=count, apps=count // 20))[0]


def nodes(count: int) -> float:
    """CPU seconds of a warm loop over so many Nodes with 30 pods each."""
    return autoscaler.measured(count)[1]


def spread_pods(count: int) -> float:
    """CPU seconds of a loop while so many pods of one Deployment wait that are spread over Nodes."""
    return spread.measured(spread=True, count=count)


@dataclass(frozen=True, slots=True)
class Curve:
    """``measure`` at each of ``sizes``; ``what`` the sizes count."""

    name: str
    title: str
    what: str
    sizes: Sequence[int]
    measure: Callable[[int], float]


CURVES = (
    Curve("groups", "One loop, 5000 pods wait", "node groups", (100, 200, 300, 400, 500), groups),
    Curve("pending", "One loop, 40 groups", "pods that wait", (5000, 10_000, 20_000, 40_000), pending),
    Curve("nodes", "One loop, 30 pods on each Node", "Nodes", (1000, 2000, 5000, 10_000, 15_000), nodes),
    Curve("spread", "Pods spread evenly over Nodes", "pods that wait", (500, 1000, 1500, 2000), spread_pods),
)


def draw(curve: Curve, seconds: Sequence[float], path: Path) -> None:
    """Write the picture: CPU seconds over the size. The same numbers give the same bytes."""
    figure = Figure(figsize=INCHES, layout="constrained")
    axes = figure.subplots()
    axes.plot(curve.sizes, seconds, marker="o", color="#1f5fa8")
    axes.set(title=curve.title, xlabel=curve.what, ylabel="CPU seconds", xlim=(0, None), ylim=(0, max(seconds) * 1.1))
    axes.grid(alpha=0.3)
    figure.savefig(path, format="svg", metadata={"Date": None})


def main() -> int:
    wanted = sys.argv[1:] or [curve.name for curve in CURVES]
    if unknown := set(wanted) - {curve.name for curve in CURVES}:
        print(f"no such curve: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    console = Console()
    context = multiprocessing.get_context("spawn")
    for curve in (each for each in CURVES if each.name in wanted):
        seconds = []
        for size in curve.sizes:
            with console.status(f"{curve.name}: {size} {curve.what} …"), context.Pool(1) as pool:
                seconds.append(pool.apply(curve.measure, (size,)))
            console.print(f"{curve.name}: {size} {curve.what}: {seconds[-1]:.2f} s")
        draw(curve, seconds, PICTURES / f"bench-{curve.name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
