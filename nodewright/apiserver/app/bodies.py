"""What is in a request's body? JSON, YAML or Kubernetes' protobuf, bounded, with doubled fields reported."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from aiohttp import web

from nodewright.apiserver.app.config import Limits
from nodewright.apiserver.store.copying import MAX_DEPTH
from nodewright.apiserver.values import ApiError, PatchType

_PROTOBUF = "application/vnd.kubernetes.protobuf"
_JSON_KINDS = frozenset({"", "application/json", "application/octet-stream", "text/plain"})
_YAML_KINDS = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})
_READABLE = ("application/json", "application/yaml", _PROTOBUF)
_PATCHES: dict[str, PatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
T = TypeVar("T")
_LONG_YAML = 16 * 1024
MAX_DOUBLED = 1000
"""Fields that are reported as given more than once."""
_KEY = re.compile(rb'"\s*:')


@dataclass(frozen=True, slots=True)
class Body:
    """What was read; `doubled` names the fields that the body gives more than once, as dotted paths."""

    content: Any
    duplicates: tuple[str, ...] = ()


async def read_bytes(request: web.BaseRequest, limits: Limits) -> bytes:
    """Read the whole body.

    Raises ApiError 413 if it is too long, 408 if it does not arrive in time, 415 if it is compressed, 400 if it is
    broken off.
    """
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise ApiError.unsupported_media_type("compressed bodies are not supported: send it without Content-Encoding")
    try:
        async with asyncio.timeout(limits.body_seconds):
            return await _all_of(request, limits)
    except web.RequestPayloadError:
        raise ApiError.bad_request("the request's body is broken off") from None
    except TimeoutError:
        raise ApiError(408, "Timeout", "the request's body did not arrive in time") from None


async def _all_of(request: web.BaseRequest, limits: Limits) -> bytes:
    """Read the body without `request.read()`, which keeps it as long as the connection is idle."""
    parts: list[bytes] = []
    size = 0
    async for part in request.content.iter_any():
        size += len(part)
        if size > limits.body_bytes:
            raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limits.body_bytes}")
        parts.append(part)
    return b"".join(parts)


def media_type(request: web.BaseRequest) -> str:
    """Give the Content-Type without parameters, "" if there is none."""
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


async def off_the_loop(read: Callable[[], T], content: bytes, kind: str) -> T:
    """Run a decoder of this body, in a thread if it is long YAML: reading that takes up to half a second."""
    if "yaml" in kind and len(content) > _LONG_YAML:
        return await asyncio.to_thread(read)
    return read()


def decode(content: bytes, kind: str) -> Body:
    """Read an object. Raises ApiError 415 for a media type that is not readable, 400 for a malformed body."""
    if kind in _JSON_KINDS:
        return _mapping(_json(content))
    if kind in _YAML_KINDS:
        return _mapping(_yaml(content))
    if kind == _PROTOBUF:
        from nodewright.apiserver import protobuf  # noqa: PLC0415 - kubectl's imperative commands only

        found = protobuf.decode(content)
        _count_keys(found, MAX_DEPTH)
        return Body(found)
    raise ApiError.unsupported_media_type(_unknown_format(_READABLE))


def decode_patch(content: bytes, kind: str, *, builtin: bool) -> tuple[PatchType, Body]:
    """Read a patch and its type. Custom resources know no strategic merge patch (415), as in kube-apiserver."""
    patch_type = _PATCHES.get(kind)
    if patch_type is None or (patch_type == "strategic" and not builtin):
        known = [name for name, type_ in _PATCHES.items() if builtin or type_ != "strategic"]
        raise ApiError.unsupported_media_type(_unknown_format(known))
    if patch_type == "apply":
        return patch_type, _mapping(_yaml(content))
    body = _json(content)
    if patch_type == "json":
        if not isinstance(body.content, list):
            raise ApiError.bad_request(
                "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
            )
        return patch_type, body
    return patch_type, _mapping(body)


def _unknown_format(known: Sequence[str]) -> str:
    listed = ", ".join(known)
    return f"the body of the request was in an unknown format - accepted media types include: {listed}"


def _mapping(body: Body) -> Body:
    if not isinstance(body.content, dict):
        found = {list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(body.content), "number")
        raise ApiError.bad_request(f"couldn't get version/kind; the body must be an object, not {found}")
    return body


def _json(content: bytes) -> Body:
    try:
        parsed = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ApiError.bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    # Every key token matches _KEY, so an equal count proves that no key was given twice: the slow way is rare.
    if len(_KEY.findall(content)) == _count_keys(parsed, MAX_DEPTH):
        return Body(parsed)
    duplicates: dict[str, None] = {}
    marked = json.loads(content, object_pairs_hook=_Pairs, parse_int=str, parse_float=str)
    _find_duplicates(marked, "", duplicates)
    return Body(parsed, tuple(duplicates))


def _count_keys(value: Any, depth: int) -> int:
    """Keys of all objects in ``value``. Raises ApiError 400 for what is nested deeper than ``depth``."""
    if depth < 0:
        raise ApiError.bad_request(f"the body is nested more than {MAX_DEPTH} levels deep")
    below = depth - 1
    if type(value) is dict:
        return len(value) + sum([_count_keys(v, below) for v in value.values() if type(v) in (dict, list)])
    if type(value) is list:
        return sum([_count_keys(v, below) for v in value if type(v) in (dict, list)])
    return 0


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object as they were written."""


def _find_duplicates(value: Any, path: str, duplicates: dict[str, None]) -> None:
    if isinstance(value, _Pairs):
        seen = set()
        for key, member in value:
            where = f"{path}.{key}" if path else key
            if key in seen and len(duplicates) < MAX_DOUBLED:
                duplicates[where] = None
            seen.add(key)
            _find_duplicates(member, where, duplicates)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            _find_duplicates(member, f"{path}[{index}]", duplicates)


def _yaml(content: bytes) -> Body:
    stripped = content.lstrip()
    if stripped[:1] in (b"{", b"["):
        return _json(content)
    from nodewright.apiserver.app import yaml_bodies  # noqa: PLC0415 - most clients send JSON

    try:
        return Body(yaml_bodies.load(content))
    except ValueError as error:
        raise ApiError.bad_request(f"error decoding YAML: {error}") from None
