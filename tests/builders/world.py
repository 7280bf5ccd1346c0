"""World: a tiny API server for unit tests. It applies plans, refuses what a real one refuses, and shows old views.

Objects are replaced, never changed, so a view keeps showing what it showed. Not modelled: admission and quotas.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from controllers.kernel.actions import Action, Create, Delete, Event, Patch, Scale
from controllers.kernel.conditions import format_time
from controllers.kernel.ownership import controller_uid
from controllers.kernel.plan import Plan
from controllers.kernel.refs import MACHINE, Key, Kind, Obj, Ref, key_of, uid_of
from nodewright.apiserver.patch.merge import merged
from tests.builders.clock import NOW
from tests.builders.objects import Builder, as_dict
from tests.builders.view import KINDS, FakeView, kind_of


class Refused(Exception):
    """409, 404 or AlreadyExists: the action had no effect."""


class World:
    """``apply`` one action, or ``run`` a plan; ``view()`` is the present, ``view({MACHINE: 3})`` lags three writes."""

    def __init__(self, *objects: Builder | Mapping[str, Any], now: datetime = NOW) -> None:
        self.now = now
        self.version = 1000
        self.uids = 0
        self.events: list[Event] = []
        self.writes: list[Action] = []
        self._objects: dict[Kind, dict[Key, Obj]] = {kind: {} for kind in KINDS.values()}
        self._past: dict[Kind, list[dict[Key, Obj]]] = {kind: [{}] for kind in KINDS.values()}
        for obj in objects:
            self.put(obj)

    # -- reading

    def get(self, kind: Kind, name: str, namespace: str = "default") -> dict[str, Any]:
        return dict(self._objects[kind][Key(namespace if kind.namespaced else "", name)])

    def find(self, kind: Kind, name: str, namespace: str = "default") -> Obj | None:
        return self._objects[kind].get(Key(namespace if kind.namespaced else "", name))

    def all(self, kind: Kind) -> list[Obj]:
        return list(self._objects[kind].values())

    def length(self, kind: Kind) -> int:
        """How many writes of this kind there were: the position of a view in it."""
        return len(self._past[kind]) - 1

    def view(self, lags: Mapping[Kind, int] | None = None) -> FakeView:
        """Each kind as it was so many writes ago."""
        return self.view_at({kind: self.length(kind) - lag for kind, lag in (lags or {}).items()})

    def view_at(self, positions: Mapping[Kind, int]) -> FakeView:
        """Each kind as it was after so many writes; kinds not named are shown as they are."""
        view = FakeView(now=self.now)
        for kind, past in self._past.items():
            position = positions.get(kind, len(past) - 1)
            view.show(kind, past[max(0, min(position, len(past) - 1))])
        return view

    # -- what others do

    def put(self, obj: Builder | Mapping[str, Any]) -> None:
        """Store an object as it is, as somebody else's write."""
        body = as_dict(obj)
        self._store(kind_of(body), key_of(body), body)

    def change(
        self, kind: Kind, name: str, change: Callable[[dict[str, Any]], object], namespace: str = "default"
    ) -> None:
        """Somebody edits an object; generation follows the spec."""
        body = copy.deepcopy(self.get(kind, name, namespace))
        spec = copy.deepcopy(body.get("spec"))
        change(body)
        if body.get("spec") != spec:
            body["metadata"]["generation"] = body["metadata"].get("generation", 1) + 1
        self._store(kind, key_of(body), body)

    def annotate(self, kind: Kind, name: str, key: str, value: str = "true") -> None:
        """Somebody (the Cluster Autoscaler, a person) sets an annotation."""
        self.change(kind, name, lambda body: body["metadata"].setdefault("annotations", {}).update({key: value}))

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def make_ready(self, machines: Iterable[Obj] | None = None) -> int:
        """The Machine controller's part: Machines that are not going become Ready now. Returns how many did."""
        done = 0
        for machine in list(machines if machines is not None else self.all(MACHINE)):
            if machine["metadata"].get("deletionTimestamp") or (machine.get("status") or {}).get("nodeRef"):
                continue
            body = copy.deepcopy(dict(machine))
            body["spec"]["providerID"] = f"simulated:///{uid_of(body)}"
            body["status"] = {
                "phase": "Running",
                "nodeRef": {"name": f"node-{body['metadata']['name']}"},
                "conditions": [_condition("True", "Ready", self.now)],
            }
            self._up_to_date(body, "True", "UpToDate")
            self._store(MACHINE, key_of(body), body)
            done += 1
        return done

    def change_hosts(self, limit: int | None = None, *, refused: str = "") -> int:
        """The Machine controller's part: hosts follow edited Machines now, or their provider can't (``refused``).

        Returns how many Machines moved.
        """
        done = 0
        for machine in self.all(MACHINE):
            condition = next((c for c in conditions_of(machine) if c["type"] == "UpToDate"), None)
            generation = machine["metadata"].get("generation", 1)
            if condition is None or done == limit or condition["observedGeneration"] == generation:
                continue
            body = copy.deepcopy(dict(machine))
            needed = body["metadata"].get("annotations", {}).get("nodewright.dev/in-place") == "Require" and refused
            said = ("False", "NeedsReplacement", refused) if needed else ("True", "UpToDate", "")
            self._up_to_date(body, *said)
            self._store(MACHINE, key_of(body), body)
            done += 1
        return done

    def _up_to_date(self, body: dict[str, Any], status: str, reason: str, message: str = "") -> None:
        others = [condition for condition in conditions_of(body) if condition["type"] != "UpToDate"]
        said = {**_condition(status, reason, self.now), "type": "UpToDate", "message": message}
        body["status"]["conditions"] = [*others, {**said, "observedGeneration": body["metadata"].get("generation", 1)}]

    def break_down(self, name: str, reason: str = "NodeNotReady") -> None:
        """The Machine's Node stops being Ready."""
        self.change(MACHINE, name, lambda m: m["status"].update(conditions=[_condition("False", reason, self.now)]))

    def finish_deletions(self, machines: Iterable[Obj] | None = None) -> int:
        """The Machine controller's part: hosts of deleting Machines are gone, finalizers go. Returns how many went."""
        found = self.all(MACHINE) if machines is None else list(machines)
        going = [m for m in found if m["metadata"].get("deletionTimestamp")]
        for machine in going:
            self._remove(MACHINE, key_of(machine))
        return len(going)

    # -- what plans do

    def run(self, plan: Plan, limit: int | None = None) -> bool:
        """Execute in order, at most ``limit`` actions (then the process dies); True if all of it succeeded."""
        left = limit
        for step in plan.steps:
            succeeded = True
            for action in step:
                if left == 0:
                    return False
                left = None if left is None else left - 1
                try:
                    self.apply(action)
                except Refused:
                    succeeded = False
            if not succeeded:
                return False
        return True

    def apply(self, action: Action) -> None:
        """Raises Refused as an API server would."""
        match action:
            case Create():
                self._create(action)
            case Patch():
                self._patch(action)
            case Scale():
                self._scale(action)
            case Delete():
                self._delete(action)
            case Event():
                self.events.append(action)
            case _:
                raise AssertionError(f"no such thing in this world: {action}")
        self.writes.append(action)

    def _create(self, action: Create) -> None:
        body = copy.deepcopy(dict(action.body))
        key = key_of(body)
        existing = self._objects[action.kind].get(key)
        if existing is not None:
            if controller_uid(existing) == controller_uid(body):
                return
            raise Refused(f"{action.kind} {key} already exists")
        self.uids += 1
        body["metadata"].update(uid=f"made-{self.uids}", generation=1, creationTimestamp=format_time(self.now))
        self._store(action.kind, key, body)

    def _patch(self, action: Patch) -> None:
        body = self._target(action.target, action.resource_version)
        if action.subresource == "status":
            patch: Mapping[str, Any] = {"status": action.patch["status"]} if "status" in action.patch else {}
        else:
            patch = {key: value for key, value in action.patch.items() if key != "status"}
        changed = merged(body, copy.deepcopy(patch))
        if changed == body:
            return
        if changed.get("spec") != body.get("spec"):
            changed["metadata"] = {**changed["metadata"], "generation": changed["metadata"].get("generation", 1) + 1}
        if changed["metadata"].get("deletionTimestamp") and not changed["metadata"].get("finalizers"):
            self._remove(action.target.kind, action.target.key)
            return
        self._store(action.target.kind, action.target.key, changed)

    def _scale(self, action: Scale) -> None:
        self._patch(
            Patch(action.target, {"spec": {"replicas": action.replicas}}, action.why, "", action.resource_version)
        )

    def _delete(self, action: Delete) -> None:
        body = self._objects[action.target.kind].get(action.target.key)
        if body is None:
            return
        if action.target.uid and uid_of(body) != action.target.uid:
            raise Refused(f"{action.target} has another uid")
        if action.resource_version and body["metadata"]["resourceVersion"] != action.resource_version:
            raise Refused(f"{action.target} has changed")
        if not body["metadata"].get("finalizers"):
            self._remove(action.target.kind, action.target.key)
        elif not body["metadata"].get("deletionTimestamp"):
            metadata = {**body["metadata"], "deletionTimestamp": format_time(self.now)}
            self._store(action.target.kind, action.target.key, {**body, "metadata": metadata})

    def _target(self, target: Ref, resource_version: str) -> dict[str, Any]:
        body = self._objects[target.kind].get(target.key)
        if body is None or (target.uid and uid_of(body) != target.uid):
            raise Refused(f"{target} is gone")
        if resource_version and body["metadata"]["resourceVersion"] != resource_version:
            raise Refused(f"{target} has changed")
        return dict(body)

    def _store(self, kind: Kind, key: Key, body: Mapping[str, Any]) -> None:
        self.version += 1
        stored = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        self._write(kind, {**self._objects[kind], key: stored})

    def _remove(self, kind: Kind, key: Key) -> None:
        """Gone, and with it in the background what it controls."""
        self.version += 1
        body = self._objects[kind][key]
        self._write(kind, {k: v for k, v in self._objects[kind].items() if k != key})
        for dependent_kind, objects in list(self._objects.items()):
            for dependent in list(objects.values()):
                if controller_uid(dependent) == uid_of(body):
                    self._delete(Delete(Ref(dependent_kind, key_of(dependent)), "its owner is gone"))

    def _write(self, kind: Kind, objects: dict[Key, Obj]) -> None:
        self._objects[kind] = objects
        self._past[kind].append(objects)


def conditions_of(obj: Obj) -> list[dict[str, Any]]:
    return list((obj.get("status") or {}).get("conditions") or ())


def _condition(status: str, reason: str, now: datetime) -> dict[str, Any]:
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": "",
        "lastTransitionTime": format_time(now),
        "observedGeneration": 1,
    }
