"""Bootstrap data on paper: what is asked for is there at once. Nothing is known of where hosts would join."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from controllers.kernel.actions import BootstrapAction, EnsureBootstrap
from controllers.kernel.bootstrapping import (
    TOKEN_LIFE,
    BootstrapData,
    BootstrapNeed,
    BootstrapReads,
    DataAbsent,
    DataPresent,
    JoinTarget,
)

SOMEWHERE = JoinTarget("https://api.invalid:6443", "-----BEGIN CERTIFICATE-----", "")
"""A dry run asks no API server where it is, nor of which version."""


class AssumedBootstraps:
    """``Bootstraps`` of a dry run."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._data: dict[str, BootstrapData] = {}

    def look(self, need: BootstrapNeed) -> BootstrapReads:
        return BootstrapReads(SOMEWHERE, self._data.get(need.machine.uid, DataAbsent()))

    def perform(self, action: BootstrapAction) -> bool:
        """Whether that changed anything."""
        if isinstance(action, EnsureBootstrap):
            order = action.order
            present = DataPresent(order.ids[0], self._now() + TOKEN_LIFE, order.digest)
            uid = order.machine.uid
            data: BootstrapData = present
        else:
            uid, data = action.machine.uid, DataAbsent()
        changed = self._data.get(uid) != data
        self._data[uid] = data
        return changed
