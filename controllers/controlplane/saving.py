"""Before a step of a rollout etcd is saved, where ``spec.etcd.snapshot`` asks for it: in a bucket, or else on a host.

A snapshot counts for as long as the same Machines are of an earlier template, so that the Machine that joins and the
one that goes for it need one between them, and for ``MOST_AGE``; one on a host while that host stays. What heals waits
for none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from api.conditions import ControlPlaneCondition, Reason
from controllers.bootstrap.etcd_snapshot import EtcdSnapshot, script
from controllers.controlplane.observe import Observed
from controllers.controlplane.quorum import votes_of
from controllers.controlplane.state import Health, Join, Machine, Remove, State, Step, UpgradeInPlace
from controllers.kernel.actions import TakeEtcdSnapshot
from controllers.kernel.conditions import Condition, find, format_time, parse_time
from controllers.kernel.etcd_snapshots import (
    HostTarget,
    SnapshotFailed,
    SnapshotTaken,
    SnapshotTarget,
    SnapshotUnderWay,
)
from controllers.kernel.memory import digest
from controllers.kernel.refs import Key, key_of, mapping

MOST_AGE = timedelta(hours=1)
"""After so long a snapshot is taken anew before the next step: users have written since."""
_MOST_TEXT = 1024


@dataclass(frozen=True, slots=True)
class Held:
    """A step that waits. ``action``: what is done for it now; None while that is under way, or has just failed."""

    why: str
    action: TakeEtcdSnapshot | None = None


def is_asked_for(observed: Observed) -> bool:
    return bucket_of(observed) is not None or bool(observed.spec.etcd.snapshot.path)


def bucket_of(observed: Observed) -> SnapshotTarget | None:
    """None: not in a bucket."""
    asked = observed.spec.etcd.snapshot.s3
    if not asked.secret_name:
        return None
    listed = asked.recipients if isinstance(asked.recipients, list) else []
    secret = Key(key_of(observed.body).namespace, asked.secret_name)
    return SnapshotTarget(secret, tuple(map(str, listed)), asked.plain)


def is_risky(step: Step, state: State) -> bool:
    """Whether it belongs to a rollout. A Machine that does not work is replaced at once, and one that can't be read
    can't be saved."""
    if state.etcd_unknown or not votes_of(state.members).have_quorum:
        return False
    staying = [machine for machine in state.machines if not (machine.deleting or machine.goes)]
    match step:
        case UpgradeInPlace(machine=name) | Remove(machine=name):
            return any(machine.name == name and not machine.up_to_date for machine in staying)
        case Join():
            return len(staying) >= state.replicas and not all(machine.up_to_date for machine in staying)
        case _:
            return False


def before(observed: Observed, step: Step) -> Held | None:
    """None if the step may be taken now."""
    if not is_asked_for(observed) or not is_risky(step, observed.state):
        return None
    key, last = _key(observed), observed.snapshot
    if _counts(observed, step, _recorded(observed)):
        return None
    if isinstance(last, SnapshotTaken) and _counts(observed, step, _as_record(last)):
        return Held(f"a snapshot of etcd is written down before: {step.why}")
    if isinstance(last, SnapshotUnderWay):
        return Held(f"etcd is being saved before: {step.why}")
    if isinstance(last, SnapshotFailed) and last.key == key:
        if last.unable and isinstance(step, UpgradeInPlace):
            return None  # its host does it, as the first of its own steps
        if observed.now < last.retry_at:
            return Held(f"etcd could not be saved, and without it nothing is changed: {last.why}")
    return _ordered(observed, step, key)


def _ordered(observed: Observed, step: Step, key: str) -> Held:
    version = f"v{(observed.spec.version or '').removeprefix('v')}"
    target = bucket_of(observed) or _host_for(observed, step, key, version)
    if target is None:
        return Held(f"no host that stays has a member that works, to keep a snapshot of etcd before: {step.why}")
    why = f"etcd is saved before: {step.why}"
    cluster = Key(key_of(observed.body).namespace, observed.spec.cluster_name or "")
    return Held(why, TakeEtcdSnapshot(cluster, observed.hosts, target, key, version, why))


