"""The delete mark: the annotation that makes a Machine the first to go when its set gets smaller.

Each scaler's mark has a value of its own, so that it takes back none but its own. A mark of any other value is a
person's. The Cluster API spelling (``cluster.x-k8s.io/delete-machine``) counts as a mark too and is never written here.
"""

from __future__ import annotations

from enum import StrEnum

from api import names
from controllers.kernel.actions import Patch
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import annotations_of


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
