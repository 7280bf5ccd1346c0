"""The end of a Session: what is under way is answered, then its threads and connections go."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from providers.base.errors import ErrorClass, ProviderError
from providers.openstack.login import Login
from providers.openstack.session import COMPUTE, Session
from tests.runtime.stub_server import until

AT_ONCE = 3


class SlowCloud:
    """Answers once ``answers`` is set; ``story`` is what happened, in order."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.story: list[str] = []
        self.asked = 0
        self.compute = self
        self.session = SimpleNamespace(session=SimpleNamespace(close=lambda: self.story.append("closed")))

    def request(self, path: str, method: str, **about: Any) -> Any:
        self.asked += 1
        assert self.answers.wait(180)
        self.story.append("answered")
        return SimpleNamespace(status_code=200, headers={}, content=b"{}", json=lambda: {"path": path})


async def login() -> Login:
    return Login({})


async def test_requests_under_way_are_answered_before_the_connections_go() -> None:
    cloud = SlowCloud()
    session = Session(login, lambda login, authority: cloud)
    asked = [asyncio.create_task(session.get(COMPUTE, f"/{number}")) for number in range(AT_ONCE)]
    await until(lambda: cloud.asked == AT_ONCE)
    closing = asyncio.create_task(session.close())
    await asyncio.sleep(0)
    cloud.answers.set()
    await closing
    assert cloud.story == ["answered"] * AT_ONCE + ["closed"]
    assert [(await each)["path"] for each in asked] == ["/0", "/1", "/2"]
    assert not [each for each in threading.enumerate() if each in session._pool._threads]


async def test_a_session_that_was_never_used_closes() -> None:
    await Session(login, lambda login, authority: None).close()


async def test_a_request_after_the_end_is_an_error_of_the_provider() -> None:
    session = Session(login, lambda login, authority: SlowCloud())
    await session.close()
    with pytest.raises(ProviderError) as caught:
        await session.get(COMPUTE, "/servers")
    assert caught.value.error_class is ErrorClass.INTERNAL
