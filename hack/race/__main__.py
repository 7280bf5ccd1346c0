"""``python -m hack.race [SCENARIO…]``: both rivals, one after the other, on each scenario; one table.

``--only=NAME`` runs one rival alone: karpenter or nodewright.

Nothing else should run on the machine meanwhile. ``build/race.json`` keeps each result once it is there.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console

from hack import kubectl as stock
from hack.binaries import BinaryMissing
from hack.program import Kubectl
from hack.race import parts, stages
from hack.race.instances import Instance, instances
from hack.race.results import Result, keep, table
from hack.race.rivals import Karpenter, Nodewright, Rival
from hack.race.scene import QuickPlane, Scene, Watched, at_rest, audited, watching
from hack.race.workloads import Workload, pair, wide
from nodewright.runtime.telemetry.logs import configure


@dataclass(frozen=True, slots=True)
class Scenario:
    """``then``: what is measured, once the Nodes of ``workloads`` have come; "": that."""

    title: str
    workloads: Callable[[], Sequence[Workload]]
    then: Literal["", "fewer", "drift"] = ""


SCENARIOS = {
    "plain": Scenario("1000 pods of two Deployments", lambda: pair(500)),
    "mixed": Scenario("1000 pods of 30 Deployments, spread over zones", wide),
    "spread": Scenario("2000 pods, 1000 of them spread over Nodes", lambda: pair(1000, spread=True)),
    "consolidation": Scenario("from 1000 pods to 700", lambda: pair(500), "fewer"),
    "drift": Scenario("all Nodes replaced under 600 pods with budgets", lambda: pair(300, spread=True), "drift"),
}
FEWER = {"small": 350, "large": 350}
ONLY = "--only="
WIDTH = 140
OUTPUT = Path("build/race.json")
Maker = Callable[[Path, Kubectl], Rival]
LIKE_KUBELETS = ("--disable-admission-plugins=ServiceAccount,Priority", "--max-requests-inflight=2000")


async def _one(folder: Path, scenario: Scenario, make: Maker, prices: dict[str, float]) -> Result:
    flags = (*audited(folder / "plane"), *LIKE_KUBELETS)
    with QuickPlane(folder / "plane", flags, controller_manager=True, scheduler=True) as plane:
        kubectl = Kubectl(stock.require(), plane.kubeconfig, folder / "kubectl-cache")
        rival = make(folder, kubectl)
        try:
            rival.start()
            async with watching(plane, rival) as watched:
                await at_rest(plane, rival)
                return await _played(Scene(plane, kubectl, rival, prices), watched, scenario)
        except (TimeoutError, OSError, RuntimeError, AssertionError) as failure:
            return Result(rival=rival.name, problem=f"{type(failure).__name__}: {failure}")
        finally:
            rival.stop()


async def _played(scene: Scene, watched: Watched, scenario: Scenario) -> Result:
    workloads = scenario.workloads()
    result = await scene.scale_out(watched, workloads)
    if result.problem or not scenario.then:
        return result
    await watched.until_quiet()
    if scenario.then == "fewer":
        return await scene.scale_in(watched, FEWER)
    return await scene.drift(watched, [each.name for each in workloads])


def _rivals(offered: Sequence[Instance]) -> dict[str, Maker]:
    return {"karpenter": Karpenter, "nodewright": lambda folder, kubectl: Nodewright(folder, kubectl, offered)}


def _race(
    console: Console, scenarios: Sequence[str], offered: Sequence[Instance], only: str
) -> dict[str, list[Result]]:
    prices = {each.name: each.price for each in offered}
    rivals: list[Maker] = [known for name, known in _rivals(offered).items() if only in {"", name}]
    results: dict[str, list[Result]] = {}
    with tempfile.TemporaryDirectory(prefix="nodewright-race-") as name:
        for scenario in scenarios:
            for number, rival in enumerate(rivals):
                with console.status(f"{scenario}: {number + 1} of {len(rivals)} …"):
                    folder = Path(name) / f"{scenario}-{number}"
                    result = asyncio.run(_one(folder, SCENARIOS[scenario], rival, prices))
                results.setdefault(scenario, []).append(result)
                keep(OUTPUT, results)
            console.print(table(SCENARIOS[scenario].title, results[scenario]))
            for each in results[scenario]:
                console.print(stages.table(each.rival, each.stages, each.plane_cpu))
    return results


def main() -> int:
    only = next((each.removeprefix(ONLY) for each in sys.argv[1:] if each.startswith(ONLY)), "")
    scenarios = [each for each in sys.argv[1:] if not each.startswith(ONLY)] or list(SCENARIOS)
    if unknown := [name for name in scenarios if name not in SCENARIOS]:
        print(f"no such scenario: {', '.join(unknown)}; known: {', '.join(SCENARIOS)}", file=sys.stderr)
        return 2
    configure(level="warning")
    os.environ.pop("KUBECONFIG", None)
    console = Console(width=WIDTH)
    try:
        for name in parts.PACKAGES if only in {"", "karpenter"} else ():
            parts.ensure(name)
        results = _race(console, scenarios, instances(parts.module("karpenter")[0]), only)
    except BinaryMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    console.print(f"written to {OUTPUT}")
    return int(any(each.problem for those in results.values() for each in those))


if __name__ == "__main__":
    sys.exit(main())
