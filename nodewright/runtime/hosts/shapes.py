"""What hosts would be like that do not exist: asked of their provider once, and remembered for a while."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.secrets import without_secrets
from controllers.kernel.view import ShapeRead, ShapeUnknown
from nodewright.runtime.hosts.answers import Answers
from nodewright.runtime.hosts.scope import Scope
from providers.base.contract import Shape
from providers.base.errors import ProviderError

GOOD_FOR, BAD_FOR = 3600.0, 60.0
"""Seconds until a shape is asked for again, and an answer that was none."""
ASKED = ShapeUnknown("its provider has yet to say", asked=True)


class Shapes(Answers[ShapeRead]):
    call = "shape"

    async def _answer(self, config: Mapping[str, Any], scope: Scope) -> ShapeRead:
        return await scope.shape(config)

    def _failed(self, error: ProviderError) -> ShapeRead:
        return ShapeUnknown(without_secrets(str(error)))

    def _good_for(self, answer: ShapeRead) -> float:
        return GOOD_FOR if isinstance(answer, Shape) else BAD_FOR
