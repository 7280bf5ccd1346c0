"""A bare HTTP client for these tests: says what it sends, shows what comes back."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import aiohttp
import orjson

from nodewright.apiserver.app import APIServer
from tests.kubectl.manifests import GROUP

WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    warnings: list[str]
    text: str

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.text)


class Client:
    """Speaks to one plane as its administrator, by token."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self._url = url

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request; a body other than bytes goes as JSON. Headers are given with _ for -."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        if content is not None:
            named.setdefault("Content-Type", "application/json")
        data = None if content is None else BytesIO(content)
        async with self.session.request(method, self._url + path, data=data, headers=named) as response:
            warnings = response.headers.getall("Warning", [])
            return Answer(response.status, response.headers, list(warnings), await response.text())

    async def get(self, path: str, **headers: str) -> Any:
        """GET what must be there."""
        answer = await self("GET", path, **headers)
        assert answer.status == 200, answer.text
        return answer.json

    async def create(self, path: str, body: Any) -> Any:
        """POST what must be accepted."""
        answer = await self("POST", path, body)
        assert answer.status == 201, answer.text
        return answer.json

    async def patch(self, path: str, body: Any, kind: str = MERGE) -> Any:
        """PATCH what must be accepted."""
        answer = await self("PATCH", path, body, Content_Type=kind)
        assert answer.status in (200, 201), answer.text
        return answer.json

    @asynccontextmanager
    async def watch(self, path: str, query: str = "", **headers: str) -> AsyncIterator[Events]:
        """Watch a collection."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        joint = f"{self._url}{path}?watch=true&{query}"
        async with self.session.get(joint, headers=named) as response:
            assert response.status == 200, await response.text()
            yield Events(response)


async def answers(api: Client, path: str, status: int, seconds: float = 180.0) -> None:
    """Wait until a GET of a path is answered with a status."""
    async with asyncio.timeout(seconds):
        while True:
            if (await api("GET", path)).status == status:
                return
            await asyncio.sleep(0.01)


class Events:
    """The events of one watch, in order."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._rest = b""

    async def next(self) -> Any:
        """Give the next event, None at the end of the stream."""
        while b"\n" not in self._rest:
            chunk = await self._response.content.readany()
            if not chunk:
                assert not self._rest, "the stream ended within an event"
                return None
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return orjson.loads(line)

    async def seen(self, count: int) -> list[tuple[str, str]]:
        """Give (type, name) of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


@asynccontextmanager
async def client_of(plane: APIServer, *, token: str | None = None) -> AsyncIterator[Client]:
    """Make a client; `token` "" is nobody's."""
    given = plane.token if token is None else token
    headers = {"Authorization": f"Bearer {given}"} if given else {}
    context = ssl.create_default_context(cafile=str(plane.ca_path))
    timeout = aiohttp.ClientTimeout(total=20)
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as session:
        yield Client(session, plane.url)