def _host_for(observed: Observed, step: Step, key: str, version: str) -> HostTarget | None:
    """Its own for one that is updated in place; else one that stays for long: of the present template, or made last."""
    own = step.machine if isinstance(step, UpgradeInPlace) else ""
    works = {m.machine for m in observed.state.members if m.health is Health.HEALTHY and not m.learner}
    keepers = [m for m in observed.state.machines if m.name in works and _stays(m, step)]
    by_uid, asked = {host.uid: host for host in observed.hosts}, observed.spec.etcd.snapshot
    for machine in sorted(keepers, key=lambda m: (m.name != own, not m.up_to_date, -m.created)):
        facts = observed.facts(machine.name)
        host = by_uid.get(facts.uid) if facts is not None else None
        if host is not None and asked.path:
            return HostTarget(machine.name, host, script(EtcdSnapshot(asked.path, asked.keep), version, key))
    return None


def _stays(machine: Machine, step: Step) -> bool:
    """Beyond this step, as far as anybody knows."""
    leaves = isinstance(step, Remove) and step.machine == machine.name
    return not (leaves or machine.goes or machine.deleting)


def _counts(observed: Observed, step: Step, record: Mapping[str, Any]) -> bool:
    """Whether this snapshot is the one for which the step waits."""
    at, machine = parse_time(record.get("time")), record.get("machine")
    if record.get("step") != _key(observed) or at is None or observed.now - at > MOST_AGE:
        return False
    if bucket_of(observed) is not None:
        return not machine
    return any(m.name == machine and _stays(m, step) for m in observed.state.machines)


def _key(observed: Observed) -> str:
    """The same for as long as the same Machines are of an earlier template."""
    earlier = sorted(m.name for m in observed.state.machines if not m.up_to_date and not m.deleting)
    return digest([observed.revision.digest, earlier], 16)


def record(observed: Observed) -> dict[str, Any]:
    """``status.etcdSnapshot``: of the last one that is whole; {} if it stands there already, or none is known."""
    last = observed.snapshot
    if not isinstance(last, SnapshotTaken):
        return {}
    recorded = _recorded(observed)
    known = parse_time(recorded.get("time"))
    at = last.at.replace(microsecond=0)
    newer = known is None or at > known or (at == known and recorded.get("location") != last.location[:_MOST_TEXT])
    # None: a merge patch takes out what the one before said.
    gone = {"machine": None} if "machine" in recorded and not last.machine else {}
    return {"etcdSnapshot": {**_as_record(last), **gone}} if newer else {}


def _recorded(observed: Observed) -> Mapping[str, Any]:
    return mapping(observed.status.get("etcdSnapshot"))


def _as_record(taken: SnapshotTaken) -> dict[str, Any]:
    record = {
        "step": taken.key, "time": format_time(taken.at), "sizeBytes": taken.size_bytes, "revision": taken.revision,
        "location": taken.location[:_MOST_TEXT],
    }  # fmt: skip
    return {**record, "machine": taken.machine} if taken.machine else record


def condition(observed: Observed, held: Held | None) -> Condition | None:
    """EtcdSaved: names the last snapshot, or why there is none. None where nobody asks for one."""
    type_ = ControlPlaneCondition.ETCD_SAVED
    if not is_asked_for(observed):
        return None
    last = observed.snapshot
    if held is not None and isinstance(last, SnapshotFailed):
        return Condition(type_, "False", Reason.SNAPSHOT_FAILED, last.why[:_MOST_TEXT])
    if held is not None:
        return Condition(type_, "False", Reason.SNAPSHOT_UNDER_WAY, held.why[:_MOST_TEXT])
    recorded = {**_recorded(observed), **record(observed).get("etcdSnapshot", {})}
    if not recorded:
        text = "no snapshot was taken yet: one comes before the first step of a rollout"
        return Condition(type_, "Unknown", Reason.NO_SNAPSHOT, text)
    size = recorded.get("sizeBytes")
    text = f"{recorded.get('time')}: {size} bytes, revision {recorded.get('revision')}, in {recorded.get('location')}"
    keeper = recorded.get("machine")
    if keeper and not any(machine.name == keeper for machine in observed.state.machines):
        text = f"that of {text}, has gone with the host of Machine {keeper}; the next one comes before the next step"
        return Condition(type_, "Unknown", Reason.NO_SNAPSHOT, text[:_MOST_TEXT])
    return Condition(type_, "True", Reason.SNAPSHOT_TAKEN, text[:_MOST_TEXT])


def has_failed_anew(observed: Observed, held: Held | None) -> bool:
    """Whether nobody has heard of it yet."""
    known = find(observed.status.get("conditions"), ControlPlaneCondition.ETCD_SAVED) or {}
    failed = held is not None and isinstance(observed.snapshot, SnapshotFailed)
    return failed and known.get("reason") != Reason.SNAPSHOT_FAILED
