"""A Secret names the cloud: what answers there may be anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from keystoneauth1.session import Session

from providers.base import addresses
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import errors
from providers.openstack.pages import all_of
from providers.openstack.paths import one_of
from providers.openstack.transport import harden
from tests.runtime.hostile import MIB, Answer, Hostile, endless, gzip_bomb, head, json, says

LARGEST = 4 * MIB


def asked(url: str, seconds: float = 20.0) -> Any:
    session = Session()
    harden(SimpleNamespace(session=session), seconds, LARGEST)
    try:
        return session.get(url, authenticated=False, raise_exc=False)
    finally:
        session.session.close()


@contextmanager
def policy(chosen: addresses.AddressPolicy) -> Iterator[None]:
    addresses.use(chosen)
    yield
    addresses.use(addresses.default_policy())


async def test_no_redirect_is_followed() -> None:
    async with (
        Hostile(json({"a": 1})).serve() as inner,
        Hostile(says(b"", 302, f"Location: {inner.url}/x")).serve() as outer,
    ):
        answer = await asyncio.to_thread(asked, outer.url)
        assert answer.status_code == 302
        assert inner.asked == []


async def test_a_sound_answer_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # no environment variable has a say
    async with Hostile(json({"a": 1})).serve() as server:
        assert (await asyncio.to_thread(asked, server.url)).json() == {"a": 1}


BAD: dict[str, Answer] = {
    "endless": endless(b"", b"x" * MIB),
    "compressed": says(gzip_bomb(64 * MIB), 200, "Content-Encoding: gzip"),
    "cut": lambda _: [head(200, "Content-Length: 999"), b"x"],
    "no HTTP": lambda _: [b"internal words\r\n\r\n"],
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
async def test_a_hostile_answer_is_an_error_in_our_words(answer: Answer) -> None:
    async with Hostile(answer).serve() as server:
        with pytest.raises(Exception) as caught:
            await asyncio.to_thread(asked, server.url)
        assert server.sent < 32 * MIB
    known = errors.of_exception(caught.value, reads=True)
    assert known.error_class in {ErrorClass.UNAVAILABLE, ErrorClass.TIMEOUT, ErrorClass.INTERNAL}
    assert "internal words" not in known.message


async def test_an_answer_that_drips_is_given_up() -> None:
    async with Hostile(endless(b"", b" "), pause=0.01).serve() as server:
        with pytest.raises(Exception) as caught:
            await asyncio.to_thread(asked, server.url, 0.2)
    assert errors.of_exception(caught.value, reads=True).error_class is ErrorClass.TIMEOUT


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433"])
async def test_an_address_that_is_refused_gets_no_request(host: str) -> None:
    async with Hostile(json({})).serve() as server:
        port = server.url.rpartition(":")[2]
        with policy(addresses.AddressPolicy(loopback=False)), pytest.raises(Exception) as caught:
            await asyncio.to_thread(asked, f"http://{host}:{port}")
        assert server.asked == []
    known = errors.of_exception(caught.value, reads=True)
    assert (known.error_class, "--server-allow-cidrs" in known.message) == (ErrorClass.INVALID_CONFIGURATION, True)


@pytest.mark.parametrize(
    "answer",
    [
        {"servers": 5},
        {"servers": "abc"},
        {"servers": [1]},
        {"servers": [{"id": "a"}], "servers_links": [{"rel": "next"}]},
        {"servers": [{"id": 7}], "servers_links": [{"rel": "next"}]},
        {"servers": [{}], "next": "x"},
    ],
)
async def test_a_list_that_is_none_or_has_no_end_is_an_error(answer: dict[str, Any]) -> None:
    class Cloud:
        async def get(self, service: str, path: str) -> dict[str, Any]:
            return answer

        async def change(self, service: str, method: str, path: str, body: Any = None) -> dict[str, Any]:
            raise AssertionError

    with pytest.raises(ProviderError, match="list of servers"):
        await all_of(Cloud(), "compute", "/servers/detail", 2)


@pytest.mark.parametrize("identity", ["", "..", "a/b", "a?x=", "a#", "a%2fb", None, 5, {"a": 1}, "a\n", "x" * 300])
def test_an_id_is_one_part_of_a_path(identity: Any) -> None:
    with pytest.raises(ProviderError, match="not an id"):
        one_of("servers", identity)
    assert one_of("servers", "0a-b_C", "action") == "/servers/0a-b_C/action"
