"""What can go wrong between us and an API server, told apart by what the caller has to do about it."""

from __future__ import annotations

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


class KubeError(Exception):
    """Any failure of a request. ``ambiguous``: a write may have happened all the same."""

    ambiguous = False


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


class NotLeadingError(KubeError):
    """A write that was not sent: this process does not lead, or leads no more. It certainly did not happen."""


class SilenceError(NoAnswer):
    """A watch said nothing for too long. Servers send no bookmarks for kinds that never change, so it may be sound."""


class ApiError(KubeError):
    """The server's answer was an error: a ``metav1.Status`` with ``code`` and ``reason``.

    ``retry_after``: seconds the server asked to wait (header or ``details.retryAfterSeconds``), None if it did not.
    """

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
        causes = self.details.get("causes") or ()
        return self.code == 422 and any(cause.get("field") == "metadata.uid" for cause in causes)

    @property
    def expired(self) -> bool:
        """The resourceVersion or continue token is too old: list anew."""
        return self.code == 410 or self.reason in {"Expired", "Gone"}


def error_from_status(code: int, status: Mapping[str, Any], retry_after: float | None = None) -> ApiError:
    """An ApiError from a decoded ``metav1.Status``."""
    details = status.get("details")
    details = details if isinstance(details, Mapping) else {}
    if retry_after is None and isinstance(details.get("retryAfterSeconds"), int | float):
        retry_after = float(details["retryAfterSeconds"]) or None
    code = int(status.get("code") or code)
    reason = str(status.get("reason") or _REASON_BY_CODE.get(code, "Unknown"))
    return ApiError(code, reason, str(status.get("message") or reason)[:_LONGEST_MESSAGE], details, retry_after)


def error_from_answer(code: int, body: bytes, retry_after_header: str | None) -> ApiError:
    """An ApiError from an HTTP answer, whose body need not be a Status (a proxy in between may have written it)."""
    retry_after = _seconds(retry_after_header)
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if isinstance(status, Mapping) and status.get("kind") == "Status":
        return error_from_status(code, status, retry_after)
    text = body[:_LONGEST_MESSAGE].decode("utf-8", "replace").strip()
    reason = _REASON_BY_CODE.get(code, "Unknown")
    return ApiError(code, reason, text or reason, None, retry_after)


def _seconds(header: str | None) -> float | None:
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        return None  # an HTTP date; API servers send seconds
