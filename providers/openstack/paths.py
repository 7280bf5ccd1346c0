"""Paths with an id in them. Ids come from configs and from the cloud: each has to be one part of a path."""

from __future__ import annotations

import re
from typing import Any

from providers.base.errors import ErrorClass, ProviderError

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,254}\Z")


def one_of(collection: str, identity: Any, rest: str = "") -> str:
    """``/collection/identity/rest``. Raises ProviderError if the id can't be one."""
    if not isinstance(identity, str) or not _ID.match(identity):
        shown = f"{str(identity)[:60]!a}"
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"{shown} is not an id of OpenStack ({collection})")
    return f"/{collection}/{identity}{f'/{rest}' if rest else ''}"
