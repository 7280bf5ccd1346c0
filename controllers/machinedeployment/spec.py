"""``spec`` of a MachineDeployment with its defaults filled in, or which of its fields can't be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from api.intorstring import IntOrStringError, resolve
from api.names import DeletePolicy, InPlace, OnFailure, StrategyType
from api.reading import Reading
from api.selectors import NOTHING, Selector
from api.views import MachineDeploymentSpecView, MachineDeploymentStrategyView
from controllers.kernel.budgets import BudgetError, RolloutLimits, rollout_limits
from controllers.kernel.refs import MACHINE_SET, Obj
from controllers.kernel.template import read_pattern
from controllers.machinedeployment.disruption import DisruptionBudget, read_budgets

_UNSET = MachineDeploymentSpecView()
_NO_LIMITS = RolloutLimits(1, 0, 1, 0)


@dataclass(frozen=True, slots=True)
class DeploymentSpec:
    """``spec``, with defaults filled in. ``problem`` names the field that can't be used, "" if all can."""

    replicas: int = 0
    strategy: str = _UNSET.strategy.type
    limits: RolloutLimits = _NO_LIMITS
    partition: int = 0
    policy: str = DeletePolicy.RANDOM.value
    on_failure: str = OnFailure.CONTINUE
    in_place: str = InPlace.NEVER
    budgets: tuple[DisruptionBudget, ...] = ()
    min_ready: timedelta = timedelta(0)
    history_limit: int = _UNSET.revision_history_limit
    deadline: timedelta = timedelta(seconds=_UNSET.progress_deadline_seconds)
    paused: bool = False
    selector: Selector = NOTHING
    template: Mapping[str, Any] = field(default_factory=dict)
    failure_domains: tuple[str, ...] | None = None
    after: datetime | None = None
    problem: str = ""


def parse_spec(body: Obj) -> DeploymentSpec:
    """``spec`` of a MachineDeployment; never raises: what slipped past the schema becomes a ``problem``."""
    found = Reading.of_spec(body)
    spec = MachineDeploymentSpecView.read(found)
    if found.problem:
        return DeploymentSpec(problem=found.problem)
    pattern = read_pattern(spec.selector, spec.template, MACHINE_SET)
    if pattern.problem:
        return DeploymentSpec(problem=pattern.problem)
    desired = DeploymentSpec(
        replicas=spec.replicas,
        min_ready=timedelta(seconds=spec.min_ready_seconds),
        history_limit=spec.revision_history_limit,
        deadline=timedelta(seconds=spec.progress_deadline_seconds),
        paused=spec.paused,
        selector=pattern.selector,
        template=pattern.template,
        after=spec.rollout.after if spec.rollout is not None else None,
        failure_domains=spec.failure_domains,
    )
    return _with_strategy(desired, spec.strategy)


def _with_strategy(desired: DeploymentSpec, strategy: MachineDeploymentStrategyView) -> DeploymentSpec:
    rolling, rolls = strategy.rolling_update, strategy.type == StrategyType.ROLLING_UPDATE
    try:
        limits = rollout_limits(desired.replicas, rolling.max_surge, rolling.max_unavailable)
        partition = _partition(rolling.partition, desired.replicas)
    except BudgetError as error:
        return DeploymentSpec(problem=f"spec.strategy.rollingUpdate.{error}")
    return replace(
        desired,
        strategy=strategy.type,
        limits=limits,
        partition=partition if rolls else 0,
        policy=str(rolling.delete_policy or DeletePolicy.RANDOM),
        on_failure=rolling.on_failure,
        in_place=rolling.in_place if rolls else InPlace.NEVER,
        budgets=read_budgets(strategy.disruption_budgets, desired.replicas) if rolls else (),
    )


def _partition(value: int | str, replicas: int) -> int:
    """A share is rounded up: rather one Machine too few than too many gets a template that is being tried."""
    try:
        return resolve(value, replicas, "up")
    except IntOrStringError as error:
        raise BudgetError("partition", str(error)) from None
