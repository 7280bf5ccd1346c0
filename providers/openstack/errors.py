"""What went wrong, in the contract's words. Pure: answers of the cloud in, classes out.

`docs/providers/openstack.md` has the table; each row of it is a test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from api.secrets import HIDDEN, without_secrets
from providers.base.addresses import AddressRefusedError
from providers.base.errors import ErrorClass, ProviderError

_QUOTA = re.compile(r"quota", re.IGNORECASE)
_MISSING = re.compile(
    r"could not be found|can ?not find|not found|does not exist|doesn't exist|no \w+ with|unable to find"
    r"|availability zone is not available",
    re.IGNORECASE,
)
_NO_ADDRESS = re.compile(r"no more ip addresses|unable to find any ip address", re.IGNORECASE)
_NO_CAPACITY = re.compile(r"no valid host|exceeded maximum number of retries|not enough hosts", re.IGNORECASE)
_ECHO = re.compile(r"Value: .*?(?P<why>' (?:is|does|was) [^']{1,80})?$", re.DOTALL)
"""Nova repeats what it refuses, user data too, before and after it says why."""
_LONGEST = 400
_REQUEST_ID = re.compile(r"req-[A-Za-z0-9-]{1,64}")


class Ambiguous(ProviderError):
    """Nobody knows whether the request was carried out, or still will be."""


class Ended(Ambiguous):
    """The service itself gave up on the request: it will not be carried out any more, and a census tells if it was."""


def of_answer(reads: bool, status: int, headers: Mapping[str, str], body: Any) -> ProviderError:
    """The error that an answer of 400 or above means. ``reads``: the request would have changed nothing."""
    request_id = headers.get("x-openstack-request-id") or headers.get("X-Openstack-Request-Id") or ""
    # The user who names the cloud could read another service's answers this way: only OpenStack's own are quoted.
    reported = _message(body)
    message = (reported if _REQUEST_ID.fullmatch(request_id) else "") or f"the cloud answered {status}"
    text = f"{message} ({request_id})" if _REQUEST_ID.fullmatch(request_id) else message
    error_class = _class_of(status, reported, reads)
    if not reads and status >= 500:
        kind = Ended if status == 500 else Ambiguous  # others come from what stands before a service, and says no more
        return kind(error_class, text, _retry_after(headers))
    return ProviderError(error_class, text, _retry_after(headers))


def of_exception(error: Exception, reads: bool) -> ProviderError:
    """The error that a failure of the client library means; recognised by class names, as the library is not imported
    here.

    A read timeout comes as ConnectTimeout though the request was delivered, a cut connection as ConnectFailure.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    refused = _refused_address(error)
    if refused is not None:
        return ProviderError(ErrorClass.INVALID_CONFIGURATION, f"the cloud's API is not asked: {refused.strerror}")
    if names & {
        "Unauthorized",
        "AuthorizationFailure",
        "MissingRequiredOptions",
        "NoMatchingPlugin",
        "AuthPluginException",
    }:
        return ProviderError(ErrorClass.UNAUTHORIZED, "the cloud does not take the login")
    if "NotFound" in names and "Could not find" in str(error):  # an application credential that was deleted
        return ProviderError(ErrorClass.UNAUTHORIZED, "the cloud does not know the login any more")
    if "NotFound" in names and hasattr(error, "http_status"):
        return ProviderError(ErrorClass.UNAVAILABLE, "the cloud's identity service is not where the login says")
    if names & {"EndpointNotFound", "CatalogException", "ServiceDisabledException"}:
        return ProviderError(ErrorClass.INVALID_CONFIGURATION, "the cloud's catalog has no such service in this region")
    if names & {"ConnectTimeout", "Timeout", "ReadTimeout"}:
        kind, text = ErrorClass.TIMEOUT, "the cloud did not answer in time"
    elif names & {"SSLFailure", "SSLError"}:
        return ProviderError(ErrorClass.UNAVAILABLE, "the cloud's certificate can't be trusted; cacert may be missing")
    elif names & {"ConnectFailure", "DiscoveryFailure", "ConnectionError", "RequestException", "OSError"}:
        kind, text = ErrorClass.UNAVAILABLE, "the cloud's API can't be reached"
        if "refused" in str(error):
            return ProviderError(kind, text)
    else:
        kind, text = ErrorClass.INTERNAL, f"unexpected {type(error).__name__} from the client library"
    return ProviderError(kind, text) if reads else Ambiguous(kind, text)


