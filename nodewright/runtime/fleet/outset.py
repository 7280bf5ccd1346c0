"""What a process says once it has read everything and leads, before its first reconcile: what it will not be able to
do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from controllers.kernel.conditions import counted
from controllers.kernel.provider_config import CONFIG_FIELDS
from controllers.kernel.refs import MACHINE, MACHINE_SET
from nodewright.runtime.cache.cache import Cache
from providers.base.registry import Registry

_SIMULATED = "simulated://"


def missing_providers(cache: Cache, registry: Registry) -> list[str]:
    """One line for each kind of configuration that no installed provider has, with how many objects ask for it.

    Only configurations that stand in the objects themselves, as objects: reading text of others takes its time, and a
    Machine's own condition tells of it.
    """
    specs = [
        *(_below(machine, "spec") for machine in cache.stores.get(MACHINE, ())),
        *(_below(each, "spec", "template", "spec") for each in cache.stores.get(MACHINE_SET, ())),
    ]
    asked: Counter[tuple[str, str]] = Counter()
    for spec in specs:
        for name in CONFIG_FIELDS:
            config = _below(spec, name, "value")
            if isinstance(config, Mapping):
                asked[str(config.get("apiVersion") or ""), str(config.get("kind") or "")] += 1
    return list(_unknown(asked, registry))


def _unknown(asked: Counter[tuple[str, str]], registry: Registry) -> Iterator[str]:
    for (api_version, kind), times in sorted(asked.items()):
        if registry.find(api_version, kind) is None:
            yield (
                f"no installed provider has {kind or '?'} of {api_version or '?'}, which {counted(times, 'object')} "
                f"ask for: install its package beside this program; nothing of theirs is made, changed or deleted"
            )


def lost_simulation(cache: Cache) -> str:
    """For a process that keeps simulated hosts in memory: how many Machines have hosts that only another one knew."""
    given = (_below(machine, "spec", "providerID") for machine in cache.stores.get(MACHINE, ()))
    ours = sum(isinstance(each, str) and each.startswith(_SIMULATED) for each in given)
    if not ours:
        return ""
    return (
        f"{counted(ours, 'Machine')} with simulated hosts of an earlier process, which kept them in memory or in a "
        "folder: this process knows none of them and will call them HostMissing; stop it, and give it that folder with "
        "--simulated-cloud"
    )


def _below(obj: object, *path: str) -> object:
    """What stands there; None where something else than an object is on the way."""
    for name in path:
        obj = obj.get(name) if isinstance(obj, Mapping) else None
    return obj
