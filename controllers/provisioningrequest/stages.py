"""In which stage of its life a request is. Each request is in exactly one."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from api import provisioning_names
from api.conditions import ProvisioningCondition, Reason
from controllers.autoscaler.requests import Request
from controllers.kernel.conditions import find
from controllers.provisioningrequest.classes import is_reserved
from controllers.provisioningrequest.observe import Observed
from controllers.provisioningrequest.options import NO_RETRY, PROCESSOR_INSTANCE, VALID_UNTIL

_FINAL = (
    ProvisioningCondition.FAILED,
    ProvisioningCondition.BOOKING_EXPIRED,
    ProvisioningCondition.CAPACITY_REVOKED,
)


class Stage(StrEnum):
    OTHERS = "others"
    """Another program's business."""
    UNKNOWN_CLASS = "unknownClass"
    LEAVING = "rollingBack"
    OVER = "over"
    OLD = "old"
    """Over for so long that it is deleted."""
    BOOKED = "booked"
    GROWING = "growing"
    INVALID = "invalid"
    INCOMPLETE = "incomplete"
    """A PodTemplate is missing."""
    EXPIRED = "expired"
    RESTING = "resting"
    FRESH = "pending"


def stage_of(request: Request, observed: Observed) -> Stage:
    """The first one that applies."""
    if request.class_name not in observed.classes:
        return Stage.UNKNOWN_CLASS if is_reserved(request.class_name) else Stage.OTHERS
    parameters = observed.parameters_of(request)
    if parameters.get(PROCESSOR_INSTANCE, "") != observed.options.instance:
        return Stage.OTHERS
    if request.record.leaving:
        return Stage.LEAVING
    if request.over and not comes_again(request):
        since = over_since(request)
        return Stage.OLD if since is not None and observed.now - since >= observed.options.max_age else Stage.OVER
    if request.booked:
        return Stage.BOOKED
    if problem_of(request, observed):
        return Stage.INVALID
    if request.growing:
        return Stage.GROWING
    deadline, _ = deadline_of(request, observed)
    if observed.now >= deadline:
        return Stage.EXPIRED
    if request.problem:
        return Stage.INCOMPLETE
    rests = request.record.retry_after
    return Stage.RESTING if rests is not None and observed.now < rests else Stage.FRESH


def comes_again(request: Request) -> bool:
    """Its PodTemplates were missing, and are there now."""
    failed = find(request.conditions, ProvisioningCondition.FAILED) or {}
    return failed.get("reason") == Reason.FAILED_TO_CREATE_PODS and not request.problem


def over_since(request: Request) -> datetime | None:
    return max((since for each in _FINAL if request.says(each) and (since := request.since(each))), default=None)


def deadline_of(request: Request, observed: Observed) -> tuple[datetime, str]:
    """When nothing more is tried, and what says so."""
    text = observed.parameters_of(request).get(VALID_UNTIL)
    if text is None:
        return request.created + observed.options.max_age, "it was not found in time"
    valid = request.created + timedelta(seconds=int(text))
    return valid, f"it was not found within the {text} s of its parameter {VALID_UNTIL}"


def problem_of(request: Request, observed: Observed) -> str:
    """What is wrong with its parameters, or with the defaults of its class."""
    defaults = observed.defaults_of(request)
    if defaults.problem:
        return f"ConfigMap {provisioning_names.PROVISIONING_CLASSES}: data[{request.class_name}]: {defaults.problem}"
    parameters = observed.parameters_of(request)
    valid, retry = parameters.get(VALID_UNTIL), parameters.get(NO_RETRY)
    if valid is not None and not (valid.isascii() and valid.isdigit() and 0 < int(valid) < 10**9):
        return f"spec.parameters[{VALID_UNTIL}]: {valid!r} is not a number of seconds"
    if retry not in (None, "true", "false"):
        return f'spec.parameters[{NO_RETRY}]: {retry!r} is neither "true" nor "false"'
    return ""
