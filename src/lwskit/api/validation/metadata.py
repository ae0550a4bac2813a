"""Rules for an object's metadata that hold for every kind, with the kind's own rule for names.

Specification: 10 §6.2 rule 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from lwskit.api.validation import formats
from lwskit.api.validation.errors import ErrorKind, FieldError, invalid, required

_ANNOTATIONS_LIMIT: Final = 256 * 1024
_EXCLUSIVE_FINALIZERS: Final = ("orphan", "foregroundDeletion")


def _texts(value: Any, path: str, errors: list[FieldError]) -> list[tuple[str, str]]:
    """The entries of a map of texts in the order of their keys; what is none is reported."""
    if value is None:
        return []
    if not isinstance(value, Mapping):
        errors.append(invalid(path, value, "must be a map of strings"))
        return []
    entries: list[tuple[str, str]] = []
    for key, item in sorted(value.items()):
        if isinstance(item, str):
            entries.append((key, item))
        else:
            errors.append(invalid(f"{path}[{key}]", item, "must be a string"))
    return entries


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _labels(value: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, text in _texts(value, path, errors):
        errors += [invalid(path, key, fault) for fault in formats.label_key(key)]
        errors += [invalid(path, text, fault) for fault in formats.label_value(text)]
    return errors


def _annotations(value: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    for key, text in _texts(value, path, errors):
        errors += [invalid(path, key, fault) for fault in formats.label_key(key.lower())]
        size += len(key.encode()) + len(text.encode())
    if size > _ANNOTATIONS_LIMIT:
        errors.append(FieldError(path, ErrorKind.TOO_LONG, f"may not be more than {_ANNOTATIONS_LIMIT} bytes"))
    return errors


def _owners(value: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    controller = ""
    owners = value if isinstance(value, list) else []
    for i, owner in enumerate(owners):
        if not isinstance(owner, Mapping):
            errors.append(invalid(f"{path}[{i}]", owner, "must be an owner reference"))
            continue
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                errors.append(required(f"{path}[{i}].{field}", "must not be empty"))
        if owner.get("controller") is True:
            named = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {named}'
                )
                errors.append(invalid(path, value, detail))
            controller = controller or named
    return errors


def _finalizers(value: Any, path: str) -> list[FieldError]:
    finalizers = _strings(value)
    errors = [invalid(path, name, fault) for name in finalizers for fault in formats.label_key(name)]
    if all(name in finalizers for name in _EXCLUSIVE_FINALIZERS):
        first, second = _EXCLUSIVE_FINALIZERS
        errors.append(invalid(path, finalizers, f"finalizer {first} and {second} cannot be both set"))
    return errors


def _name(meta: Mapping[str, Any], path: str, rule: Callable[[str], Iterable[str]]) -> list[FieldError]:
    errors: list[FieldError] = []
    prefix, name = meta.get("generateName"), meta.get("name")
    if isinstance(prefix, str) and prefix:
        # A dash at the end is fine in a prefix, because something follows it.
        checked = prefix[:-1] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        errors += [invalid(f"{path}.generateName", prefix, fault) for fault in rule(checked)]
    if not name:
        errors.append(required(f"{path}.name", "name or generateName is required"))
    elif isinstance(name, str):
        errors += [invalid(f"{path}.name", name, fault) for fault in rule(name)]
    else:
        errors.append(invalid(f"{path}.name", name, "must be a string"))
    return errors


def validate_metadata(
    meta: Mapping[str, Any] | None, name_rule: Callable[[str], Iterable[str]], path: str = "metadata"
) -> list[FieldError]:
    """Faults of the metadata of a namespaced object: name by `name_rule`, namespace, labels, annotations and the rest.

    `path` is put before the paths. Specification: 10 §6.2 rule 1.
    """
    meta = meta if isinstance(meta, Mapping) else {}
    errors = _name(meta, path, name_rule)
    namespace = meta.get("namespace")
    if not namespace:
        errors.append(required(f"{path}.namespace", ""))
    elif isinstance(namespace, str):
        errors += [invalid(f"{path}.namespace", namespace, fault) for fault in formats.dns_1123_label(namespace)]
    errors += _labels(meta.get("labels"), f"{path}.labels")
    errors += _annotations(meta.get("annotations"), f"{path}.annotations")
    errors += _owners(meta.get("ownerReferences"), f"{path}.ownerReferences")
    errors += _finalizers(meta.get("finalizers"), f"{path}.finalizers")
    return errors
