"""Builders and fakes that unit tests of the rooms share."""

from __future__ import annotations

from tests.builders.clock import NOW, ago
from tests.builders.objects import (
    SIMULATED,
    Builder,
    cluster,
    machine,
    machine_class,
    machine_deployment,
    machine_set,
    node,
    owner_reference,
)
from tests.builders.view import FakeView
from tests.builders.world import Refused, World

__all__ = [
    "NOW",
    "SIMULATED",
    "Builder",
    "FakeView",
    "Refused",
    "World",
    "ago",
    "cluster",
    "machine",
    "machine_class",
    "machine_deployment",
    "machine_set",
    "node",
    "owner_reference",
]
