"""The proxy's configuration file: JSON, the original's fields with its defaults, and a few more.

| field | default | |
|---|---|---|
| ``server.timeout`` | 60s | for reading a client's request |
| ``apiServer.url`` | required | the cluster's API server |
| ``apiServer.auth.kubeConfigPath`` | | a kubeconfig with a cluster of that URL; the others are ignored then |
| ``apiServer.auth.clientCertPath``, ``.clientKeyPath``, ``.caCertPath`` | | PEM files, all three |
| ``apiServer.auth.inCluster`` | false | the pod's service account (not in the original) |
| ``apiServer.timeout`` | 60s | for a request to it |
| ``backend.url`` | required | the cloudpool; it may have a path |
| ``backend.timeout`` | 300s | for a request to it |
| ``backend.tls.caCertPath``, ``.clientCertPath``, ``.clientKeyPath`` | the system's | (not in the original) |
| ``backend.auth.username``, ``.passwordPath`` | none | basic authentication (not in the original) |

Unknown fields are ignored and field names are matched whatever their case, as the original does.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nodewright.gateways.cloudpool import basic_auth
from nodewright.gateways.cloudpool.backend import BackendOptions
from nodewright.runtime.kube.connection import Connection, in_cluster
from nodewright.runtime.kube.errors import ConfigurationError
from nodewright.runtime.kube.kubeconfig import load_kubeconfig_for

SERVER_TIMEOUT, API_TIMEOUT, BACKEND_TIMEOUT = 60.0, 60.0, 300.0
_WHOLE = re.compile(r"[+-]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+\Z")
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_ODD = re.compile(r"[\s\\?#]|[^\x21-\x7e]")
_CERTIFICATES = ("clientCertPath", "clientKeyPath", "caCertPath")


class ConfigError(Exception):
    """A configuration that can't be used, in the original's words where it has some."""


@dataclass(frozen=True, slots=True)
class Auth:
    """``kubeconfig`` "" : by the certificate files, or by the pod's service account."""

    kubeconfig: str = ""
    certificate: str = ""
    key: str = ""
    ca: str = ""
    in_cluster: bool = False


@dataclass(frozen=True, slots=True)
class BackendFiles:
    ca: str = ""
    certificate: str = ""
    key: str = ""
    username: str = ""
    password: str = ""


@dataclass(frozen=True, slots=True)
class ProxyConfig:
    """Times in seconds."""

    api_url: str
    auth: Auth
    backend_url: str
    backend_files: BackendFiles = BackendFiles()
    server_timeout: float = SERVER_TIMEOUT
    api_timeout: float = API_TIMEOUT
    backend_timeout: float = BACKEND_TIMEOUT


def load(path: Path) -> ProxyConfig:
    """Raises ConfigError."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"could not read config: {error}") from error
    try:
        return parse(text)
    except ConfigError as error:
        raise ConfigError(f"could not parse config: {error}") from error


def _must_be_complete(auth: Auth) -> None:
    if auth.kubeconfig or auth.in_cluster:
        return
    for name, value in zip(_CERTIFICATES, (auth.certificate, auth.key, auth.ca), strict=True):
        if not value:
            raise ConfigError(f"invalid proxy configuration: proxy config: apiServer: auth: missing value: {name}")


def parse(text: str) -> ProxyConfig:
    """Raises ConfigError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"failed to parse proxy config: {error}") from error
    server, api, backend = (_part(document, name, name) for name in ("server", "apiServer", "backend"))
    auth = _auth(_part(api, "auth", "apiServer.auth"))
    api_url = _url(api, "apiServer", "apiServer")
    _must_be_complete(auth)
    return ProxyConfig(
        api_url,
        auth,
        _url(backend, "backend", "backend: backend"),
        _backend_files(backend),
        _timeout(server, "server", SERVER_TIMEOUT),
        _timeout(api, "apiServer", API_TIMEOUT),
        _timeout(backend, "backend", BACKEND_TIMEOUT),
    )


def seconds_of(text: object, where: str) -> float:
    """A duration as Go writes them. Raises ConfigError."""
    if not isinstance(text, str) or not _WHOLE.match(text):
        raise ConfigError(f"failed to parse proxy config: {where}: invalid duration {json.dumps(text)}")
    total = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    return -total if text.startswith("-") else total


