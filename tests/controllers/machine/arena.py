"""One Machine room against a simulated cloud and an API held in memory: plans are applied action by action."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from controllers.kernel.actions import (
    Action,
    Create,
    CreateHost,
    Delete,
    DeleteHost,
    Event,
    Evict,
    HostAction,
    Patch,
    RebootHost,
    Scale,
    UpdateHost,
)
from controllers.kernel.joining import NO_LIMITS, Limits
from controllers.kernel.plan import Blocked, Failed, Plan, Settled, Wait
from controllers.kernel.refs import MACHINE, NODE, POD, Key, Obj
from controllers.kernel.view import (
    NOBODY_ASKED,
    Attempt,
    ConfigProblem,
    HostAbsent,
    HostPresent,
    HostRead,
    HostReads,
    HostUnknown,
    LiveCheck,
)
from controllers.machine.reconciler import MachineReconciler
from nodewright.apiserver.patch.merge import merged
from nodewright.runtime.hosts.calls import call_of
from providers.base.contract import Host, HostRequest, Problem, UpdateAnswer
from providers.base.errors import REACTIONS, ProviderError
from providers.base.registry import Registry
from providers.simulated.config import Cloud
from providers.simulated.kubelet import node_for
from providers.simulated.provider import registration_for
from providers.simulated.world import World
from providers.simulated.worlds import Worlds
from tests.builders import NOW, Builder, FakeView


class Refused(Exception):
    """The API server says 409."""


@dataclass
class Arena:
    """``writes`` counts API writes by verb and kind; ``done`` holds every action that was carried out."""

    cloud: Cloud = field(default_factory=lambda: Cloud(name="arena"))
    now: datetime = NOW
    writes: Counter[str] = field(default_factory=Counter)
    done: list[Action] = field(default_factory=list)
    cloud_answers: bool = True
    live: LiveCheck = NOBODY_ASKED
    hosting_node: str = ""
    limits: Limits = NO_LIMITS
    leftover: Host | None = None
    """What the cloud shows where there is no host."""
    registry: Registry = field(default_factory=lambda: Registry.of(registration_for(Worlds())))

    def __post_init__(self) -> None:
        self.reconciler = MachineReconciler(self.hosting_node, self.limits)
        self.view = FakeView()
        self.world = World(self.cloud, lambda: self.now)
        self.attempts: dict[str, Attempt] = {}
        self.answers: dict[str, tuple[str, UpdateAnswer, datetime]] = {}
        self.registered: set[str] = set()
        self.checked: dict[str, tuple[Problem, ...]] = {}
        self._version = 100

    # -- what people do

    def apply(self, builder: Builder) -> Key:
        """POST a Machine."""
        body = builder.created(0).build()
        body["metadata"]["creationTimestamp"] = self._time()
        body["metadata"]["resourceVersion"] = self._next_version()
        self.view.put(body)
        if body["kind"] == "Machine":
            self.writes["POST Machine"] += 1
        return Key(body["metadata"].get("namespace", ""), body["metadata"]["name"])

    def edit(self, key: Key, change: Mapping[str, Any]) -> None:
        """A person's merge patch of a Machine's spec or metadata."""
        self._store(MACHINE, key, dict(change), "")

    def delete(self, key: Key) -> None:
        machine = copy.deepcopy(dict(self.machine(key)))
        machine["metadata"]["deletionTimestamp"] = self._time()
        machine["metadata"]["resourceVersion"] = self._next_version()
        self.view.put(machine)

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.view = self.view.at(seconds)
        self.kubelets()

    # -- what is to be seen

    def machine(self, key: Key) -> Obj:
        found = self.view.get(MACHINE, key)
        assert found is not None, f"{key} is gone"
        return found

    def exists(self, key: Key) -> bool:
        return self.view.get(MACHINE, key) is not None

    def condition(self, key: Key, type_: str) -> Mapping[str, Any]:
        found: list[Mapping[str, Any]]
        found = [c for c in self.machine(key)["status"]["conditions"] if c["type"] == type_]
        assert len(found) == 1, f"{key} has {len(found)} conditions {type_}"
        return found[0]

    def nodes(self) -> list[Obj]:
        return list(self.view.all(NODE))

    # -- rounds

    def reads(self, key: Key) -> HostReads:
        need = self.reconciler.needs(key, self.view)
        assert need is not None
        uid = need.machine_uid
        made_for, answer, at = self.answers.get(uid, ("", None, self.now))
        told = answer if made_for == need.spec_hash else None
        found = self._problems_of(need.config) if need.config is not None else ()
        problems = (*need.problems, *(ConfigProblem(f"{need.config_path}.{p.path}", p.message) for p in found))
        answered_at = at if told is not None else None
        live = self.live if need.live and not problems else NOBODY_ASKED
        return HostReads(self._host(uid), problems, told, self.attempts.get(uid), answered_at=answered_at, live=live)

    def _problems_of(self, config: Mapping[str, Any]) -> tuple[Problem, ...]:
        """What is wrong with a config does not change, and checking it is what a round costs most."""
        text = json.dumps(config, sort_keys=True)
        if text not in self.checked:
            self.checked[text] = self.registry.problems(config)
        return self.checked[text]

    def plan(self, key: Key) -> Plan:
        observed = self.reconciler.observe(key, self.view, self.reads(key))
        assert observed is not None
        return self.reconciler.plan(observed)

    def round(self, key: Key, most: int | None = None) -> Plan:
        """One round; ``most`` actions of its plan are carried out, then the process dies."""
        plan = self.plan(key)
        left = most
        for step in plan.steps:
            for action in step:
                if left is not None and left <= 0:
                    return plan
                left = None if left is None else left - 1
                try:
                    self.perform(action)
                except (Refused, ProviderError):
                    return plan
        return plan

    def run(self, key: Key, seconds: float = 60.0) -> list[Plan]:
        """Rounds, as the shell drives them, until the Machine is settled, gone or the time is over."""
        plans: list[Plan] = []
        end = self.now + timedelta(seconds=seconds)
        while self.exists(key) and self.now < end:
            plan = self.round(key)
            plans.append(plan)
            if any(not isinstance(action, Event) for action in plan.actions()):
                self.forward(0.05)
                continue
            match plan.outcome:
                case Settled():
                    break
                case Wait(after=after) | Blocked(after=after):
                    self.forward(max(after, 0.05))
                case Failed():
                    self.forward(60.0)
        return plans

    # -- what carries it out

    def perform(self, action: Action) -> None:
        match action:
            case Patch():
                self._patch(action)
            case Delete():
                self._delete(action)
            case Evict():
                self.view.drop(POD, action.target.key.name, action.target.key.namespace)
                self.writes["POST eviction"] += 1
            case Event():
                self.writes["POST Event"] += 1
            case CreateHost() | UpdateHost() | DeleteHost() | RebootHost():
                self._call(action)
            case Create() | Scale():
                raise AssertionError(f"a Machine room does not {action}")
        self.done.append(action)

    def kubelets(self) -> None:
        """Each booted host registers its Node once, and reports its status."""
        for host in self.world.booted():
            body = node_for(host, host.request_at(self.now), self.now)
            have = self.view.get(NODE, Key("", host.name))
            if have is None and host.id in self.registered:
                continue
            node = {**(have or body), "status": body["status"]}
            born = {"uid": f"uid-{host.id}", "creationTimestamp": self._time()} if have is None else {}
            node["metadata"] = {**node["metadata"], **born, "resourceVersion": self._next_version()}
            self.registered.add(host.id)
            self.view.put(node)

    def _call(self, action: HostAction) -> None:
        uid = action.machine.uid
        try:
            match action:
                case CreateHost():
                    self.world.create(action.request)
                    self.leftover = None
                case UpdateHost():
                    answer = self.world.update(action.request, action.host.id, action.drained)
                    self.answers[uid] = (action.request.spec_hash, answer, self.now)
                case DeleteHost() if action.host == self.leftover:
                    self.leftover = None
                case DeleteHost():
                    self.world.delete(action.host.id)
                case RebootHost():
                    self.world.reboot(action.host.id, action.attempt)
        except ProviderError as error:
            failures = self.attempts[uid].failures + 1 if uid in self.attempts else 1
            pause = timedelta(seconds=REACTIONS[error.error_class].first * failures)
            name, asked = call_of(action).name, getattr(action, "request", None)
            spec_hash = asked.spec_hash if isinstance(asked, HostRequest) else ""
            self.attempts[uid] = Attempt(
                name, error.error_class, error.message, failures, self.now, self.now + pause, spec_hash
            )
            raise
        self.attempts.pop(uid, None)

    def _host(self, uid: str) -> HostRead:
        if not self.cloud_answers:
            return HostUnknown("the cloud does not answer")
        try:
            found = next((host for host in self.world.list() if host.machine_uid == uid), None)
        except ProviderError as error:
            return HostUnknown(str(error))
        return HostPresent(found) if found else HostAbsent(self.leftover)

    def _patch(self, action: Patch) -> None:
        have = self.view.get(action.target.kind, action.target.key)
        if have is None or have["metadata"]["uid"] != action.target.uid:
            raise Refused(f"{action.target} is gone")
        if action.resource_version and have["metadata"]["resourceVersion"] != action.resource_version:
            raise Refused(f"{action.target} has changed")
        self.writes[f"PATCH {action.target.kind.name} {action.subresource or 'main'}"] += 1
        self._store(action.target.kind, action.target.key, dict(action.patch), action.subresource)

    def _store(self, kind: Any, key: Key, patch: dict[str, Any], subresource: str) -> None:
        have = self.view.get(kind, key)
        assert have is not None
        assert set(patch) <= ({"status"} if subresource else {"metadata", "spec"}), f"{patch} does not belong there"
        after = merged(have, copy.deepcopy(patch))
        if after == have:
            return
        after["metadata"]["resourceVersion"] = self._next_version()
        if after.get("spec") != have.get("spec"):
            after["metadata"]["generation"] = have["metadata"].get("generation", 1) + 1
        if after["metadata"].get("deletionTimestamp") and not after["metadata"].get("finalizers"):
            self.view.drop(kind, key.name, key.namespace)
        else:
            self.view.put(after)

    def _delete(self, action: Delete) -> None:
        have = self.view.get(action.target.kind, action.target.key)
        changed = have is not None and have["metadata"]["resourceVersion"] != action.resource_version
        if action.resource_version and changed:
            raise Refused(f"{action.target} has changed")
        self.writes[f"DELETE {action.target.kind.name}"] += 1
        if have is not None and have["metadata"]["uid"] == action.target.uid:
            self.view.drop(action.target.kind, action.target.key.name, action.target.key.namespace)

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)

    def _time(self) -> str:
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