def _refused_address(error: BaseException | None) -> AddressRefusedError | None:
    """The libraries wrap what their connections raise."""
    for _ in range(10):
        if error is None or isinstance(error, AddressRefusedError):
            return error
        inner = [each for each in error.args if isinstance(each, BaseException)]
        error = error.__cause__ or error.__context__ or (inner[0] if inner else None)
    return None


def of_fault(fault: Any) -> tuple[ErrorClass, str]:
    """Why a server never came up, from the ``fault`` of one in state ERROR."""
    message = str(fault.get("message") or "") if isinstance(fault, Mapping) else ""
    text = redact(message) or "the cloud does not say why"
    if _QUOTA.search(message):  # volumes are made while a server is built
        return ErrorClass.QUOTA_EXCEEDED, text
    return (ErrorClass.STOCK_OUT if _NO_CAPACITY.search(message) else ErrorClass.INTERNAL), text


def is_about_the_zone(error: ProviderError) -> bool:
    """Whether a request was refused for its availability zone: it has none of that name, or all of it is down."""
    return error.error_class is ErrorClass.NOT_FOUND and "availability zone" in error.message


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` as people may see it: one line, not too long, without echoes and without any of ``secrets``."""
    shown = _ECHO.sub(lambda match: f"Value: {HIDDEN}{(match['why'] or '').lstrip(chr(39))}", text)
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= 4:
            shown = shown.replace(secret, HIDDEN)
    shown = " ".join(without_secrets(shown).split())
    return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"


def _class_of(status: int, message: str, reads: bool) -> ErrorClass:
    if status in {403, 409, 413} and _QUOTA.search(message):
        return ErrorClass.QUOTA_EXCEEDED
    if status in {400, 409} and (_NO_ADDRESS.search(message) or _NO_CAPACITY.search(message)):
        return ErrorClass.STOCK_OUT
    match status:
        case 401:
            return ErrorClass.UNAUTHORIZED
        case 403:
            # A policy that forbids what one config asks for must not stop the others of the account.
            return ErrorClass.UNAUTHORIZED if reads else ErrorClass.INVALID_CONFIGURATION
        case 404:
            return ErrorClass.NOT_FOUND
        case 409:
            return ErrorClass.CONFLICT
        case 413 | 429:
            return ErrorClass.RATE_LIMITED
        case 408 | 504:
            return ErrorClass.TIMEOUT
        case 502 | 503:
            return ErrorClass.UNAVAILABLE
    if status >= 500:
        return ErrorClass.INTERNAL
    return ErrorClass.NOT_FOUND if _MISSING.search(message) else ErrorClass.INVALID_CONFIGURATION


def _message(body: Any) -> str:
    """The services wrap their message differently: {badRequest: {message}}, {NeutronError: {message}}, plain text."""
    if isinstance(body, Mapping):
        for value in body.values():
            if isinstance(value, Mapping) and isinstance(value.get("message"), str):
                return redact(value["message"])
            if isinstance(value, str) and value:
                return redact(value)
    return ""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, or a date, which is read against the clock of the server that sent it."""
    value = headers.get("Retry-After") or headers.get("retry-after") or ""
    if value.isdigit():
        return float(value)
    try:
        pause = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("Date") or headers.get("date") or "")
    except (TypeError, ValueError):
        return None
    return max(0.0, pause.total_seconds())
