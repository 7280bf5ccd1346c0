"""Which kinds this version serves, by its own CRDs."""

from __future__ import annotations

from functools import cache
from typing import Any

from nodewright.crds import load_crds


@cache
def _definitions() -> tuple[dict[str, Any], ...]:
    return tuple(load_crds())


@cache
def schema_of(group: str, version: str, kind: str) -> dict[str, Any] | None:
    """The structural schema (openAPIV3Schema) of one of our kinds in one version; None if it is not served."""
    for definition in _definitions():
        spec = definition["spec"]
        if spec["group"] == group and spec["names"]["kind"] == kind:
            for served in spec["versions"]:
                if served["name"] == version:
                    schema: dict[str, Any] = served["schema"]["openAPIV3Schema"]
                    return schema
    return None


@cache
def kinds(group: str) -> dict[str, tuple[str, ...]]:
    """Our kinds in ``group`` with their versions."""
    return {
        d["spec"]["names"]["kind"]: tuple(v["name"] for v in d["spec"]["versions"])
        for d in _definitions()
        if d["spec"]["group"] == group
    }
