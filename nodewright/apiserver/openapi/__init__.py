"""OpenAPI v3 of what the control plane serves: for `kubectl explain` and for clients that validate before they send."""

from __future__ import annotations

from nodewright.apiserver.openapi.documents import document, index

__all__ = ["document", "index"]
