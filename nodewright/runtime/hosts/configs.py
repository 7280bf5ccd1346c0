"""What the registry says of configs: their scopes and their problems, remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson
import structlog

from providers.base.contract import Problem
from providers.base.registry import Registry, ScopeKey

_log = structlog.get_logger("nodewright.hosts")

_MOST_CONFIGS = 4096
"""Distinct configs whose check is remembered; most Machines share one with many others."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What the registry says of one config. ``scope`` is None if it has none that can be known."""

    scope: ScopeKey | None
    problems: tuple[Problem, ...]


class Configs:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._checked: dict[tuple[str, bytes], Checked] = {}
        """By namespace and digest of the config."""

    def check(self, config: Mapping[str, Any], namespace: str) -> Checked:
        """Scope and problems of a config; remembered, since a check by JSON Schema costs milliseconds."""
        try:
            digest = sha256(orjson.dumps(config, option=orjson.OPT_SORT_KEYS)).digest()
        except (TypeError, orjson.JSONEncodeError):
            return Checked(None, (Problem("", "is not plain JSON"),))
        checked = self._checked.get((namespace, digest))
        if checked is None:
            if len(self._checked) >= _MOST_CONFIGS:
                self._checked.clear()
            checked = self._checked[namespace, digest] = self._check_anew(config, namespace)
        return checked

    def _check_anew(self, config: Mapping[str, Any], namespace: str) -> Checked:
        problems = self._registry.problems(config)
        try:
            scope = self._registry.scope(config, namespace)
        except Exception as error:  # a third party's scope_of, given a config that may be malformed
            scope = None
            if not problems:
                _log.warning("scope of a config is unknown", error=type(error).__name__)
                problems = (Problem("", f"its scope is unknown: {error}"),)
        return Checked(scope, problems)
