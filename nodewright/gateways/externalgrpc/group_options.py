"""NodeGroupGetOptions: a group's own options in the words of the wire. Pure.

All that a group does not speak of is answered as it was asked: to the autoscaler a zero is a zero, not "no opinion".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from controllers.externalgrpc.group_options import own_options
from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire

Options = wire.NodeGroupAutoscalingOptions
_NANOS = 1_000_000_000


def answer(annotations: Mapping[str, str], defaults: wire.NodeGroupAutoscalingOptions) -> Options | None:
    """None: the group has no options of its own."""
    requested = own_options(annotations)
    if requested is None:
        return None
    options = Options()
    options.CopyFrom(defaults)
    for option, (late, early) in _DURATIONS.items():
        _echo(options, late, early)
        span = getattr(requested, option)
        if span is not None:
            _set(options, late, early, span)
    for option, field in _PLAIN.items():
        if getattr(requested, option) is not None:
            setattr(options, field, getattr(requested, option))
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


_DURATIONS = {
    "unneeded_time": ("scaleDownUnneededDuration", "scaleDownUnneededTime"),
    "unready_time": ("scaleDownUnreadyDuration", "scaleDownUnreadyTime"),
    "provision_time": ("MaxNodeProvisionDuration", "MaxNodeProvisionTime"),
}
_PLAIN = {
    "utilization_threshold": "scaleDownUtilizationThreshold",
    "gpu_utilization_threshold": "scaleDownGpuUtilizationThreshold",
    "zero_or_max": "zeroOrMaxNodeScaling",
    "ignore_daemon_sets": "ignoreDaemonSetsUtilization",
}
