"""Which query parameters of a list or a watch go together, and what a server answers where they do not. Pure.

Source: Kubernetes documentation, "API concepts", resource versions; answers of kube-apiserver 1.34 to 1.37.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lwskit.embedded.failures import FieldError, bad_request, invalid_options

EXACT, NOT_OLDER = "Exact", "NotOlderThan"
_MATCH, _INITIAL = "resourceVersionMatch", "sendInitialEvents"


_NUMBER = re.compile(r"[+-]?[0-9]+")
_LARGEST = (1 << 63) - 1


def go_bool(text: str | None) -> bool:
    """A query parameter as yes or no: everything but `0` and `false` is yes, the empty text too; absent is no."""
    return text is not None and text.lower() not in ("0", "false")


def go_integer(text: str) -> int:
    """A query parameter as a whole number. Raises InvalidRequest."""
    if not _NUMBER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if not -_LARGEST - 1 <= int(text) <= _LARGEST:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def read_numbers(params: Mapping[str, str]) -> tuple[int, int]:
    """How many objects a list may have and for how many seconds a watch lasts, 0 for any. Raises InvalidRequest."""
    seconds, limit = (go_integer(params.get(name, "0")) for name in ("timeoutSeconds", "limit"))
    return max(limit, 0), max(seconds, 0)


def check_list(params: Mapping[str, str]) -> None:
    """Raise Invalid where the parameters of a list contradict each other."""
    errors: list[FieldError] = []
    asked, match = params.get("resourceVersion", ""), params.get(_MATCH, "")
    if match:
        if not asked:
            errors.append(_forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if params.get("continue"):
            errors.append(_forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER):
            errors.append(_unsupported(match, f'"{EXACT}", "{NOT_OLDER}", ""'))
        if match == EXACT and asked == "0":
            errors.append(_forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if _INITIAL in params:
        errors.append(_forbidden(_INITIAL, "sendInitialEvents is forbidden for list"))
    _raise(errors)


def check_watch(params: Mapping[str, str], *, streaming: bool = True) -> None:
    """Raise Invalid where the parameters of a watch contradict each other.

    Without `streaming` also where they ask for a streaming list, as a server whose gate WatchList is off does.
    """
    errors: list[FieldError] = []
    match = params.get(_MATCH, "")
    if _INITIAL in params:
        if match != NOT_OLDER:
            errors.append(_forbidden(_MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
        if not streaming:
            text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            errors.append(_forbidden(_INITIAL, text))
    if match:
        if _INITIAL not in params:
            text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors.append(_forbidden(_MATCH, text))
        if match != NOT_OLDER:
            errors.append(_unsupported(match, f'"{NOT_OLDER}"'))
    if params.get("continue"):
        errors.append(_forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided"))
    _raise(errors)


def is_exact(version: int, match: str, limit: int) -> bool:
    """Whether a list without a token is to show precisely that version: asked for, or because it is paged."""
    return match == EXACT or (not match and limit > 0 and version > 0)


def _forbidden(field: str, text: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, f"Forbidden: {text}")


def _unsupported(match: str, known: str) -> FieldError:
    return FieldError("FieldValueNotSupported", _MATCH, f'Unsupported value: "{match}": supported values: {known}')


def _raise(errors: list[FieldError]) -> None:
    if errors:
        raise invalid_options("ListOptions", errors)
