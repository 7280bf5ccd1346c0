"""Names and passwords as HTTP's basic authentication carries them (RFC 7617, UTF-8)."""

from __future__ import annotations

import base64
import binascii


def encode(user: str, password: str) -> str:
    """The value of the header Authorization."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def decode(header: str) -> tuple[str, str] | None:
    """User and password; None for what is not basic authentication."""
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(text.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    return (user, password) if colon else None
