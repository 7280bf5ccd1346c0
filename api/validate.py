"""What no schema can say: ``validate(obj)`` finds everything wrong with one object, beyond its CRD's schema. Pure.

The same faults are refused by the CRDs' CEL rules where CEL can see them; here they are also found offline (the CLI)
and on servers that let them pass. Junk of any shape is answered, never raised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final

from api import limits, names
from api.autoprovision import OfferError, read_offer
from api.autoscaling import BoundsError, node_group_bounds, node_group_options
from api.bootstraprules import bootstrap
from api.conditions import MachineCondition
from api.faults import FieldError, child, items, text_of
from api.intorstring import IntOrStringError, percent, resolve
from api.machinerules import failure_domains, machine_spec, provider_config, template, time_or_duration
from api.noderules import metadata_keys
from api.providerconfig import ProviderConfigError, read_class
from api.quantity import parse_quantity
from api.remediation import template_faults
from api.selectors import Selector, SelectorError, from_label_selector

__all__ = ["FieldError", "validate"]

MOST_FAULTS: Final = 1_000
"""Faults of one object that are looked for."""
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_RANGE = re.compile(r"\[([0-9]{1,9})-([0-9]{1,9})\]\Z")

Errors = Iterator[FieldError]


def validate(obj: Mapping[str, Any], *, creating: bool = True) -> list[FieldError]:
    """All faults of one object of our group, in the order of its fields; an empty list for objects of other groups.

    No more than ``MOST_FAULTS``, each of a bounded length: who wrote the object says how many it has.
    ``creating=False`` leaves out limits on names, which an object taken over from elsewhere can no longer meet.
    """
    if text_of(obj, "apiVersion").partition("/")[0] != names.GROUP:
        return []
    check = _BY_KIND.get(text_of(obj, "kind"))
    faults = chain(
        _type(obj),
        _metadata(obj),
        check(obj) if check is not None else (),
        _name_length(obj) if creating else (),
    )
    return [fault.shortened() for fault in islice(faults, MOST_FAULTS)]


def _type(obj: Mapping[str, Any]) -> Errors:
    if obj.get("apiVersion") != names.API_VERSION:
        yield FieldError("apiVersion", f"{obj.get('apiVersion')} is not served, only {names.API_VERSION} is")
    kind = obj.get("kind")
    if text_of(obj, "kind") not in _BY_KIND:
        yield FieldError("kind", f"{kind!r} is none of {', '.join(_BY_KIND)}")


def _metadata(obj: Mapping[str, Any]) -> Errors:
    meta = child(obj, "metadata")
    name, prefix = meta.get("name"), meta.get("generateName")
    if not name and not prefix:
        yield FieldError("metadata.name", "is required")
    elif name and not (isinstance(name, str) and len(name) <= limits.MAX_OBJECT_NAME and _SUBDOMAIN.match(name)):
        yield FieldError(
            "metadata.name",
            f"{name!r} is not a DNS subdomain: at most {limits.MAX_OBJECT_NAME} characters of a-z, 0-9, '-' and '.', "
            "starting and ending alphanumeric",
        )
    yield from metadata_keys(meta, "metadata")


_NAME_LIMITS = {
    "Machine": (limits.MAX_NODE_NAME, "it becomes the name of a Node"),
    "ControlPlane": (
        limits.MAX_MACHINESET_NAME,
        "the names of its Machines, <name>-<5>-<number>, become names of Nodes",
    ),
    "MachineSet": (
        limits.MAX_MACHINESET_NAME,
        "the names of its Machines, <name>-<5>-<number>, become names of Nodes",
    ),
    "MachineDeployment": (
        limits.MAX_MACHINEDEPLOYMENT_NAME,
        "the names of its Machines, <name>-<hash>-<5>-<number>, become names of Nodes",
    ),
    "Cluster": (limits.MAX_LABEL_VALUE, "it becomes the value of a label"),
}


def _name_length(obj: Mapping[str, Any]) -> Errors:
    limit, why = _NAME_LIMITS.get(text_of(obj, "kind"), (limits.MAX_OBJECT_NAME, ""))
    name = text_of(child(obj, "metadata"), "name")
    if len(name) > limit and why:
        yield FieldError("metadata.name", f"has {len(name)} characters, at most {limit} are allowed: {why}")


def _machine(obj: Mapping[str, Any]) -> Errors:
    yield from machine_spec(child(obj, "spec"), "spec", namespace=text_of(child(obj, "metadata"), "namespace"))
    annotations = child(child(obj, "metadata"), "annotations")
    path = f"metadata.annotations[{names.DELETE_PRIORITY_ANNOTATION}]"
    priority = annotations.get(names.DELETE_PRIORITY_ANNOTATION)
    if priority is not None and not re.match(r"[+-]?[0-9]{1,9}\Z", str(priority)):
        yield FieldError(path, f"{priority!r} is not an integer")
    keep = annotations.get(names.PRESERVE_UNTIL_ANNOTATION)
    if keep is not None and (fault := time_or_duration(keep, "time")):
        yield FieldError(f"metadata.annotations[{names.PRESERVE_UNTIL_ANNOTATION}]", fault)


def _set(obj: Mapping[str, Any]) -> Errors:
    spec = child(obj, "spec")
    yield from _counts(spec, "replicas", "minReadySeconds")
    if isinstance(replicas := spec.get("replicas"), int) and replicas > limits.MAX_REPLICAS:
        yield FieldError("spec.replicas", f"{replicas} is more than {limits.MAX_REPLICAS} Machines")
    yield from _selected(spec)
    yield from failure_domains(spec, child(child(spec, "template"), "spec"))
    yield from template(spec, text_of(child(obj, "metadata"), "namespace"))
    yield from _autoscaling(child(child(obj, "metadata"), "annotations"))


def _deployment(obj: Mapping[str, Any]) -> Errors:
    spec = child(obj, "spec")
    yield from _set(obj)
    yield from _counts(spec, "revisionHistoryLimit", "progressDeadlineSeconds")
    after = child(spec, "rollout").get("after")
    if after is not None and (fault := time_or_duration(after, "time")):
        yield FieldError("spec.rollout.after", fault)
    rolling = child(child(spec, "strategy"), "rollingUpdate")
    yield from _rolling_update(rolling)
    for index, budget in items(child(spec, "strategy"), "disruptionBudgets"):
        yield from _disruption_budget(budget, f"spec.strategy.disruptionBudgets[{index}]")
    deadline, ready = spec.get("progressDeadlineSeconds", 600), spec.get("minReadySeconds", 0)
    comparable = all(isinstance(number, int) for number in (deadline, ready))
    if rolling.get("onFailure") in ("Pause", "Rollback") and comparable and 0 < deadline <= ready:
        yield FieldError(
            "spec.progressDeadlineSeconds",
            f"{deadline} is not greater than minReadySeconds ({ready}): every rollout would fail",
        )


def _rolling_update(rolling: Mapping[str, Any]) -> Errors:
    path = "spec.strategy.rollingUpdate"
    limits = {"maxSurge": rolling.get("maxSurge"), "maxUnavailable": rolling.get("maxUnavailable")}
    limits = {"maxSurge": 1, "maxUnavailable": 0} | {k: v for k, v in limits.items() if v is not None}
    counts = []
    for name, value in limits.items():
        try:
            counts.append(resolve(value, 100, "up"))
        except IntOrStringError as fault:
            yield FieldError(f"{path}.{name}", str(fault))
    if len(counts) == 2 and not any(counts):
        yield FieldError(f"{path}.maxUnavailable", "may not be 0 when maxSurge is 0: no Machine could ever be replaced")
    if (share := percent(limits["maxUnavailable"])) is not None and share > 100:
        yield FieldError(f"{path}.maxUnavailable", f"{share}% is more than 100%")
    try:
        resolve(0 if rolling.get("partition") is None else rolling["partition"], 100, "up")
    except IntOrStringError as fault:
        yield FieldError(f"{path}.partition", str(fault))


def _disruption_budget(budget: Mapping[str, Any], path: str) -> Errors:
    from api.schedules import ScheduleError, check_schedule  # noqa: PLC0415 - only here is cron read

    try:
        resolve(budget.get("nodes", ""), 100, "up")
    except IntOrStringError as fault:
        yield FieldError(f"{path}.nodes", str(fault))
    schedule, duration = budget.get("schedule"), budget.get("duration")
    if (schedule is None) != (duration is None):
        yield FieldError(f"{path}.schedule", "schedule and duration need each other")
    if schedule is not None:
        try:
            check_schedule(schedule)
        except ScheduleError as wrong:
            yield FieldError(f"{path}.schedule", str(wrong))
    if duration is not None and (problem := time_or_duration(duration, "duration")):
        yield FieldError(f"{path}.duration", problem)


def _selected(spec: Mapping[str, Any]) -> Errors:
    selector, fault = _selector(spec)
    if selector is None:
        yield fault
        return
    labels = child(child(child(spec, "template"), "metadata"), "labels")
    readable = {k: v for k, v in labels.items() if isinstance(v, str)}
    for requirement in selector.requirements:
        if not requirement.matches(readable):
            yield FieldError(
                "spec.template.metadata.labels", f"do not match spec.selector: {requirement} does not hold"
            )


_NO_FAULT = FieldError("", "")


def _selector(spec: Mapping[str, Any]) -> tuple[Selector | None, FieldError]:
    given = spec.get("selector")
    if given is None:
        return None, FieldError("spec.selector", "is required")
    try:
        selector = from_label_selector(given)
    except SelectorError as fault:
        return None, FieldError("spec.selector" + (f".{fault.field}" if fault.field else ""), fault.message)
    if selector.empty:
        return None, FieldError("spec.selector", "must not be empty: it would select every Machine of the namespace")
    return selector, _NO_FAULT


def _counts(spec: Mapping[str, Any], *fields: str, path: str = "spec") -> Errors:
    for name in fields:
        value = spec.get(name, 0)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            yield FieldError(f"{path}.{name}", f"{value!r} is not a non-negative integer")


def _autoscaling(annotations: Mapping[str, Any]) -> Errors:
    for keys in names.AUTOSCALER_BOUNDS:
        try:
            node_group_bounds(annotations, keys)
        except BoundsError as error:
            yield FieldError(f"metadata.annotations[{error.field}]", error.message)
    for fault in node_group_options(annotations)[1]:
        yield FieldError(f"metadata.annotations[{fault.field}]", fault.message)
    for key in (
        names.CAPACITY_CPU_ANNOTATION,
        names.CAPACITY_MEMORY_ANNOTATION,
        names.CAPACITY_DISK_ANNOTATION,
    ):
        try:
            parse_quantity(str(annotations.get(key, "0")))
        except ValueError as error:
            yield FieldError(f"metadata.annotations[{key}]", str(error))


def _cluster(obj: Mapping[str, Any]) -> Errors:
    from api.clusterrules import network, virtual_address  # noqa: PLC0415 - ipaddress is slow to import

    spec = child(obj, "spec")
    yield from provider_config(spec, "spec", text_of(child(obj, "metadata"), "namespace"))
    yield from network(child(spec, "clusterNetwork"))
    yield from failure_domains(spec)
    yield from bootstrap(spec, "spec")
    yield from virtual_address(spec)


def _class(obj: Mapping[str, Any]) -> Errors:
    offered = child(child(obj, "metadata"), "annotations").get(names.AUTOPROVISION_ANNOTATION)
    if isinstance(offered, str):
        try:
            read_offer(offered)
        except OfferError as fault:
            yield FieldError(f"metadata.annotations[{names.AUTOPROVISION_ANNOTATION}]", str(fault))
    try:
        config = read_class(obj)
    except ProviderConfigError as fault:
        yield FieldError(fault.field, fault.message)
        return
    if not config.value:
        yield FieldError(config.source_field, "must not be empty")


_CHECKS_OWN = frozenset(
    {
        MachineCondition.HEALTH_CHECK_SUCCEEDED,
        MachineCondition.OWNER_REMEDIATED,
        MachineCondition.EXTERNALLY_REMEDIATED,
    }
)


def _health_check(obj: Mapping[str, Any]) -> Errors:
    spec = child(obj, "spec")
    selector, fault = _selector(spec)
    if selector is None:
        yield fault
    for name in ("unhealthyConditions", "unhealthyMachineConditions"):
        for index, condition in items(spec, name):
            if name == "unhealthyMachineConditions" and text_of(condition, "type") in _CHECKS_OWN:
                yield FieldError(f"spec.{name}[{index}].type", "health checks write this condition themselves")
            if problem := time_or_duration(condition.get("timeout"), "duration"):
                yield FieldError(f"spec.{name}[{index}].timeout", problem)
    strategy = child(spec, "remediationStrategy")
    durations = [("spec", spec, "nodeStartupTimeout")]
    durations += [
        ("spec.remediationStrategy", strategy, name) for name in ("retryPeriod", "maxRetryPeriod", "minHealthyPeriod")
    ]
    for path, holder, name in durations:
        if name in holder and (problem := time_or_duration(holder[name], "duration")):
            yield FieldError(f"{path}.{name}", problem)
    for path, holder, name in (
        ("spec", spec, "maxUnhealthy"),
        ("spec.remediationStrategy", strategy, "maxInFlight"),
    ):
        try:
            resolve(holder.get(name, 0), 100, "down")
        except IntOrStringError as wrong:
            yield FieldError(f"{path}.{name}", str(wrong))
    yield from _range(spec.get("unhealthyRange"))
    if spec.get("remediationTemplate") is not None:
        namespace = text_of(child(obj, "metadata"), "namespace")
        for field, why in template_faults(spec["remediationTemplate"], namespace):
            yield FieldError(".".join(filter(None, ("spec.remediationTemplate", field))), why)


def _control_plane(obj: Mapping[str, Any]) -> Errors:
    spec = child(obj, "spec")
    replicas, rollout, path = spec.get("replicas", 1), child(spec, "rollout"), "spec.remediation"
    if isinstance(replicas, int) and replicas % 2 == 0:
        yield FieldError("spec.replicas", f"{replicas} is even: etcd bears no more losses with it than with one less")
    if replicas == 1 and rollout.get("maxSurge") == 0 and rollout.get("inPlace", "Never") == "Never":
        why = "may not be 0 where replicas is 1 and inPlace is Never: the only Machine could never be replaced"
        yield FieldError("spec.rollout.maxSurge", why)
    yield from failure_domains(spec, child(child(spec, "template"), "spec"))
    yield from template(spec, text_of(child(obj, "metadata"), "namespace"))
    remediation = child(spec, "remediation")
    for name in ("retryPeriod", "minHealthyPeriod"):
        if name in remediation and (problem := time_or_duration(remediation[name], "duration")):
            yield FieldError(f"{path}.{name}", problem)


def _range(text: Any) -> Errors:
    if text is None:
        return
    match = _RANGE.match(text) if isinstance(text, str) else None
    if match is None:
        yield FieldError("spec.unhealthyRange", f"{text!r} is not a range like [3-5]")
    elif int(match.group(1)) > int(match.group(2)):
        yield FieldError("spec.unhealthyRange", f"{text} ends before it begins")


def _drain_rule(obj: Mapping[str, Any]) -> Errors:
    spec = child(obj, "spec")
    drain = child(spec, "drain")
    behavior, order = drain.get("behavior"), drain.get("order")
    if behavior not in _BEHAVIORS:
        yield FieldError("spec.drain.behavior", f"{behavior!r} is none of {', '.join(_BEHAVIORS)}")
    if order is not None and (not isinstance(order, int) or isinstance(order, bool)):
        yield FieldError("spec.drain.order", f"{order!r} is not an integer")
    elif order is not None and behavior != "Drain":
        yield FieldError("spec.drain.order", "goes with behavior Drain only")
    for name, fields in (("machines", ("selector", "clusterSelector")), ("pods", ("selector", "namespaceSelector"))):
        if spec.get(name) == []:
            yield FieldError(f"spec.{name}", "must not be empty; leave it out to select all")
        for index, entry in items(spec, name):
            path = f"spec.{name}[{index}]"
            if all(entry.get(field) is None for field in fields):
                yield FieldError(f"{path}.selector", f"{' or '.join(fields)} must be given")
            for field in fields:
                yield from _label_selector(entry.get(field), f"{path}.{field}")


def _label_selector(given: Any, path: str) -> Errors:
    if given is None:
        return
    try:
        from_label_selector(given)
    except SelectorError as fault:
        yield FieldError(path + (f".{fault.field}" if fault.field else ""), fault.message)


_BEHAVIORS = ("Drain", "Skip", "WaitCompleted")


_BY_KIND: dict[str, Callable[[Mapping[str, Any]], Errors]] = {
    "Cluster": _cluster,
    "ControlPlane": _control_plane,
    "MachineDeployment": _deployment,
    "MachineSet": _set,
    "Machine": _machine,
    "MachineClass": _class,
    "MachineHealthCheck": _health_check,
    "MachineDrainRule": _drain_rule,
}
