"""What a provider says is shown in conditions, Events and logs; what it repeats of its config's secrets is taken out.

By contract a provider's messages hold none (``providers.base.errors``); clouds like to quote a request they refuse.
"""

from __future__ import annotations

from collections.abc import Iterable

from api.secrets import HIDDEN, secret_values, without_secrets
from controllers.kernel.actions import DeleteHost, HostAction, RebootHost
from providers.base.errors import ProviderError


def secrets_of(action: HostAction) -> list[str]:
    """The secrets in the config of a call, the longest first."""
    config = action.config if isinstance(action, DeleteHost | RebootHost) else action.request.config
    return sorted(set(secret_values(config)), key=len, reverse=True)


def redacted(error: ProviderError, action: HostAction | None = None) -> ProviderError:
    """``error`` without secrets; the same object if it holds none."""
    message = without(secrets_of(action) if action is not None else (), error.message)
    if message == error.message:
        return error
    return ProviderError(error.error_class, message, error.retry_after, error.progressed)


def without(secrets: Iterable[str], text: str) -> str:
    """``text`` with these, and whatever looks like a secret, taken out."""
    text_without = without_secrets(text)
    for secret in secrets:
        text_without = text_without.replace(secret, HIDDEN)
    return text_without
