"""What a caller can choose about an embedded control plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that keep one client from taking the whole process. Times are in seconds.

    `body_bytes` is the largest request body; kube-apiserver's own limit is 3 MiB.
    """

    body_bytes: int = 3 * 1024 * 1024
    body_seconds: float = 60.0
    requests_in_flight: int = 1000
    watches: int = 4000
    watch_seconds: int = 3600
    connections: int = 5000
    """Open connections; fewer if the process has fewer file descriptors. One more is hung up on."""
    header_seconds: float = 20.0
    """How long a new connection may take for its TLS handshake, and then for the header of each request."""
    idle_seconds: float = 90.0
    """How long a connection is kept open for the next request; kube-apiserver's time."""
    answer_seconds: float = 120.0
    """How long a client may take to read an answer that is no watch."""
    bookmark_seconds: float = 45.0
    """How often an idle watch that allows bookmarks gets one; clients give a silent watch up after 60 to 70."""


@dataclass(frozen=True, slots=True)
class APIServerConfig:
    """How to serve.

    `data_dir=None` keeps everything in memory; keys and kubeconfig then lie in a private folder that goes away
    with the plane. `port=0` takes a free one. A `host` other than loopback must be asked for by name and gets
    into the server's certificate. `kubeconfig` is where to write the administrator's kubeconfig, by default
    `kubeconfig` in the data folder. `crds` are CustomResourceDefinitions (parsed YAML) to install at start.
    """

    data_dir: Path | None = None
    host: str = "127.0.0.1"
    port: int = 0
    kubeconfig: Path | None = None
    crds: tuple[Mapping[str, Any], ...] = ()
    accept_loss: bool = False
    """Go on with what can be read of a damaged state, instead of refusing to start."""
    anonymous_cluster_info: bool = False
    """Let anybody read the ConfigMap cluster-info in kube-public, which kubeadm's token discovery needs."""
    namespace_grace_seconds: float = 5.0
    """How long a deleted namespace keeps its contents, as on a real server."""
    limits: Limits = field(default_factory=Limits)
