"""A ControlPlane in bad times: production reconcilers, hosts that play kubeadm and etcd, crashes, stale views, losses.

A host is only struck while etcd bears it (one more than a quorum works, and nothing is being updated): what can heal
then has to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from api import names
from controllers.cluster.reconciler import RECONCILER as CLUSTERS
from controllers.controlplane.reconciler import STATIC_NAMESPACE, ControlPlaneReconciler
from controllers.kernel.actions import Action, RemoveEtcdMember
from controllers.kernel.conditions import find, is_true
from controllers.kernel.reconciler import ReconcilerWrapper
from controllers.kernel.refs import (
    CLUSTER,
    CONTROL_PLANE,
    MACHINE,
    MACHINE_HEALTH_CHECK,
    POD,
    Key,
    Kind,
    Obj,
    annotations_of,
    generation_of,
    is_deleting,
    key_of,
    status_of,
    uid_of,
)
from controllers.kernel.view import HostReads, Reached, Unreachable
from controllers.machine.reconciler import MachineReconciler
from controllers.machinehealthcheck.reconciler import MachineHealthCheckReconciler
from nodewright.crds import load_crds
from nodewright.runtime.cache.cache import CacheView
from nodewright.sim import users
from nodewright.sim.engine import Engine, Scenario
from nodewright.sim.etcd import Etcd, LastRead
from nodewright.sim.invariants import Bounds, Breach, Guard
from nodewright.sim.plane import AnswerLost
from nodewright.sim.process import Process
from providers.base.contract import HostState

NAME = Key(users.NAMESPACE, "cp")
_READY_POD = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


@dataclass(frozen=True, slots=True)
class Declared:
    """What a seed declares and what is done to it."""

    replicas: int
    surge: int
    in_place: str
    updates: str

    @staticmethod
    def drawn(random: Random) -> Declared:
        in_place, updates = random.choice(
            [("Never", "Replace"), ("Prefer", "InPlace"), ("Prefer", "Replace"), ("Require", "InPlace")]
        )
        surge = random.choice([0, 1, 1])
        return Declared(random.choice([1, 3, 3, 5] if surge else [3, 5]), surge, in_place, updates)

    def body(self) -> dict[str, Any]:
        config = {**users.SIMULATED, "cloud": {"name": "sim"}, "updates": self.updates}
        return {
            "apiVersion": CONTROL_PLANE.api_version,
            "kind": CONTROL_PLANE.name,
            "metadata": {"name": NAME.name, "namespace": NAME.namespace},
            "spec": {
                "clusterName": "sim",
                "replicas": self.replicas,
                "version": "1.34.0",
                "rollout": {"maxSurge": self.surge, "inPlace": self.in_place},
                "template": {"spec": {"providerConfig": {"value": config}, "versions": {"kubelet": "1.34.0"}}},
            },
        }


class ControlPlanes(Engine):
    """``Engine`` with one ControlPlane and its etcd instead of a MachineDeployment."""

    def __init__(self, seed: int, scenario: Scenario) -> None:
        self.seen: LastRead | None = None
        super().__init__(seed, scenario, (), load_crds())
        self.etcd = Etcd(self.plane, self.world, self.clock, self.kubelets.requeue_after)
        self.seen = LastRead(self.etcd)
        self.kubelets.is_silent = lambda host: host.id not in self.etcd.joined or host.id in self.etcd.cut
        self.guard = _NoGuard(self.plane)
        self._reconcilers = (
            CLUSTERS,
            _OfItsCluster(ControlPlaneReconciler(self.seen), self.etcd),
            MachineReconciler(),
            MachineHealthCheckReconciler(),
        )
        self.process = self._start()
        self.strikes = 0
        self.splits = 0
        self._split_for = 0
        self.declared = Declared.drawn(Random(f"control plane {seed}"))  # noqa: S311

    # -- what people and chance do

    def _declare(self) -> None:
        self.plane.create(CLUSTER, users.cluster())
        self.plane.create(CONTROL_PLANE, self.declared.body())
        check = users.health_check()
        check["spec"]["selector"] = {"matchLabels": {names.CONTROL_PLANE_NAME_LABEL: NAME.name}}
        self.plane.create(MACHINE_HEALTH_CHECK, check)
        self._say(f"declares a control plane: {self.declared}")
        self._set_faults(self.scenario.faults)

    def _rough(self) -> None:
        steps = self.scenario.steps_between_edits
        for _ in range(self.scenario.edits):
            for _ in range(self.random.randint(steps // 2, steps * 3)):
                self._step()
            people = [self._scale, self._upgrade, self._upgrade, self._delete]
            self.random.choice([*people, self._strike, self._strike, self._split, self._split])()
        for _ in range(steps):
            self._step()

    def _scale(self) -> None:
        replicas = self.random.choice([1, 3, 5] if self.declared.surge else [3, 5])
        self._say(f"somebody scales to {replicas}")
        self.plane.patch(CONTROL_PLANE, NAME, {"spec": {"replicas": replicas}}, "scale")

    def _upgrade(self) -> None:
        version = f"1.34.{self.random.randint(1, 9)}"
        self._say(f"somebody asks for version {version}")
        self.plane.patch(CONTROL_PLANE, NAME, {"spec": {"version": version}})

    def _delete(self) -> None:
        there = sorted(key_of(m) for m in self.plane.list(MACHINE) if not is_deleting(m))
        if there and self._is_initialized():
            victim = self.random.choice(there)
            self._say(f"somebody deletes Machine {victim.name}")
            self.plane.delete(MACHINE, victim)

    def _strike(self) -> None:
        """A host breaks, falls silent or vanishes with its disk."""
        for _ in range(3 * self.scenario.steps_between_edits):
            if self._bears_a_loss():
                break
            self._step()
        else:
            return
        victims = [member for member in self.etcd.members.values() if self.etcd.works(member)]
        member = self.random.choice(victims)
        how = self.random.choice([self.world.break_host, self.world.stop_host, self.world.lose_host])
        self.strikes += 1
        self.etcd.struck.add(member.host)
        self._say(f"{how.__name__}: {member.name}")
        how(member.uid)

    def _split(self) -> None:
        """The network splits for a while: one host is cut off, and now and then the controllers with it."""
        if self.etcd.cut or not self._bears_a_loss():
            return
        member = self.random.choice([member for member in self.etcd.members.values() if self.etcd.works(member)])
        self.etcd.cut, self.etcd.blind = frozenset({member.host}), self.random.random() < 0.4
        self.splits += 1
        self._split_for = self.random.randint(1, 3 * self.scenario.steps_between_edits)
        self._say(f"{member.name} is cut off{', with the controllers' if self.etcd.blind else ''}")

    def _heal_split(self) -> None:
        self.etcd.cut, self.etcd.blind = frozenset(), False
        self._say("the network is whole again")

    def _step(self) -> None:
        if self.etcd.cut:
            self._split_for -= 1
            if self._split_for <= 0:
                self._heal_split()
        super()._step()

    def _calm(self) -> None:
        if self.etcd.cut:
            self._heal_split()
        super()._calm()

    def _bears_a_loss(self) -> bool:
        return self.etcd.margin >= 1 and self._is_initialized() and not self._is_updating()

    def _is_initialized(self) -> bool:
        cluster = self.plane.get(CLUSTER, Key(users.NAMESPACE, "sim"))
        return cluster is not None and names.CONTROL_PLANE_INITIALIZED in annotations_of(cluster)

    def _is_updating(self) -> bool:
        for machine in self.plane.list(MACHINE):
            condition = find(status_of(machine).get("conditions"), "UpToDate")
            if (
                condition is None
                or condition["status"] != "True"
                or condition.get("observedGeneration", 0) < generation_of(machine)
            ):
                return True
        return False

    # -- the engine's parts

    def _start(self) -> Process:
        if self.seen is not None:
            self.seen.forget()
        return super()._start()

    def work_off(self) -> None:
        self._hosts()
        self._read()
        super().work_off()

    def _gc_and_kubelets(self) -> None:
        self._hosts()
        if self.random.random() < 0.5:
            self._read()
        super()._gc_and_kubelets()

    def _hosts(self) -> None:
        self.etcd.tick()

    def _read(self) -> None:
        assert self.seen is not None
        self.seen.refresh()

    def _check(self) -> None:
        super()._check()
        for breach in self.etcd.breaches():
            raise Breach(breach)

    def _remove_member(self, action: RemoveEtcdMember) -> None:
        assert self.seen is not None
        self.seen.forget()
        self.etcd.remove(action)
        if self.random.random() < self._faults.lost_answer:
            raise AnswerLost(action.why)

    def _unsettled(self) -> list[str]:
        body = self.plane.get(CONTROL_PLANE, NAME)
        assert body is not None
        replicas, version = body["spec"]["replicas"], body["spec"]["version"]
        machines = self.plane.list(MACHINE)
        found = []
        if len(machines) != replicas:
            found.append(f"{len(machines)} Machines instead of {replicas}: {body.get('status', {}).get('next')}")
        found += _unsettled_machines(machines, version)
        uids = {uid_of(machine) for machine in machines}
        members = self.etcd.members.values()
        if {m.uid for m in members} != uids or len(self.etcd.voters) != replicas or self.etcd.healthy != replicas:
            reported = [(m.name, m.learner, self.etcd.works(m)) for m in members]
            found.append(f"etcd has other members than Machines: {reported}")
        unmatched = [host for host in self.world.hosts() if host.machine_uid not in uids]
        found += [f"host {host.name} has no Machine" for host in unmatched if host.state is not HostState.DELETING]
        if body.get("status", {}).get("readyReplicas") != replicas:
            found.append(f"status.readyReplicas is {body.get('status', {}).get('readyReplicas')}")
        return found


class _NoGuard(Guard):
    """The bounds of MachineDeployments say nothing here."""

    def before(self, action: Action, seen: Iterable[Obj], believed: Bounds) -> None:
        """Anything may be done."""

    def done(self, action: Action, seen: Iterable[Obj], believed: Bounds) -> None:
        """Nothing was promised."""


@dataclass(frozen=True, slots=True)
class _OfItsCluster(ReconcilerWrapper):
    """The reconciler sees the control plane's own API, as far as that answers."""

    etcd: Etcd

    def observe(self, key: Key, view: Any, hosts: HostReads | None) -> Any:
        workload = Reached("sim-kubeconfig") if self.etcd.answers else Unreachable("sim-kubeconfig", "Unreachable", "")
        return self.reconciler.observe(key, _Seen(replace(view, workload=workload), self.etcd.runs), hosts)


class _Seen:
    """A view whose static pods are those that run on the hosts."""

    def __init__(self, view: CacheView, runs: Callable[[str], bool]) -> None:
        self._view = view
        self._runs = runs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def get(self, kind: Kind, key: Key) -> Obj | None:
        if kind is not POD or key.namespace != STATIC_NAMESPACE:
            return self._view.get(kind, key)
        node = key.name.removeprefix("kube-apiserver-")
        for component in ("kube-controller-manager-", "kube-scheduler-"):
            node = node.removeprefix(component)
        return _READY_POD if self._runs(node) else None


def _unsettled_machines(machines: Iterable[Obj], version: str) -> list[str]:
    found = []
    for machine in machines:
        if not is_true(status_of(machine).get("conditions"), "Ready"):
            found.append(f"Machine {key_of(machine).name} is not Ready")
        if machine["spec"]["versions"]["controlPlane"] != version:
            found.append(f"Machine {key_of(machine).name} is not of version {version}")
    return found
