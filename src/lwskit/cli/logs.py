"""The options of every long-running command that say what is logged, and how."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from lwskit.runtime.logging import FORMATS, configure


def log_options(level: str = "info") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command `--log-level`, by default `level`, and `--log-format`, and set logging up before it runs."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--log-level", default=level, show_default=True, metavar="LEVEL", help="debug, info, warn or error."
        )
        @click.option("--log-format", type=click.Choice(FORMATS), default="console", show_default=True)
        @click.pass_context
        @functools.wraps(function)
        def with_logs(context: click.Context, *args: Any, log_level: str, log_format: str, **kwargs: Any) -> Any:
            setup(context, log_level, log_format)
            return function(*args, **kwargs)

        return with_logs

    return decorate


def setup(context: click.Context, level: str, format: str = "console") -> None:
    """Set logging up; `lwskit --debug` logs everything. Raises ConfigurationError for an unknown level."""
    configure(format, "debug" if context.find_root().obj else level)
