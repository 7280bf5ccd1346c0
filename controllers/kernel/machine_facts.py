"""What a set knows of each of its Machines, and which of them nothing but a person takes away.

Facts are read once from the Machine itself.

Sets never look at Nodes or hosts: the Machine controller mirrors them into the Machine's conditions.

Machines that nothing but a person takes away: their membership status says ``evictable: false``.

The cloudpool contract ("machine membership status") promises that such a machine is neither terminated by a smaller
size nor replaced. One rule for every decision that chooses Machines: a protected one is never chosen. A mark to go
first (``cluster.k8s.io/delete-machine``) says nothing then. Deleting the Machine, or the object that owns it, is a
person's own request and stays possible.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from api import names
from api.conditions import MachineCondition, Reason
from controllers.kernel.conditions import counted, find, parse_time, some_of
from controllers.kernel.memory import Memory
from controllers.kernel.ownership import controller_uid
from controllers.kernel.refs import MACHINE, Key, Obj, Ref, annotations_of, key_of, labels_of, spec_of, uid_of
from controllers.kernel.remediation import is_selected_for_deletion, is_unhealthy
from providers.base.errors import ErrorClass

UNREADABLE = "Unreadable"
"""Roll-up reason of a Machine whose status has types that no schema allows."""
SHORTAGES = (ErrorClass.STOCK_OUT, ErrorClass.QUOTA_EXCEEDED)
"""Classes of errors that another failure domain may not have."""
DAWN = datetime.min.replace(tzinfo=UTC)
_NOTHING: Mapping[str, str] = {}
_DELETE_MARKS = (names.DELETE_MACHINE_ANNOTATION, names.CAPI_DELETE_MACHINE_ANNOTATION)


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """One Machine. ``ready`` is its condition Ready; ``ready_since`` when it last became so.

    ``reason`` and ``message`` say why it is not ready ("" if it is). ``failed`` is terminal: only another spec helps.
    ``unhealthy``: a health check says so; ``selected_for_deletion``: it asks the owner to replace the Machine.
    ``up_to_date``: whether its host is as its present spec asks, None: not known; ``updated``: when that last changed.
    ``refusal``: why that would take another host, where that is forbidden.
    ``priority``: the higher, the earlier it is deleted. ``preserve_until``: one that failed or
    is selected for deletion is kept until then.
    ``failure_domain``: where its host is; before there is one, where it is asked for. ``has_host``: it is bound to one.
    ``class_digest``: that of the MachineClass's configuration which its host has.
    ``host_since``: when its host was first seen to run.
    ``protected``: no decision takes it away (``is_protected``); a mark to go first says nothing then.
    ``shortage``: the class of error for which there is no host where it is asked for now, "" if that is not so.
    """

    key: Key
    uid: str
    resource_version: str = field(compare=False)
    created: datetime
    owner_uid: str
    labels: Mapping[str, str]
    deleting: bool = False
    deleting_since: datetime | None = None
    annotated: bool = False
    protected: bool = False
    priority: int = 0
    failed: bool = False
    unhealthy: bool = False
    selected_for_deletion: bool = False
    preserve_until: datetime | None = None
    node_name: str = ""
    ready: bool = False
    ready_since: datetime | None = None
    changed: datetime | None = None
    reason: str = ""
    message: str = ""
    up_to_date: bool | None = None
    updated: datetime | None = None
    refusal: str = ""
    failure_domain: str = ""
    has_host: bool = False
    shortage: str = ""
    class_digest: str = ""
    host_since: datetime | None = field(default=None, compare=False)
    body: Obj = field(default_factory=dict, compare=False, repr=False)

    @property
    def ref(self) -> Ref:
        return Ref(MACHINE, self.key, self.uid)

    @property
    def template_hash(self) -> str:
        return self.labels.get(names.TEMPLATE_HASH_LABEL, "")

    @property
    def last_moved(self) -> datetime:
        """The last thing that happened to it as far as a set's counts go."""
        return max(moment for moment in (self.created, self.changed, self.updated, self.deleting_since) if moment)

    def is_preserved(self, now: datetime) -> bool:
        """Whether its owner is to leave it alone and do without it for now."""
        return self.preserve_until is not None and now < self.preserve_until

    def available_at(self, min_ready: timedelta) -> datetime | None:
        """When it has been ready for ``min_ready``; None if it is not ready or going."""
        if not self.ready or self.deleting:
            return None
        return (self.ready_since or self.created) + min_ready

    def is_available(self, min_ready: timedelta, now: datetime) -> bool:
        moment = self.available_at(min_ready)
        return moment is not None and moment <= now


