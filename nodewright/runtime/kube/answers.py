"""Take in answers without trusting them: bounded in bytes and in structure, of the types that a reader relies on.

What is wrong is said in words of our own. Nothing of an answer is quoted: it may be another service's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

from controllers.kernel.refs import Kind
from nodewright.runtime.kube.errors import AnswerTooLargeError, MalformedAnswerError

CONTAINER_COST = 64
"""Bytes that a dict or a list costs at least once it is parsed: ``{}`` is two in JSON."""
_LONGEST_VERSION = 64
_TEXTS = ("uid", "creationTimestamp", "deletionTimestamp", "generateName")
_MAPS = ("labels", "annotations")
_EVENTS = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})


def weight(body: bytes) -> int:
    """What ``body`` costs about, in bytes, once it is parsed."""
    return len(body) + CONTAINER_COST * (body.count(b"{") + body.count(b"["))


async def read_body(response: aiohttp.ClientResponse, largest: int, what: str) -> bytes:
    """The body, read in pieces. Raises AnswerTooLargeError above ``largest`` bytes, MalformedAnswerError if encoded."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in {"", "identity"}:
        raise MalformedAnswerError(f"{what}: the answer is compressed, though that was not asked for")
    length = response.content_length
    if length is not None and length > largest:
        raise AnswerTooLargeError(f"{what}: the answer is larger than {largest} bytes")
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > largest:
            raise AnswerTooLargeError(f"{what}: the answer is larger than {largest} bytes")
        parts.append(part)
    return b"".join(parts)


def decoded(body: bytes, what: str, heaviest: int) -> dict[str, Any]:
    """A JSON object. Raises AnswerTooLargeError before it is parsed if it would weigh more than ``heaviest``."""
    if weight(body) > heaviest:
        raise AnswerTooLargeError(f"{what}: the answer would take more than {heaviest} bytes of memory")
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise MalformedAnswerError(f"{what}: the answer is not JSON") from None
    if not isinstance(found, dict):
        raise MalformedAnswerError(f"{what}: the answer is not an object")
    return found


def items_of(answer: Mapping[str, Any], kind: Kind) -> list[dict[str, Any]]:
    """Items of a list, each with apiVersion and kind. Raises MalformedAnswerError naming the place."""
    items = answer.get("items")
    if items is None:
        return []
    if not isinstance(items, list):
        raise MalformedAnswerError(f"list of {kind.plural}: items is not a list")
    for index, item in enumerate(items):
        problem = why_no_object(item, kind)
        if problem:
            raise MalformedAnswerError(f"list of {kind.plural}: items[{index}]{problem}")
        item.setdefault("apiVersion", kind.api_version)
        item.setdefault("kind", kind.name)
    return items


def page_marks(answer: Mapping[str, Any], kind: Kind) -> tuple[str, str]:
    """(resourceVersion, continue) of a list. Raises MalformedAnswerError."""
    meta = answer.get("metadata")
    if meta is None:
        meta = {}
    if not isinstance(meta, Mapping):
        raise MalformedAnswerError(f"list of {kind.plural}: metadata is not an object")
    version, more = meta.get("resourceVersion"), meta.get("continue")
    if not _is_text(version, _LONGEST_VERSION) or not _is_text(more, 1 << 16):
        raise MalformedAnswerError(f"list of {kind.plural}: metadata.resourceVersion or continue is not text")
    return version or "", more or ""


def remaining_of(answer: Mapping[str, Any]) -> int:
    """Objects behind this page of a list, as the server says; 0 if it says nothing that is a number."""
    meta = answer.get("metadata")
    count = meta.get("remainingItemCount") if isinstance(meta, Mapping) else None
    return count if type(count) is int and count > 0 else 0


def event_of(line: bytes, kind: Kind, heaviest: int) -> dict[str, Any]:
    """One event of a watch; ``weight`` in it is what it takes in memory.

    Raises MalformedAnswerError and AnswerTooLargeError.
    """
    what = f"watch of {kind.plural}"
    event = decoded(line, what, heaviest)
    type_, obj = event.get("type"), event.get("object")
    if not isinstance(type_, str) or type_ not in _EVENTS or not isinstance(obj, dict):
        raise MalformedAnswerError(f"{what}: an event has no type or no object")
    problem = ""
    if type_ == "BOOKMARK":
        problem = _why_no_bookmark(obj)
    elif type_ != "ERROR":
        problem = why_no_object(obj, kind)
    if problem:
        raise MalformedAnswerError(f"{what}: object{problem}")
    event["weight"] = weight(line)
    return event


def checked(answer: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """The answer to a request about one object: the object, or another kind (a Status). Raises MalformedAnswerError."""
    if answer.get("kind", kind.name) == kind.name:
        problem = why_no_object(answer, kind)
        if problem:
            raise MalformedAnswerError(f"{kind.name}: the answer{problem}")
    return answer


def _why_no_bookmark(obj: Mapping[str, Any]) -> str:
    meta = obj.get("metadata")
    sound = isinstance(meta, dict) and _is_text(meta.get("resourceVersion"), _LONGEST_VERSION)
    return "" if sound else ".metadata.resourceVersion is not text"


def why_no_object(obj: object, kind: Kind) -> str:
    """What of ``obj`` is not as every reader relies on, beginning with the path in it; "" if all is."""
    if not isinstance(obj, dict):
        return " is not an object"
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        return ".metadata is not an object"
    name, namespace = meta.get("name"), meta.get("namespace")
    if not isinstance(name, str) or not 0 < len(name) <= 253:
        return ".metadata.name is not a name"
    if not _is_text(namespace, 63) or (kind.namespaced and not namespace) or (namespace and not kind.namespaced):
        return ".metadata.namespace is not that of its kind"
    if not _is_text(meta.get("resourceVersion"), _LONGEST_VERSION):
        return ".metadata.resourceVersion is not text"
    for field in _TEXTS:
        if not _is_text(meta.get(field), 253):
            return f".metadata.{field} is not text"
    for field in _MAPS:
        if not _is_map(meta.get(field)):
            return f".metadata.{field} is not a map of texts"
    for field in ("spec", "status"):
        if not isinstance(obj.get(field) or {}, dict):
            return f".{field} is not an object"
    return _why_no_lists(meta)


def _why_no_lists(meta: Mapping[str, Any]) -> str:
    owners, finalizers = meta.get("ownerReferences") or [], meta.get("finalizers") or []
    if not isinstance(owners, list) or not all(isinstance(owner, dict) for owner in owners):
        return ".metadata.ownerReferences is not a list of objects"
    if any(not isinstance(owner.get(field, ""), str) for owner in owners for field in ("uid", "kind", "name")):
        return ".metadata.ownerReferences names no owner"
    if not isinstance(finalizers, list) or not all(isinstance(each, str) for each in finalizers):
        return ".metadata.finalizers is not a list of texts"
    return ""


def _is_text(found: object, longest: int) -> bool:
    return found is None or (isinstance(found, str) and len(found) <= longest)


def _is_map(found: object) -> bool:
    if not found:
        return True
    return isinstance(found, dict) and all(isinstance(value, str) for value in found.values())
