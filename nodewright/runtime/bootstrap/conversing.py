"""Carry on a conversation of ``controllers.bootstrap.credentials`` with the API servers that it speaks of."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from controllers.bootstrap.calls import Call, Change, Drop, Get, Place, Post
from controllers.kernel.refs import Obj
from nodewright.runtime.kube.errors import ApiError, NoAnswer
from nodewright.runtime.writes.executor import Writer

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Sides:
    """The API server of the Machines, and that of their Nodes; often the same. ``nodes`` None: out of reach."""

    machines: Writer
    nodes: Writer | None

    def of(self, place: Place) -> Writer:
        """Raises NoAnswer where the second is out of reach."""
        found = self.machines if place == "machines" else self.nodes
        if found is None:
            raise NoAnswer("the cluster can't be reached", sent=False)
        return found


async def converse(conversation: Generator[Call, Obj | None, _Result], sides: Sides) -> _Result:
    """What it came to. Raises KubeError of the first call that failed."""
    answer: Obj | None = None
    while True:
        try:
            call = conversation.send(answer)
        except StopIteration as end:
            result: _Result = end.value
            return result
        answer = await _answer(call, sides.of(call.place))


async def _answer(call: Call, writer: Writer) -> Obj | None:
    try:
        match call:
            case Get(key=key, kind=kind):
                return await writer.get(kind, key)
            case Post(body=body, kind=kind):
                return await writer.create(kind, body)
            case Change(target=target, patch=patch, resource_version=version):
                return await writer.merge_patch(target, patch, resource_version=version)
            case Drop(target=target):
                await writer.delete(target)
                return None
    except ApiError as error:
        if isinstance(call, Post) and error.already_exists:
            return None
        if not isinstance(call, Post) and (error.not_found or error.conflict):
            return None
        raise