async def connection_of(config: ProxyConfig) -> Connection:
    """Raises ConfigurationError."""
    auth = config.auth
    if auth.kubeconfig:
        try:
            return await load_kubeconfig_for(Path(auth.kubeconfig), config.api_url)
        except ConfigurationError as error:
            remedy = error.remedy or "Correct it in the configuration file"
            raise ConfigurationError(f"apiServer.auth.kubeConfigPath: {error}", remedy) from error
    if auth.in_cluster:
        return in_cluster()
    return Connection(
        config.api_url,
        ca=_pem(auth.ca, "caCertPath"),
        client_certificate=_pem(auth.certificate, "clientCertPath"),
        client_key=_pem(auth.key, "clientKeyPath"),
    )


def backend_of(config: ProxyConfig) -> BackendOptions:
    """Raises ConfigurationError."""
    files = config.backend_files
    login = ""
    if files.username:
        password = _pem(files.password, "backend.auth.passwordPath").decode().rstrip("\n")
        login = basic_auth.encode(files.username, password)
    return BackendOptions(config.backend_url, config.backend_timeout, _backend_tls(files), login)


def _backend_tls(files: BackendFiles) -> ssl.SSLContext | None:
    if not (files.ca or files.certificate):
        return None
    try:
        context = ssl.create_default_context(cafile=files.ca or None)
        if files.certificate:
            context.load_cert_chain(files.certificate, files.key or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(f"backend.tls: {error}") from error
    return context


def _pem(path: str, name: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{name} {path}: {error.strerror}") from error


def _part(document: Any, name: str, path: str) -> Mapping[str, Any]:
    """An object by its name, whatever the case; one that is missing is empty."""
    if not isinstance(document, Mapping):
        raise ConfigError("failed to parse proxy config: an object is needed")
    found = _get(document, name)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise ConfigError(f"failed to parse proxy config: {path}: an object is needed")
    return found


def _get(part: Mapping[str, Any], name: str) -> Any:
    if name in part:
        return part[name]
    return next((value for key, value in part.items() if key.lower() == name.lower()), None)


def _text(part: Mapping[str, Any], name: str, where: str) -> str:
    value = _get(part, name)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"failed to parse proxy config: {where}.{name}: a string is needed")
    return value or ""


def _url(part: Mapping[str, Any], name: str, title: str) -> str:
    url = _text(part, "url", name)
    if not url:
        raise ConfigError(f"invalid proxy configuration: proxy config: {title}: missing field: url")
    try:
        parts = urlsplit(url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        why = "missing protocol scheme" if "://" not in url else "no HTTP URL"
        raise ConfigError(f"invalid proxy configuration: proxy config: {name}: url: parse {json.dumps(url)}: {why}")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment or _ODD.search(url):
        why = "user info, query, fragment, spaces and backslashes are not allowed: name a login with backend.auth"
        raise ConfigError(f"invalid proxy configuration: proxy config: {name}: url: {why}")
    return url.rstrip("/")


def _auth(part: Mapping[str, Any]) -> Auth:
    certificate, key, ca = (_text(part, name, "apiServer.auth") for name in _CERTIFICATES)
    kubeconfig = _text(part, "kubeConfigPath", "apiServer.auth")
    return Auth(kubeconfig, certificate, key, ca, _get(part, "inCluster") is True)


def _backend_files(backend: Mapping[str, Any]) -> BackendFiles:
    tls, auth = _part(backend, "tls", "backend.tls"), _part(backend, "auth", "backend.auth")
    return BackendFiles(
        _text(tls, "caCertPath", "backend.tls"),
        _text(tls, "clientCertPath", "backend.tls"),
        _text(tls, "clientKeyPath", "backend.tls"),
        _text(auth, "username", "backend.auth"),
        _text(auth, "passwordPath", "backend.auth"),
    )


def _timeout(part: Mapping[str, Any], name: str, default: float) -> float:
    value = _get(part, "timeout")
    if value is None:
        return default
    seconds = seconds_of(value, f"{name}.timeout")
    return seconds if seconds > 0 else default
