"""Hosts that are there already, reached over SSH by asyncssh (the extra ``ssh``); the entry point names it."""

from __future__ import annotations

from providers.ssh.registration import registration

__all__ = ["registration"]
