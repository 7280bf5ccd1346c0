"""Bootstrap data in the simulation: the running program's conversations, carried on with the plane call by call.

A crash drops this object; what was made stays on the plane, and the next life finds it there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from random import Random
from typing import Any

from api import names
from controllers.bootstrap.calls import Call, Change, Drop, Get, Post, Refused
from controllers.bootstrap.credentials import Removal, ensure, new_secret, remove, token_of
from controllers.kernel.actions import BootstrapAction, Create, Delete, EnsureBootstrap, Patch
from controllers.kernel.bootstrapping import (
    UNKNOWN,
    BootstrapData,
    BootstrapNeed,
    BootstrapReads,
    DataAbsent,
    JoinTarget,
)
from controllers.kernel.refs import SECRET, Obj, labels_of
from nodewright.apiserver.values import ApiError
from nodewright.sim.clock import VirtualClock
from nodewright.sim.plane import Plane

_CA = """\
-----BEGIN CERTIFICATE-----
MIIBPDCB5KADAgECAgEBMAoGCCqGSM49BAMCMBUxEzARBgNVBAMMCmt1YmVybmV0
ZXMwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBUxEzARBgNVBAMM
Cmt1YmVybmV0ZXMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARciIiKqjHJVZVz
QdqWgKXTebwDVh1Ng+ejfXyVuDk4pCqHpTG7u/t5NYp+bBO/Ks5d4IxUP9a99uAy
sixvNQQ0oyMwITAPBgNVHRMBAf8EBTADAQH/MA4GA1UdDwEB/wQEAwICpDAKBggq
hkjOPQQDAgNHADBEAiAmRKf6HY1xKKOWMjAVvqDBuwgK7rQV0v/w3cBAMAc7zgIg
VVq8r6kKtRjh2suVdFVVNJCS1Kj7R8PZoq+hqZkqtC4=
-----END CERTIFICATE-----
"""
"""Of nobody: a certificate of a CA that is valid for long, since what hosts could not trust is refused."""
TARGET = JoinTarget("https://10.0.0.1:6443", _CA, "1.34.2")
MARK = "sim"


class Bootstraps:
    """``before_call`` is called before each call: the process may die there."""

    def __init__(self, plane: Plane, clock: VirtualClock, random: Random, before_call: Callable[[str], None]) -> None:
        self._plane = plane
        self._clock = clock
        self._random = random
        self._before_call = before_call
        self._data: dict[str, BootstrapData] = {}

    def look(self, need: BootstrapNeed) -> BootstrapReads:
        """What is not known is listed, as a sweep does."""
        uid = need.machine.uid
        if uid not in self._data and self._plane.down_since is None:
            mine = (each for each in tokens(self._plane) if labels_of(each).get(names.TOKEN_MACHINE_UID_LABEL) == uid)
            token = next(mine, None)
            self._data[uid] = token_of(token) if token is not None else DataAbsent()
        return BootstrapReads(TARGET, self._data.get(uid, UNKNOWN))

    def perform(self, action: BootstrapAction) -> None:
        """Raises ApiError or AnswerLost of the first call that failed, and what ``before_call`` raises."""
        conversation: Generator[Call, Obj | None, Any]
        if isinstance(action, EnsureBootstrap):
            uid = action.order.machine.uid
            conversation = ensure(action.order, MARK, lambda: new_secret(self._random.randrange), self._clock())
        else:
            uid = action.machine.uid
            conversation = remove(Removal(action.machine, action.secret, action.ids, action.founds))
        self._data.pop(uid, None)
        result = self._converse(conversation, action.why)
        if isinstance(result, Refused):
            raise ApiError(409, result.reason, result.message)
        self._data[uid] = result

    def _converse(self, conversation: Generator[Call, Obj | None, Any], why: str) -> Any:
        answer: Obj | None = None
        while True:
            try:
                call = conversation.send(answer)
            except StopIteration as end:
                return end.value
            self._before_call(
                f"{type(call).__name__} of \N{LEFT DOUBLE QUOTATION MARK}{why}\N{RIGHT DOUBLE QUOTATION MARK}"
            )
            answer = self._answer(call, why)

    def _answer(self, call: Call, why: str) -> Obj | None:
        match call:
            case Get(key=key):
                return self._plane.get(SECRET, key)
            case Post(body=body):
                return self._written(Create(SECRET, body, why))
            case Change(target=target, patch=patch, resource_version=version):
                return self._written(Patch(target, patch, why, resource_version=version))
            case Drop(target=target):
                self._written(Delete(target, why))
                return None

    def _written(self, action: Create | Patch | Delete) -> Obj | None:
        try:
            return self._plane.perform(action)
        except ApiError as error:
            if error.code in {404, 409}:
                return None
            raise


def tokens(plane: Plane) -> Iterator[Obj]:
    """All bootstrap tokens."""
    return (secret for secret in plane.list(SECRET) if secret.get("type") == names.TOKEN_SECRET_TYPE)


def bootstrap_secrets(plane: Plane) -> Iterator[Obj]:
    """All Secrets with bootstrap data."""
    return (secret for secret in plane.list(SECRET) if secret.get("type") == names.BOOTSTRAP_SECRET_TYPE)
