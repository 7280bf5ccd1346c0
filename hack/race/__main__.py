"""``python -m hack.race [SCENARIO…]``: both rivals, one after the other, on each scenario; one table.

Nothing else should run on the machine meanwhile. ``build/race.json`` keeps the results.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hack import kubectl as stock
from hack.binaries import BinaryMissing
from hack.program import Kubectl
from hack.race import parts
from hack.race.instances import Instance, instances
from hack.race.rivals import Karpenter, Nodewright, Rival
from hack.race.scene import QuickPlane, Result, Scene, audited, watching
from hack.race.workloads import Workload, pair, wide
from nodewright.runtime.telemetry.logs import configure

SCENARIOS: dict[str, tuple[str, Callable[[], Sequence[Workload]]]] = {
    "plain": ("1000 pods of two Deployments", lambda: pair(500)),
    "mixed": ("1000 pods of 30 Deployments, spread over zones", wide),
    "spread": ("2000 pods, 1000 of them spread over Nodes", lambda: pair(1000, spread=True)),
    "consolidation": ("from 1000 pods to 700", lambda: pair(500)),
}
FEWER = {"small": 350, "large": 350}
OUTPUT = Path("build/race.json")
LIKE_KUBELETS = ("--disable-admission-plugins=ServiceAccount,Priority", "--max-requests-inflight=2000")


async def _one(folder: Path, scenario: str, make: Callable[[Path, Kubectl], Rival], prices: dict[str, float]) -> Result:
    flags = (*audited(folder / "plane"), *LIKE_KUBELETS)
    with QuickPlane(folder / "plane", flags, controller_manager=True, scheduler=True) as plane:
        kubectl = Kubectl(stock.require(), plane.kubeconfig, folder / "kubectl-cache")
        rival = make(folder, kubectl)
        rival.start()
        try:
            async with watching(plane, rival) as watched:
                scene = Scene(plane, kubectl, rival, prices)
                result = await scene.scale_out(watched, SCENARIOS[scenario][1]())
                if scenario == "consolidation":
                    await watched.until_quiet()
                    result = await scene.scale_in(watched, FEWER)
                return result
        finally:
            rival.stop()


def _race(console: Console, scenarios: Sequence[str], offered: Sequence[Instance]) -> dict[str, list[Result]]:
    prices = {each.name: each.price for each in offered}
    rivals: list[Callable[[Path, Kubectl], Rival]] = [
        Karpenter,
        lambda folder, kubectl: Nodewright(folder, kubectl, offered),
    ]
    results: dict[str, list[Result]] = {}
    with tempfile.TemporaryDirectory(prefix="nodewright-race-") as name:
        for scenario in scenarios:
            for number, rival in enumerate(rivals):
                with console.status(f"{scenario}: {number + 1} of {len(rivals)} …"):
                    result = asyncio.run(_one(Path(name) / f"{scenario}-{number}", scenario, rival, prices))
                results.setdefault(scenario, []).append(result)
            console.print(_table(SCENARIOS[scenario][0], results[scenario]))
    return results


def _table(title: str, results: Sequence[Result]) -> Table:
    table = Table("", "seconds", "CPU s", "peak MiB", "writes", "Nodes", "cost/h", title=title)
    for each in results:
        numbers = (f"{each.seconds:.1f}", f"{each.cpu:.1f}", f"{each.memory:.0f}", str(each.writes), str(each.nodes))
        table.add_row(each.rival, *numbers, f"{each.cost:.2f}")
    return table


def main() -> int:
    scenarios = sys.argv[1:] or list(SCENARIOS)
    if unknown := [name for name in scenarios if name not in SCENARIOS]:
        print(f"no such scenario: {', '.join(unknown)}; known: {', '.join(SCENARIOS)}", file=sys.stderr)
        return 2
    configure(level="warning")
    os.environ.pop("KUBECONFIG", None)
    console = Console()
    try:
        for name in parts.PACKAGES:
            parts.ensure(name)
        results = _race(console, scenarios, instances(parts.module("karpenter")[0]))
    except BinaryMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps({name: [asdict(each) for each in found] for name, found in results.items()}, indent=2))
    console.print(f"written to {OUTPUT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
