"""A node group: a MachineDeployment or MachineSet with the sizes between which it may be scaled."""

from __future__ import annotations

from dataclasses import dataclass

from controllers.kernel.refs import Ref

_ANY_SIZE = (1 << 63) - 1
"""More than ``spec.replicas`` can hold (an int32): the API server refuses such a size and says so."""


@dataclass(frozen=True, slots=True)
class Bounds:
    min_size: int
    max_size: int


UNBOUNDED = Bounds(0, _ANY_SIZE)


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """``replicas`` is what is asked for now; ``resource_version`` is that of the object which says so."""

    ref: Ref
    bounds: Bounds
    replicas: int
    resource_version: str = ""

    @property
    def id(self) -> str:
        """As the Cluster Autoscaler names it."""
        return f"{self.ref.kind.name}/{self.ref.key}"

    @property
    def headroom(self) -> int:
        """Nodes that may be added."""
        return max(0, self.bounds.max_size - self.replicas)

    @property
    def spare(self) -> int:
        """Nodes that may go."""
        return max(0, self.replicas - self.bounds.min_size)

    def clamped(self, size: int) -> int:
        """``size``, or the nearest to it that the group may be given.

        A group that a person has scaled beyond its bounds is not moved further out, and not forced back in.
        With 3 replicas and bounds 2 to 5: 9 → 5, 0 → 2. With 8 replicas and the same bounds: 9 → 8, 7 → 7, 0 → 2.
        """
        low, high = min(self.bounds.min_size, self.replicas), max(self.bounds.max_size, self.replicas)
        return max(0, low, min(size, high))
