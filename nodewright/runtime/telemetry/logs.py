"""Logs: one line an event, for people on a terminal and as JSON for machines, with secrets taken out.

Whatever is logged inside ``about`` carries the keys given there; tasks begun inside take them along. So each line of a
reconcile, and of the provider calls that it begins, names its object.
"""

from __future__ import annotations

import io
import json as standard_json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TextIO, cast

import orjson

from api.secrets import HIDDEN, is_secret_name, without_secrets
from api.visible import visible
from nodewright.runtime.telemetry import tracing

Level = Literal["debug", "info", "warning", "error"]

_DEEPEST = 8

_ABOUT: ContextVar[Mapping[str, str]] = ContextVar("about", default={})  # noqa: B039  (never written to)


_HIDING: ContextVar[tuple[str, ...]] = ContextVar("hiding", default=())


@contextmanager
def hiding(secrets: Iterable[str]) -> Iterator[None]:
    """Take these texts out of lines logged inside, wherever they stand: tracebacks quote what they choke on."""
    token = _HIDING.set(tuple(sorted(set(secrets), key=len, reverse=True)))
    try:
        yield
    finally:
        _HIDING.reset(token)


@contextmanager
def about(keys: Mapping[str, str]) -> Iterator[None]:
    """What lines logged inside are about."""
    token = _ABOUT.set(keys)
    try:
        yield
    finally:
        _ABOUT.reset(token)


class StandardError(io.TextIOBase):
    """Whatever ``sys.stderr`` is at the moment: it may be put in another's place, and closed, after logging was set
    up."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def isatty(self) -> bool:
        return sys.stderr.isatty()


def configure(
    *,
    json: bool | None = None,
    level: Level = "info",
    stream: TextIO | None = None,
) -> None:
    """Set up logging of this process. ``json`` None: JSON unless ``stream`` (standard error) is a terminal."""
    import structlog  # noqa: PLC0415  (with rich, which it draws with, a tenth of a second; see configure_late)

    stream = stream or cast("TextIO", StandardError())
    as_json = json if json is not None else not stream.isatty()
    renderer: Any = structlog.processors.JSONRenderer(serializer=_json)
    if not as_json:
        renderer = structlog.dev.ConsoleRenderer(
            colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    processors: list[Any] = [
        _say_what_about,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,  # before what hides secrets, since tracebacks quote them
        redact,
        *([] if as_json else [show]),
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


def configure_late(*, json: bool | None = None, level: Level = "info") -> None:
    """As ``configure``, but for a process where only libraries log, and mostly nothing: the first line sets it up."""
    root = logging.getLogger()
    root.handlers[:] = [_FirstLine(json, level)]
    _thresholds(logging.getLevelNamesMapping()[level.upper()])


class _FirstLine(logging.Handler):
    """Sets up logging in earnest and hands the line on."""

    def __init__(self, json: bool | None, level: Level) -> None:
        super().__init__()
        self._json = json
        self._wanted: Level = level

    def emit(self, record: logging.LogRecord) -> None:
        configure(json=self._json, level=self._wanted)
        for handler in logging.getLogger().handlers:
            handler.handle(record)


def _say_what_about(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor. What the line says itself goes before."""
    for key, value in (*_ABOUT.get().items(), *tracing.ids().items()):
        event.setdefault(key, value)
    return event


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: values under telling names, and texts that look like credentials, are hidden."""
    for key in list(event):
        event[key] = _clean(key, event[key], 0)
    return event


def _clean(key: str, value: Any, depth: int) -> Any:
    if value is not None and is_secret_name(key):
        return HIDDEN
    if isinstance(value, str):
        for secret in _HIDING.get():
            value = value.replace(secret, HIDDEN)
        return without_secrets(value)
    if depth >= _DEEPEST:
        return value
    if isinstance(value, Mapping):
        return {str(k): _clean(str(k), v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean("", item, depth + 1) for item in value]
    return value


_LINES = frozenset({"exception", "stack", "stack_info"})


def show(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor for people's terminals: text of others can neither steer one nor begin a line."""
    for key in list(event):
        event[key] = _shown(event[key], lines=key in _LINES)
    return event


def _shown(value: Any, *, lines: bool = False) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = visible(value if isinstance(value, str) else str(value))
    return text if lines else text.replace("\n", "\\n")


def _json(value: Any, **_: Any) -> str:
    """A line, whatever is in it: what a cloud says may be no Unicode, and no line is worth a call that fails."""
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        return standard_json.dumps(value, default=str)


def _bridge(processors: list[Any], level: int, stream: TextIO) -> None:
    """Libraries that log by the standard library (kopf, aiohttp) come out the same way."""
    import structlog  # noqa: PLC0415

    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=processors[:-1],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, processors[-1]],
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    if level > logging.DEBUG:
        handler.addFilter(_is_worth_a_line)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    _thresholds(level)


def _thresholds(level: int) -> None:
    logging.getLogger().setLevel(max(level, logging.INFO))
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    logging.getLogger("kopf").setLevel(max(level, logging.WARNING))


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Not each attempt of kopf's client: the preflight says in one line what is not reached and what to do."""
    return not (record.name.startswith("kopf") and record.getMessage().startswith("Request attempt"))
