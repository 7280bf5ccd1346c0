"""The one list of rooms. They are imported when they are asked for, so that other commands don't pay for them."""

from __future__ import annotations

from collections.abc import Iterable

from controllers.kernel.joining import NO_LIMITS, Limits
from controllers.kernel.refs import Kind
from nodewright.runtime.options import Rooms


def rooms(hosting_node: str = "", limits: Limits = NO_LIMITS) -> Rooms:
    """Every controller that runs unless others are named. ``hosting_node`` and ``limits``: see ``MachineRoom``."""
    from controllers.cluster.room import ROOM as CLUSTER  # noqa: PLC0415
    from controllers.machine.room import MachineRoom  # noqa: PLC0415
    from controllers.machineclass.room import ROOM as MACHINE_CLASS  # noqa: PLC0415
    from controllers.machinedeployment.room import ROOM as MACHINE_DEPLOYMENT  # noqa: PLC0415
    from controllers.machinehealthcheck.room import ROOM as MACHINE_HEALTH_CHECK  # noqa: PLC0415
    from controllers.machineset.room import ROOM as MACHINE_SET  # noqa: PLC0415

    return (
        CLUSTER,
        MACHINE_DEPLOYMENT,
        MACHINE_SET,
        MachineRoom(hosting_node, limits),
        MACHINE_HEALTH_CHECK,
        MACHINE_CLASS,
    )


def on_request() -> Rooms:
    """Controllers that only run when they are named: they need rights that a cluster may not want to give."""
    from controllers.certificatesigningrequest.room import ROOM as REQUESTS  # noqa: PLC0415

    return (REQUESTS,)


def kinds_of(wanted: Rooms) -> tuple[Kind, ...]:
    """What has to be watched for ``wanted`` rooms, each kind once."""
    kinds: Iterable[Kind] = (
        kind for room in wanted for kind in (room.kind, *room.reads, *(wake.kind for wake in room.wakes))
    )
    return tuple(dict.fromkeys(kinds))
