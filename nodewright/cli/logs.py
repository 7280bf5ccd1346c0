"""The program's log goes to standard error, so that standard output stays for what was asked."""

from __future__ import annotations

import logging
import sys


def log_to_stderr(level: str) -> None:
    """Log from ``level`` on (``debug``, ``info``, ``warning``, ``error``), structlog's events like all others."""
    import structlog  # noqa: PLC0415

    number = getattr(logging, level.upper())
    logging.basicConfig(
        stream=sys.stderr, level=number, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
