"""Failures between us and an API server, classed by what the caller has to do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import orjson

_REASON_BY_CODE = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

_LONGEST_MESSAGE = 1000
_LONGEST_REASON = 100
_LONGEST_RETRY_AFTER = 86400.0


class KubeError(Exception):
    """Any failure of a request. ``ambiguous``: a write may have happened all the same."""

    ambiguous = False

    @property
    def plain(self) -> str:
        """The message without a word that another system wrote: fit for a status that others may read."""
        return str(self)


class ConfigurationError(KubeError):
    """A kubeconfig that can't be used; the message names the file and the field. ``remedy``: what to do, if known."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class NoAnswer(KubeError):
    """The connection failed or timed out. ``sent``: the request may have reached the server."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.ambiguous = sent


class MalformedAnswerError(NoAnswer):
    """The server answered with what no API server says. The message quotes nothing of it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=True)


class AnswerTooLargeError(MalformedAnswerError):
    """The answer exceeds what this connection may cost in memory. A smaller page may help."""


class OverBudgetError(MalformedAnswerError):
    """All that was read of one cluster takes more memory than it may."""


class NotLeadingError(KubeError):
    """A write that was not sent: this process does not lead, or leads no more. It certainly did not happen."""


class InvalidRequestError(KubeError):
    """A part of the request can't be what it has to be (a name, a namespace, a group). Nothing was sent."""


class SilenceError(NoAnswer):
    """A watch said nothing for too long. Servers send no bookmarks for kinds that never change, so it may be sound."""


class ApiError(KubeError):
    """The server's answer was an error: a ``metav1.Status`` with ``code`` and ``reason``.

    ``retry_after``: seconds the server asked to wait (header or ``details.retryAfterSeconds``), None if it did not.
    ``asked``: what was asked for, as "list pods"; "" if that is not known.
    """

    asked = ""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{reason} ({code}): {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.retry_after = retry_after
        self.ambiguous = code >= 500

    @property
    def plain(self) -> str:
        meaning = _REASON_BY_CODE.get(self.code, "Redirect" if 300 <= self.code < 400 else "")
        message = f"the server answered {self.code}{f' ({meaning})' if meaning else ''}"
        return f"{self.asked}: {message}" if self.asked else message

    @property
    def not_found(self) -> bool:
        return self.code == 404

    @property
    def already_exists(self) -> bool:
        return self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        """The object is no longer the one that was observed: another resourceVersion, or a namesake's uid.

        A merge patch that names another uid is refused as 422 with the cause ``metadata.uid`` by servers that treat it
        as a change of an immutable field, and as 409 by others.
        """
        if self.code == 409:
            return not self.already_exists
        causes = self.details.get("causes")
        if self.code != 422 or not isinstance(causes, list):
            return False
        return any(isinstance(cause, Mapping) and cause.get("field") == "metadata.uid" for cause in causes)

    @property
    def expired(self) -> bool:
        """The resourceVersion or continue token is too old: list anew."""
        return self.code == 410 or self.reason in {"Expired", "Gone"}


def error_from_status(code: int, status: Mapping[str, Any], retry_after: float | None = None) -> ApiError:
    """An ApiError from a decoded ``metav1.Status``. Fields of a wrong type count as not given."""
    details = status.get("details")
    details = details if isinstance(details, Mapping) else {}
    if retry_after is None:
        retry_after = _seconds(details.get("retryAfterSeconds")) or None
    code = _code(status.get("code"), code)
    reason, message = status.get("reason"), status.get("message")
    given = reason[:_LONGEST_REASON] if isinstance(reason, str) and reason else _REASON_BY_CODE.get(code, "Unknown")
    text = message[:_LONGEST_MESSAGE] if isinstance(message, str) and message else given
    return ApiError(code, given, text, details, retry_after)


def error_of_event(status: Mapping[str, Any]) -> ApiError:
    """From the object of a watch's ERROR event."""
    return error_from_status(500, status)


def error_from_answer(code: int, body: bytes, retry_after_header: str | None) -> ApiError:
    """An ApiError from an HTTP answer, whose body need not be a Status (a proxy in between may have written it)."""
    retry_after = _seconds(retry_after_header)
    if not 400 <= code < 600:
        return ApiError(code, "Redirect" if 300 <= code < 400 else "Unknown", "it is not followed", None, retry_after)
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if isinstance(status, Mapping) and status.get("kind") == "Status":
        return error_from_status(code, {**status, "code": code}, retry_after)
    text = body[:_LONGEST_MESSAGE].decode("utf-8", "replace").strip()
    reason = _REASON_BY_CODE.get(code, "Unknown")
    return ApiError(code, reason, text or reason, None, retry_after)


def _code(found: object, otherwise: int) -> int:
    """HTTP's error codes, and no others."""
    sound = isinstance(found, int) and not isinstance(found, bool) and 400 <= found < 600
    return found if sound and isinstance(found, int) else otherwise


def _seconds(found: object) -> float | None:
    """At least zero, at most a day; None for what is no number (an HTTP date; API servers send seconds)."""
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        return None
    try:
        seconds = float(found)
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, seconds), _LONGEST_RETRY_AFTER) if math.isfinite(seconds) else None
