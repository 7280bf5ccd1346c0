"""What was said about ProvisioningRequests: for the cluster as a whole, and by an administrator for each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from api import yamltext
from api.durations import parse_duration

VALID_UNTIL, NO_RETRY, PROCESSOR_INSTANCE = "ValidUntilSeconds", "noRetry", "processorInstance"
"""Parameters of requests, as the Cluster Autoscaler spells them."""
_TIMES = {"bookingTime": "booking_time", "initialBackoff": "first_pause", "maxBackoff": "longest_pause"}
_PARAMETERS = "parameters"


@dataclass(frozen=True, slots=True)
class Limits:
    """``booking_time``: how long room is kept for pods to come. A request that failed is tried again after
    ``first_pause``, doubled each time up to ``longest_pause``. As upstream.
    """

    booking_time: timedelta = timedelta(minutes=10)
    first_pause: timedelta = timedelta(minutes=1)
    longest_pause: timedelta = timedelta(minutes=10)

    def pause(self, retries: int) -> timedelta:
        """After the so manieth failure, counted from 1."""
        pause = self.first_pause
        for _ in range(retries - 1):
            if pause >= self.longest_pause:
                break
            pause *= 2
        return min(self.longest_pause, pause)


@dataclass(frozen=True, slots=True)
class ProvisioningOptions:
    """``max_age``: a request without room fails then, and one that is over is deleted so long after.

    ``template_patience``: how long a PodTemplate may be missing. ``node_patience``: how long a booked Node may be not
    Ready before its room counts as gone. ``instance``: only requests to check capacity that name it in their parameter
    ``processorInstance`` are served, and no others; "": those that name none.
    """

    limits: Limits = field(default_factory=Limits)
    max_age: timedelta = timedelta(days=7)
    template_patience: timedelta = timedelta(minutes=1)
    node_patience: timedelta = timedelta(minutes=5)
    instance: str = ""


@dataclass(frozen=True, slots=True)
class ClassDefaults:
    """What holds for requests of a class that don't say otherwise. ``problem``: the entry can't be read, and why."""

    parameters: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    problem: str = ""


def read_defaults(data: Mapping[str, Any], limits: Limits) -> dict[str, ClassDefaults]:
    """The ConfigMap's data: class → YAML. A faulty entry says so for its class alone."""
    return {str(name): _read(str(text), limits) for name, text in data.items()}


class _EntryError(ValueError):
    """What is wrong with the entry of a class."""


def _read(text: str, limits: Limits) -> ClassDefaults:
    try:
        found = _settings(text)
        parameters = {str(key): _text(value) for key, value in (found.get(_PARAMETERS) or {}).items()}
        return ClassDefaults(parameters, _limits(found, limits))
    except _EntryError as error:
        return ClassDefaults(limits=limits, problem=str(error))


def _settings(text: str) -> Mapping[Any, Any]:
    """Those of the entry of a class, all known, with a map of parameters if any. Raises _EntryError."""
    try:
        found = yamltext.load(text)
    except yamltext.TextError as error:
        raise _EntryError(f"is no YAML: {error}") from None
    if not isinstance(found, Mapping):
        raise _EntryError("must be a map")
    unknown = sorted(str(key) for key in found if key != _PARAMETERS and key not in _TIMES)
    if unknown:
        known = ", ".join([_PARAMETERS, *_TIMES])
        raise _EntryError(f"{yamltext.shown(unknown[0])}: there is no such setting, only {known}")
    if not isinstance(found.get(_PARAMETERS) or {}, Mapping):
        raise _EntryError(f"{_PARAMETERS}: must be a map")
    return found


def _limits(found: Mapping[Any, Any], limits: Limits) -> Limits:
    """``limits`` with the times that the entry of a class gives. Raises _EntryError."""
    times = {}
    for key, attribute in _TIMES.items():
        try:
            times[attribute] = parse_duration(str(found[key])) if key in found else getattr(limits, attribute)
        except ValueError as error:
            raise _EntryError(f"{key}: {error}") from None
    return Limits(**times)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
