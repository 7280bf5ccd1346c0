"""The bodies of requests: what the server has to check before it acts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from controllers.kernel.refs import Ref
from nodewright.runtime.kube.errors import InvalidRequestError


def encoded(body: object) -> bytes:
    """``body`` as JSON. Raises InvalidRequestError for a text that is no Unicode: what clouds say may hold one."""
    try:
        return orjson.dumps(body)
    except TypeError:
        raise InvalidRequestError("the body can't be written as JSON: a text in it is no Unicode") from None


def delete_options(target: Ref, grace_seconds: int | None, resource_version: str = "") -> dict[str, Any]:
    """Whom exactly, and within which time; what is not said is left to the server."""
    guards = _guards(target.uid, resource_version)
    options: dict[str, Any] = {"preconditions": guards} if guards else {}
    return options if grace_seconds is None else {**options, "gracePeriodSeconds": grace_seconds}


def guarded(patch: Mapping[str, Any], uid: str, resource_version: str) -> Mapping[str, Any]:
    """``patch``, refused by the server if the object has another uid or resourceVersion ("": any)."""
    guards = _guards(uid, resource_version)
    if not guards:
        return patch
    return {**patch, "metadata": {**(patch.get("metadata") or {}), **guards}}


def _guards(uid: str, resource_version: str) -> dict[str, str]:
    return {name: value for name, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
