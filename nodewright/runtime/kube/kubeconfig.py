"""Read a kubeconfig: certificates, tokens and token files here, exec plugins through kubernetes_asyncio.

One that came from the API (``parse_kubeconfig``) may name no file and no plugin: whoever can write a Secret could read
files and run programs of ours.

kubernetes_asyncio loads over a thousand modules (a second of CPU), so it is imported only for a user entry that needs
a plugin.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from api import yamltext
from nodewright.runtime.kube.connection import Connection, FileToken, StaticToken, TokenSource, in_cluster
from nodewright.runtime.kube.errors import ConfigurationError

LARGEST_KUBECONFIG = 4 << 20
_BOUNDS = yamltext.Bounds(size=LARGEST_KUBECONFIG)
_PLUGINS = ("exec", "auth-provider")
_IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")
_PATH = re.compile(r"(/[A-Za-z0-9._~:-]+)*")
_TOKEN = re.compile(r"[\x21-\x7e]+")


async def find_connection(kubeconfig: Path | None = None, context: str | None = None) -> Connection:
    """As kubectl looks for it: the given file, ``$KUBECONFIG``, ``~/.kube/config``, else the pod's service account.

    Raises ConfigurationError if none of them is there or the one found can't be used.
    """
    if kubeconfig is not None:
        return await load_kubeconfig([kubeconfig], context)
    files = _usual_files()
    if files:
        return await load_kubeconfig(files, context)
    if os.environ.get("KUBECONFIG", "").strip(os.pathsep):
        raise ConfigurationError(f"KUBECONFIG names no file that exists: {os.environ['KUBECONFIG']}")
    return in_cluster()


def context_names(kubeconfig: Path | None = None) -> list[str]:
    """Contexts in the files where ``find_connection`` looks. Raises ConfigurationError for one that can't be read."""
    merged = _Merged()
    for path in _usual_files() if kubeconfig is None else [kubeconfig]:
        merged.add(_read(path), _Origin(str(path), path))
    return merged.contexts()


def _usual_files() -> list[Path]:
    named = [Path(p) for p in os.environ.get("KUBECONFIG", "").split(os.pathsep) if p]
    return [path for path in named or [Path.home() / ".kube" / "config"] if _is_file(path)]


def _is_file(path: Path) -> bool:
    """Raises ConfigurationError for a name that the system refuses, like one that is too long."""
    try:
        return path.is_file()
    except OSError as error:
        raise ConfigurationError(f"KUBECONFIG: {str(path)[:200]}: {error.strerror}") from error


async def load_kubeconfig(files: list[Path], context: str | None = None) -> Connection:
    """The connection of ``context`` (default: the current one). If several files set the same thing, the first one
    wins.

    Raises ConfigurationError naming the file and the field.
    """
    merged = _Merged()
    for path in files:
        merged.add(_read(path), _Origin(str(path), path))
    chosen = merged.choose(context, _names(files))
    connection = _connection(chosen)
    user, origin = chosen.user
    if origin.file is not None and any(plugin in user for plugin in _PLUGINS):
        from nodewright.runtime.kube.plugins import PluginLogin  # noqa: PLC0415  (loads kubernetes_asyncio)

        login = await PluginLogin.open(origin.file, chosen.name)
        return replace(
            connection,
            client_certificate=login.client_certificate or connection.client_certificate,
            client_key=login.client_key or connection.client_key,
            tokens=login,
        )
    return connection


async def load_kubeconfig_for(path: Path, server: str) -> Connection:
    """The connection of a context whose cluster has that URL: the current one if it has, else the first that does.

    Raises ConfigurationError naming the file.
    """
    merged = _Merged()
    merged.add(_read(path), _Origin(str(path), path))
    return await load_kubeconfig([path], merged.context_for(server, str(path)))


