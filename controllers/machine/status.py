"""Write the status whole from what was decided, compare, and patch only a difference; or keep quiet for a moment."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from api.conditions import MachineCondition, Reason
from api.names import OperationType
from controllers.kernel.actions import Patch
from controllers.kernel.conditions import (
    Condition,
    find,
    format_time,
    is_true,
    merge,
    merge_patch,
    parse_time,
    shortened,
    typed,
)
from controllers.kernel.refs import Obj, mapping, uid_of
from controllers.machine import bootstrap_data
from controllers.machine.conditions import (
    CONFIG_TYPE,
    available_condition,
    config_found_condition,
    config_is_news,
    join_is_news,
    joined_condition,
    node_condition,
    node_is_ready,
    node_metadata_condition,
    ready_condition,
    seconds_until_available,
)
from controllers.machine.decision import Decision
from controllers.machine.machine_node import metadata_record
from controllers.machine.observe import Observed
from controllers.machine.phases import COMING_UP, TABLE, Stage
from providers.base.contract import HostState

SETTLE = timedelta(seconds=2)
"""A Machine that is Ready so soon after its host was accepted is reported once, as Ready: no write in between."""
NO_HOST_SETTLE = timedelta(seconds=10)
"""The same while the host is only asked for."""
MOST_ADDRESSES = 128
LIST_LAG = timedelta(seconds=2)
"""For so long a list may show a host as booting whose Node is Ready: the next one brings the addresses as well."""
QUEUED_REASONS = (Reason.HOSTS_IN_FLIGHT, Reason.CLASS_HOSTS_IN_FLIGHT)
"""Reasons of Machines that wait for their turn."""
LONG = timedelta(seconds=120)
"""After one report on the way, the next one comes when it is Ready or when it takes longer than this."""

_OWNED = frozenset(
    str(type_)
    for type_ in (
        MachineCondition.READY,
        MachineCondition.AVAILABLE,
        MachineCondition.INFRASTRUCTURE_READY,
        MachineCondition.NODE_READY,
        MachineCondition.UP_TO_DATE,
        MachineCondition.DELETING,
        MachineCondition.DRAINED,
        MachineCondition.PAUSED,
        MachineCondition.CONFIGURATION_VALID,
        MachineCondition.NODE_METADATA_ALLOWED,
        MachineCondition.BOOTSTRAP_DATA_READY,
        MachineCondition.NODE_JOINED,
        MachineCondition.HOST_REBOOTED,
        MachineCondition.HOST_DRIFTED,
    )
)
"""Condition types that this reconciler writes, and so takes away when they are not decided any more."""


def write(observed: Observed, decision: Decision) -> Patch | None:
    """The patch of the status; None if it already says so.

    Guarded by resourceVersion, since the list of conditions is replaced whole and others write to it as well.
    """
    patch = merge_patch(observed.status, _desired(observed, decision))
    if not patch:
        return None
    if not _may_come_to_nothing(observed, patch):
        if decision.stage is not None:
            patch["lastOperation"] = _last_operation(observed, decision.stage, decision)
        patch["lastUpdated"] = format_time(observed.now)
    why = f"Machine {observed.name}: {decision.stage.value if decision.stage else 'what was found'}"
    return Patch(observed.ref, {"status": patch}, why, "status", observed.version)


def _may_come_to_nothing(observed: Observed, patch: Mapping[str, Any]) -> bool:
    """CRDs of an earlier release drop the digest; times would make each such write a change that wakes us again."""
    return patch.keys() == {"machineClassDigest"} and "machineClassDigest" not in observed.status


def write_paused(observed: Observed) -> Patch | None:
    """Only the condition Paused; everything else is left as it was."""
    condition = Condition(MachineCondition.PAUSED, "True", Reason.PAUSED, observed.paused)
    conditions = _conditions(observed, [*_kept(observed, _OWNED - {MachineCondition.PAUSED}), condition])
    patch = merge_patch(observed.status, {"conditions": conditions})
    if not patch:
        return None
    return Patch(observed.ref, {"status": patch}, f"paused: {observed.paused}", "status", observed.version)


def as_reported(observed: Observed, type_: str) -> tuple[Condition, ...]:
    """A condition as it stands, to be left so by a decision that has nothing new to say of it."""
    return tuple(_kept(observed, {type_}))


def is_quiet(observed: Observed, decision: Decision) -> bool:
    """Whether to hold the report of a Machine that smoothly comes up: soon there is more to say.

    To Ready it costs POST, providerID and one status; or one status more if it takes longer than SETTLE.
    """
    smooth = decision.stage in COMING_UP or decision.stage is Stage.JOINED or decision.stage is None
    if not smooth or decision.warning or decision.failure or decision.extra or observed.deleting:
        return False
    if config_is_news(observed) or join_is_news(observed):
        return False
    waited = _was_queued(observed, decision)
    if (observed.spec_is_new and not waited) or observed.status.get("nodeRef"):
        return False
    if node_is_ready(observed.node):
        return _list_lags(observed)
    host = observed.host
    if host is None and waited:
        return True
    since = host.created_at if host is not None and host.created_at is not None else observed.created_at
    if observed.status.get("phase"):
        return observed.now < since + LONG
    return observed.now < since + (SETTLE if host is not None else NO_HOST_SETTLE)


def _was_queued(observed: Observed, decision: Decision) -> bool:
    """Its turn has come, and its host (binding it made the spec a new one) comes up: it has had its report."""
    reported, now = (
        find(observed.status.get("conditions"), MachineCondition.INFRASTRUCTURE_READY),
        decision.infrastructure,
    )
    waited = reported is not None and reported.get("reason") in QUEUED_REASONS
    return waited and now is not None and now.reason in {Reason.PROVISIONING, Reason.PROVISIONED}


def _list_lags(observed: Observed) -> bool:
    """Reported now, the Machine would be reported again for its host's addresses in a moment."""
    host, node = observed.host, observed.node
    if host is None or node is None or host.state is not HostState.PENDING or host.addresses:
        return False
    ready = find((node.get("status") or {}).get("conditions"), "Ready")
    since = parse_time(ready.get("lastTransitionTime")) if ready else None
    return since is not None and observed.now < since + LIST_LAG


