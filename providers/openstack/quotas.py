"""How much of the project's quotas of Nova, Neutron and Cinder is used; no right is needed that a member of it lacks.

Neutron's ``quota_details`` and Cinder are optional parts of a cloud: what either can't tell now is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from providers.base.capabilities import Quota
from providers.base.errors import ProviderError
from providers.openstack.paths import one_of
from providers.openstack.session import COMPUTE, NETWORK, VOLUME, Requests

_Names = tuple[tuple[str, str, str, str], ...]
_COMPUTE: Final[_Names] = (
    ("instances", "totalInstancesUsed", "maxTotalInstances", ""),
    ("cores", "totalCoresUsed", "maxTotalCores", ""),
    ("ram", "totalRAMUsed", "maxTotalRAMSize", "MiB"),
)
"""The cloud's words for a resource, and the fields of what is used and of the limit. A limit of -1 is none."""
_VOLUME: Final[_Names] = (
    ("volumes", "totalVolumesUsed", "maxTotalVolumes", ""),
    ("gigabytes", "totalGigabytesUsed", "maxTotalVolumeGigabytes", "GiB"),
)
_NETWORK: Final = (("ports", "port"), ("floatingips", "floatingip"), ("trunks", "trunk"))
"""Of what hosts are made of: the plural, and the name of its quota."""


async def quotas_of(requests: Requests) -> tuple[Quota, ...]:
    """What the cloud answers in another form is left out. Raises ProviderError if Nova does not answer."""
    found = await asyncio.gather(
        _limits(requests, COMPUTE, _COMPUTE),
        _of_network(requests),
        _limits(requests, VOLUME, _VOLUME),
        return_exceptions=True,
    )
    for index, answer in enumerate(found):
        if isinstance(answer, BaseException) and (index == 0 or not isinstance(answer, ProviderError)):
            raise answer
    return tuple(quota for answer in found if not isinstance(answer, BaseException) for quota in answer)


async def _limits(requests: Requests, service: str, names: _Names) -> list[Quota]:
    """Nova and Cinder tell it alike."""
    absolute = _part(_part(await requests.get(service, "/limits"), "limits"), "absolute")
    counts = ((name, absolute.get(used), absolute.get(limit), unit) for name, used, limit, unit in names)
    return list(_counted(counts))


async def _of_network(requests: Requests) -> list[Quota]:
    """Neutron wants the project by its id, and says itself which one the login is for."""
    project = _part(await requests.get(NETWORK, "/quotas/tenant"), "tenant").get("tenant_id")
    answer = await requests.get(NETWORK, one_of("quotas", project, "details"))
    details = _part(answer, "quota")
    parts = ((plural, _part(details, name)) for plural, name in _NETWORK)
    return list(_counted((plural, part.get("used"), part.get("limit"), "") for plural, part in parts))


def _counted(counts: Iterable[tuple[str, object, object, str]]) -> Iterable[Quota]:
    for resource, used_in, limit_in, unit in counts:
        used, limit = _count(used_in), _count(limit_in)
        if used is not None and limit is not None:
            yield Quota(resource, used, limit, unit)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}
