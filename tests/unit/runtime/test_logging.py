"""Log lines: format, level, names and context."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.logging import configure, level_of


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_json_lines_carry_name_level_time_and_context() -> None:
    out = io.StringIO()
    configure("json", "info", out)
    with structlog.contextvars.bound_contextvars(reconcileID="r1"):
        structlog.get_logger("some.name").info("done", count=2)
    structlog.get_logger("some.name").debug("not shown")
    logging.getLogger("other.package").warning("from %s", "elsewhere")
    first, second = map(json.loads, out.getvalue().splitlines())
    assert first.pop("timestamp").endswith("Z")
    assert first == {"event": "done", "count": 2, "level": "info", "logger": "some.name", "reconcileID": "r1"}
    assert (second["event"], second["logger"], second["level"]) == ("from elsewhere", "other.package", "warning")


def test_console_lines_are_for_people_and_show_tracebacks() -> None:
    out = io.StringIO()
    configure("console", "debug", out)
    log = structlog.get_logger("some.name")
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("failed", key="value")
    text = out.getvalue()
    assert "failed" in text
    assert "[some.name]" in text
    assert "key=value" in text
    assert "ValueError: broken" in text


def test_levels() -> None:
    assert level_of("INFO") == logging.INFO
    assert level_of("2") == logging.DEBUG
    for text in ("loud", "0", "-1"):
        with pytest.raises(ConfigurationError, match="not a log level"):
            level_of(text)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="use one of console, json"):
        configure("xml")
