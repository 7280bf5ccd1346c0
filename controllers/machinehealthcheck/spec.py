"""``spec`` of a MachineHealthCheck with defaults filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from api.conditions import MachineCondition, Reason
from api.durations import parse_duration
from api.intorstring import IntOrStringError, resolve
from api.reading import Reading
from api.remediation import TemplateKind, kind_of_template, template_faults
from api.selectors import NOTHING, Selector, SelectorError, from_label_selector
from api.views import MachineHealthCheckSpecView, RemediationStrategyView
from controllers.kernel.refs import Obj, key_of

OWNED = frozenset(
    str(type_)
    for type_ in (
        MachineCondition.HEALTH_CHECK_SUCCEEDED,
        MachineCondition.OWNER_REMEDIATED,
        MachineCondition.EXTERNALLY_REMEDIATED,
    )
)
"""Condition types of a Machine that this reconciler writes. None of them may make a Machine unhealthy: it would stay
so.
"""
_UNSET = MachineHealthCheckSpecView()
_RANGE = re.compile(r"\[([0-9]{1,9})-([0-9]{1,9})\]\Z")
_STATUSES = ("True", "False", "Unknown")


class SpecError(ValueError):
    """The message names the field."""

    def __init__(self, message: str, reason: Reason = Reason.INVALID_CONFIGURATION) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Signal:
    """A condition that is bad news once it has lasted for ``timeout``."""

    type: str
    status: str
    timeout: timedelta


@dataclass(frozen=True, slots=True)
class Limit:
    """How many unhealthy Machines are bearable: ``most`` as in the spec, or ``low`` to ``high`` if a range is given."""

    most: int | str = _UNSET.max_unhealthy
    low: int = 0
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Strategy:
    """``spec.remediationStrategy``. None: no limit."""

    max_in_flight: int | str | None = None
    max_retry: int | None = None
    retry_period: timedelta = _UNSET.remediation_strategy.retry_period
    max_retry_period: timedelta = _UNSET.remediation_strategy.max_retry_period
    min_healthy_period: timedelta = _UNSET.remediation_strategy.min_healthy_period
    freezes: bool = True
    reboots: int = 0
    reboot_timeout: timedelta = _UNSET.remediation_strategy.reboot.timeout


@dataclass(frozen=True, slots=True)
class HealthCheckSpec:
    """``startup`` None: a Machine may stay without a Node for ever. ``problem`` names the field that can't be used,
    ``reason`` is the condition's then."""

    selector: Selector = NOTHING
    cluster_name: str = ""
    node_signals: tuple[Signal, ...] = ()
    machine_signals: tuple[Signal, ...] = ()
    startup: timedelta | None = _UNSET.node_startup_timeout
    limit: Limit = Limit()
    strategy: Strategy = Strategy()
    template: Mapping[str, Any] | None = None
    problem: str = ""
    reason: Reason = Reason.INVALID_CONFIGURATION


def parse_spec(body: Obj, allowed: frozenset[TemplateKind] = frozenset()) -> HealthCheckSpec:
    """Never raises: a spec that slipped past the schema becomes a ``problem``. ``allowed``: kinds of templates."""
    try:
        return _read(Reading.of_spec(body), key_of(body).namespace, allowed)
    except SpecError as error:
        return HealthCheckSpec(problem=str(error), reason=error.reason)


def _read(found: Reading, namespace: str, allowed: frozenset[TemplateKind]) -> HealthCheckSpec:
    view = MachineHealthCheckSpecView.read(found)
    if found.problem:
        raise SpecError(found.problem)
    template = view.remediation_template
    if template is not None:
        _check_template(template, namespace, allowed)
        if view.remediation_strategy.reboot.max_attempts:
            raise SpecError("spec.remediationStrategy.reboot: can't be given together with spec.remediationTemplate")
    return HealthCheckSpec(
        selector=_selector(view.selector),
        cluster_name=view.cluster_name or "",
        node_signals=_signals(view.unhealthy_conditions, "unhealthyConditions"),
        machine_signals=_signals(view.unhealthy_machine_conditions, "unhealthyMachineConditions"),
        startup=view.node_startup_timeout or None,
        limit=_limit(view),
        strategy=_strategy(view.remediation_strategy),
        template=template,
    )


def _selector(label_selector: Any) -> Selector:
    try:
        selector = from_label_selector(label_selector)
    except SelectorError as error:
        raise SpecError(f"spec.selector.{error}" if error.field else f"spec.selector: {error}") from None
    if selector.empty or selector.nothing:
        raise SpecError("spec.selector: must not be empty, it would select every Machine of the namespace")
    return selector


def _signals(listed: object, field: str) -> tuple[Signal, ...]:
    listed = listed or []
    if not isinstance(listed, list):
        raise SpecError(f"spec.{field}: must be a list")
    return tuple(_signal(found, f"spec.{field}[{index}]") for index, found in enumerate(listed))


def _signal(found: object, path: str) -> Signal:
    if not isinstance(found, Mapping):
        raise SpecError(f"{path}: must be an object")
    type_, status = found.get("type"), found.get("status")
    if not isinstance(type_, str) or not type_:
        raise SpecError(f"{path}.type: must be the type of a condition")
    if type_ in OWNED:
        raise SpecError(f"{path}.type: {type_} is written by health checks themselves")
    if status not in _STATUSES:
        raise SpecError(f"{path}.status: {status!r} is none of {', '.join(_STATUSES)}")
    return Signal(type_, str(status), _timeout(found.get("timeout"), path))


def _limit(spec: MachineHealthCheckSpecView) -> Limit:
    text = spec.unhealthy_range
    if text is not None:
        match = _RANGE.match(text)
        if match is None or int(match[1]) > int(match[2]):
            raise SpecError(f"spec.unhealthyRange: {text!r} is not a range like [3-5]")
        return Limit(low=int(match[1]), high=int(match[2]))
    return Limit(_share(spec.max_unhealthy, "spec.maxUnhealthy"))


def _strategy(found: RemediationStrategyView) -> Strategy:
    in_flight = found.max_in_flight
    return Strategy(
        max_in_flight=None if in_flight is None else _share(in_flight, "spec.remediationStrategy.maxInFlight"),
        max_retry=found.max_retry,
        retry_period=found.retry_period,
        max_retry_period=found.max_retry_period,
        min_healthy_period=found.min_healthy_period,
        freezes=found.correlated_failures != "Remediate",
        reboots=found.reboot.max_attempts,
        reboot_timeout=found.reboot.timeout,
    )


def _share(value: int | str, path: str) -> int | str:
    try:
        resolve(value, 100, "down")
    except IntOrStringError as error:
        raise SpecError(f"{path}: {error}") from None
    return value


def _timeout(text: Any, path: str) -> timedelta:
    try:
        return parse_duration(text)
    except (TypeError, ValueError):
        raise SpecError(f"{path}.timeout: {text!r} is not a duration like 90s, 10m or 1h30m") from None


def _check_template(template: object, namespace: str, allowed: frozenset[TemplateKind]) -> None:
    for field, why in template_faults(template, namespace):
        raise SpecError(f"{'.'.join(filter(None, ('spec.remediationTemplate', field)))}: {why}")
    assert isinstance(template, Mapping)
    kind = kind_of_template(template)
    if kind not in allowed:
        text = f"spec.remediationTemplate: {kind} is not among the kinds of --remediation-kinds"
        raise SpecError(f"{text}; the administrator has to add it", Reason.REMEDIATION_KIND_NOT_ALLOWED)
