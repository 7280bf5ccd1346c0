"""Our predicates and kube-scheduler's, on thousands of generated pairs of pod and Node.

A pod that we say fits must be bound to one of the Nodes that we name; one that we refuse must stay pending, and the
scheduler's count of reasons must be ours.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from controllers.scheduling.classes import Classes
from controllers.scheduling.predicates import Judge, Occupied
from controllers.scheduling.reading import Reader, read_node
from controllers.scheduling.refusals import Refusal
from controllers.scheduling.shapes import NodeInfo
from tests.controllers.scheduling.core_worlds import World
from tests.controllers.scheduling.real_scheduler import Api, Verdicts, bound_to, refused, scheduler

pytestmark = [pytest.mark.slow, pytest.mark.realplane]

WORLDS, PODS = 24, 80
SEED = os.environ.get("NODEWRIGHT_SCHEDULER_SEED", "7")
NOT_ASKED = re.compile(r"^node\(s\) didn't satisfy plugin\(s\) \[NodeAffinity\]$")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Verdicts]]:
    with scheduler(tmp_path_factory.mktemp("plane")) as found:
        yield found


@dataclass
class Tally:
    """Pairs of pod and Node on which both agree, by predicate; and every case in which they don't."""

    agreed: Counter[str] = field(default_factory=Counter)
    disagreed: list[str] = field(default_factory=list)
    bound: int = 0
    pending: int = 0


def test_the_scheduler_agrees_about_every_pod(plane: tuple[Api, Verdicts]) -> None:
    api, verdicts = plane
    worlds = [World(number, random.Random(f"{SEED}-{number}")) for number in range(WORLDS)]
    nodes: list[NodeInfo] = []
    for world in worlds:
        nodes.extend(furnish(api, world))
    tally = Tally()
    with ThreadPoolExecutor(WORLDS) as threads:
        list(threads.map(lambda world: live(api, verdicts, world, nodes, tally), worlds))
    print(f"\n{tally.bound} pods bound, {tally.pending} refused; pairs that agree, by what decides them:")
    for predicate, count in tally.agreed.most_common():
        print(f"  {predicate:20} {count}")
    assert not tally.disagreed, "\n".join(tally.disagreed[:10])
    assert tally.bound > 100, "the worlds must not be trivial"
    assert len(tally.agreed) >= 7, "every predicate must have decided something"


def furnish(api: Api, world: World) -> list[NodeInfo]:
    for name, team in zip(world.namespaces, "ab", strict=True):
        labels = {"world": str(world.number), "team": team}
        api("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    found = []
    for node in world.nodes():
        made = api("POST", "/api/v1/nodes", node)
        found.append(read_node({**made, "status": node["status"]}))
    return found


def live(api: Api, verdicts: Verdicts, world: World, nodes: list[NodeInfo], tally: Tally) -> None:
    """One pod after the other; some of those that are bound stay, and the next ones meet them."""
    for _ in range(PODS):
        body = world.pod()
        path = f"/api/v1/namespaces/{body['metadata']['namespace']}/pods"
        pod = api("POST", path, body)
        seen = verdicts.of(pod["metadata"]["uid"])
        compare(pod, seen, judged(world, pod, nodes), tally)
        if bound_to(seen) and world.dice.random() < 0.5:
            world.pods.append(seen)
        else:
            api("DELETE", f"{path}/{pod['metadata']['name']}?gracePeriodSeconds=0")


def judged(world: World, pod: dict[str, Any], nodes: list[NodeInfo]) -> dict[str, Refusal | None]:
    """Our refusal of every Node, read from the objects as the server gave them back."""
    reader = Reader()
    pending, running = reader.pod(pod), [reader.pod(each) for each in world.pods]
    namespaces = {
        name: {"world": str(world.number), "team": team, "kubernetes.io/metadata.name": name}
        for name, team in zip(world.namespaces, "ab", strict=True)
    }
    classes = Classes([each.kind for each in (pending, *running)], namespaces)
    here: dict[str, Counter[Any]] = {node.name: Counter() for node in nodes}
    for each in running:
        here[each.node][classes.of(each.kind)] += 1
    occupied = [Occupied(node, here[node.name]) for node in nodes]
    judge = Judge(classes.of(pending.kind), occupied)
    return {each.node.name: judge.refusal(each) for each in occupied}


def compare(pod: dict[str, Any], seen: dict[str, Any], ours: dict[str, Refusal | None], tally: Tally) -> None:
    fitting = {name for name, refusal in ours.items() if refusal is None}
    node = bound_to(seen)
    what = f"{pod['metadata']['namespace']}/{pod['metadata']['name']} {pod['spec']}"
    if node:
        tally.bound += 1
        if node not in fitting:
            tally.disagreed.append(f"bound to {node}, which we refuse: {ours[node]}: {what}")
        else:
            tally.agreed["fits"] += 1
        return
    tally.pending += 1
    if fitting:
        tally.disagreed.append(f"pending ({refused(seen)}), but we say it fits {sorted(fitting)}: {what}")
        return
    count_reasons(refused(seen), ours, what, tally)


def count_reasons(message: str, ours: dict[str, Refusal | None], what: str, tally: Tally) -> None:
    """``0/9 nodes are available: 2 Insufficient cpu, 7 …. preemption: …`` against our reasons."""
    theirs = Counter[str]()
    world = what.split("-", maxsplit=1)[0]
    told = message.split(": ", 1)[1].split(". ", maxsplit=1)[0].rstrip(".")
    for part in re.split(r", (?=\d)", told):
        number, reason = part.split(" ", 1)
        theirs[reason] += int(number)
    refusals = [refusal for refusal in ours.values() if refusal]
    mine = Counter(reason for refusal in refusals for reason in refusal.reasons)
    not_asked = sum(count for reason, count in theirs.items() if NOT_ASKED.match(reason))
    if not_asked:
        theirs = Counter({reason: count for reason, count in theirs.items() if not NOT_ASKED.match(reason)})
        agreed = all(mine[reason] >= count for reason, count in theirs.items())
    else:
        agreed = theirs == mine
    if not agreed:
        tally.disagreed.append(f"they: {dict(theirs)}, we: {dict(mine)}: {what}")
        return
    own = [refusal for name, refusal in ours.items() if refusal and name.startswith(f"{world}-")]
    decided = [refusal for refusal in own if not not_asked or set(refusal.reasons) <= set(theirs)]
    tally.agreed.update(refusal.predicate.value for refusal in decided)
