"""Kubeconfigs, the administrator's and other people's: one cluster, one user, all inline, so the file can be moved."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from pathlib import Path
from typing import Final

from nodewright.apiserver.app.certificates import Credentials
from nodewright.apiserver.app.private_files import write_private

CONTEXT = "nodewright"
IN_MEMORY: Final = {"name": "nodewright.dev/plane", "extension": {"inMemory": True}}
"""Of the cluster's ``extensions``: its authority ends with the process, so that nobody needs the file after that."""
_PRIVATE = 0o100600


def write_kubeconfig(path: Path, url: str, credentials: Credentials, *, in_memory: bool = False) -> None:
    """Write a kubeconfig of mode 0600 for the administrator's client certificate.

    Merges nothing: what was at `path` is replaced as a whole. The content is JSON, which every reader of YAML
    takes. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = json.dumps(_content(url, credentials, in_memory=in_memory), indent=2).encode() + b"\n"
    with suppress(OSError):
        if path.read_bytes() == content and path.lstat().st_mode == _PRIVATE:
            return  # a start on a full disk needs no space
    write_private(path, content)


def write_token_kubeconfig(path: Path, url: str, ca: Path, user: tuple[str, str]) -> None:
    """Write a kubeconfig of mode 0600 for a name with its bearer token. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name, token = user
    cluster: dict[str, object] = {"server": url, "certificate-authority-data": _inline(ca)}
    write_private(path, json.dumps(_config(cluster, name, {"token": token}), indent=2).encode() + b"\n")


def _content(url: str, credentials: Credentials, *, in_memory: bool) -> dict[str, object]:
    user = {
        "client-certificate-data": _inline(credentials.client_certificate),
        "client-key-data": _inline(credentials.client_key),
    }
    cluster: dict[str, object] = {"server": url, "certificate-authority-data": _inline(credentials.ca)}
    if in_memory:
        cluster["extensions"] = [IN_MEMORY]
    return _config(cluster, f"{CONTEXT}-admin", user)


def _config(cluster: dict[str, object], name: str, user: dict[str, str]) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": name}}],
        "current-context": CONTEXT,
        "preferences": {},
    }


def _inline(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