def parse_kubeconfig(text: bytes, title: str) -> Connection:
    """The connection of the current context of a kubeconfig that came from the API.

    Raises ConfigurationError beginning with ``title`` and naming the field; it quotes nothing but names of entries.
    """
    origin = _Origin(title)
    merged = _Merged()
    merged.add(_document(text, title), origin)
    chosen = merged.choose(None, title)
    user, _ = chosen.user
    for plugin in _PLUGINS:
        if plugin in user:
            what = f"user.{plugin} would run a program of its choice here"
            raise ConfigurationError(f"{title}: {what}; a token or a client certificate is needed")
    for field in _IMPERSONATION:
        if user.get(field):
            raise ConfigurationError(f"{title}: user.{field} is not supported; give the credentials of that user")
    connection = _connection(chosen)
    _must_be_a_bare_url(connection.server, f"{title}: server")
    return connection


def _must_be_a_bare_url(server: str, what: str) -> None:
    """Paths of requests are put behind it: with a query or a fragment they would be another request."""
    parts = urlsplit(server)
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"{what} holds a login; put it into the user")
    if any(mark in server for mark in "?#\\") or not server.isascii() or not server.isprintable() or " " in server:
        raise ConfigurationError(f"{what} is not an URL of scheme, host, port and path alone")
    if _PATH.fullmatch(parts.path) is None or any(part in {".", ".."} for part in parts.path.split("/")):
        raise ConfigurationError(f"{what} has a path that is not letters, digits and -._~ between slashes")


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where an entry stands. Without a ``file`` it came from the API, and may name no file itself."""

    title: str
    file: Path | None = None

    def beside(self, field: str, named: str) -> Path:
        """The file that ``field`` names, relative to this one."""
        if self.file is None:
            raise ConfigurationError(f"{self.title}: {field} names a file; the data itself has to stand there")
        return self.file.parent / named


_Entry = tuple[Mapping[str, Any], _Origin]


@dataclass(frozen=True, slots=True)
class _Chosen:
    name: str
    context: Mapping[str, Any]
    cluster: _Entry
    user: _Entry


def _connection(chosen: _Chosen) -> Connection:
    """All of it but what a plugin has to say."""
    (cluster, origin), (user, user_origin) = chosen.cluster, chosen.user
    server = str(cluster.get("server") or "").rstrip("/")
    if not _is_http(server):
        name = chosen.context["cluster"]
        raise ConfigurationError(f"{origin.title}: clusters[{name}].cluster.server is not an HTTP URL")
    return Connection(
        server,
        ca=_data(cluster, "certificate-authority", origin),
        client_certificate=_data(user, "client-certificate", user_origin),
        client_key=_data(user, "client-key", user_origin),
        tokens=_tokens(user, user_origin),
        server_name=str(cluster.get("tls-server-name") or ""),
        proxy=str(cluster.get("proxy-url") or ""),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        namespace=str(chosen.context.get("namespace") or "default"),
    )


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"https", "http"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


class _Merged:
    """Several kubeconfigs as one, remembering which file each entry came from (its paths are relative to that)."""

    def __init__(self) -> None:
        self.current_context = ""
        self._entries: dict[tuple[str, str], _Entry] = {}

    def add(self, document: Mapping[str, Any], origin: _Origin) -> None:
        self.current_context = self.current_context or str(document.get("current-context") or "")
        for section, inner in (("contexts", "context"), ("clusters", "cluster"), ("users", "user")):
            entries = document.get(section) or []
            if not isinstance(entries, list):
                raise ConfigurationError(f"{origin.title}: {section} is not a list")
            for index, entry in enumerate(entries):
                if not isinstance(entry, Mapping) or not isinstance(entry.get(inner) or {}, Mapping):
                    where = f"{origin.title}: {section}[{index}]"
                    raise ConfigurationError(f"{where} is not an object with name and {inner}")
                self._entries.setdefault((section, str(entry.get("name"))), (entry.get(inner) or {}, origin))

    def contexts(self) -> list[str]:
        return sorted(name for section, name in self._entries if section == "contexts")

    def choose(self, context: str | None, title: str) -> _Chosen:
        """``context`` (None: the current one) with its cluster and user. Raises ConfigurationError."""
        name = context or self.current_context
        known = {name for section, name in self._entries if section == "contexts"}
        remedy = _listed("Contexts", known)
        if not name:
            raise ConfigurationError(f"{title}: current-context is not set, and no context was asked for", remedy)
        if name not in known:
            raise ConfigurationError(f"{title}: there is no context named {name!r} in contexts", remedy)
        chosen, origin = self._entry("contexts", "context", name, title)
        cluster = self._entry("clusters", "cluster", str(chosen.get("cluster", "")), origin.title)
        named = chosen.get("user")
        user: _Entry = self._entry("users", "user", str(named), origin.title) if named else ({}, origin)
        return _Chosen(name, chosen, cluster, user)

    def context_for(self, server: str, title: str) -> str:
        """Name of a context whose cluster has that URL."""
        clusters = {
            name
            for (section, name), (cluster, _) in self._entries.items()
            if section == "clusters" and str(cluster.get("server") or "").rstrip("/") == server.rstrip("/")
        }
        if not clusters:
            found = {str(each.get("server")) for (what, _), (each, _) in self._entries.items() if what == "clusters"}
            raise ConfigurationError(f"{title}: there is no cluster with server {server}", _listed("Servers", found))
        contexts = [
            name
            for (section, name), (context, _) in self._entries.items()
            if section == "contexts" and str(context.get("cluster")) in clusters
        ]
        if not contexts:
            raise ConfigurationError(f"{title}: there is no context for the cluster {sorted(clusters)[0]!r}")
        return self.current_context if self.current_context in contexts else contexts[0]

    def _entry(self, section: str, inner: str, name: str, origin: str) -> _Entry:
        found = self._entries.get((section, name))
        if found is None:
            raise ConfigurationError(f"{origin}: there is no {inner} named {name!r} in {section}")
        return found


def _listed(what: str, names: set[str]) -> str:
    """What there is instead; "" if that is nothing."""
    return f"{what} there: {', '.join(sorted(names))}" if names else ""


def _read(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > LARGEST_KUBECONFIG:
            raise ConfigurationError(f"{path}: larger than {LARGEST_KUBECONFIG} bytes")
        return _document(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error


def _document(text: bytes, title: str) -> Mapping[str, Any]:
    try:
        document = yamltext.load(text, _BOUNDS)
    except yamltext.TextError as error:
        raise ConfigurationError(f"{title}: not YAML: {error}") from None
    if not isinstance(document, Mapping):
        raise ConfigurationError(f"{title}: not a kubeconfig")
    return document


def _data(entry: Mapping[str, Any], name: str, origin: _Origin) -> bytes:
    """``<name>-data`` (base64) before ``<name>`` (a path, relative to the kubeconfig), as kubectl prefers them."""
    if entry.get(f"{name}-data"):
        try:
            return base64.b64decode(str(entry[f"{name}-data"]), validate=True)
        except binascii.Error as error:
            raise ConfigurationError(f"{origin.title}: {name}-data is not base64") from error
    if not entry.get(name):
        return b""
    path = origin.beside(name, str(entry[name]))
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{origin.title}: {name} {path}: {error.strerror}") from error


def _tokens(user: Mapping[str, Any], origin: _Origin) -> TokenSource | None:
    if user.get("token"):
        token = str(user["token"]).strip()
        if _TOKEN.fullmatch(token) is None:
            raise ConfigurationError(f"{origin.title}: token holds characters that no header can carry")
        return StaticToken(token)
    if user.get("tokenFile"):
        return FileToken(origin.beside("tokenFile", str(user["tokenFile"])))
    if user.get("username"):
        raise ConfigurationError(f"{origin.title}: username and password are not supported by Kubernetes since 1.19")
    return None


def _names(files: list[Path]) -> str:
    return ", ".join(str(path) for path in files)
