"""Three stories a newcomer reads first, and how many files of ``controllers/`` each takes (ADR 0023).

``make stories`` prints the files. The bounds may shrink, never grow.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controllers.kernel.refs import MACHINE_DEPLOYMENT
from tests.builders.loop import settle
from tests.builders.world import World
from tests.controllers.autoscaler.test_story import little_used, removed
from tests.controllers.machine.test_update import UPGRADE, running
from tests.controllers.machinedeployment.stories import deployment, set_replicas
from tests.stories import Walk

Story = Callable[[], object]


def kubelet_edited() -> Story:
    """A Machine that serves gets another kubelet, in place, until it is Ready again."""
    arena, key = running("InPlace")

    def play() -> None:
        arena.edit(key, UPGRADE)
        arena.run(key)

    return play


def three_to_five() -> Story:
    """A settled MachineDeployment of 3 Machines is scaled to 5; its reconciler and its MachineSet's run."""
    world = World(deployment(3))
    settle(world)

    def play() -> None:
        set_replicas(world, 5)
        settle(world)
        assert world.get(MACHINE_DEPLOYMENT, "md")["status"]["readyReplicas"] == 5

    return play


def node_removed() -> Story:
    """The autoscaler removes one of two Nodes that have little to do."""
    fleet = little_used()
    return lambda: removed(fleet)


MOST_FILES: dict[Callable[[], Story], int] = {kubelet_edited: 22, three_to_five: 34, node_removed: 36}


FRAMEWORK = {
    f"controllers/kernel/{name}.py"
    for name in ("actions", "conditions", "memory", "ownership", "plan", "reconciler", "refs", "sharding", "view")
}  # fmt: skip
"""What every story uses: read once (ARCHITECTURE.md), and held apart by an import contract (pyproject.toml)."""
LIBRARY = "controllers/scheduling/"


@pytest.mark.parametrize("story", MOST_FILES, ids=lambda story: story.__name__)
def test_a_story_takes_few_files(story: Callable[[], Story]) -> None:
    walk = Walk()(story())
    files = "\n".join(sorted(walk.files))
    own = [file for file in walk.files - FRAMEWORK if not file.startswith(LIBRARY)]
    text = f"{story.__name__}: {len(walk.files)} files, of these {len(own)} neither framework nor scheduling library"
    text += f"; {len(walk.functions)} functions\n{files}"
    print(text)
    assert len(walk.files) <= MOST_FILES[story], text
