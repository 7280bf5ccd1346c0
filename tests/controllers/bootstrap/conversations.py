"""Two API servers in a dict, with which conversations are carried on call by call, and may be cut off anywhere."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from types import MappingProxyType
from typing import Any, TypeVar

from controllers.bootstrap.calls import Call, Change, Drop, Get, Place, Post
from controllers.bootstrap.credentials import Removal, ensure, remove, secret_key, token_ids
from controllers.kernel.bootstrapping import BootstrapOrder
from controllers.kernel.refs import MACHINE, Key, Obj, Ref, key_of
from tests.builders.clock import NOW

MACHINE_REF = Ref(MACHINE, Key("default", "m-1"), "uid-of-m-1")
MARK = "management-uid"
_T = TypeVar("_T")


class Cut(Exception):
    """The process died here."""


def order(machine: Ref = MACHINE_REF, digest: str = "one", text: str = "join with ") -> BootstrapOrder:
    return BootstrapOrder(
        machine=machine,
        secret=secret_key(machine.key),
        ids=token_ids(machine.uid),
        format="cloud-config",
        digest=digest,
        render=lambda token, contents=MappingProxyType({}), _founded=None: (
            f"{text}{token}".encode() + b"".join(contents.values())
        ),
        cluster_name="prod",
    )


@dataclass
class Servers:
    """``cut_before``: number of the call before which the process dies, from 0; None: never."""

    objects: dict[tuple[Place, Key], dict[str, Any]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    cut_before: int | None = None
    _numbers: Any = field(default_factory=lambda: count(1))

    def put(self, place: Place, body: Mapping[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        meta = {**body["metadata"], "uid": f"made-{number}", "resourceVersion": str(number)}
        obj = {**body, "metadata": meta}
        self.objects[place, key_of(obj)] = obj
        return obj

    def get(self, place: Place, key: Key) -> dict[str, Any] | None:
        return self.objects.get((place, key))

    def run(self, conversation: Generator[Call, Obj | None, _T]) -> _T:
        answer: Obj | None = None
        while True:
            try:
                call = conversation.send(answer)
            except StopIteration as end:
                result: _T = end.value
                return result
            if self.cut_before is not None and len(self.calls) >= self.cut_before:
                raise Cut
            self.calls.append(call)
            answer = self.answer(call)

    def answer(self, call: Call) -> Obj | None:
        match call:
            case Get(place=place, key=key):
                return self.get(place, key)
            case Post(place=place, body=body):
                return None if self.get(place, key_of(body)) is not None else self.put(place, body)
            case Change(place, target, patch, version):
                found = self.get(place, target.key)
                if found is None or found["metadata"]["resourceVersion"] != version:
                    return None
                said = patch.get("metadata", {}).get("annotations", {})
                kept = {**found["metadata"].get("annotations", {}), **said}
                meta = {
                    **found["metadata"],
                    "annotations": {name: text for name, text in kept.items() if text is not None},
                }
                data = {**found["data"], **patch.get("data", {})}
                return self.put(place, {**found, "metadata": meta, "data": data})
            case Drop(place, target):
                found = self.get(place, target.key)
                if found is not None and found["metadata"]["uid"] == target.uid:
                    del self.objects[place, target.key]
                return None


def every_conversation(servers: Servers) -> None:
    """Make, change, renew and remove."""
    now = NOW
    for wanted in (order(), order(digest="two")):
        servers.run(ensure(wanted, MARK, lambda: "0123456789abcdef", now))
        now += timedelta(minutes=10)
    servers.run(remove(Removal(MACHINE_REF, secret_key(MACHINE_REF.key), token_ids(MACHINE_REF.uid))))
