"""Before a step of a rollout etcd is saved in a bucket, where ``spec.etcd.snapshot.s3`` asks for it.

A snapshot counts for as long as the same Machines are of an earlier template, so that the Machine that joins and the
one that goes for it need one between them, and for ``MOST_AGE``. What heals waits for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from api.conditions import ControlPlaneCondition, Reason
from controllers.controlplane.observe import Observed
from controllers.controlplane.quorum import votes_of
from controllers.controlplane.state import Join, Remove, State, Step, UpgradeInPlace
from controllers.kernel.actions import TakeEtcdSnapshot
from controllers.kernel.conditions import Condition, find, format_time, parse_time
from controllers.kernel.etcd_snapshots import SnapshotFailed, SnapshotTaken, SnapshotTarget, SnapshotUnderWay
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


def target_of(observed: Observed) -> SnapshotTarget | None:
    """Where etcd is to be saved; None: nowhere but on hosts."""
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
    target = target_of(observed)
    if target is None or not is_risky(step, observed.state):
        return None
    key = _key(observed)
    recorded = mapping(observed.status.get("etcdSnapshot"))
    taken_at = parse_time(recorded.get("time"))
    if recorded.get("step") == key and taken_at is not None and observed.now - taken_at <= MOST_AGE:
        return None
    last = observed.snapshot
    if isinstance(last, SnapshotTaken) and last.key == key and observed.now - last.at <= MOST_AGE:
        return Held(f"a snapshot of etcd is written down before: {step.why}")
    if isinstance(last, SnapshotUnderWay):
        return Held(f"etcd is being saved before: {step.why}")
    if isinstance(last, SnapshotFailed) and last.key == key and observed.now < last.retry_at:
        return Held(f"etcd could not be saved, and without it nothing is changed: {last.why}")
    version = observed.spec.version or ""
    why = f"etcd is saved before: {step.why}"
    cluster = Key(key_of(observed.body).namespace, observed.spec.cluster_name or "")
    return Held(why, TakeEtcdSnapshot(cluster, observed.hosts, target, key, f"v{version.removeprefix('v')}", why))


def _key(observed: Observed) -> str:
    """The same for as long as the same Machines are of an earlier template."""
    earlier = sorted(m.name for m in observed.state.machines if not m.up_to_date and not m.deleting)
    return digest([observed.revision.digest, earlier], 16)


def record(observed: Observed) -> dict[str, Any]:
    """``status.etcdSnapshot``: of the last one that is whole; {} if it stands there already, or none is known."""
    last = observed.snapshot
    if not isinstance(last, SnapshotTaken):
        return {}
    new = {
        "step": last.key, "time": format_time(last.at), "sizeBytes": last.size_bytes, "revision": last.revision,
        "location": last.location[:_MOST_TEXT],
    }  # fmt: skip
    known = parse_time(mapping(observed.status.get("etcdSnapshot")).get("time"))
    return {"etcdSnapshot": new} if known is None or last.at.replace(microsecond=0) > known else {}


def condition(observed: Observed, held: Held | None) -> Condition | None:
    """EtcdSaved: names the last snapshot, or why there is none. None where nobody asks for one."""
    type_ = ControlPlaneCondition.ETCD_SAVED
    if target_of(observed) is None:
        return None
    last = observed.snapshot
    if held is not None and isinstance(last, SnapshotFailed):
        return Condition(type_, "False", Reason.SNAPSHOT_FAILED, last.why[:_MOST_TEXT])
    if held is not None:
        return Condition(type_, "False", Reason.SNAPSHOT_UNDER_WAY, held.why[:_MOST_TEXT])
    recorded = {**mapping(observed.status.get("etcdSnapshot")), **record(observed).get("etcdSnapshot", {})}
    if not recorded:
        text = "no snapshot was taken yet: one comes before the first step of a rollout"
        return Condition(type_, "Unknown", Reason.NO_SNAPSHOT, text)
    size = recorded.get("sizeBytes")
    text = f"{recorded.get('time')}: {size} bytes, revision {recorded.get('revision')}, in {recorded.get('location')}"
    return Condition(type_, "True", Reason.SNAPSHOT_TAKEN, text[:_MOST_TEXT])


def has_failed_anew(observed: Observed, held: Held | None) -> bool:
    """Whether nobody has heard of it yet."""
    known = find(observed.status.get("conditions"), ControlPlaneCondition.ETCD_SAVED) or {}
    failed = held is not None and isinstance(observed.snapshot, SnapshotFailed)
    return failed and known.get("reason") != Reason.SNAPSHOT_FAILED
