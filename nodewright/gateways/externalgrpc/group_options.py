"""NodeGroupGetOptions: what a group wants otherwise than the autoscaler's flags say, from its annotations. Pure.

A faulty annotation counts as none, as with the Cluster Autoscaler's own provider. All that a group does not speak of
is answered as it was asked: to the autoscaler a zero is a zero, not "no opinion".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from api import names
from api.durations import parse_duration
from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire

Options = wire.NodeGroupAutoscalingOptions
_NANOS = 1_000_000_000


def overrides(annotations: Mapping[str, str]) -> dict[str, str]:
    """Option (in lower case) to its text."""
    prefix = names.AUTOSCALING_OPTIONS_PREFIX
    return {key.removeprefix(prefix).lower(): text for key, text in annotations.items() if key.startswith(prefix)}


def answer(annotations: Mapping[str, str], defaults: wire.NodeGroupAutoscalingOptions) -> Options | None:
    """None: the group has no wishes of its own."""
    wishes = {name: text for name, text in overrides(annotations).items() if name in _SETTERS and _is_sound(name, text)}
    if not wishes:
        return None
    options = Options()
    options.CopyFrom(defaults)
    for setter, (late, early) in _DURATIONS.items():
        _echo(options, late, early)
        if setter in wishes:
            _set(options, late, early, parse_duration(wishes[setter]))
    for name, (field, parse) in _PLAIN.items():
        if name in wishes:
            setattr(options, field, parse(wishes[name]))
    return options


def _echo(options: Options, late: str, early: str) -> None:
    """Defaults come under the number that the caller's release has; the answer has both."""
    if options.HasField(late):
        _set(options, late, early, getattr(options, late).ToTimedelta())
    elif options.HasField(early):
        _set(options, late, early, timedelta(microseconds=getattr(options, early).duration / 1000))


def _set(options: Options, late: str, early: str, span: timedelta) -> None:
    getattr(options, late).FromTimedelta(span)
    getattr(options, early).duration = round(span.total_seconds() * _NANOS)


def _is_sound(name: str, text: str) -> bool:
    try:
        _SETTERS[name](text)
    except ValueError:
        return False
    return True


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(text)
    return value


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_DURATIONS = {
    "scaledownunneededtime": ("scaleDownUnneededDuration", "scaleDownUnneededTime"),
    "scaledownunreadytime": ("scaleDownUnreadyDuration", "scaleDownUnreadyTime"),
    "maxnodeprovisiontime": ("MaxNodeProvisionDuration", "MaxNodeProvisionTime"),
}
_PLAIN: Mapping[str, tuple[str, Callable[[str], float | bool]]] = {
    "scaledownutilizationthreshold": ("scaleDownUtilizationThreshold", _share),
    "scaledowngpuutilizationthreshold": ("scaleDownGpuUtilizationThreshold", _share),
    "zeroormaxnodescaling": ("zeroOrMaxNodeScaling", _truth),
    "ignoredaemonsetsutilization": ("ignoreDaemonSetsUtilization", _truth),
}
_SETTERS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(_DURATIONS, parse_duration),
    **{name: parse for name, (_, parse) in _PLAIN.items()},
}
