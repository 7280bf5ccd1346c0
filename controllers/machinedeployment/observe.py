"""View → Observed: one MachineDeployment, its MachineSets and, through them, each of its Machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from api import names
from api.names import DeletePolicy, OnFailure, StrategyType
from api.selectors import NOTHING, Selector, SelectorError, from_label_selector
from controllers.kernel import machine_facts
from controllers.kernel.budgets import BudgetError, RolloutLimits, rollout_limits
from controllers.kernel.conditions import parse_time
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.members import Members, partition, removal
from controllers.kernel.names import machine_prefix, machine_set_name
from controllers.kernel.ordinals import Ordinals, OrdinalsError, read_ordinals
from controllers.kernel.pausing import cluster_of, paused_by
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Key,
    Obj,
    Ref,
    annotations_of,
    is_deleting,
    labels_of,
    ref_of,
    uid_of,
)
from controllers.kernel.template import is_count, rollout_part, template_hash, template_problem
from controllers.kernel.victims import in_order
from controllers.kernel.view import OWNER, View

READS = (MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE, CLUSTER)
MAX_REPLICAS = 100_000
_DAWN = datetime.min.replace(tzinfo=UTC)
_NO_LIMITS = RolloutLimits(1, 0, 1, 0)


@dataclass(frozen=True, slots=True)
class Wish:
    """``spec``, with defaults filled in. ``problem`` names the field that can't be used, "" if all can."""

    replicas: int = 0
    strategy: str = StrategyType.ROLLING_UPDATE
    limits: RolloutLimits = _NO_LIMITS
    partition: int = 0
    policy: str = DeletePolicy.RANDOM
    on_failure: str = OnFailure.CONTINUE
    min_ready: timedelta = timedelta(0)
    history_limit: int = 1
    deadline: timedelta = timedelta(seconds=600)
    paused: bool = False
    selector: Selector = NOTHING
    template: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SetState:
    """One MachineSet. ``going`` are its members that stay at ``replicas``, in the order in which they would go.

    None in ``going`` stands for one that is not there yet (missing, or reserved and not seen).
    """

    body: Obj
    replicas: int
    members: Members
    going: tuple[MachineFacts | None, ...]
    available: int
    revision: int
    current: bool
    """Its template makes the same Machines as the deployment's."""
    readable: bool = True
    """False: its spec has types that no schema allows. It is left alone; its own controller says what is wrong."""

    @property
    def ref(self) -> Ref:
        return ref_of(MACHINE_SET, self.body)

    @property
    def uid(self) -> str:
        return uid_of(self.body)

    @property
    def name(self) -> str:
        return self.ref.key.name

    @property
    def created(self) -> datetime:
        return parse_time(self.body["metadata"].get("creationTimestamp")) or _DAWN

    @property
    def total(self) -> int:
        """The most Machines it may have now: those asked for, or those that still have to go."""
        return max(self.replicas, self.members.alive)

    @property
    def quiet(self) -> bool:
        """It is as it was asked to be."""
        return self.members.existing == self.replicas and not self.members.leaving

    @property
    def empty(self) -> bool:
        """Nothing of it is left, not even a Machine that is going."""
        return self.replicas == 0 and self.members.alive == 0 and not (self.members.deleting or self.members.preserved)


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that the plan of one MachineDeployment may know. ``sets`` come oldest first.

    ``orphans``: MachineSets of the namespace that match the selector and that nobody controls.
    ``namesake``: the MachineSet that has the name which a new one would get, whoever owns it.
    """

    body: Obj
    wish: Wish
    now: datetime
    complete: bool = True
    paused: str = ""
    cluster_deleting: str = ""
    sets: tuple[SetState, ...] = ()
    orphans: tuple[Obj, ...] = ()
    namesake: Obj | None = None

    @property
    def ref(self) -> Ref:
        return ref_of(MACHINE_DEPLOYMENT, self.body)

    @property
    def status(self) -> Mapping[str, Any]:
        status = self.body.get("status")
        return status if isinstance(status, Mapping) else {}


def observe(key: Key, view: View) -> Observed | None:
    """None if the MachineDeployment is gone."""
    body = view.get(MACHINE_DEPLOYMENT, key)
    if body is None:
        return None
    wish = read_wish(body)
    cluster = cluster_of(body, view) if not wish.problem else None
    want = rollout_part(wish.template)
    owned = view.indexed(MACHINE_SET, OWNER, uid_of(body))
    sets = tuple(sorted((_state(found, wish, want, view) for found in owned), key=lambda s: (s.created, s.name)))
    return Observed(
        body=body,
        wish=wish,
        now=view.now,
        complete=all(view.complete(kind) for kind in READS),
        paused=paused_by((body, cluster)),
        cluster_deleting=cluster["metadata"]["name"] if cluster and is_deleting(cluster) else "",
        sets=sets,
        orphans=_orphans(view, key.namespace, wish),
        namesake=view.get(MACHINE_SET, Key(key.namespace, machine_set_name(key.name, hash_for_new(body, wish)))),
    )


def hash_for_new(body: Obj, wish: Wish) -> str:
    """The template hash that a new MachineSet gets; collisions seen so far are part of it."""
    status = body.get("status")
    collisions = status.get("collisionCount") if isinstance(status, Mapping) else 0
    return template_hash(wish.template, collisions if is_count(collisions) and isinstance(collisions, int) else 0)


def read_wish(body: Obj) -> Wish:
    """``spec`` of a MachineDeployment; never raises: what slipped past the schema becomes a ``problem``."""
    spec = body.get("spec")
    if not isinstance(spec, Mapping):
        return Wish(problem="spec: must be an object")
    counts: dict[str, int] = {}
    for name, default in _COUNTS.items():
        value = spec.get(name)
        value = default if value is None else value
        if not is_count(value) or value > MAX_REPLICAS:
            return Wish(problem=f"spec.{name}: {value!r} is not a number from 0 to {MAX_REPLICAS}")
        counts[name] = value
    template = spec.get("template")
    problem = template_problem(template)
    if problem or not isinstance(template, Mapping):
        return Wish(problem=problem)
    try:
        selector = from_label_selector(spec.get("selector"))
    except SelectorError as error:
        return Wish(problem=f"spec.selector.{error}" if error.field else f"spec.selector: {error}")
    if selector.empty or selector.nothing:
        return Wish(problem="spec.selector: must not be empty, it would select every MachineSet of the namespace")
    if not selector.matches((template.get("metadata") or {}).get("labels")):
        return Wish(problem="spec.template.metadata.labels: do not match spec.selector")
    wish = Wish(
        replicas=counts["replicas"],
        min_ready=timedelta(seconds=counts["minReadySeconds"]),
        history_limit=counts["revisionHistoryLimit"],
        deadline=timedelta(seconds=counts["progressDeadlineSeconds"]),
        paused=spec.get("paused") is True,
        selector=selector,
        template=template,
    )
    return _with_strategy(wish, spec.get("strategy") or {})


_COUNTS = {"replicas": 1, "minReadySeconds": 0, "revisionHistoryLimit": 1, "progressDeadlineSeconds": 600}


def _with_strategy(wish: Wish, strategy: object) -> Wish:
    if not isinstance(strategy, Mapping):
        return Wish(problem="spec.strategy: must be an object")
    type_ = strategy.get("type") or StrategyType.ROLLING_UPDATE
    if type_ not in tuple(StrategyType):
        return Wish(problem=f"spec.strategy.type: {type_!r} is none of {', '.join(StrategyType)}")
    rolling = strategy.get("rollingUpdate") or {}
    if not isinstance(rolling, Mapping):
        return Wish(problem="spec.strategy.rollingUpdate: must be an object")
    partition, policy = rolling.get("partition") or 0, rolling.get("deletePolicy") or DeletePolicy.RANDOM
    on_failure = rolling.get("onFailure") or OnFailure.CONTINUE
    if not is_count(partition):
        return Wish(problem=f"spec.strategy.rollingUpdate.partition: {partition!r} is not a number")
    if policy not in tuple(DeletePolicy):
        return Wish(problem=f"spec.strategy.rollingUpdate.deletePolicy: {policy!r} is unknown")
    if on_failure not in tuple(OnFailure):
        return Wish(problem=f"spec.strategy.rollingUpdate.onFailure: {on_failure!r} is unknown")
    try:
        limits = rollout_limits(wish.replicas, rolling.get("maxSurge"), rolling.get("maxUnavailable"))
    except BudgetError as error:
        return Wish(problem=f"spec.strategy.rollingUpdate.{error}")
    return replace(
        wish,
        strategy=str(type_),
        limits=limits,
        partition=partition if type_ == StrategyType.ROLLING_UPDATE else 0,
        policy=str(policy),
        on_failure=str(on_failure),
    )


def _state(body: Obj, wish: Wish, want: Mapping[str, Any], view: View) -> SetState:
    """A MachineSet that can't be read is counted as it is; its own controller reports what is wrong."""
    spec = body.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    replicas = spec.get("replicas", 1)
    if is_deleting(body) or not is_count(replicas) or replicas > MAX_REPLICAS:
        replicas = 0
    status = body.get("status")
    try:
        journal = read_ordinals(status if isinstance(status, Mapping) else {})
    except OrdinalsError:
        journal = Ordinals()
    owned = [machine_facts.read(machine) for machine in view.indexed(MACHINE, OWNER, uid_of(body))]
    members = partition(owned, journal, machine_prefix(body["metadata"]["name"], uid_of(body)), view.now)
    template = spec.get("template")
    readable = isinstance(template, Mapping) and not template_problem(template)
    going = _going(members, replicas, spec.get("deletePolicy") or DeletePolicy.RANDOM)
    return SetState(
        body=body,
        replicas=replicas,
        members=members,
        going=going,
        available=sum(1 for m in going if m is not None and m.is_available(wish.min_ready, view.now)),
        revision=_number(annotations_of(body).get(names.REVISION_ANNOTATION)),
        current=readable and not is_deleting(body) and rollout_part(template or {}) == want,
        readable=readable and is_count(spec.get("replicas", 1)),
    )


def _going(members: Members, replicas: int, policy: str) -> tuple[MachineFacts | None, ...]:
    """Who stays at ``replicas``, first victim first, in the order that the MachineSet uses."""
    decided = removal(members, replicas, policy)
    pending = len(members.pending) - len(decided.pending)
    staying = in_order(members.active, policy)[len(decided.victims) :]
    missing = max(replicas - pending - len(staying), 0)
    return (*(None for _ in range(missing + pending)), *staying)


def _orphans(view: View, namespace: str, wish: Wish) -> tuple[Obj, ...]:
    if wish.problem:
        return ()
    return tuple(
        body
        for body in view.indexed(MACHINE_SET, OWNER, "")
        if body["metadata"].get("namespace", "") == namespace
        and not is_deleting(body)
        and wish.selector.matches(labels_of(body))
    )


def _number(text: str | None) -> int:
    """A revision; 0 for none or an unreadable one."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else 0
