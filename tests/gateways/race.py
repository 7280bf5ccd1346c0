"""Something else writes between a gateway's look and its write: the moment that no cache can show."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from controllers.kernel.refs import Kind, Ref
from nodewright.runtime.kube.client import KubeClient

Meanwhile = Callable[[Ref], Awaitable[object]]


class Race:
    """``meanwhile`` runs right before the first patch of an object of ``kind`` by the client named ``name``.

    ``lost`` becomes the object's Ref then; None: no such patch was sent.
    """

    def __init__(self, patched: pytest.MonkeyPatch, name: str, kind: Kind, meanwhile: Meanwhile) -> None:
        self.lost: Ref | None = None
        usual = KubeClient.merge_patch

        async def merge_patch(
            client: KubeClient, target: Ref, patch: Mapping[str, Any], **named: Any
        ) -> dict[str, Any]:
            if self.lost is None and client.controller == name and target.kind == kind:
                self.lost = target
                await meanwhile(target)
            return await usual(client, target, patch, **named)

        patched.setattr(KubeClient, "merge_patch", merge_patch)
