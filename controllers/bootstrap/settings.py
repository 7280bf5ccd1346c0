"""What a Machine's ``spec.bootstrap`` comes to, its Cluster's defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from api.durations import parse_duration
from controllers.kernel.refs import mapping

_USUAL = "amd64"
JOIN_TIMEOUT = timedelta(minutes=20)
"""What a host may take to join where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Settings:
    """See ``api.bootstrap.BootstrapSpec``."""

    endpoint: str = ""
    mirror: str = ""
    architecture: str = _USUAL
    ignore_preflight_errors: tuple[str, ...] = ()
    join_timeout: timedelta = JOIN_TIMEOUT


def is_asked_for(cluster_spec: object, machine_spec: object) -> bool:
    """Whether bootstrap data is to be made: ``spec.bootstrap`` is there on either, be it empty."""
    return any(
        isinstance(spec, Mapping) and isinstance(spec.get("bootstrap"), Mapping)
        for spec in _both(cluster_spec, machine_spec)
    )


def effective(cluster_spec: object, machine_spec: object) -> Settings:
    """The specs of Cluster and Machine as they are stored; what the Machine says goes first. Never raises."""
    merged: dict[str, Any] = {}
    for spec in _both(cluster_spec, machine_spec):
        given = mapping(mapping(spec).get("bootstrap"))
        merged |= {name: value for name, value in given.items() if value not in (None, "")}
    ignored = merged.get("ignorePreflightErrors")
    return Settings(
        endpoint=_text(merged.get("endpoint")),
        mirror=_text(merged.get("mirror")),
        architecture=_text(merged.get("architecture")) or _USUAL,
        ignore_preflight_errors=tuple(each for each in ignored if isinstance(each, str))
        if isinstance(ignored, list)
        else (),
        join_timeout=_duration(merged.get("joinTimeout")) or JOIN_TIMEOUT,
    )


def _both(cluster_spec: object, machine_spec: object) -> tuple[object, object]:
    return cluster_spec, machine_spec


def _duration(value: object) -> timedelta | None:
    try:
        return parse_duration(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
