"""Rules of claims of volumes, as templates have them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lwskit.embedded import names, validate_meta
from lwskit.embedded.failures import FieldError, forbidden_field, invalid_value, not_supported, required
from lwskit.embedded.validate_values import labels, selector
from lwskit.runtime import quantity

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_OF_TEMPLATES = ("annotations", "labels", "creationTimestamp")


def template(found: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    """The broken rules of a claim that a pod brings with it."""
    meta = found.get("metadata") or {}
    yield from validate_meta.annotation_keys(meta.get("annotations"), f"{where}.metadata.annotations")
    yield from labels(meta.get("labels"), f"{where}.metadata.labels")
    for name in meta:
        if name not in _OF_TEMPLATES:
            yield forbidden_field(f"{where}.metadata.{name}", "cannot be set")
    yield from spec(found.get("spec") or {}, f"{where}.spec")


def spec(found: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    """The broken rules of a claim's spec."""
    modes = found.get("accessModes") or []
    if not modes:
        yield required(f"{where}.accessModes", "at least 1 access mode is required")
    if found.get("selector") is not None:
        yield from selector(found["selector"], f"{where}.selector")
    for mode in modes:
        if mode not in _MODES:
            yield not_supported(f"{where}.accessModes", mode, _MODES)
    if "ReadWriteOncePod" in modes and any(m in _MODES and m != "ReadWriteOncePod" for m in modes):
        yield forbidden_field(f"{where}.accessModes", "may not use ReadWriteOncePod with other access modes")
    storage = ((found.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        yield required(f"{where}.resources[storage]")
    elif quantity.parse(storage) <= 0:
        yield invalid_value(f"{where}.resources[storage]", storage, "must be greater than zero")
    for text in names.subdomain(found["storageClassName"]) if found.get("storageClassName") else ():
        yield invalid_value(f"{where}.storageClassName", found["storageClassName"], text)
    if found.get("volumeMode") is not None and found["volumeMode"] not in _VOLUME_MODES:
        yield not_supported(f"{where}.volumeMode", found["volumeMode"], _VOLUME_MODES)
    for name in ("dataSource", "dataSourceRef"):
        if found.get(name) is not None:
            yield from _source(found[name], f"{where}.{name}")
    for text in names.subdomain(found["volumeAttributesClassName"]) if found.get("volumeAttributesClassName") else ():
        yield invalid_value(f"{where}.volumeAttributesClassName", found["volumeAttributesClassName"], text)


def _source(found: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    for name in ("name", "kind"):
        if not found.get(name):
            yield required(f"{where}.{name}")
    kind, group = found.get("kind", ""), found.get("apiGroup") or ""
    if not group and kind != "PersistentVolumeClaim":
        yield invalid_value(where, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    for text in names.subdomain(group) if group else ():
        yield invalid_value(f"{where}.apiGroup", group, text)
    for text in names.label(found["namespace"]) if found.get("namespace") else ():
        yield invalid_value(f"{where}.namespace", found["namespace"], text)
