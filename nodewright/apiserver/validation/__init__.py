"""Structural schemas of custom resources: pruning, defaulting, validation and CEL rules; strict decoding."""

from __future__ import annotations

from nodewright.apiserver.validation.schema import Compiled, compile_schema

__all__ = ["Compiled", "compile_schema"]
