"""Read a kubeconfig: certificates, tokens and token files here, exec plugins through kubernetes_asyncio.

kubernetes_asyncio loads over a thousand modules (a second of CPU), so it is imported only for a user entry that needs
a plugin.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from nodewright.runtime.kube.connection import Connection, FileToken, StaticToken, TokenSource, in_cluster
from nodewright.runtime.kube.errors import ConfigurationError

LARGEST_KUBECONFIG = 4 << 20
_PLUGINS = ("exec", "auth-provider")


async def find_connection(kubeconfig: Path | None = None, context: str | None = None) -> Connection:
    """As kubectl looks for it: the given file, ``$KUBECONFIG``, ``~/.kube/config``, else the pod's service account.

    Raises ConfigurationError if none of them is there or the one found can't be used.
    """
    if kubeconfig is not None:
        return await load_kubeconfig([kubeconfig], context)
    named = [Path(p) for p in os.environ.get("KUBECONFIG", "").split(os.pathsep) if p]
    files = [path for path in named or [Path.home() / ".kube" / "config"] if path.is_file()]
    if files:
        return await load_kubeconfig(files, context)
    if named:
        raise ConfigurationError(f"KUBECONFIG names no file that exists: {os.environ['KUBECONFIG']}")
    return in_cluster()


async def load_kubeconfig(files: list[Path], context: str | None = None) -> Connection:
    """The connection of ``context`` (default: the current one). Of several files the first that sets a thing wins.

    Raises ConfigurationError naming the file and the field.
    """
    merged = _Merged()
    for path in files:
        merged.add(path)
    name = context or merged.current_context
    if not name:
        raise ConfigurationError(f"{_names(files)}: current-context is not set, and no context was asked for")
    chosen, origin = merged.entry("contexts", "context", name, _names(files))
    cluster, cluster_file = merged.entry("clusters", "cluster", str(chosen.get("cluster", "")), str(origin))
    user: Mapping[str, Any] = {}
    user_file = origin
    if chosen.get("user"):
        user, user_file = merged.entry("users", "user", str(chosen["user"]), str(origin))
    server = str(cluster.get("server") or "").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise ConfigurationError(f"{cluster_file}: clusters[{chosen['cluster']}].cluster.server is not an HTTP URL")
    certificate = _data(user, "client-certificate", user_file)
    key = _data(user, "client-key", user_file)
    tokens = _tokens(user, user_file)
    if any(plugin in user for plugin in _PLUGINS):
        from nodewright.runtime.kube.plugins import PluginLogin  # noqa: PLC0415  (loads kubernetes_asyncio)

        login = await PluginLogin.open(user_file, name)
        certificate, key = login.client_certificate or certificate, login.client_key or key
        tokens = login
    return Connection(
        server,
        ca=_data(cluster, "certificate-authority", cluster_file),
        client_certificate=certificate,
        client_key=key,
        tokens=tokens,
        server_name=str(cluster.get("tls-server-name") or ""),
        proxy=str(cluster.get("proxy-url") or ""),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        namespace=str(chosen.get("namespace") or "default"),
    )


class _Merged:
    """Several kubeconfigs as one, remembering which file each entry came from (its paths are relative to that)."""

    def __init__(self) -> None:
        self.current_context = ""
        self._entries: dict[tuple[str, str], tuple[Mapping[str, Any], Path]] = {}

    def add(self, path: Path) -> None:
        document = _read(path)
        self.current_context = self.current_context or str(document.get("current-context") or "")
        for section, inner in (("contexts", "context"), ("clusters", "cluster"), ("users", "user")):
            entries = document.get(section) or []
            if not isinstance(entries, list):
                raise ConfigurationError(f"{path}: {section} is not a list")
            for index, entry in enumerate(entries):
                if not isinstance(entry, Mapping) or not isinstance(entry.get(inner) or {}, Mapping):
                    raise ConfigurationError(f"{path}: {section}[{index}] is not an object with name and {inner}")
                self._entries.setdefault((section, str(entry.get("name"))), (entry.get(inner) or {}, path))

    def entry(self, section: str, inner: str, name: str, origin: str) -> tuple[Mapping[str, Any], Path]:
        found = self._entries.get((section, name))
        if found is None:
            raise ConfigurationError(f"{origin}: there is no {inner} named {name!r} in {section}")
        return found


def _read(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > LARGEST_KUBECONFIG:
            raise ConfigurationError(f"{path}: larger than {LARGEST_KUBECONFIG} bytes")
        document = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = getattr(error, "problem_mark", None)
        raise ConfigurationError(f"{path}: not YAML{f' (line {where.line + 1})' if where else ''}") from error
    if not isinstance(document, Mapping):
        raise ConfigurationError(f"{path}: not a kubeconfig")
    return document


def _data(entry: Mapping[str, Any], name: str, origin: Path) -> bytes:
    """``<name>-data`` (base64) before ``<name>`` (a path, relative to the kubeconfig), as kubectl prefers them."""
    if entry.get(f"{name}-data"):
        try:
            return base64.b64decode(str(entry[f"{name}-data"]), validate=True)
        except binascii.Error as error:
            raise ConfigurationError(f"{origin}: {name}-data is not base64") from error
    if not entry.get(name):
        return b""
    path = origin.parent / str(entry[name])
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{origin}: {name} {path}: {error.strerror}") from error


def _tokens(user: Mapping[str, Any], origin: Path) -> TokenSource | None:
    if user.get("token"):
        return StaticToken(str(user["token"]))
    if user.get("tokenFile"):
        return FileToken(origin.parent / str(user["tokenFile"]))
    if user.get("username"):
        raise ConfigurationError(f"{origin}: username and password are not supported by Kubernetes since 1.19")
    return None


def _names(files: list[Path]) -> str:
    return ", ".join(str(path) for path in files)