_memory: Memory[MachineFacts] = Memory()
_replaced: Memory[MachineFacts] = Memory(1)
"""What the last reading took the place of: of a change each reconciler reads both versions, one reconciler after the
other.
"""


def read(obj: Obj) -> MachineFacts:
    """The facts of a Machine. Never raises: an unreadable one still counts (as not ready), or it would be doubled.

    Facts are remembered for as long as the cache shows the very same object: a set of 1000 Machines is looked at again
    for each change of one.
    """
    uid = uid_of(obj)
    known = _memory.of(uid)
    if known is not None and known.body is obj:
        return known
    before = _replaced.of(uid)
    if before is not None and before.body is obj:
        return before
    facts = _read_or_count(obj)
    _memory.keep(uid, facts)
    if known is not None:
        _replaced.keep(uid, known)
    return facts


def _read_or_count(obj: Obj) -> MachineFacts:
    try:
        return _read(obj)
    except (AttributeError, TypeError, ValueError, KeyError, OverflowError):
        meta = obj["metadata"]
        return MachineFacts(
            key=key_of(obj),
            uid=uid_of(obj),
            resource_version=str(meta.get("resourceVersion", "")),
            created=DAWN,
            owner_uid=controller_uid(obj),
            labels=_NOTHING,
            deleting=bool(meta.get("deletionTimestamp")),
            protected=is_protected(obj),
            reason=UNREADABLE,
            message=f"Machine {key_of(obj)} has fields of a wrong type",
            body=obj,
        )


def _read(obj: Obj) -> MachineFacts:
    meta = obj["metadata"]
    status = obj.get("status") or {}
    annotations = meta.get("annotations") or _NOTHING
    spec = spec_of(obj)
    is_ready, changed, reason, message = readiness(status)
    host = find(status.get("conditions"), MachineCondition.INFRASTRUCTURE_READY)
    stale = find(status.get("conditions"), MachineCondition.UP_TO_DATE)
    deleting, protected = meta.get("deletionTimestamp"), is_protected(obj)
    failed, selected = is_failed(status), is_selected_for_deletion(status)
    preserve_until = parse_time(annotations.get(names.PRESERVE_UNTIL_ANNOTATION)) if failed or selected else None
    return MachineFacts(
        key=Key(meta.get("namespace", ""), meta["name"]),
        uid=meta.get("uid", ""),
        resource_version=meta.get("resourceVersion", ""),
        created=parse_time(meta.get("creationTimestamp")) or DAWN,
        owner_uid=controller_uid(obj),
        labels=labels_of(obj),
        deleting=bool(deleting),
        deleting_since=parse_time(deleting),
        annotated=not protected and any(annotations.get(mark) for mark in _DELETE_MARKS),
        protected=protected,
        priority=_priority(annotations.get(names.DELETE_PRIORITY_ANNOTATION)),
        failed=failed,
        unhealthy=is_unhealthy(status),
        selected_for_deletion=selected,
        preserve_until=preserve_until,
        node_name=(status.get("nodeRef") or _NOTHING).get("name", ""),
        ready=is_ready,
        ready_since=changed if is_ready else None,
        changed=changed,
        reason=reason,
        message=message,
        up_to_date=_is_up_to_date(stale, meta.get("generation") or 0),
        updated=parse_time(stale.get("lastTransitionTime")) if stale else None,
        refusal=stale.get("message") or "?" if stale and stale.get("reason") == Reason.NEEDS_REPLACEMENT else "",
        failure_domain=failure_domain(spec, status),
        has_host=bool(spec.get("providerID")),
        shortage="" if spec.get("providerID") else _shortage(host, meta.get("generation") or 0),
        class_digest=str(status.get("machineClassDigest") or ""),
        host_since=parse_time(host.get("lastTransitionTime")) if host and host.get("status") == "True" else None,
        body=obj,
    )


class Readiness(NamedTuple):
    """``changed``: when it last became so. ``reason``, ``message``: why it is not ready, "" if it is."""

    ready: bool
    changed: datetime | None
    reason: str
    message: str


