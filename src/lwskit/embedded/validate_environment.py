"""Rules of a container's environment, and of references to fields and resources, which volumes have too. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lwskit.embedded import names
from lwskit.embedded.failures import FieldError, invalid_value, not_supported, required
from lwskit.embedded.validate_values import no_backsteps
from lwskit.runtime import quantity

_NAME_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
OF_VARIABLES = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
"""Fields that a variable can have."""
OF_VOLUMES = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
"""Fields that a file can have."""
_KNOWN = frozenset({*OF_VARIABLES, *OF_VOLUMES, "spec.restartPolicy", "spec.schedulerName", "status.phase"})
_SUBSCRIPTED = re.compile(r"(.+)\['(.*)'\]", re.DOTALL)
_RESOURCES = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE = ("limits.hugepages-", "requests.hugepages-")
_SIZES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def environment(env: list[dict[str, Any]], field: str) -> Iterator[FieldError]:
    """The broken rules of variables."""
    for i, variable in enumerate(env):
        where = f"{field}[{i}]"
        name, source = variable.get("name", ""), variable.get("valueFrom")
        if not name:
            yield required(f"{where}.name")
        else:
            yield from _name(name, f"{where}.name")
        if source is not None:
            yield from _source(source, variable.get("value"), f"{where}.valueFrom")


def _name(name: str, where: str) -> Iterator[FieldError]:
    if not re.fullmatch(r"[ -<>-~]+", name):
        yield invalid_value(where, name, _NAME_TEXT)


def _source(source: Mapping[str, Any], value: str | None, where: str) -> Iterator[FieldError]:
    given = [name for name in _SOURCES if source.get(name) is not None]
    for name in given:
        found, at = source[name], f"{where}.{name}"
        match name:
            case "fieldRef":
                yield from field_reference(found, at, OF_VARIABLES)
            case "resourceFieldRef":
                yield from resource_reference(found, at)
            case "fileKeyRef":
                yield from _file_key(found, at)
            case _:
                yield from _key(found, at)
    if not given:
        listed = ", ".join(f"`{name}`" for name in _SOURCES[:-1])
        yield invalid_value(where, "", f"must specify one of: {listed} or `{_SOURCES[-1]}`")
    elif value:
        yield invalid_value(where, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid_value(where, "", "may not have more than one field specified at a time")


def field_reference(found: Mapping[str, Any], where: str, allowed: Collection[str]) -> Iterator[FieldError]:
    """The broken rules of a reference to a field of the pod; `allowed` are those that can be asked for here."""
    path, version = found.get("fieldPath", ""), found.get("apiVersion", "v1")
    at = f"{where}.fieldPath"
    if not path:
        yield required(at)
        return
    if version != "v1":
        yield invalid_value(at, path, f"error converting fieldPath: unsupported pod version: {version}")
        return
    subscripted = _SUBSCRIPTED.fullmatch(path)
    if subscripted:
        kind, key = subscripted[1], subscripted[2]
        if kind not in ("metadata.annotations", "metadata.labels"):
            text = f"error converting fieldPath: field label does not support subscript: {path}"
            yield invalid_value(at, path, text)
            return
        key = key.lower() if kind == "metadata.annotations" else key
        for text in names.qualified(key):
            yield invalid_value(where, key, text)
    elif path not in _KNOWN:
        yield invalid_value(at, path, f"error converting fieldPath: field label not supported: {path}")
    elif path not in allowed:
        yield not_supported(at, path, tuple(allowed))


def resource_reference(found: Mapping[str, Any], where: str, *, of_volume: bool = False) -> Iterator[FieldError]:
    """The broken rules of a reference to an amount of a container, which must be named in a volume."""
    name = found.get("resource", "")
    if of_volume and not found.get("containerName"):
        yield required(f"{where}.containerName")
    elif not name:
        yield required(f"{where}.resource")
    elif name not in _RESOURCES and not name.startswith(_HUGE):
        yield not_supported(f"{where}.resource", name, _RESOURCES)
    divisor = found.get("divisor", "0")
    if quantity.equal(divisor, "0"):
        return
    kind = name.partition(".")[2]
    allowed, what = _SIZES, ""
    if kind == "cpu":
        allowed, what = ("1m", "1"), "cpu resource"
    elif kind in ("memory", "ephemeral-storage"):
        what = "memory resource" if kind == "memory" else "local ephemeral storage resource"
    elif name.startswith(_HUGE):
        what = "hugepages resource"
    if what and quantity.canonical(divisor) not in allowed:
        listed = "1m and 1" if kind == "cpu" else ", ".join(allowed)
        text = f"only divisor's values {listed} are supported with the {what}"
        yield invalid_value(f"{where}.divisor", name, text)


def _key(found: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    """The errors of a key of a config map or secret."""
    for text in names.subdomain(found.get("name", "")):
        yield invalid_value(f"{where}.name", found.get("name", ""), text)
    if not found.get("key"):
        yield required(f"{where}.key")
    else:
        for text in names.config_key(found["key"]):
            yield invalid_value(f"{where}.key", found["key"], text)


def _file_key(found: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    if not found.get("key"):
        yield required(f"{where}.key")
    else:
        yield from _name(found["key"], f"{where}.key")
    if not found.get("volumeName"):
        yield required(f"{where}.volumeName")
    else:
        for text in names.label(found["volumeName"]):
            yield invalid_value(f"{where}.volumeName", found["volumeName"], text)
    if not found.get("path"):
        yield required(f"{where}.path")
    else:
        yield from no_backsteps(found["path"], f"{where}.path")


def sources(found: list[dict[str, Any]], field: str) -> Iterator[FieldError]:
    """The broken rules of config maps and secrets that become variables as a whole."""
    for i, source in enumerate(found):
        if source.get("prefix"):
            yield from _name(source["prefix"], f"{field}[{i}].prefix")
        given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for name in given:
            at, value = f"{field}[{i}].{name}.name", source[name].get("name", "")
            if not value:
                yield required(at)
            for text in names.subdomain(value) if value else ():
                yield invalid_value(at, value, text)
        if not given:
            yield invalid_value(field, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield invalid_value(field, "", "may not have more than one field specified at a time")
