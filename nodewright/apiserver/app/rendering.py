"""From objects to answers: plain JSON or YAML, Tables for kubectl, metadata only for garbage collectors."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from aiohttp import web

from nodewright.apiserver.app.negotiation import PLAIN, YAML, Wanted
from nodewright.apiserver.values import ApiError, ListResult, NoSuchPathError, Obj, Resource, WatchEvent

_CACHED_BYTES = 8 * 1024 * 1024
"""Serialised events that wait for another watcher to want them."""
_MAX_WARNINGS = 64
_WARNING_BYTES = 4096
"""Characters of all warnings of one answer; the rest is left out, as by kube-apiserver."""
_HEADERS = {"Cache-Control": "no-cache, private"}
_PART_BYTES = 64 * 1024
"""A longer answer is sent in parts of aiohttp's: TLS and the transport would else hold a copy of the whole each."""


@dataclass(frozen=True, slots=True)
class View:
    """How this client wants to see objects of this resource.

    `include` is the `includeObject` parameter of Tables: None, Metadata or Object.
    """

    wanted: Wanted
    resource: Resource
    include: str
    clock: Callable[[], datetime]

    def one(self, obj: Obj) -> Obj:
        """Shape a single object."""
        if obj.get("kind") == "Status" or not self.wanted.as_kind:
            return obj
        if self.wanted.as_kind == "Table":
            metadata = obj.get("metadata") or {}
            return self._table([obj], {"resourceVersion": metadata.get("resourceVersion", "")})
        return self._metadata_only(obj)

    def many(self, result: ListResult) -> Obj:
        """Shape a list."""
        metadata = self._list_metadata(result)
        if self.wanted.as_kind == "Table":
            return self._table(result.items, metadata)
        if self.wanted.as_kind:
            return {
                "kind": "PartialObjectMetadataList",
                "apiVersion": f"{self.wanted.group}/{self.wanted.version}",
                "metadata": metadata,
                "items": [self._metadata_only(item) for item in result.items],
            }
        return {
            "kind": self.resource.list_kind,
            "apiVersion": self.resource.api_version,
            "metadata": metadata,
            "items": [_bare(item) for item in result.items] if self.resource.builtin else result.items,
        }

    def _list_metadata(self, result: ListResult) -> Obj:
        metadata: Obj = {"resourceVersion": result.resource_version}
        if result.continue_ or not (self.resource.builtin or self.wanted.as_kind):
            metadata["continue"] = result.continue_  # lists of custom kinds have it, be it ever so empty
        if result.remaining is not None:
            metadata["remainingItemCount"] = result.remaining
        return metadata

    def _metadata_only(self, obj: Obj) -> Obj:
        return {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"{self.wanted.group}/{self.wanted.version}",
            "metadata": obj.get("metadata") or {},
        }

    def _table(self, objects: Sequence[Obj], metadata: Obj) -> Obj:
        from nodewright.apiserver.table import render  # noqa: PLC0415 - kubectl only; keeps the start lean

        rendered = render(self.resource, objects, metadata, self.include, self.clock())
        if self.wanted.version == "v1":
            return rendered
        return {**rendered, "apiVersion": f"meta.k8s.io/{self.wanted.version}"}


def _bare(item: Obj) -> Obj:
    """An item of a list of built-in objects says neither its kind nor its version: the list does."""
    return {name: value for name, value in item.items() if name not in ("kind", "apiVersion")}


class EventLines:
    """Serialises watch events to lines of JSON, each plain one once, however many watchers get it."""

    def __init__(self, max_bytes: int = _CACHED_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._plain: OrderedDict[tuple[int, str], tuple[Obj, bytes]] = OrderedDict()

    def plain(self, event: WatchEvent) -> bytes:
        """Give the line of an event that shows the object as it is."""
        key = (id(event.object), event.type)
        known = self._plain.get(key)
        # The entry holds the object, so its id can't be another's as long as the entry is there.
        if known is not None:
            return known[1]
        made = line(event.type, event.object)
        self._plain[key] = (event.object, made)
        self._bytes += len(made)
        while self._bytes > self._max_bytes:
            _, (_, forgotten) = self._plain.popitem(last=False)
            self._bytes -= len(forgotten)
        return made

    def __len__(self) -> int:
        return len(self._plain)


def line(kind: str, obj: Obj) -> bytes:
    """Serialise one watch event."""
    return orjson.dumps({"type": kind, "object": obj}, option=orjson.OPT_APPEND_NEWLINE)


def answer(content: Any, wanted: Wanted = PLAIN, status: int = 200, warnings: Sequence[str] = ()) -> web.Response:
    """Make the response that carries a document."""
    if wanted.media_type == YAML:
        import yaml  # noqa: PLC0415 - hardly any client asks for YAML

        body = yaml.safe_dump(content, sort_keys=False).encode()
    else:
        body = orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)
    return raw_answer(body, wanted.content_type, status, warnings)


class _Answer(web.Response):
    """A response that lets go of its body once it is sent: an idle connection holds its last response."""

    async def write_eof(self, data: bytes = b"") -> None:
        await super().write_eof(data)
        self.body = None


def raw_answer(
    body: bytes, content_type: str = "application/json", status: int = 200, warnings: Sequence[str] = ()
) -> web.Response:
    """Make a response of bytes; each warning becomes a `Warning: 299` header (RFC 7234 5.5, KEP-1693)."""
    parts = io.BytesIO(body) if len(body) > _PART_BYTES else body
    response = _Answer(body=parts, status=status, headers=_HEADERS)
    response.headers["Content-Type"] = content_type
    left = _WARNING_BYTES
    for warning in warnings[:_MAX_WARNINGS]:
        text = _quoted(warning)
        left -= len(text)
        if left < 0:
            break
        response.headers.add("Warning", f'299 - "{text}"')
    return response


def refusal(error: ApiError) -> web.Response:
    """Make the response of a refused request: a metav1.Status, but for paths that are not served at all."""
    if isinstance(error, NoSuchPathError):
        return raw_answer(f"{error.message}\n".encode(), "text/plain; charset=utf-8", error.code)
    response = answer(_sayable(error.status()), status=error.code)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    if error.code == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="nodewright"'
    return response


def _sayable(value: Any) -> Any:
    """Give a Status whose texts can be sent: they may repeat what a client sent, lone surrogates included."""
    if isinstance(value, dict):
        return {key: _sayable(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_sayable(member) for member in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _quoted(text: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in text)
    return printable.replace("\\", "\\\\").replace('"', '\\"')
