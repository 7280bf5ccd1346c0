"""Versions of Kubernetes and of what runs beside it."""

from __future__ import annotations

import re
from typing import Final

Version = tuple[int, int, int]
_VERSION: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[-+][0-9A-Za-z.+-]{0,63})?", re.ASCII)


def parse(version: str) -> Version | None:
    """``v1.36.3``, ``1.36`` or ``1.30.4+k3s1``; None if it is no version."""
    found = _VERSION.fullmatch(version) if isinstance(version, str) and len(version) <= 128 else None
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def dotted(version: Version) -> str:
    """(1, 36, 3) is ``1.36.3``."""
    return ".".join(str(part) for part in version)
