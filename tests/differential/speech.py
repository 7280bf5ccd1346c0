"""Requests as text, a server that is asked them over HTTP, and stories: requests in an order, each with a name."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from nodewright.apiserver.patch import apply_merge
from nodewright.runtime.kube.kubeconfig import load_kubeconfig

USER_AGENT = "golden/1"
"""A server makes a field manager of it where the request names none."""
PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
SETTLE_SECONDS = 300.0
_SHOWN_HEADERS = ("Content-Type", "Retry-After")
_EARLIER = re.compile(r"\{([^|{}\"]+)\|([^|{}\"]+)\}")


@dataclass(frozen=True, slots=True)
class Request:
    """One request. A body other than text or bytes is sent as JSON.

    ``{label|metadata.uid}`` in path or body stands for that part of an earlier answer. ``on_current``: the body is a
    merge patch on what a GET gives, to be sent whole. ``events``: read so many events of a watch. ``until``: ask again
    until this status comes (what the server does in the background takes its time).
    """

    label: str
    verb: str
    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    on_current: bool = False
    events: int = 0
    until: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    """Requests that build upon each other. ``background``: they need garbage collection and the like."""

    name: str
    requests: tuple[Request, ...]
    background: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """``body``: JSON if it is, else text; of a watch the list of its events."""

    status: int
    headers: Mapping[str, Any]
    body: Any


class Server:
    """An API server by its kubeconfig, over one connection that is kept."""

    def __init__(self, kubeconfig: Path) -> None:
        connection = asyncio.run(load_kubeconfig([kubeconfig]))
        parts = urlsplit(connection.server)
        self._address = (parts.hostname or "", parts.port or 443)
        self._trust = connection.ssl_context()
        self._headers = {"User-Agent": USER_AGENT}
        if connection.tokens is not None:
            self._headers["Authorization"] = f"Bearer {asyncio.run(connection.tokens.token())}"
        self._kept: http.client.HTTPSConnection | None = None

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def send(self, request: Request) -> Answer:
        """Ask once. Raises OSError or http.client.HTTPException if nobody answers."""
        if request.events:
            return self._watch(request)
        try:
            return self._exchange(request)
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):
            self.close()  # it was idle for too long
            return self._exchange(request)

    def _exchange(self, request: Request) -> Answer:
        if self._kept is None:
            self._kept = self._connect()
        response = self._ask(self._kept, request)
        text = response.read()
        if response.will_close:
            self.close()
        return Answer(response.status, _headers(response), _parsed(text))

    def _watch(self, request: Request) -> Answer:
        connection = self._connect()
        try:
            response = self._ask(connection, request)
            if response.status != http.client.OK:
                return Answer(response.status, _headers(response), _parsed(response.read()))
            events = []
            while len(events) < request.events and (line := response.readline()):
                events.append(json.loads(line))
            return Answer(response.status, _headers(response), events)
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(*self._address, context=self._trust, timeout=300)

    def _ask(self, connection: http.client.HTTPSConnection, request: Request) -> http.client.HTTPResponse:
        body = request.body
        if body is not None and not isinstance(body, str | bytes):
            body = json.dumps(body)
        connection.request(request.method, request.path, body=body, headers={**self._headers, **request.headers})
        return connection.getresponse()


def play(server: Server, requests: Iterable[Request]) -> dict[str, Answer]:
    """Ask all of them in order; the answers by the requests' labels."""
    answers: dict[str, Answer] = {}
    for request in requests:
        assert request.label not in answers, request.label
        answers[request.label] = _settled(server, _filled(_whole(server, request), answers))
    return answers


def _settled(server: Server, request: Request) -> Answer:
    deadline = time.monotonic() + SETTLE_SECONDS
    answer = server.send(request)
    while request.until and answer.status != request.until and time.monotonic() < deadline:
        time.sleep(0.02)
        answer = server.send(request)
    return answer


def _whole(server: Server, request: Request) -> Request:
    if not request.on_current:
        return request
    path = request.path.partition("?")[0]
    current = server.send(Request("", "get", "GET", path)).body
    return replace(request, body=apply_merge(current, request.body), on_current=False)


def _filled(request: Request, answers: Mapping[str, Answer]) -> Request:
    def value(found: re.Match[str]) -> str:
        part = answers[found[1]].body
        for key in found[2].split("."):
            part = part[int(key)] if isinstance(part, list) else (part or {}).get(key, "")
        return str(part)

    body = request.body
    if body is not None and not isinstance(body, bytes):
        text = body if isinstance(body, str) else json.dumps(body)
        body = _EARLIER.sub(value, text)
    path = _EARLIER.sub(lambda found: quote(value(found), safe=""), request.path)
    return replace(request, path=path, body=body)


def _headers(response: http.client.HTTPResponse) -> dict[str, Any]:
    shown: dict[str, Any] = {name: response.headers[name] for name in _SHOWN_HEADERS if name in response.headers}
    warnings = response.headers.get_all("Warning")
    return {**shown, "Warning": warnings} if warnings else shown


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.decode("utf-8", "replace")
