"""What a scaler writes: delete marks on the Machines that go, then sizes.

The delete mark: the annotation that makes a Machine the first to go when its set gets smaller.

Each scaler's mark has a value of its own, so that it takes back none but its own. A mark of any other value is a
person's. The Cluster API spelling (``cluster.x-k8s.io/delete-machine``) counts as a mark too and is never written here.

What a scaler writes: marks on the Machines that go, then sizes, each guarded by what was decided on.

A group of 5 that loses m-2 and m-4: both are marked in one step, then ``replicas`` becomes 3. If the process dies
between the two steps, two Machines are marked and none goes; the next reconcile lowers the size or takes the marks
back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from api import names
from controllers.kernel.actions import Action, Create, Delete, Patch, Scale
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.plan import Step, steps
from controllers.kernel.refs import annotations_of

if TYPE_CHECKING:
    from controllers.scaling.node_group import NodeGroup


class Scaler(StrEnum):
    """What sets delete marks; the value of its marks."""

    AUTOSCALER = "nodewright-autoscaler"
    PROVISIONING_REQUEST = "nodewright-provisioningrequest"
    EXTERNAL_GRPC = "nodewright-externalgrpc"
    CLOUDPOOL = "nodewright-cloudpool"


def is_marked_by(machine: MachineFacts, *scalers: Scaler) -> bool:
    """Whether the mark is one of theirs."""
    return annotations_of(machine.body).get(names.DELETE_MACHINE_ANNOTATION) in scalers


def is_marked_by_another(machine: MachineFacts, *scalers: Scaler) -> bool:
    """Whether a person or another scaler wants it to go first."""
    return machine.annotated and not is_marked_by(machine, *scalers)


def needs_mark(machine: MachineFacts, scaler: Scaler) -> bool:
    """Whether ``scaler`` has to write its mark before it lowers the size for ``machine``.

    A person's mark is enough and stays. Another scaler's is taken over: its owner could take it back before the size is
    lowered, and then another Machine would go.
    """
    return not machine.annotated or is_marked_by(machine, *(other for other in Scaler if other != scaler))


def mark(machine: MachineFacts, scaler: Scaler, *, why: str) -> Patch:
    """Refused by the API server (409) if the Machine has changed since it was read."""
    return _write(machine, str(scaler), why=why)


def unmark(machine: MachineFacts, why: str) -> Patch:
    """As ``mark``, guarded; for a mark of the caller's own."""
    return _write(machine, None, why=why)


def _write(machine: MachineFacts, value: str | None, *, why: str) -> Patch:
    patch = {"metadata": {"annotations": {names.DELETE_MACHINE_ANNOTATION: value}}}
    return Patch(machine.ref, patch, why, resource_version=machine.resource_version)


class ByName(NamedTuple):
    """A Machine that goes, or that stays after all, and why."""

    machine: MachineFacts
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Another size of one group, within its bounds.

    ``record``: annotations that say what the size is changed for (None takes one away). They are written with the size
    in one patch, so that either both are there or neither.
    """

    group: NodeGroup
    replicas: int
    why: str
    record: Mapping[str, str | None] = field(default_factory=dict)

    def write(self) -> Scale | Patch:
        """Refused by the API server (409) if something else is wanted of the group than when it was read."""
        group, size = self.group, self.group.clamped(self.replicas)
        if not self.record:
            return Scale(group.ref, size, self.why, group.resource_version, group.intent)
        return annotate_group(group, self.record, self.why, replicas=size)


def annotate_group(
    group: NodeGroup, record: Mapping[str, str | None], why: str, *, replicas: int | None = None
) -> Patch:
    """``record`` on the group's object and, unless it is None, ``replicas``, in one guarded write."""
    body: dict[str, Any] = {"metadata": {"annotations": dict(record)}}
    if replicas is not None:
        body["spec"] = {"replicas": replicas}
    return Patch(group.ref, body, why, resource_version=group.resource_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """All that one scaler changes at once.

    ``going`` are marked; ``staying`` are Machines whose mark, the scaler's own, is taken back. ``groups``: creations
    and deletions of whole groups, written with the sizes.
    """

    scaler: Scaler
    going: Iterable[ByName] = ()
    staying: Iterable[ByName] = ()
    sizes: Iterable[Resize] = ()
    groups: Iterable[Create | Delete] = ()

    def steps(self, reports: Iterable[Action] = ()) -> tuple[Step, ...]:
        """Marks, then sizes, then what tells of them: a step starts only if the one before it succeeded."""
        marks: list[Action] = [
            mark(machine, self.scaler, why=why) for machine, why in self.going if needs_mark(machine, self.scaler)
        ]
        marks += [unmark(machine, why) for machine, why in self.staying]
        return steps(marks, [*(size.write() for size in self.sizes), *self.groups], list(reports))
