"""Objects out of `application/vnd.kubernetes.protobuf` bodies, which kubectl and other typed Go clients send."""

from __future__ import annotations

from nodewright.apiserver.protobuf.envelope import decode

__all__ = ["decode"]
