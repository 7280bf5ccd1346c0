"""The MachineClass reconciler."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from controllers.kernel.budgets import gathering
from controllers.kernel.plan import Plan
from controllers.kernel.provider_config import class_key
from controllers.kernel.reconciler import Wake
from controllers.kernel.refs import MACHINE, MACHINE_CLASS, Key, Kind, Obj, key_of, spec_of
from controllers.kernel.view import HostNeed, HostReads, View
from controllers.kernel.waking import itself
from controllers.machineclass import observe
from controllers.machineclass.observe import READS, Observed
from controllers.machineclass.plan import plan


def of_machine(machine: Obj, _view: View) -> Iterable[Key]:
    """The class that it names."""
    named = _named(machine)
    return (named,) if named is not None else ()


def names_the_same(old: Obj, new: Obj) -> bool:
    """A class cares for a Machine's coming and going only."""
    return _named(old) == _named(new)


def while_machines_move(key: Key, view: View) -> float:
    return gathering(view.get(MACHINE_CLASS, key), "machines")


@dataclass(frozen=True, slots=True)
class MachineClassReconciler:
    """See ``controllers.kernel.reconciler.Reconciler``."""

    name: str = "machineclass"
    kind: Kind = MACHINE_CLASS
    reads: tuple[Kind, ...] = READS
    wakes: tuple[Wake, ...] = field(
        default=(
            Wake(MACHINE_CLASS, itself),
            Wake(MACHINE, of_machine, names_the_same, while_machines_move),
        )
    )

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return observe.needs(key, view)

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Observed | None:
        return observe.observe(key, view, hosts)

    def plan(self, observed: Observed) -> Plan:
        return plan(observed)


def _named(machine: Obj) -> Key | None:
    return class_key(spec_of(machine), key_of(machine).namespace)


RECONCILER = MachineClassReconciler()
