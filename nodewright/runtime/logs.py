"""Logs: one line an event, for people on a terminal and as JSON for machines, with secrets taken out."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal, TextIO

import orjson
import structlog

_SECRET_KEY = re.compile(r"token|password|passwd|secret|authorization|credential|private_?key|kubeconfig_?data", re.I)
_SECRET_TEXT = re.compile(
    r"(?i)(bearer\s+)[a-z0-9._~+/=-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"
    r"|(://[^/\s:@]+:)[^/\s@]+(?=@)",
    re.S,
)
_HIDDEN = "[hidden]"
_DEEPEST = 8


def configure(
    *,
    json: bool | None = None,
    level: Literal["debug", "info", "warning", "error"] = "info",
    stream: TextIO | None = None,
) -> None:
    """Set up logging of this process. ``json`` None: JSON unless ``stream`` (standard error) is a terminal."""
    stream = stream or sys.stderr
    as_json = json if json is not None else not stream.isatty()
    renderer: Any = structlog.processors.JSONRenderer(serializer=_json) if as_json else structlog.dev.ConsoleRenderer()
    processors: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        *([structlog.processors.format_exc_info] if as_json else []),
        redact,
        renderer,
    ]
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    _bridge(processors, number, stream)


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: values under telling names, and texts that look like credentials, are hidden."""
    for key in list(event):
        event[key] = _clean(key, event[key], 0)
    return event


def _clean(key: str, value: Any, depth: int) -> Any:
    if value is not None and _SECRET_KEY.search(key):
        return _HIDDEN
    if isinstance(value, str):
        return _SECRET_TEXT.sub(lambda match: f"{match[1] or match[2] or ''}{_HIDDEN}", value)
    if depth >= _DEEPEST:
        return value
    if isinstance(value, Mapping):
        return {str(k): _clean(str(k), v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean("", item, depth + 1) for item in value]
    return value


def _json(value: Any, **_: Any) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _bridge(processors: list[Any], level: int, stream: TextIO) -> None:
    """Libraries that log by the standard library (kopf, aiohttp) come out the same way."""
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=processors[:-1],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, processors[-1]],
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.INFO))
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    logging.getLogger("kopf").setLevel(max(level, logging.WARNING))
