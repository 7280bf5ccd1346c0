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
    bookmark_seconds: float = 45.0
    """How often an idle watch that allows bookmarks gets one; clients give a silent watch up after 60 to 70."""


@dataclass(frozen=True, slots=True)
class ControlPlaneConfig:
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
    limits: Limits = field(default_factory=Limits)
