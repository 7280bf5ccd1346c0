"""How much of the project's quota of Nova is used; ``GET /limits`` needs no right that a member of it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from providers.base.contract import Quota
from providers.openstack.session import COMPUTE, Requests

_NAMES: Final = (
    ("instances", "totalInstancesUsed", "maxTotalInstances", ""),
    ("cores", "totalCoresUsed", "maxTotalCores", ""),
    ("ram", "totalRAMUsed", "maxTotalRAMSize", "MiB"),
)
"""Nova's words for a resource, and the fields of what is used and of the limit. A limit of -1 is none."""


async def quotas_of(requests: Requests) -> tuple[Quota, ...]:
    """What the cloud answers in another form is left out. Raises ProviderError."""
    answer = await requests.get(COMPUTE, "/limits")
    absolute = _part(_part(answer, "limits"), "absolute")
    found = []
    for resource, used_in, limit_in, unit in _NAMES:
        used, limit = _count(absolute.get(used_in)), _count(absolute.get(limit_in))
        if used is not None and limit is not None:
            found.append(Quota(resource, used, limit, unit))
    return tuple(found)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}
