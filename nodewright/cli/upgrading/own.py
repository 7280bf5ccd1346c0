"""Whether this version of Nodewright may be installed over what a cluster has: decided from definitions alone.

An API server takes a CustomResourceDefinition only if it lists every version that objects may still be stored in
(``status.storedVersions``); so those have to be written anew first, in a version that both know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from controllers.kernel.refs import mapping, objects
from controllers.kernel.version import parse
from nodewright.cli.installation.everything import is_others

_VERSION = re.compile(r"v(\d{1,4})(?:(alpha|beta)(\d{1,4}))?", re.ASCII)


class Verdict(StrEnum):
    """What comes of one definition."""

    CREATED = "Created"
    SAFE = "Safe"
    REWRITTEN_BEFORE = "RewrittenBefore"
    """Its objects are stored anew first; else the API server would refuse the definition."""
    REWRITTEN_AFTER = "RewrittenAfter"
    """Some objects may be stored in an older version that is still served: they are stored anew in the end."""
    LEFT = "Left"
    """Somebody else has installed it; it stays as it is."""
    REFUSED = "Refused"


@dataclass(frozen=True, slots=True)
class Definition:
    """``stored``: versions in which objects may be stored; ``storage``: in which this version stores them."""

    name: str
    verdict: Verdict
    why: str
    stored: tuple[str, ...] = ()
    served: tuple[str, ...] = ()
    storage: str = ""


@dataclass(frozen=True, slots=True)
class Controllers:
    """A process that serves objects: by its Lease. ``version`` "": it does not say."""

    holder: str
    version: str


def definition_of(shipped: Mapping[str, Any], live: Mapping[str, Any] | None) -> Definition:
    """``live`` None: the cluster does not have it."""
    name = str(shipped["metadata"]["name"])
    ours = _versions(shipped)
    storage = next(each for each, version in ours.items() if version.get("storage"))
    if live is None:
        return Definition(name, Verdict.CREATED, "it is not there yet", storage=storage)
    there = _versions(live)
    stored = tuple(map(str, mapping(live.get("status")).get("storedVersions") or ()))
    served = tuple(each for each, version in there.items() if version.get("served"))

    def found(verdict: Verdict, why: str) -> Definition:
        return Definition(name, verdict, why, stored, served, storage)

    if is_others(shipped, live):
        return found(Verdict.LEFT, "somebody else has installed it")
    newer = [each for each in (*served, *stored) if each not in ours and _rank(each) > _rank(storage)]
    lost = [each for each in stored if each not in ours]
    if newer:
        return found(
            Verdict.REFUSED, f"it has {', '.join(dict.fromkeys(newer))}, which this version does not know: it is newer"
        )
    if lost and storage not in served:
        text = f"objects may be stored as {', '.join(lost)}, and {storage} is not served there to store them anew"
        return found(Verdict.REFUSED, f"{text}: install a version of Nodewright in between that has both")
    if lost:
        return found(Verdict.REWRITTEN_BEFORE, f"objects may be stored as {', '.join(lost)}, which this version drops")
    older = [each for each in stored if each != storage]
    if older:
        return found(Verdict.REWRITTEN_AFTER, f"objects may be stored as {', '.join(older)} yet")
    return found(Verdict.SAFE, f"all objects are stored as {storage}")


def hindrances(definitions: Iterable[Definition], controllers: Sequence[Controllers], version: str) -> list[str]:
    """Why this ``version`` of the program may not be installed, each a sentence; empty if it may."""
    found = [f"{each.name}: {each.why}" for each in definitions if each.verdict is Verdict.REFUSED]
    ours = parse(version)
    for each in controllers:
        theirs = parse(each.version)
        if ours is not None and theirs is not None and theirs > ours:
            found.append(f"controllers of version {each.version} run there ({each.holder}), and this is {version}")
    return found


def _rank(version: str) -> tuple[int, int, int]:
    """Orders v1alpha1 < v1beta1 < v1 < v2alpha1 (Kubernetes: version priority); what is no version comes first."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (0, 0, 0)
    return int(found[1]), {"alpha": 0, "beta": 1, None: 2}[found[2]], int(found[3] or 0)


def _versions(definition: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(each.get("name")): each for each in objects(mapping(definition.get("spec")).get("versions"))}
