"""A Fleet with ProvisioningRequests: their statuses are kept as an API server keeps them; the room sees both."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from api import provisioning_names
from controllers.autoscaler.observe import observe
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.plan import decide as autoscale
from controllers.kernel.actions import Action, Delete, Event, Patch, Scale
from controllers.kernel.conditions import format_time
from controllers.kernel.plan import Plan
from controllers.kernel.refs import CONFIG_MAP, POD_TEMPLATE, PROVISIONING_REQUEST, Kind
from controllers.provisioningrequest.classes import ProvisioningClass
from controllers.provisioningrequest.observe import Observed
from controllers.provisioningrequest.options import ProvisioningOptions
from controllers.provisioningrequest.reconciler import ProvisioningRequestReconciler
from nodewright.apiserver.patch.merge import apply_merge
from tests.builders.view import FakeView
from tests.controllers.autoscaler.fleet import UNSCHEDULABLE, Fleet
from tests.controllers.autoscaler.town import config_map, view_of

Obj = dict[str, Any]
STOCK_OUT = {"type": "Ready", "status": "False", "reason": "StockOut", "message": "no host is left"}


@dataclass
class Office:
    fleet: Fleet = field(default_factory=lambda: Fleet(AutoscalerOptions(provisioning_requests=True)))
    options: ProvisioningOptions = field(default_factory=ProvisioningOptions)
    requests: dict[str, Obj] = field(default_factory=dict)
    templates: dict[str, Obj] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    classes: dict[str, ProvisioningClass] = field(default_factory=dict)
    scale_steps: list[int] = field(default_factory=list)
    """Per round in which sizes were written, how many."""

    def template(self, name: str, cpu: str = "3", **spec: Any) -> Obj:
        container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
        self.templates[name] = {
            "metadata": {"namespace": "default", "name": name, "uid": f"pt-{name}"},
            "template": {"metadata": {"labels": {"job": name}}, "spec": {"containers": [container], **spec}},
        }
        return self.templates[name]

    def request(
        self, name: str, *sets: tuple[str, int], class_name: str = provisioning_names.ATOMIC_SCALE_UP, **more: str
    ) -> Obj:
        """``more``: its parameters."""
        self.requests[name] = {
            "metadata": {
                "namespace": "default",
                "name": name,
                "uid": f"pr-{name}",
                "resourceVersion": "1",
                "creationTimestamp": format_time(self.fleet.now),
            },
            "spec": {
                "provisioningClassName": class_name,
                "podSets": [{"podTemplateRef": {"name": template}, "count": count} for template, count in sets],
                **({"parameters": more} if more else {}),
            },
        }
        return self.requests[name]

    def consumer(self, request: str, name: str, cpu: str = "3", node: str = "", key: str = "") -> Obj:
        pod = self.fleet.pod(name, cpu, node)
        annotations = {key or provisioning_names.CONSUME_REQUEST_ANNOTATION: request}
        pod["metadata"]["annotations"] = annotations
        return pod

    def condition(self, request: str, type_: str) -> Obj:
        conditions = self.requests[request].get("status", {}).get("conditions", [])
        found: Obj = next((c for c in conditions if c["type"] == type_), {})
        return found

    def said(self, request: str, type_: str = "Provisioned") -> tuple[str, str]:
        """Status and reason of a condition."""
        found = self.condition(request, type_)
        return found.get("status", ""), found.get("reason", "")

    def details(self, request: str) -> dict[str, str]:
        found: dict[str, str] = self.requests[request].get("status", {}).get("provisioningClassDetails", {})
        return found

    def booked(self, request: str) -> set[str]:
        return set(self.details(request).get(provisioning_names.BOOKED_NODES_DETAIL, "").split())

    def view(self) -> FakeView:
        more: list[tuple[Kind, Obj]] = [(PROVISIONING_REQUEST, copy.deepcopy(each)) for each in self.requests.values()]
        more += [(POD_TEMPLATE, each) for each in self.templates.values()]
        more += [(CONFIG_MAP, config_map(provisioning_names.PROVISIONING_CLASSES, **self.defaults))]
        return view_of(self.fleet, *more)

    def observed(self) -> Observed:
        reconciler = ProvisioningRequestReconciler(self.fleet.options, self.options, self.classes)
        found = reconciler.observe(reconciler.key, self.view(), None)
        assert found is not None
        return found

    def plan(self) -> Plan:
        """By a room that has just been made: nothing is remembered but what was written."""
        return ProvisioningRequestReconciler(self.fleet.options, self.options, self.classes).plan(self.observed())

    def round(self, actions: int = 10_000, after: timedelta = timedelta(seconds=10)) -> Plan:
        """Carry out so many actions of a plan and die; then time passes."""
        found = self.plan()
        self.scale_steps += [sum(isinstance(each, Scale) for each in step) for step in found.steps if _scales(step)]
        for action in list(found.actions())[:actions]:
            self._carry_out(action)
        self.fleet.now += after
        return found

    def autoscale(self, after: timedelta = timedelta(seconds=10)) -> None:
        """A round of the autoscaler, which knows of the requests."""
        decision = autoscale(observe(self.view(), self.fleet.options).cluster)
        for step in decision.steps:
            for action in step:
                self.fleet._carry_out(action)
        self.fleet.now += after

    def live(self, reconciles: int = 3, after: timedelta = timedelta(seconds=10)) -> None:
        for _ in range(reconciles):
            self.round(after=after)
            self.fleet.settle()

    def make(self, group: str, fails: int = 0) -> None:
        """The set follows its size, without hosts; the last ``fails`` Machines find no host."""
        missing = self.fleet.size(group) - sum(1 for name in self.fleet.machines if name.startswith(f"{group}-"))
        for number in range(missing):
            self.fleet.machine(group, STOCK_OUT if number >= missing - fails else None)

    def join(self, group: str, count: int = 10_000) -> None:
        """So many of its Machines that wait for a host become Nodes."""
        waiting = [
            machine
            for name, machine in self.fleet.machines.items()
            if name.startswith(f"{group}-")
            and not machine["status"].get("nodeRef")
            and machine["status"]["conditions"][0]["reason"] != "StockOut"
        ]
        for machine in waiting[:count]:
            self.fleet.join(machine)

    def _carry_out(self, action: Action) -> None:
        match action:
            case Patch(target=target) if target.kind == PROVISIONING_REQUEST:
                body = self.requests[target.key.name]
                body["status"] = apply_merge(body.get("status") or {}, copy.deepcopy(action.patch["status"]))
                body["metadata"]["resourceVersion"] = str(int(body["metadata"]["resourceVersion"]) + 1)
            case Delete(target=target) if target.kind == PROVISIONING_REQUEST:
                del self.requests[target.key.name]
            case Event():
                return
            case _:
                self.fleet._carry_out(action)


def _scales(step: tuple[Action, ...]) -> bool:
    return any(isinstance(each, Scale) for each in step)


__all__ = ["STOCK_OUT", "UNSCHEDULABLE", "Office"]
