"""``spec`` of a MachineDeployment with its defaults filled in, or which of its fields can't be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from api.intorstring import IntOrStringError, resolve
from api.limits import MAX_REPLICAS
from api.machinerules import failure_domains_fault
from api.names import DeletePolicy, InPlace, OnFailure, StrategyType
from api.selectors import NOTHING, Selector
from controllers.kernel.budgets import BudgetError, RolloutLimits, rollout_limits
from controllers.kernel.conditions import parse_time
from controllers.kernel.refs import MACHINE_SET, Obj
from controllers.kernel.template import is_count, read_pattern
from controllers.machinedeployment.disruption import DisruptionBudget, read_budgets

_NO_LIMITS = RolloutLimits(1, 0, 1, 0)


@dataclass(frozen=True, slots=True)
class DeploymentSpec:
    """``spec``, with defaults filled in. ``problem`` names the field that can't be used, "" if all can."""

    replicas: int = 0
    strategy: str = StrategyType.ROLLING_UPDATE
    limits: RolloutLimits = _NO_LIMITS
    partition: int = 0
    policy: str = DeletePolicy.RANDOM
    on_failure: str = OnFailure.CONTINUE
    in_place: str = InPlace.NEVER
    budgets: tuple[DisruptionBudget, ...] = ()
    min_ready: timedelta = timedelta(0)
    history_limit: int = 1
    deadline: timedelta = timedelta(seconds=600)
    paused: bool = False
    selector: Selector = NOTHING
    template: Mapping[str, Any] = field(default_factory=dict)
    failure_domains: tuple[str, ...] | None = None
    after: datetime | None = None
    problem: str = ""


def parse_spec(body: Obj) -> DeploymentSpec:
    """``spec`` of a MachineDeployment; never raises: what slipped past the schema becomes a ``problem``."""
    spec = body.get("spec")
    if not isinstance(spec, Mapping):
        return DeploymentSpec(problem="spec: must be an object")
    counts: dict[str, int] = {}
    for name, default in _COUNTS.items():
        value = spec.get(name)
        value = default if value is None else value
        if not is_count(value) or value > MAX_REPLICAS:
            return DeploymentSpec(problem=f"spec.{name}: {value!r} is not a number from 0 to {MAX_REPLICAS}")
        counts[name] = value
    pattern = read_pattern(spec, MACHINE_SET)
    if pattern.problem:
        return DeploymentSpec(problem=pattern.problem)
    domains = spec.get("failureDomains")
    if fault := failure_domains_fault(domains):
        return DeploymentSpec(problem=f"spec.failureDomains: {fault}")
    after = _after(spec.get("rollout"))
    if isinstance(after, str):
        return DeploymentSpec(problem=after)
    desired = DeploymentSpec(
        replicas=counts["replicas"],
        min_ready=timedelta(seconds=counts["minReadySeconds"]),
        history_limit=counts["revisionHistoryLimit"],
        deadline=timedelta(seconds=counts["progressDeadlineSeconds"]),
        paused=spec.get("paused") is True,
        selector=pattern.selector,
        template=pattern.template,
        after=after,
        failure_domains=tuple(domains) if domains is not None else None,
    )
    return _with_strategy(desired, spec.get("strategy") or {})


def _after(rollout: object) -> datetime | str | None:
    """``spec.rollout.after``, None without it, or what is wrong with it."""
    if rollout is None:
        return None
    if not isinstance(rollout, Mapping):
        return "spec.rollout: must be an object"
    after = rollout.get("after")
    if after is None:
        return None
    moment = parse_time(after) if isinstance(after, str) else None
    return moment or f"spec.rollout.after: {after!r} is not a time like 2026-01-31T20:00:00Z"


_COUNTS = {"replicas": 1, "minReadySeconds": 0, "revisionHistoryLimit": 1, "progressDeadlineSeconds": 600}


def _with_strategy(desired: DeploymentSpec, strategy: object) -> DeploymentSpec:
    if not isinstance(strategy, Mapping):
        return DeploymentSpec(problem="spec.strategy: must be an object")
    type_ = strategy.get("type") or StrategyType.ROLLING_UPDATE
    if type_ not in tuple(StrategyType):
        return DeploymentSpec(problem=f"spec.strategy.type: {type_!r} is none of {', '.join(StrategyType)}")
    rolling = strategy.get("rollingUpdate") or {}
    if not isinstance(rolling, Mapping):
        return DeploymentSpec(problem="spec.strategy.rollingUpdate: must be an object")
    rolls = type_ == StrategyType.ROLLING_UPDATE
    chosen: dict[str, str] = {}
    for name, (default, known) in _CHOICES.items():
        chosen[name] = str(rolling.get(name) or default)
        if chosen[name] not in known:
            return DeploymentSpec(problem=f"spec.strategy.rollingUpdate.{name}: {chosen[name]!r} is unknown")
    try:
        limits = rollout_limits(desired.replicas, rolling.get("maxSurge"), rolling.get("maxUnavailable"))
        partition = _partition(rolling.get("partition"), desired.replicas)
    except BudgetError as error:
        return DeploymentSpec(problem=f"spec.strategy.rollingUpdate.{error}")
    return replace(
        desired,
        strategy=str(type_),
        limits=limits,
        partition=partition if rolls else 0,
        policy=chosen["deletePolicy"],
        on_failure=chosen["onFailure"],
        in_place=chosen["inPlace"] if rolls else InPlace.NEVER,
        budgets=read_budgets(strategy.get("disruptionBudgets"), desired.replicas) if rolls else (),
    )


_CHOICES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "deletePolicy": (DeletePolicy.RANDOM, tuple(DeletePolicy)),
    "onFailure": (OnFailure.CONTINUE, tuple(OnFailure)),
    "inPlace": (InPlace.NEVER, tuple(InPlace)),
}


def _partition(value: int | str | None, replicas: int) -> int:
    """A share is rounded up: rather one Machine too few than too many gets a template that is being tried."""
    try:
        return resolve(0 if value is None else value, replicas, "up")
    except IntOrStringError as error:
        raise BudgetError("partition", str(error)) from None
