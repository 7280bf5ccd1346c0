"""The acts, in order. Each does one thing, shows the command a person would type for it and waits until it is so."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_DEPLOYMENT
from nodewright.cli.demo.narrator import Narrator
from nodewright.cli.demo.picture import Picture
from nodewright.cli.demo.stage import Stage
from nodewright.cli.examples import TEXT
from nodewright.cli.manifests.documents import Document, read

DEPLOYMENT = "workers"
FIRST = 3
GROWN = 5
NEXT_KUBELET = "1.34.0"
LAST_KUBELET = "1.35.0"


@dataclass(frozen=True, slots=True)
class Cast:
    """Parts of the demo: the stage, the narrator, the path of the example, and how many hosts the cloud still has."""

    stage: Stage
    narrator: Narrator
    example: Path
    hosts: Callable[[], int]


class Story:
    def __init__(self, cast: Cast) -> None:
        self._cast = cast
        self._stage = cast.stage
        self._number = 0
        self.seconds_to_ready = 0.0

    async def play(self) -> None:
        """All acts; ends with nothing left. Raises CliError if an act doesn't end as it should."""
        await self.declare()
        await self._grow()
        first, second = [m.name for m in self._stage.picture.machines][:2]
        await self._upgrade_in_place(first)
        await self._upgrade_by_replacement(second)
        await self._roll()
        await self._delete()

    async def declare(self) -> None:
        seconds = await self._act(
            f"Declare a cluster: one MachineDeployment of {FIRST}",
            f"kubectl apply -f {self._cast.example}",
            lambda: self._stage.apply(one.data for one in read(TEXT) if isinstance(one, Document)),
            lambda p: p.ready == FIRST and _settled(p),
        )
        self.seconds_to_ready = seconds
        self._cast.narrator.done(f"{FIRST} Machines are {FIRST} Ready Nodes, {seconds:.1f} s after they were declared")

    async def _grow(self) -> None:
        seconds = await self._act(
            f"Scale it to {GROWN}",
            f"kubectl scale machinedeployment {DEPLOYMENT} --replicas={GROWN}",
            lambda: self._stage.scale(DEPLOYMENT, GROWN),
            lambda p: p.ready == GROWN and _settled(p),
        )
        self._cast.narrator.done(f"{GROWN} Ready after {seconds:.1f} s")

    async def _upgrade_in_place(self, name: str) -> None:
        before = self._stage.picture.machine(name)
        patch = {"spec": {"versions": {"kubelet": NEXT_KUBELET}}}
        seconds = await self._act(
            "Upgrade the kubelet of one Machine: this provider can do it in place",
            _typed(name, patch),
            lambda: self._stage.patch(MACHINE, name, patch),
            lambda p: _runs(p, name, NEXT_KUBELET),
        )
        after = self._stage.picture.machine(name)
        same = before is not None and after is not None and before.host == after.host
        host = "the same host" if same else "another host"
        self._cast.narrator.done(f"{name} runs {NEXT_KUBELET} on {host} after {seconds:.1f} s")

    async def _upgrade_by_replacement(self, name: str) -> None:
        before = self._stage.picture.machine(name)
        old_host = before.host if before else ""
        patch = {
            "spec": {"versions": {"kubelet": NEXT_KUBELET}, "providerConfig": {"value": {"updates": "Replace"}}},
        }
        seconds = await self._act(
            "And of one whose provider says: only with a new host",
            _typed(name, patch),
            lambda: self._stage.patch(MACHINE, name, patch),
            lambda p: _runs(p, name, NEXT_KUBELET) and (p.machine(name) or before).host != old_host,  # type: ignore[union-attr]
        )
        self._cast.narrator.done(f"the same Machine {name}, a new host with {NEXT_KUBELET}, after {seconds:.1f} s")

    async def _roll(self) -> None:
        patch = {"spec": {"template": {"spec": {"versions": {"kubelet": LAST_KUBELET}}}}}
        text = json.dumps(patch, separators=(",", ":"))
        seconds = await self._act(
            "Roll the whole deployment to another kubelet, never below 5",
            f"kubectl patch machinedeployment {DEPLOYMENT} --type merge -p '{text}'",
            lambda: self._stage.patch(MACHINE_DEPLOYMENT, DEPLOYMENT, patch),
            lambda p: _settled(p) and len(p.machines) == GROWN and all(m.kubelet == LAST_KUBELET for m in p.machines),
        )
        self._cast.narrator.done(f"all {GROWN} run {LAST_KUBELET} after {seconds:.1f} s")

    async def _delete(self) -> None:
        async def delete() -> None:
            await self._stage.delete(MACHINE_DEPLOYMENT, DEPLOYMENT)
            for name in self._stage.picture.clusters:
                await self._stage.delete(CLUSTER, name)

        seconds = await self._act(
            "Delete everything",
            f"kubectl delete machinedeployment/{DEPLOYMENT} cluster/{self._stage.picture.clusters[0]}",
            delete,
            lambda p: p.empty and self._cast.hosts() == 0,
        )
        nodes = await self._stage.nodes()
        self._cast.narrator.done(
            f"nothing is left after {seconds:.1f} s: {len(self._stage.picture.machines)} Machines, {nodes} Nodes, "
            f"{self._cast.hosts()} hosts"
        )

    async def _act(
        self, title: str, command: str, do: Callable[[], Awaitable[None]], done: Callable[[Picture], bool]
    ) -> float:
        self._number += 1
        self._cast.narrator.act(self._number, title, command)
        started = time.monotonic()
        await do()
        await self._stage.until(done, title)
        return time.monotonic() - started


def _settled(picture: Picture) -> bool:
    return all(d.settled for d in picture.deployments)


def _runs(picture: Picture, name: str, version: str) -> bool:
    machine = picture.machine(name)
    return machine is not None and machine.state == "Ready" and machine.kubelet == version


def _typed(name: str, patch: dict[str, Any]) -> str:
    return f"kubectl patch machine {name} --type merge -p '{json.dumps(patch, separators=(',', ':'))}'"
