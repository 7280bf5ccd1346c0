"""What the entry point ``ssh`` points at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.base.contract import ConfigKind, Objects, Provider, Registration, Secrets
from providers.base.errors import ErrorClass, ProviderError
from providers.base.extras import install_command
from providers.ssh.config import API_VERSION, KIND, json_schema


def _open(_scope: str, _config: Mapping[str, Any]) -> Provider:
    raise ProviderError(ErrorClass.INVALID_CONFIGURATION, "pool: neither SSHHostPools nor Secrets can be read here")


def _open_with_objects(_scope: str, config: Mapping[str, Any], secrets: Secrets, objects: Objects) -> Provider:
    try:
        from providers.ssh.provider import SSHProvider  # noqa: PLC0415  (asyncssh: an extra, and 0.3 s to import)
    except ModuleNotFoundError as error:
        text = f"hosts over SSH need the extra: {install_command('ssh')} ({error.name} is missing)"
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, text) from error
    return SSHProvider(str(config["pool"]), secrets, objects)


registration = Registration(
    name="ssh",
    config_kinds=(ConfigKind(API_VERSION, KIND, json_schema()),),
    scope_of=lambda config: str(config["pool"]),
    open=_open,
    open_with_objects=_open_with_objects,
    bootstrap_formats=("script",),
    prepares_hosts=True,
    list_pause=2.0,
    in_place_refusal=lambda _config: "",
)
"""``list_pause``: a look over a pool is a command on each of its hosts."""
