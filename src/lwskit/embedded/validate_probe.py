"""Rules of probes and of hooks in a container's life. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lwskit.embedded.failures import FieldError, forbidden_field, invalid_value, not_supported, required
from lwskit.embedded.validate_values import NOT_NEGATIVE, port

KINDS = ("livenessProbe", "readinessProbe", "startupProbe")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SCHEMES = ("HTTP", "HTTPS")
_HEADER_TEXT = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')"
)


def probe(found: Mapping[str, Any], where: str, kind: str) -> Iterator[FieldError]:
    """The broken rules of a probe of that kind."""
    yield from _handler(found, where, None)
    for name in _COUNTS:
        if found.get(name, 0) < 0:
            yield invalid_value(f"{where}.{name}", found[name], NOT_NEGATIVE)
    grace = found.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield invalid_value(f"{where}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if kind == "readinessProbe":
        if grace is not None:
            text = "must not be set for readinessProbes"
            yield invalid_value(f"{where}.terminationGracePeriodSeconds", grace, text)
    elif found.get("successThreshold", 1) != 1:
        yield invalid_value(f"{where}.successThreshold", found["successThreshold"], "must be 1")


def lifecycle(found: Mapping[str, Any], where: str, grace: int | None) -> Iterator[FieldError]:
    """The broken rules of hooks; `grace` is the time in seconds that the pod has to end."""
    for name in ("postStart", "preStop"):
        if found.get(name) is not None:
            yield from _handler(found[name], f"{where}.{name}", grace)


def _handler(found: Mapping[str, Any], where: str, grace: int | None) -> Iterator[FieldError]:
    """There must be one of the ways, and what it says must be right; of further ones only that they are there."""
    given = [name for name in _HANDLERS if found.get(name) is not None]
    if not given:
        yield required(where, "must specify a handler type")
        return
    way, action = f"{where}.{given[0]}", found[given[0]]
    match given[0]:
        case "exec":
            if not action.get("command"):
                yield required(f"{way}.command")
        case "httpGet":
            yield from _http(action, way)
        case "sleep":
            seconds = action.get("seconds", 0)
            if grace is not None and not 0 <= seconds <= grace:
                text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                yield invalid_value(way, seconds, text)
        case _:
            yield from port(action.get("port"), f"{way}.port")
    for name in given[1:]:
        yield forbidden_field(f"{where}.{name}", "may not specify more than 1 handler type")


def _http(found: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    if not found.get("path"):
        yield required(f"{where}.path")
    yield from port(found.get("port"), f"{where}.port")
    if found.get("scheme") not in _SCHEMES:
        yield not_supported(f"{where}.scheme", found.get("scheme", ""), _SCHEMES)
    for header in found.get("httpHeaders") or ():
        if not re.fullmatch(r"[-A-Za-z0-9]+", header.get("name", "")):
            yield invalid_value(f"{where}.httpHeaders", header.get("name", ""), _HEADER_TEXT)
