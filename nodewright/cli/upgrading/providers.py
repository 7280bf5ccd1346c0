"""Providers are asked whether their hosts get another version of Kubernetes in place: by config, without any call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.kernel.provider_config import Unresolved, resolve
from controllers.kernel.view import View
from nodewright.cli.upgrading.kubernetes import Answer, AskProvider
from providers.base.registry import Registry


def answers_by(view: View, registry: Registry) -> AskProvider:
    """MachineClasses are read from ``view``."""

    def ask(spec: Mapping[str, Any], namespace: str) -> Answer:
        found = resolve(spec, namespace, view)
        if isinstance(found, Unresolved):
            return Answer(None, str(found.problem.message))
        why = registry.in_place_refusal(found.config)
        return Answer() if why is None else Answer(not why, why)

    return ask
