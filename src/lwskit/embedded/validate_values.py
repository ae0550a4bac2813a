"""Rules of values that occur in many places: paths, ports, modes, identities, addresses, selectors. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from lwskit.embedded import names
from lwskit.embedded.failures import FieldError, forbidden_field, invalid_value, not_supported, required

PORT_RANGE = "must be between 1 and 65535, inclusive"
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
NOT_NEGATIVE = "must be greater than or equal to 0"
_IDENTITY_RANGE = "must be between 0 and 2147483647, inclusive"
_MODE_RANGE = "must be a number between 0 and 0777 (octal), both inclusive"
_LEADING_ZERO = re.compile(r"(^|\.)0\d")


def chosen(value: Any, where: str, allowed: Sequence[str]) -> Iterator[FieldError]:
    """The error of a value that is none of those allowed, which are listed in this order."""
    if value not in allowed:
        yield not_supported(where, value, allowed)


def no_backsteps(path: str, where: str) -> Iterator[FieldError]:
    """The error of a path that goes up."""
    if ".." in path.split("/"):
        yield invalid_value(where, path, "must not contain '..'")


def descending(path: str, where: str) -> Iterator[FieldError]:
    """The errors of a path that must stay below the place it starts from."""
    if path.startswith("/"):
        yield invalid_value(where, path, "must be a relative path")
    yield from no_backsteps(path, where)


def file_path(path: str, where: str) -> Iterator[FieldError]:
    """The errors of a file's path within a volume; names with two dots at their beginning are the kubelet's own."""
    yield from descending(path, where)
    if path.startswith("..") and not path.startswith("../") and path != "..":
        yield invalid_value(where, path, "must not start with '..'")


def mode(value: int | None, where: str) -> Iterator[FieldError]:
    """The error of a file's permissions."""
    if value is not None and not 0 <= value <= 0o777:
        yield invalid_value(where, value, _MODE_RANGE)


def identity(value: int | None, where: str) -> Iterator[FieldError]:
    """The error of a user's or group's number."""
    if value is not None and not 0 <= value <= 2**31 - 1:
        yield invalid_value(where, value, _IDENTITY_RANGE)


def port(value: Any, where: str) -> Iterator[FieldError]:
    """The errors of a port's number or name; nothing counts as 0."""
    if isinstance(value, str):
        for text in names.port_name(value):
            yield invalid_value(where, value, text)
    elif not 0 < (value or 0) < 65536:
        yield invalid_value(where, value or 0, PORT_RANGE)


def address(value: str, where: str) -> Iterator[FieldError]:
    """The error of an IP address."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        zeros = ":" not in value and _LEADING_ZERO.search(value) and re.fullmatch(r"\d+(\.\d+){3}", value)
        text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        yield invalid_value(where, value, "must not have leading 0s" if zeros else text)


def labels(found: Mapping[str, str] | None, where: str) -> Iterator[FieldError]:
    """The errors of labels, those of a key before those of its value."""
    for key, value in (found or {}).items():
        for text in names.qualified(key):
            yield invalid_value(where, key, text)
        for text in names.label_value(value):
            yield invalid_value(where, value, text)


def selector(found: Mapping[str, Any] | None, where: str) -> Iterator[FieldError]:
    """The errors of a label selector."""
    yield from labels((found or {}).get("matchLabels"), f"{where}.matchLabels")
    for i, expression in enumerate((found or {}).get("matchExpressions") or ()):
        at = f"{where}.matchExpressions[{i}]"
        yield from _operator(expression, at, numbers=False)
        for text in names.qualified(expression.get("key", "")):
            yield invalid_value(f"{at}.key", expression.get("key", ""), text)
        yield from _values(expression, at)


def requirement(found: Mapping[str, Any], where: str, *, values: bool) -> Iterator[FieldError]:
    """The errors of one requirement of nodes' labels; `values`: whether what is compared must be a label's value."""
    yield from _operator(found, where, numbers=True)
    for text in names.qualified(found.get("key", "")):
        yield invalid_value(f"{where}.key", found.get("key", ""), text)
    if values:
        yield from _values(found, where)


def _operator(found: Mapping[str, Any], where: str, *, numbers: bool) -> Iterator[FieldError]:
    operator, values = found.get("operator", ""), found.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden_field(f"{where}.values", text)
    elif numbers and operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield required(f"{where}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid_value(f"{where}.operator", operator, "not a valid selector operator")


def _values(found: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    for i, value in enumerate(found.get("values") or ()):
        for text in names.label_value(value):
            yield invalid_value(f"{where}.values[{i}]", value, text)


def once(value: Any, seen: set[Any], error: FieldError) -> Iterator[FieldError]:
    """The error if the value was seen before; it is from now on."""
    if value in seen:
        yield error
    seen.add(value)


def label_keys(
    keys: Collection[str], others: Collection[str], found: Mapping[str, Any] | None, where: str, field: str
) -> Iterator[FieldError]:
    """The errors of keys of pods' labels whose values are added to a selector."""
    if keys and found is None:
        yield forbidden_field(f"{where}.{field}", "must not be specified when labelSelector is not set")
        return
    for i, key in enumerate(keys):
        for text in names.qualified(key):
            yield invalid_value(f"{where}.{field}[{i}]", key, text)
        if key in others:
            yield invalid_value(f"{where}.{field}[{i}]", key, "exists in both matchLabelKeys and mismatchLabelKeys")
