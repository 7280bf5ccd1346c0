"""What `nodewright run` hands to the controllers."""

from __future__ import annotations

import pytest

from controllers.machine.room import MachineRoom
from nodewright.cli.election import rooms_named


@pytest.mark.parametrize("names", ["*", "machine", "machineset,machine"])
def test_the_machine_controller_knows_the_node_that_it_runs_on(names: str) -> None:
    (room,) = [room for room in rooms_named(names, "node-7") if isinstance(room, MachineRoom)]
    assert room.hosting_node == "node-7"


def test_without_a_name_it_runs_on_none() -> None:
    (room,) = rooms_named("machine")
    assert isinstance(room, MachineRoom)
    assert room.hosting_node == ""