def seconds_to_available(observed: Observed, decision: Decision) -> float:
    """Until the condition Available is to be written though nothing else happens; 0 if it is not."""
    return seconds_until_available(observed, ready_condition(observed, decision, _infrastructure(observed, decision)))


def reason_is_new(observed: Observed, decision: Decision) -> bool:
    """Whether the warning was not there before: an Event for each kind of trouble, not for each reconcile of it."""
    if decision.warning is None:
        return False
    conditions = observed.status.get("conditions")
    same = (c for c in _decided(observed, decision) if c.reason == decision.warning.reason)
    reported = (find(conditions, str(c.type)) for c in same if c.type != CONFIG_TYPE)  # that one makes no Event
    return not any(old is not None and old.get("reason") == decision.warning.reason for old in reported)


def _desired(observed: Observed, decision: Decision) -> dict[str, Any]:
    new_status: dict[str, Any] = {
        "observedGeneration": observed.generation,
        "conditions": _conditions(observed, _decided(observed, decision)),
        **_host_facts(observed),
        **({"hostScope": observed.reads.scope} if observed.reads.scope and observed.provider_id else {}),
        **_node_facts(observed),
        **decision.record,
    }
    if decision.stage is not None:
        failure = decision.failure
        new_status |= {
            "phase": str(TABLE[decision.stage].phase),
            "errorReason": str(failure.reason) if failure else None,
            "errorMessage": shortened(failure.message) if failure else None,
            "failureReason": str(failure.reason) if failure else None,
            "failureMessage": shortened(failure.message) if failure else None,
        }
    return new_status


def _decided(observed: Observed, decision: Decision) -> list[Condition]:
    infra = _infrastructure(observed, decision)
    stale = decision.up_to_date or next(iter(as_reported(observed, MachineCondition.UP_TO_DATE)), None)
    ready = ready_condition(observed, decision, infra)
    available = available_condition(observed, ready)
    reported = [
        ready,
        available,
        infra,
        node_condition(observed),
        stale,
        *decision.extra,
        config_found_condition(observed),
    ]
    reported.append(node_metadata_condition(observed))
    reported += _of_bootstrap(observed)
    if observed.host is None:
        reported += as_reported(observed, MachineCondition.HOST_DRIFTED)
    elif observed.host.drift and not observed.deleting:
        reported.append(Condition(MachineCondition.HOST_DRIFTED, "True", Reason.HOST_DRIFTED, observed.host.drift))
    return [one for one in reported if one is not None]


