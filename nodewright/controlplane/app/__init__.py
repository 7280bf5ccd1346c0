"""The HTTP shell of the embedded control plane: routing, watches, discovery, authentication and TLS."""

from __future__ import annotations

from nodewright.controlplane.app.config import ControlPlaneConfig, Limits
from nodewright.controlplane.app.plane import ControlPlane

__all__ = ["ControlPlane", "ControlPlaneConfig", "Limits"]
