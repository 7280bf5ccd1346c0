"""Tables (meta.k8s.io/v1): what `kubectl get` prints, rendered by the server."""

from __future__ import annotations

from nodewright.apiserver.table.render import render

__all__ = ["render"]
