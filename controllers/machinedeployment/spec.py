"""``spec`` of a MachineDeployment: defaults, fields that can't be used, and its disruption budgets.

Disruption budgets: when a rollout may take Machines, and how many at once.

Each budget holds always, or for a while from each strike of its cron schedule (UTC). The smallest of the budgets in
force counts. What can't be understood allows nothing: a window that was mistyped must not open everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from api.durations import parse_duration
from api.intorstring import IntOrStringError, resolve
from api.names import DeletePolicy, DisruptionReason, InPlace, OnFailure, StrategyType
from api.reading import Reading
from api.schedules import ScheduleError, Stretch, check_schedule, last_stretch, next_begin
from api.selectors import NOTHING, Selector
from api.views import MachineDeploymentSpecView, MachineDeploymentStrategyView
from controllers.kernel.budgets import BudgetError, RolloutLimits, rollout_limits
from controllers.kernel.conditions import counted, format_time
from controllers.kernel.refs import MACHINE_SET, Obj
from controllers.kernel.template import read_pattern

if TYPE_CHECKING:
    from controllers.machinedeployment.observe import Observed


_FIELD = "spec.strategy.disruptionBudgets"


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """``nodes`` is a count already. ``problem`` names the field that can't be understood, "" if all can."""

    index: int
    nodes: int = 0
    schedule: str = ""
    duration: timedelta = timedelta(0)
    reasons: tuple[str, ...] = ()
    problem: str = ""

    @property
    def title(self) -> str:
        return f"{_FIELD}[{self.index}]"

    def concerns(self, reason: DisruptionReason) -> bool:
        return bool(self.problem) or not self.reasons or reason in self.reasons

    def last(self, now: datetime) -> Stretch | None:
        return last_stretch(self.schedule, self.duration, now) if self.schedule else None

    def holds(self, now: datetime) -> bool:
        if self.problem or not self.schedule:
            return True
        last = self.last(now)
        return last is not None and last.holds(now)

    def changes(self, now: datetime) -> datetime | None:
        """When it next begins or ceases to hold."""
        if self.problem or not self.schedule:
            return None
        last = self.last(now)
        return last.ends if last is not None and last.holds(now) else next_begin(self.schedule, now)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the budgets say now. ``limit`` None: there is none.

    ``changes``: when they will say something else; ``eased``: when one ceased to hold last; ``why`` names the budget.
    """

    limit: int | None = None
    why: str = ""
    problem: str = ""
    changes: datetime | None = None
    eased: datetime | None = None

    @property
    def closed(self) -> bool:
        return self.limit == 0


UNLIMITED = Allowance()
"""There are no budgets."""


def read_budgets(found: object, replicas: int) -> tuple[DisruptionBudget, ...]:
    """``spec.strategy.disruptionBudgets``; never raises."""
    if found is None:
        return ()
    if not isinstance(found, list):
        return (DisruptionBudget(0, problem=f"{_FIELD}: must be a list"),)
    return tuple(_read(index, entry, replicas) for index, entry in enumerate(found))


def _read(index: int, entry: object, replicas: int) -> DisruptionBudget:
    if not isinstance(entry, Mapping):
        return DisruptionBudget(index, problem=f"{_FIELD}[{index}]: must be an object")
    field = "nodes"
    try:
        nodes = resolve(entry.get("nodes", ""), replicas, "up")
        field = "reasons"
        reasons = _reasons(entry.get("reasons"))
        field = "schedule"
        schedule, length = entry.get("schedule"), entry.get("duration")
        if (schedule is None) != (length is None):
            raise ValueError("schedule and duration need each other")
        if schedule is None:
            return DisruptionBudget(index, nodes, reasons=reasons)
        check_schedule(schedule)
        field = "duration"
        return DisruptionBudget(index, nodes, str(schedule), parse_duration(str(length)), reasons)
    except (IntOrStringError, ScheduleError, ValueError) as error:
        return DisruptionBudget(index, problem=f"{_FIELD}[{index}].{field}: {error}")


def _reasons(found: object) -> tuple[str, ...]:
    if found is None:
        return ()
    if not isinstance(found, list) or any(reason not in tuple(DisruptionReason) for reason in found):
        raise ValueError(f"{found!r} has others than {', '.join(DisruptionReason)}")
    return tuple(str(reason) for reason in found)


def allowance(budgets: Iterable[DisruptionBudget], reason: DisruptionReason, now: datetime) -> Allowance:
    """What may be taken at ``now`` for ``reason``."""
    ours = [budget for budget in budgets if budget.concerns(reason)]
    holding = [budget for budget in ours if budget.holds(now)]
    changes = min((moment for budget in ours if (moment := budget.changes(now)) is not None), default=None)
    lasts = (budget.last(now) for budget in ours if not budget.problem)
    eased = max((last.ends for last in lasts if last is not None and last.ends <= now), default=None)
    if not holding:
        return Allowance(changes=changes, eased=eased)
    least = min(holding, key=lambda budget: (0 if budget.problem else budget.nodes, not budget.problem, budget.index))
    if least.problem:
        return Allowance(0, least.problem, least.problem, changes, eased)
    ends = least.changes(now)
    until = f" until {format_time(ends)}" if ends is not None else ""
    return Allowance(
        least.nodes, f"{least.title} allows {counted(least.nodes, 'Machine')} at once{until}", "", changes, eased
    )


def disruptions_left(observed: Observed, allowed: Allowance) -> int | None:
    """How many more Machines that are up may be taken now; None: no budget says."""
    return None if allowed.limit is None else max(allowed.limit - disturbed(observed), 0)


def disturbed(observed: Observed) -> int:
    """Machines with a Node that are down, going or chosen to go, by whatever cause.

    One that never had a Node disturbs nobody.
    """
    count = 0
    for state in observed.sets:
        members = state.members
        up = {machine.uid for machine in state.going if machine is not None and machine.ready}
        known = (*members.active, *members.leaving, *members.deleting)
        count += sum(1 for machine in known if machine.node_name and machine.uid not in up)
    return count


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
