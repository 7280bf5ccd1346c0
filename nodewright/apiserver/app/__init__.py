"""The HTTP shell of the embedded control plane: routing, watches, discovery, authentication and TLS."""

from __future__ import annotations

from nodewright.apiserver.app.config import APIServerConfig, Limits
from nodewright.apiserver.app.plane import APIServer

__all__ = ["APIServer", "APIServerConfig", "Limits"]
