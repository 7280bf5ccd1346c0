"""The autoscaler's reconciler: one key for the whole cluster, looked at again and again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from api import names, provisioning_names
from controllers.autoscaler.buffers import WORKLOADS
from controllers.autoscaler.cluster_state import is_unschedulable
from controllers.autoscaler.expected_pods import OWNERS, lacks_pods, wanted_by
from controllers.autoscaler.gangs import kinds_of
from controllers.autoscaler.health import OUT_OF_CAPACITY
from controllers.autoscaler.observe import READS, Observed, observe
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.plan import plan
from controllers.kernel import machine_facts
from controllers.kernel.plan import Plan
from controllers.kernel.reconciler import Wake
from controllers.kernel.refs import (
    CAPACITY_BUFFER,
    CAPACITY_QUOTA,
    CONFIG_MAP,
    LEASE,
    LIMIT_RANGE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    NODE,
    POD,
    POD_TEMPLATE,
    PROVISIONING_REQUEST,
    RESOURCE_QUOTA,
    Key,
    Kind,
    Obj,
    annotations_of,
    generation_of,
    is_deleting,
)
from controllers.kernel.view import MANAGEMENT_CLUSTER, HostNeed, HostReads, ManagementCluster, View
from controllers.scheduling.reading import Reader

GATHER = 2.0
"""Seconds for which changes are gathered, where the scan does not come sooner: pods rarely come alone."""


def _config_maps(options: AutoscalerOptions) -> tuple[Key, ...]:
    """All that it reads, by name: it shares the namespace with the ConfigMaps of many others."""
    read = (names.AUTOSCALER_PRIORITIES, names.AUTOSCALER_PRICES)
    more = (provisioning_names.PROVISIONING_CLASSES,) if options.provisioning_requests else ()
    return (options.memory_key, options.status_key, *(Key(options.namespace, name) for name in (*read, *more)))


class AutoscalerReconciler:
    """Reconciler[Observed]; ``options`` None: the defaults. Its key is the ConfigMap with its memory, there or not.

    ``reader``: a memory of what was read, not of what was decided: with a new one every look says the same.
    Reconcilers that look at the same cluster in one process may share it, so that each pod is read once.
    """

    name = "autoscaler"
    kind: Kind = CONFIG_MAP
    reports_unreachable = True
    reads: tuple[Kind, ...] = READS

    def __init__(self, options: AutoscalerOptions | None = None, reader: Reader | None = None) -> None:
        self.options = options or AutoscalerOptions()
        if self.options.provisioning_requests:
            self.reads = (*self.reads, POD_TEMPLATE, PROVISIONING_REQUEST)
        if self.options.growth.gangs:
            self.reads = (*self.reads, *kinds_of(self.options.growth.gangs))
        if self.options.growth.buffers:
            more = (CAPACITY_BUFFER, POD_TEMPLATE, RESOURCE_QUOTA, LIMIT_RANGE, *WORKLOADS)
            self.reads = (*self.reads, *(kind for kind in more if kind not in self.reads))
        if self.options.growth.proactive:
            unread = [kind for kind in (*OWNERS, RESOURCE_QUOTA, LIMIT_RANGE) if kind not in self.reads]
            self.reads = (*self.reads, *unread)
        if self.options.growth.quotas:
            self.reads = (*self.reads, CAPACITY_QUOTA)
        self.sees: Key | ManagementCluster = self.options.cluster or MANAGEMENT_CLUSTER
        self.key = self.options.memory_key
        self._reader = reader or Reader()
        self.parts: Mapping[Kind, tuple[Key, ...]] = {
            CONFIG_MAP: _config_maps(self.options),
            LEASE: (self.options.lease_key,),
        }
        self.wakes: tuple[Wake, ...] = (
            Wake(MACHINE_DEPLOYMENT, self._the_key, _asks_the_same, self._soon),
            Wake(MACHINE_SET, self._the_key, _asks_the_same, self._soon),
            Wake(MACHINE, self._of_machine, hopes_the_same, self._soon),
            Wake(POD, self._of_pod, _waits_as_before, self._once_idle),
            Wake(NODE, self._the_key, never_mind, self._soon),
            *(Wake(kind, self._the_key, _is_as_it_was, self._soon) for kind in self._capacity_kinds()),
            *(self._wake_of(kind) for kind in (OWNERS if self.options.growth.proactive else ())),
        )

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Observed | None:
        return observe(view, self.options, reader=self._reader) if key == self.key else None

    def plan(self, observed: Observed) -> Plan:
        return plan(observed)

    def _capacity_kinds(self) -> tuple[Kind, ...]:
        growth = self.options.growth
        return (*((CAPACITY_BUFFER,) if growth.buffers else ()), *((CAPACITY_QUOTA,) if growth.quotas else ()))

    def _the_key(self, _obj: Obj, _view: View) -> Iterable[Key]:
        return (self.key,)

    def _of_machine(self, machine: Obj, _view: View) -> Iterable[Key]:
        """One that will never be a Node: another group may grow at once."""
        return (self.key,) if _is_unprovisionable(machine) else ()

    def _of_pod(self, pod: Obj, _view: View) -> Iterable[Key]:
        return (self.key,) if is_unschedulable(pod) else ()

    def _wake_of(self, kind: Kind) -> Wake:
        """An owner is to have more pods than it has."""

        def the_key(owner: Obj, _view: View) -> Iterable[Key]:
            return (self.key,) if lacks_pods(kind, owner) else ()

        return Wake(kind, the_key, lambda old, new: wanted_by(kind, new) <= wanted_by(kind, old), self._once_idle)

    def _once_idle(self, key: Key, view: View) -> float:
        idle = self.options.growth.batch_idle.total_seconds()
        return min(idle, self._soon(key, view)) if idle else self._soon(key, view)

    def _soon(self, _key: Key, _view: View) -> float:
        return min(GATHER, self.options.scan_interval.total_seconds())


def _asks_the_same(old: Obj, new: Obj) -> bool:
    return _asked(old) == _asked(new)


def _is_as_it_was(old: Obj, new: Obj) -> bool:
    return generation_of(old) == generation_of(new) and is_deleting(old) == is_deleting(new)


def _asked(group: Obj) -> tuple[Any, ...]:
    return (group.get("spec") or {}).get("replicas"), annotations_of(group), is_deleting(group)


def hopes_the_same(old: Obj, new: Obj) -> bool:
    return _is_unprovisionable(old) == _is_unprovisionable(new)


def _is_unprovisionable(machine: Obj) -> bool:
    facts = machine_facts.read(machine)
    return not facts.node_name and (facts.failed or facts.reason in OUT_OF_CAPACITY)


def _waits_as_before(old: Obj, new: Obj) -> bool:
    return is_unschedulable(old) or not is_unschedulable(new)


def never_mind(_old: Obj, _new: Obj) -> bool:
    """Of Nodes only their coming and going is heard of; the scan sees the rest."""
    return True
