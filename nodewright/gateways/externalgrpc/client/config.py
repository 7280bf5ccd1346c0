"""The file that ``--cloud-config`` names, with the keys that the Cluster Autoscaler reads there for externalgrpc."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc

from api import yamltext
from api.durations import parse_duration

_KEYS = ("address", "cert", "key", "cacert", "grpc_timeout")
_TIMEOUT = 5.0
_LONGEST_FILE = 1024 * 1024


class CloudConfigError(ValueError):
    """The message names the field."""


@dataclass(frozen=True, slots=True)
class CloudConfig:
    """``timeout``: seconds for each call. ``cert`` "": plaintext. Files are PEM."""

    address: str
    cert: str = ""
    key: str = ""
    cacert: str = ""
    timeout: float = _TIMEOUT

    def credentials(self) -> grpc.ChannelCredentials | None:
        """None: plaintext. Raises CloudConfigError naming the file that can't be read."""
        if not self.cert:
            return None
        cert, key, cacert = (_content(name, getattr(self, name)) for name in ("cert", "key", "cacert"))
        return grpc.ssl_channel_credentials(root_certificates=cacert, private_key=key, certificate_chain=cert)


def _values(text: str) -> dict[str, str]:
    """By key, "" where it is not given."""
    try:
        found = yamltext.load(text)
    except yamltext.TextError as error:
        raise CloudConfigError(f"not a map in YAML: {error}") from error
    if not isinstance(found, Mapping):
        raise CloudConfigError("a map with the key address is needed")
    values = {key: found.get(key) or "" for key in _KEYS}
    for key, value in values.items():
        if not isinstance(value, str):
            raise CloudConfigError(f"{key}: must be text")
    return values


def read_config(text: str) -> CloudConfig:
    """Raises CloudConfigError. Other keys are passed over, as upstream does."""
    values = _values(text)
    _check_address(values["address"])
    if values["cert"]:
        for key in ("key", "cacert"):
            if not values[key]:
                raise CloudConfigError(f"{key}: is needed beside cert")
    elif values["key"]:
        raise CloudConfigError("cert: is needed beside key; without both the connection would be plaintext")
    return CloudConfig(
        values["address"], values["cert"], values["key"], values["cacert"], _seconds(values["grpc_timeout"])
    )


def _check_address(address: str) -> None:
    host, colon, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    is_plain = ":" not in host or (host.startswith("[") and host.endswith("]"))
    if not (colon and bare and is_plain and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise CloudConfigError(f"address: {address!r} is not like provider.example:8086")


def _seconds(text: str) -> float:
    if not text:
        return _TIMEOUT
    try:
        seconds = parse_duration(text).total_seconds()
    except ValueError as error:
        raise CloudConfigError(f"grpc_timeout: {error}") from error
    if seconds <= 0:
        raise CloudConfigError("grpc_timeout: must be more than 0")
    return seconds


def _content(field: str, path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LONGEST_FILE + 1)
    except OSError as error:
        raise CloudConfigError(f"{field}: {path}: {error.strerror}") from error
    if len(content) > _LONGEST_FILE or b"-----BEGIN" not in content:
        raise CloudConfigError(f"{field}: {path} is no PEM file")
    return content
