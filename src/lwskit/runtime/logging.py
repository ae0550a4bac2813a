"""Log output: structlog in front, the standard library behind it, so that other packages' lines look the same."""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO

import structlog

from lwskit.runtime.errors import ConfigurationError

FORMATS = ("console", "json")
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "panic": logging.CRITICAL,
}


def level_of(text: str) -> int:
    """The standard library's number for a level's name, or DEBUG for a verbosity of 1 and more.

    Raises ConfigurationError that lists the names.
    """
    found = _LEVELS.get(text.lower())
    if found is not None:
        return found
    if text.isdecimal() and int(text) > 0:
        return logging.DEBUG
    raise ConfigurationError(f"{text!r} is not a log level; use one of {', '.join(_LEVELS)}, or a number above 0")


def configure(format: str = "console", level: str = "info", stream: TextIO | None = None) -> None:
    """Send log lines from `level` on to `stream` (standard error), as text for people or as one JSON object a line.

    Lines carry the time in UTC, the level, the logger's name and what was bound to the context, such as a reconcile's
    id. May be called again. Raises ConfigurationError for an unknown format or level.
    """
    if format not in FORMATS:
        raise ConfigurationError(f"{format!r} is not a log format; use one of {', '.join(FORMATS)}")
    number = level_of(level)
    out = stream or sys.stderr
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers(format, out)],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(number)


def _renderers(format: str, out: TextIO) -> list[Any]:
    if format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
    return [
        structlog.dev.ConsoleRenderer(
            colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback, pad_event_to=0
        )
    ]
