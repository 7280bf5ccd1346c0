"""Kubeconfig files of other clusters stay theirs: which file may be replaced, and how a context is added to one.

Clusters are told apart by their certificate authority: names and addresses repeat, a new plane may get the port of an
old one. A plane in memory has a new authority with each start; its file says so, and is worth nothing once it is gone.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from api import yamltext
from nodewright.apiserver.app.kubeconfig import CONTEXT, IN_MEMORY
from nodewright.apiserver.app.private_files import private_folder, write_private
from nodewright.cli.exits import CliError

_SECTIONS: Final = (("clusters", "cluster"), ("users", "user"), ("contexts", "context"))
_LARGEST: Final = 4 << 20
_SECONDS: Final = 1.0
_MEND: Final = "Mend the file, or choose another"
Entry = Mapping[str, Any]


def must_be_ours(path: Path, authority: bytes | None) -> None:
    """Raises CliError unless a plane with ``authority`` (PEM in base64; None: it is new) may replace ``path``.

    Free is no file, an empty one, that of the same plane, and that of a plane in memory that has ended.
    """
    hint = "Choose another --kubeconfig, or remove it"
    try:
        clusters = _entries(_document(path), "clusters", "cluster")
    except CliError:
        clusters = {"?": {}}
    if set(clusters) - {CONTEXT}:
        raise CliError(f"{path} exists and is not ours: it would be overwritten", hint)
    for cluster in clusters.values():
        if not _is_of(cluster, authority) and not _has_ended(cluster):
            raise CliError(f"{path} is the kubeconfig of another control plane: it would be overwritten", hint)


def kubectls_file() -> Path:
    """Where ``kubectl config`` writes: of ``$KUBECONFIG`` the first file that exists, else its last, else the usual."""
    named = [Path(each) for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    if not named:
        return Path.home() / ".kube" / "config"
    return next((path for path in named if path.exists()), named[-1]).absolute()


def merge(path: Path, content: bytes, name: str) -> None:
    """Add the current context of the kubeconfig ``content``, whose keys stand in it, to ``path`` as context ``name``.

    What ``path`` holds of others stays; the context becomes the current one only where there is none. As with kubectl,
    comments go, and ``path``.lock keeps two programs from writing at once. Raises CliError: an entry of that name is
    another cluster's, or the file can't be read or written.
    """
    path = path.resolve()
    try:
        private_folder(path.parent)
        with _locked(path):
            before = _document(path)
            after = _merged(before, _current(content), name, path)
            if after != before:
                write_private(path, yamltext.dump(after).encode())
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}", "Set KUBECONFIG to a file that can be written") from error


def _merged(before: Entry, ours: Mapping[str, Entry], name: str, path: Path) -> dict[str, Any]:
    there = {inner: _entries(before, section, inner).get(name) for section, inner in _SECTIONS}
    cluster, context = there["cluster"], there["context"]
    if any(each is not None for each in there.values()):
        foreign = cluster is None or not (_is_of(cluster, _authority(ours["cluster"])) or _has_ended(cluster))
        if foreign or (context is not None and context.get("cluster") != name):
            raise CliError(f"{path} has {name!r} of another cluster: it is left as it is", "Choose another --merge-as")
    new = {**ours, "context": {**(context or {}), "cluster": name, "user": name}}
    after = {"apiVersion": "v1", "kind": "Config", **before}
    for section, inner in _SECTIONS:
        entries = [each for each in before.get(section) or [] if each.get("name") != name]
        after[section] = [*entries, {"name": name, inner: dict(new[inner])}]
    if not after.get("current-context"):
        after["current-context"] = name
    return after


def _current(content: bytes) -> dict[str, Entry]:
    """Cluster and user of the current context."""
    document = _read(content, "the new kubeconfig")
    contexts = _entries(document, "contexts", "context")
    context = contexts.get(str(document.get("current-context"))) or {}
    cluster = _entries(document, "clusters", "cluster").get(str(context.get("cluster")))
    user = _entries(document, "users", "user").get(str(context.get("user")))
    if cluster is None or user is None:
        raise CliError("the new kubeconfig has no current context with a cluster and a user")
    return {"cluster": cluster, "user": user}


def _document(path: Path) -> Entry:
    """{} for one that is not there, or is empty. Raises CliError."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from error
    return _read(text, str(path))


def _read(text: bytes, title: str) -> Entry:
    """Raises CliError."""
    try:
        document = yamltext.load(text, yamltext.Bounds(size=_LARGEST))
    except yamltext.TextError as error:
        raise CliError(f"{title}: not YAML: {error}", _MEND) from None
    if document is not None and not isinstance(document, Mapping):
        raise CliError(f"{title}: not a kubeconfig", _MEND)
    for section, inner in _SECTIONS:
        _entries(document or {}, section, inner, title)
    return document or {}


def _entries(document: Entry, section: str, inner: str, title: str = "kubeconfig") -> dict[str, Entry]:
    """By name. Raises CliError for what is no kubeconfig."""
    found = document.get(section) or []
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise CliError(f"{title}: {section} is not a list of objects", _MEND)
    if not all(isinstance(each.get(inner) or {}, Mapping) for each in found):
        raise CliError(f"{title}: {section} has an entry without {inner}", _MEND)
    return {str(each.get("name")): each.get(inner) or {} for each in found}


def _authority(cluster: Entry) -> bytes | None:
    data = cluster.get("certificate-authority-data")
    return data.encode() if isinstance(data, str) and data else None


def _is_of(cluster: Entry, authority: bytes | None) -> bool:
    return authority is not None and _authority(cluster) == authority


def _has_ended(cluster: Entry) -> bool:
    """A plane in memory where nobody listens any more."""
    extensions = cluster.get("extensions")
    if not isinstance(extensions, list) or IN_MEMORY not in extensions:
        return False
    try:
        parts = urlsplit(str(cluster.get("server")))
        socket.create_connection((parts.hostname or "", parts.port or 0), _SECONDS).close()
    except ConnectionRefusedError:
        return True
    except (OSError, ValueError):
        return False
    return False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """As kubectl does it. Raises CliError where another program has it, and OSError."""
    lock = path.with_name(f"{path.name}.lock")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        hint = "Try again, or remove that file if nobody does"
        raise CliError(f"{path} is being changed: {lock} exists", hint) from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