def _of_bootstrap(observed: Observed) -> list[Condition | None]:
    """If the cluster can't be reached, or the Node went, the Machine keeps what was reported last."""
    found, before = observed.bootstrapping, observed.status.get("conditions")
    types = {MachineCondition.BOOTSTRAP_DATA_READY, MachineCondition.NODE_JOINED}
    joined_before = observed.status.get("nodeRef") and not observed.replaced_host
    if observed.deleting or (observed.node is None and joined_before):
        return [*_kept(observed, types)]
    name = str(observed.node["metadata"]["name"]) if observed.node is not None else ""
    return [
        bootstrap_data.condition_of_data(found, bool(name), before),
        joined_condition(observed, name),
    ]


def _infrastructure(observed: Observed, decision: Decision) -> Condition | None:
    return decision.infrastructure or next(iter(as_reported(observed, MachineCondition.INFRASTRUCTURE_READY)), None)


def _kept(observed: Observed, types: frozenset[str] | set[Any]) -> list[Condition]:
    """Conditions of these types as they stand, for what this reconcile can say nothing new about."""
    return [Condition.as_it_stands(c) for c in typed(observed.status.get("conditions")) if c["type"] in types]


def _conditions(observed: Observed, decided: list[Condition]) -> list[dict[str, Any]]:
    """The list to write. Types that are ours but not decided go; others' stay; known ones keep their place."""
    types = {str(c.type) for c in decided}
    previous = typed(observed.status.get("conditions"))
    before = [c for c in previous if c["type"] in types or c["type"] not in _OWNED]
    plain = [Condition(str(c.type), c.status, str(c.reason), c.message, c.generation) for c in decided]
    merged = {c["type"]: c for c in merge(before, plain, observed.generation, observed.now)}
    order = [c["type"] for c in before] + [c.type for c in plain]
    return [merged[type_] for type_ in dict.fromkeys(order)]


def _host_facts(observed: Observed) -> dict[str, Any]:
    host = observed.host
    if host is None or observed.deleting:
        return {}
    facts: dict[str, Any] = {}
    addresses = [
        {"type": a.type, "address": a.address} for a in host.addresses if fits(a.type, 63) and fits(a.address, 256)
    ]
    if addresses:
        facts["addresses"] = addresses[:MOST_ADDRESSES]
    if fits(host.failure_domain, 253):
        facts["failureDomain"] = host.failure_domain
    return facts


def fits(text: object, longest: int) -> bool:
    """Whether it is a text that the schema of the status takes; what is longer is none of what it should be.

    A status that the API server refuses is never written, and what comes after it is never done.
    """
    return isinstance(text, str) and 0 < len(text) <= longest and text.isprintable()


def _node_facts(observed: Observed) -> dict[str, Any]:
    node = observed.node
    if node is None:
        # A Node that is missing stays referenced (health checks tell by it); one of a replaced host does not.
        forgets = observed.replaced_host and not observed.deleting and observed.unreachable is None
        forgets = forgets or observed.refers_elsewhere
        return {"nodeRef": None} if forgets else {}
    facts: dict[str, Any] = {"nodeRef": _reference(node)}
    info = mapping(mapping(node.get("status")).get("nodeInfo"))
    kubelet, runs = info.get("kubeletVersion"), info.get("containerRuntimeVersion")
    if fits(kubelet, 64):
        name, _, version = runs.partition("://") if isinstance(runs, str) else ("", "", "")
        # What the Node no longer says is taken away, not left as it was.
        runtime = {"name": name, "version": version if fits(version, 64) else None} if fits(name, 63) else None
        facts["versions"] = {"kubelet": kubelet, "containerRuntime": runtime}
    request = observed.desired.request
    if request is not None and not observed.deleting:
        applied = observed.applied_node_metadata
        facts["appliedNodeMetadata"] = metadata_record(node, applied, request.node)
    return facts


def _reference(node: Obj) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"], "uid": uid_of(node)}


def _last_operation(observed: Observed, stage: Stage, decision: Decision) -> Mapping[str, str]:
    row = TABLE[stage]
    ready = is_true([{"type": "Ready", "status": "True"}] if node_is_ready(observed.node) else [], "Ready")
    message = decision.failure.message if decision.failure else stage.value
    if stage is Stage.JOINED and ready:
        message = "its Node has joined and is ready"
    before = observed.status.get("lastOperation")
    # A Machine is created once: what its host goes through after an update or a replacement belongs to that.
    updated = row.type is OperationType.CREATE and isinstance(before, Mapping) and before.get("type") == "Update"
    return {
        "type": str(OperationType.UPDATE if updated else row.type),
        "state": str(row.state),
        "description": shortened(message),
        "lastUpdated": format_time(observed.now),
    }