def readiness(status: Mapping[str, Any]) -> Readiness:
    """Raises TypeError for conditions that can't be read."""
    ready = find(_readable(status.get("conditions")), MachineCondition.READY)
    changed = parse_time(ready.get("lastTransitionTime")) if ready else None
    if ready is not None and ready.get("status") == "True":
        return Readiness(True, changed, "", "")
    return Readiness(False, changed, *_why_not_ready(status, ready))


def _readable(conditions: Any) -> Any:
    """Raises TypeError for what is no list of conditions: "not ready" must not be read out of what can't be read."""
    for each in conditions or ():
        is_object = type(each) is dict or isinstance(each, Mapping)
        if not is_object or not isinstance(each.get("lastTransitionTime") or "", str):
            raise TypeError("not a condition")
    return conditions


def _is_up_to_date(condition: Mapping[str, object] | None, generation: int) -> bool | None:
    """A condition that was decided on an older spec: not yet. None at all: the provider has not been heard.

    A host that only waits for its set to hand it an edited MachineClass is all that it was asked to be.
    """
    if condition is None:
        return None
    seen = condition.get("observedGeneration")
    as_asked = condition.get("status") == "True" or condition.get("reason") == Reason.WAITING_FOR_ROLLOUT
    return as_asked and (not isinstance(seen, int) or seen >= generation)


def failure_domain(spec: Mapping[str, str], status: Mapping[str, str]) -> str:
    asked, found = spec.get("failureDomain") or "", status.get("failureDomain") or ""
    return (found or asked) if spec.get("providerID") else asked


def _shortage(condition: Mapping[str, object] | None, generation: int) -> str:
    """What was said of an older spec may have been about another place."""
    if condition is None or condition.get("status") != "False" or condition.get("reason") not in SHORTAGES:
        return ""
    seen = condition.get("observedGeneration")
    return str(condition["reason"]) if isinstance(seen, int) and seen >= generation else ""


def is_failed(status: Mapping[str, object]) -> bool:
    """Terminally failed, in the words of either family (lineage: errorReason; CAPI and CA: failureReason)."""
    found = status.get
    return bool(found("errorReason") or found("failureReason") or found("errorMessage") or found("failureMessage"))


def _why_not_ready(status: Mapping[str, str], ready: Mapping[str, str] | None) -> tuple[str, str]:
    """The terminal error if there is one, else what the Ready condition says."""
    condition: Mapping[str, str] = ready or {}
    if is_failed(status):
        reason = status.get("failureReason") or status.get("errorReason") or "Failed"
        message = status.get("failureMessage") or status.get("errorMessage") or ""
        specific = condition.get("reason") or ""
        return (specific or reason, condition.get("message") or message)
    return condition.get("reason") or "Pending", condition.get("message") or ""


def _priority(text: str | None) -> int:
    """A value that can't be read counts as not set."""
    try:
        return int(text) if text else 0
    except ValueError:
        return 0


MOST_NAMED = 5
"""Machines that a condition names; the rest is counted."""
_MOST_READ = 256
"""Characters of the annotation that are read: what clients write has about 35."""
WAY_OUT = "set evictable to true over the cloudpool API, or delete them"


def read_membership(machine: Obj) -> tuple[bool, bool] | None:
    """``active`` and ``evictable`` as a client said them; None if none did. What can't be read is (True, False)."""
    text = annotations_of(machine).get(names.CLOUDPOOL_MEMBERSHIP_ANNOTATION)
    if text is None or text == "":
        return None
    if not isinstance(text, str) or len(text) > _MOST_READ:
        return True, False
    try:
        body = json.loads(text)
        active, evictable = body["active"], body["evictable"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return True, False
    return (active, evictable) if isinstance(active, bool) and isinstance(evictable, bool) else (True, False)


def is_protected(machine: Obj) -> bool:
    """Whether no decision of ours may take the Machine or its host away."""
    membership = read_membership(machine)
    return membership is not None and not membership[1]


def protection_sentence(machines: Collection[MachineFacts]) -> str:
    """``2 Machines stay, protected by membership status (evictable: false): a, b; set evictable …``."""
    listed = sorted(machine.key.name for machine in machines)
    stays = counted(len(listed), "Machine stays", "Machines stay")
    return f"{stays}, protected by membership status (evictable: false): {some_of(listed, MOST_NAMED)}; {WAY_OUT}"
