"""An object as it is to be at the target: the same but for what a server fills in and UIDs of what moves with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from api.names import MOVING_ANNOTATION as MOVING
from controllers.kernel.refs import Obj, mapping, objects

UIDs = Mapping[str, str]
"""UID at the source to UID at the target."""

_SERVERS_OWN = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_REWRITTEN = ("labels", "annotations")
"""Annotations of ours that hold UIDs. A user's spec and a Secret's data hold none of ours."""


def body_of(obj: Obj, uids: UIDs) -> dict[str, Any]:
    """What is created.

    Owner references to what does not move are left out: a garbage collector at the target would take them for those of
    an object that is gone, and delete this one.
    """
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _SERVERS_OWN}
    for name in _REWRITTEN:
        if name in metadata:
            metadata[name] = rewritten(metadata[name], uids)
    owners = [
        {**reference, "uid": uids[str(reference.get("uid"))]}
        for reference in objects(metadata.pop("ownerReferences", None))
        if reference.get("uid") in uids
    ]
    if owners:
        metadata["ownerReferences"] = owners
    return {name: value for name, value in obj.items() if name not in {"metadata", "status"}} | {"metadata": metadata}


def status_to_be(obj: Obj, uids: UIDs) -> Any:
    """What is written through the status subresource; None for an object without a status."""
    return rewritten(obj["status"], uids) if "status" in obj else None


def left_out(obj: Obj, uids: UIDs) -> list[str]:
    """Owners that stay behind, for the report: ``KIND NAME``."""
    owners = objects(obj["metadata"].get("ownerReferences"))
    return [f"{each.get('kind')} {each.get('name')}" for each in owners if each.get("uid") not in uids]


def rewritten(value: Any, uids: UIDs) -> Any:
    """Each UID of ``uids`` within any text of ``value``, keys excepted, replaced at once: no result is read again."""
    if not uids:
        return value
    pattern = re.compile("|".join(re.escape(uid) for uid in sorted(uids, key=len, reverse=True)))
    return _rewritten(value, pattern, uids)


def differences(source: Obj, target: Obj, uids: UIDs) -> list[str]:
    """Paths at which ``target`` is not what ``source`` has to become; empty: nothing was lost on the way.

    The mark of the move and the conditions Paused, which controllers add for it on both sides, don't count.
    """
    wanted = {**body_of(source, uids), "status": status_to_be(source, uids)}
    metadata = {name: value for name, value in target["metadata"].items() if name not in _SERVERS_OWN}
    found = {**target, "metadata": metadata, "status": target.get("status")}
    return sorted(_differing(_without_pause(wanted), _without_pause(found), ""))


def _without_pause(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata, status = dict(obj["metadata"]), obj.get("status")
    annotations = {name: value for name, value in mapping(metadata.get("annotations")).items() if name != MOVING}
    metadata["annotations"] = annotations
    if not isinstance(status, Mapping):
        return {**obj, "metadata": metadata, "status": None}
    conditions = [each for each in objects(status.get("conditions")) if each.get("type") != "Paused"]
    kept = {name: value for name, value in status.items() if name != "conditions"}
    return {
        **obj,
        "metadata": metadata,
        "status": {**kept, **({"conditions": conditions} if conditions else {})} or None,
    }


def _rewritten(value: Any, pattern: re.Pattern[str], uids: UIDs) -> Any:
    if isinstance(value, str):
        return pattern.sub(lambda match: uids[match[0]], value)
    if isinstance(value, Mapping):
        return {name: _rewritten(below, pattern, uids) for name, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rewritten(below, pattern, uids) for below in value]
    return value


def _differing(wanted: Any, found: Any, path: str) -> Iterator[str]:
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for name in wanted.keys() | found.keys():
            yield from _differing(wanted.get(name), found.get(name), f"{path}.{name}" if path else str(name))
    elif wanted != found:
        yield path
