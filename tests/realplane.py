"""Where the tests on a real control plane get it from, and what they say where its parts are missing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from hack.binaries import TOOLS
from hack.realplane import CONTROLLER_MANAGER, SERVERS, missing

WHOLE = (*SERVERS, CONTROLLER_MANAGER)
"""What a plane needs whose objects go with their owners and namespaces."""
AS_EMBEDDED = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "disruption-controller",
)
"""The controllers of Kubernetes whose work the embedded plane does itself: with these the two are comparable."""
LIKE_EMBEDDED = ("--disable-admission-plugins=ServiceAccount",)
"""The embedded plane mounts no tokens into Pods, since nobody runs them."""
REAL = [pytest.mark.realplane, pytest.mark.slow]
"""The marks of what `make e2e` runs; the few of `make test` are marked ``realplane`` alone."""
PLANES = ("embedded", pytest.param("real", marks=REAL))
"""The parameters of a fixture that serves one plane after the other."""


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"true", "1"}


def left_out() -> str:
    """Why no test on a real plane is run at all, and what to install, in one line; "" if they are, or must be."""
    return "" if in_ci() else missing(SERVERS)


def require(names: Sequence[str] = WHOLE, tools: Path = TOOLS) -> None:
    """Skip the test if a part is missing; in CI (``CI=true``) that fails it."""
    if what := missing(names, tools):
        lacking(what)


def lacking(what: str) -> NoReturn:
    """Skip the test, since the machine has not what it needs; ``what`` says how to get it. In CI that fails it."""
    if in_ci():
        pytest.fail(what, pytrace=False)
    pytest.skip(what)
