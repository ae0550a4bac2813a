"""Mistakes in the functions that a controller is given: found, and told in one sentence (specification: 70 §5.4)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from lwskit.runtime.request import Request, Result

_CALL = "__call__"
# Made once: every event of a watch comes along here.
_COLLECTIONS = (list, tuple, dict)
_INSTEAD = "its namespace and name are used instead"


class Defect(TypeError):
    """A function that the library was given does not do what it must; the text names it and says what it did."""


def name_of(function: Any) -> str:
    """What messages call a function: its own name, that of a partial's function, or the class of a callable object."""
    if isinstance(function, functools.partial):
        return name_of(function.func)
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) and name else type(function).__name__


def is_async(function: Any) -> bool:
    """Whether calling it gives a coroutine: an `async def`, a partial or a wrapper of one, or an object that has one
    as `__call__`.
    """
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.iscoroutinefunction(function) or getattr(function, "_is_coroutine", None) is not None:
        return True
    if isinstance(function, type):
        return False
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        return is_async(wrapped)
    if inspect.isfunction(function) or inspect.ismethod(function):
        return False
    return inspect.iscoroutinefunction(getattr(type(function), _CALL, None))


def reconcile_problem(function: Any) -> str:
    """Why a function cannot be a controller's reconcile, empty if it can."""
    if is_async(function):
        return ""
    if isinstance(function, type) and is_async(getattr(function, _CALL, None)):
        return f"reconcile is the class {name_of(function)}; give an instance of it"
    if not callable(function):
        return f"reconcile is {_kind(function)}, not a coroutine function; write `async def`"
    return f"{name_of(function)} is not a coroutine function; write `async def`"


def checked_result(result: Any, controller: str) -> Result | None:
    """What a reconcile returned. Raises Defect unless it is None or a Result."""
    if result is None or isinstance(result, Result):
        return result
    raise Defect(f"reconcile of controller {controller} returned {_kind(result)}; return None or a Result")


def checked_requests(found: Any, function: Any) -> Iterable[Request]:
    """What a handler or map function returned. Raises Defect unless it is an iterable of Requests."""
    if isinstance(found, _COLLECTIONS) and not isinstance(found, Request):
        requests: Iterable[Any] = found
    else:
        requests = [*_iterated(found, function)]
    for request in requests:
        if not isinstance(request, Request):
            raise Defect(f"{name_of(function)} returned {_kind(request)} among its requests; return Requests only")
    return requests


def _iterated(found: Any, function: Any) -> Iterator[Any]:
    name = name_of(function)
    if isinstance(found, Request):
        raise Defect(f"{name} returned one Request; return a list of them")
    if inspect.iscoroutine(found):
        found.close()
        raise Defect(f"{name} returned a coroutine; make the handler with from_async_map")
    if not isinstance(found, Iterable) or isinstance(found, str | bytes):
        raise Defect(f"{name} returned {_kind(found)}; return a list of Requests, an empty one for none")
    yield from found


class Lanes:
    """Asks a function for the lane of a request. Where it fails, `report` is told and the request's place is used."""

    def __init__(
        self, function: Callable[[Request], Hashable], controller: str, report: Callable[[Exception], None]
    ) -> None:
        self._function = function
        self._controller = controller
        self._report = report

    def __call__(self, request: Request) -> Hashable:
        """The lane of a request."""
        try:
            lane = self._function(request)
        except Exception as error:
            self._report(Defect(f"lane of controller {self._controller} raised {error!r} for {request}; {_INSTEAD}"))
            return request.key
        try:
            hash(lane)
        except Exception:
            text = f"lane of controller {self._controller} returned {_kind(lane)} for {request}, which has no hash"
            self._report(Defect(f"{text}; {_INSTEAD}"))
            return request.key
        return lane


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
