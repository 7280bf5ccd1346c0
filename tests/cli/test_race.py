"""The race keeps what it has found at once, and a program that takes too long or dies is a line of its table."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from hack.program import Kubectl
from hack.race import stages
from hack.race.results import Result, keep, table
from hack.race.rivals import Rival
from hack.race.scene import Scene, Watched
from hack.realplane import RealPlane
from nodewright.runtime.kube.client import KubeClient


class _Rival:
    """This process itself."""

    name = "Somebody"
    agents = ("somebody", "kwok")
    has_machines = False
    pids: Sequence[int] = (os.getpid(),)

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def drift(self) -> None: ...


class _Plane:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spent = 1.0

    def cpu_by_part(self) -> dict[str, float]:
        self.spent += 2
        return {"etcd": self.spent}


def scene_in(folder: Path, agents: Sequence[str] = ()) -> tuple[Scene, Watched]:
    lines = [json.dumps({"userAgent": agent, "verb": "patch"}) for agent in agents]
    (folder / "audit.log").write_text("".join(f"{line}\n" for line in lines))
    rival = cast("Rival", _Rival())
    scene = Scene(cast("RealPlane", _Plane(folder)), cast("Kubectl", None), rival, {})
    return scene, Watched(cast("KubeClient", None), rival)


def test_what_takes_too_long_is_a_result_that_says_how_far_it_was(tmp_path: Path) -> None:
    scene, watched = scene_in(tmp_path)
    watched.pods, watched.bound = {"a", "b"}, {"a"}

    async def work() -> float:
        raise TimeoutError

    result = asyncio.run(scene.measured(watched, work))
    assert result.rival == "Somebody"
    assert result.problem.endswith("1 of 2 pods have a Node, 0 run, 0 Nodes")


def test_writes_of_a_program_and_of_what_plays_its_nodes_are_counted(tmp_path: Path) -> None:
    agents = ["somebody/v1", "kwok/v0.8", "kube-scheduler/v1.36", "kubectl/v1.36"]
    scene, watched = scene_in(tmp_path)

    async def work() -> float:
        scene_in(tmp_path, agents)
        return 0.0

    assert asyncio.run(scene.measured(watched, work)).writes == 2


def test_it_is_seen_when_pods_and_nodes_came_and_what_kubernetes_used_meanwhile(tmp_path: Path) -> None:
    scene, watched = scene_in(tmp_path)

    async def work() -> float:
        called = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        for status in ({}, {"conditions": [called]}):
            watched.stages.pod({"metadata": {"uid": "p"}, "spec": {}, "status": status})
        for size in (2, 1, 3):
            watched.stages.group({"metadata": {"uid": "g"}, "spec": {"replicas": size}})
        watched.stages.node(
            {"metadata": {"uid": "n"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        )
        return 0.0

    result = asyncio.run(scene.measured(watched, work))
    counts = {name: count for name, (_, _, _, count) in result.stages.items()}
    assert counts == {"pods made": 1, "pods called Unschedulable": 1, "Nodes asked for": 3, "Nodes made": 1}
    assert result.plane_cpu == {"etcd": 2.0}
    file = StringIO()
    Console(file=file, width=140).print(stages.table("Somebody", result.stages, result.plane_cpu))
    assert "CPU seconds: etcd 2.0" in file.getvalue()


def test_each_result_is_kept_beside_those_before_it(tmp_path: Path) -> None:
    path, found = tmp_path / "build" / "race.json", dict[str, list[Result]]()
    for name in ("Karpenter", "Nodewright"):
        found.setdefault("plain", []).append(Result(rival=name, seconds=3.0))
        keep(path, found)
        kept: Any = json.loads(path.read_text())["scenarios"]["plain"]
        assert [each["rival"] for each in kept] == [each.rival for each in found["plain"]]
    assert list(path.parent.iterdir()) == [path]


def test_the_table_says_what_is_counted_and_what_went_wrong() -> None:
    file = StringIO()
    Console(file=file, width=140).print(table("1000 pods", [Result(rival="Somebody", problem="OSError: it ended")]))
    said = " ".join(file.getvalue().split())
    assert "OSError: it ended" in said
    assert "the program and what plays its Nodes and pods" in said
