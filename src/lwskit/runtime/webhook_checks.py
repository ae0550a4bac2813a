"""Mistakes of admission handlers, each told in one sentence. Pure."""

from __future__ import annotations

import functools
import inspect
from typing import Any

_WANTED = {
    "allowed": "True or False",
    "status": "a Status with an int as its code",
    "patch": "a list of JSON patch operations",
    "warnings": "a list of texts",
}
_MADE_WITH = "return a response, made with allowed, denied, errored or patched"


class HandlerDefect(TypeError):
    """A function of a webhook did not return what it must; the text names it and says what it returned."""


def checked_response(response: Any, handler: Any) -> dict[str, Any]:
    """What a handler returned. Raises HandlerDefect unless it is a response that can be sent."""
    if not isinstance(response, dict):
        raise HandlerDefect(f"{_name(handler)} returned {_kind(response)}; {_MADE_WITH}")
    field = _wrong_field(response)
    if field:
        value = _shown(response[field])
        raise HandlerDefect(f"{_name(handler)} returned {value} as {field}; it must be {_WANTED[field]}")
    return response


def checked_object(result: Any, function: Any) -> dict[str, Any]:
    """What a defaulting function returned. Raises HandlerDefect unless it is an object."""
    if isinstance(result, dict):
        return result
    raise HandlerDefect(f"{_name(function)} returned {_kind(result)}; return the object, also when it stays as it is")


def checked_nothing(result: Any, function: Any) -> None:
    """What a validating function returned. Raises HandlerDefect unless it is nothing: only raising refuses."""
    if result is not None:
        raise HandlerDefect(
            f"{_name(function)} returned {_kind(result)}; raise an LwskitError to refuse, return None else"
        )


def _wrong_field(response: dict[str, Any]) -> str:
    """The first field that has not what it must, empty if there is none."""
    if not isinstance(response.get("allowed", False), bool):
        return "allowed"
    status = response.get("status")
    if status is not None and not (isinstance(status, dict) and isinstance(status.get("code") or 0, int)):
        return "status"
    for field, kind in (("patch", dict), ("warnings", str)):
        values = response.get(field)
        if values is None:
            continue
        if not isinstance(values, list | tuple):
            return field
        for value in values:
            if not isinstance(value, kind):
                return field
    return ""


def _kind(value: Any) -> str:
    """What stands for a returned value; a coroutine is closed, as nobody will await it."""
    if inspect.iscoroutine(value):
        value.close()
        return "a coroutine (handlers are plain functions, not async ones)"
    return "None" if value is None else type(value).__name__


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"a list with {', '.join(sorted({type(item).__name__ for item in value}))}"
    return _kind(value)


def _name(function: Any) -> str:
    if isinstance(function, functools.partial):
        return _name(function.func)
    return str(getattr(function, "__qualname__", None) or type(function).__name__)
