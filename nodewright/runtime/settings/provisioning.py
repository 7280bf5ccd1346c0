"""Provisioning classes that other packages bring, found by entry point."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points

import structlog

from controllers.provisioningrequest.classes import ENTRY_POINTS, ProvisioningClass, by_name

_log = structlog.get_logger("nodewright.provisioning")


def installed_classes() -> Mapping[str, ProvisioningClass]:
    """By the names that requests use. An entry point is a class or a callable that makes one, without arguments; one
    that can't be loaded is logged and harms nobody else.
    """
    found: list[ProvisioningClass] = []
    for point in entry_points(group=ENTRY_POINTS):
        try:
            loaded = point.load()()
        except Exception as error:
            _log.warning("a provisioning class can't be loaded", entry_point=point.name, error=str(error))
            continue
        if isinstance(loaded, ProvisioningClass):
            found.append(loaded)
        else:
            _log.warning("no provisioning class: it lacks names or decide", entry_point=point.name)
    return by_name(found)
