"""The kubeconfig of a new cluster as a file of its own, which never takes the place of another cluster's."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from controllers.kernel.refs import Obj, mapping
from nodewright.cli.exits import CliError
from nodewright.runtime.kube.errors import ConfigurationError
from nodewright.runtime.kube.kubeconfig import LARGEST_KUBECONFIG, parse_kubeconfig
from nodewright.runtime.workloads.secret import connection_in

_HINT = "Choose another file with --kubeconfig-out"


def content_of(secret: Obj) -> bytes:
    """The kubeconfig in the Secret. Raises ConfigurationError."""
    connection_in(secret)
    data = mapping(secret.get("data"))
    return base64.b64decode(str(data.get("value") or data.get("kubeconfig")))


def must_be_free(path: Path, content: bytes | None) -> None:
    """Raises CliError unless ``path`` can be written: a file that is there must be of the same cluster.

    ``content`` None: the cluster has no kubeconfig yet, so that no file can be its own.
    """
    try:
        with path.open("rb") as file:
            there = file.read(LARGEST_KUBECONFIG + 1)
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise CliError(f"{path}: its folder does not exist", _HINT) from None
        return
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}", _HINT) from error
    identity = _identity(there)
    if there and (content is None or identity is None or identity != _identity(content)):
        raise CliError(f"{path} exists and is not the kubeconfig of this cluster: it is left as it is", _HINT)


def write(path: Path, content: bytes) -> None:
    """Whole or not at all, for its owner's eyes only (0600). Raises CliError."""
    must_be_free(path, content)
    made = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        made.replace(path)
    except OSError as error:
        made.unlink(missing_ok=True)
        raise CliError(f"{path}: {error.strerror}", _HINT) from error


def _identity(content: bytes) -> tuple[str, bytes] | None:
    """Server and certificate authority, which tell clusters apart; None for what is no kubeconfig."""
    try:
        connection = parse_kubeconfig(content, "kubeconfig")
    except ConfigurationError:
        return None
    return connection.server, connection.ca
