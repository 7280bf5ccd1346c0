"""Field ownership (metadata.managedFields) and server-side apply."""

from __future__ import annotations

from nodewright.apiserver.managedfields.applying import apply
from nodewright.apiserver.managedfields.tracking import Writer, track

__all__ = ["Writer", "apply", "track"]
