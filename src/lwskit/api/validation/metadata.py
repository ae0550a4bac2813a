"""Rules for an object's metadata that hold for every kind, with the kind's own rule for names.

Specification: 10 §6.2 rule 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from lwskit.api.validation import formats
from lwskit.api.validation.errors import ENOUGH, ErrorKind, FieldError, invalid, required, shown

_ANNOTATIONS_LIMIT: Final = 256 * 1024
_MOST: Final = 10_000
"""Entries of a map or list that are looked at."""
_EXCLUSIVE_FINALIZERS: Final = ("orphan", "foregroundDeletion")


def _texts(value: Any, path: str, errors: list[FieldError]) -> Iterator[tuple[str, str]]:
    """The entries of a map of texts, by key, until there are errors enough; what is no text is reported.

    Of a map with more entries than anybody writes only so many are looked at: API servers check metadata themselves.
    """
    if not isinstance(value, dict):
        errors.append(invalid(path, value, "must be a map of strings"))
        return
    for key, item in sorted(islice(value.items(), _MOST)):
        if len(errors) >= ENOUGH:
            return
        if isinstance(item, str):
            yield key, item
        else:
            errors.append(invalid(f"{path}[{key}]", item, "must be a string"))


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
    for key, _ in _texts(value, path, errors):
        errors += [invalid(path, key, fault) for fault in formats.label_key(key.lower())]
    if isinstance(value, dict):
        size = 0
        for key, text in value.items():
            size += len(key.encode()) + (len(text.encode()) if isinstance(text, str) else 0)
            if size > _ANNOTATIONS_LIMIT:
                limit = f"may not be more than {_ANNOTATIONS_LIMIT} bytes"
                return [*errors, FieldError(path, ErrorKind.TOO_LONG, limit)]
    return errors


def _owners(value: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    controller = ""
    owners = value if isinstance(value, list) else []
    for i, owner in enumerate(owners):
        if len(errors) >= ENOUGH:
            break
        if not isinstance(owner, dict):
            errors.append(invalid(f"{path}[{i}]", owner, "must be an owner reference"))
            continue
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                errors.append(required(f"{path}[{i}].{field}", "must not be empty"))
        version = owner.get("apiVersion")
        if isinstance(version, str) and (version.count("/") > 1 or version.endswith("/")):
            detail = "must be <group>/<version> or <version>"
            errors.append(invalid(f"{path}[{i}].apiVersion", version[: formats.SUBDOMAIN_LENGTH], detail))
        if owner.get("controller") is True:
            named = f"{_text(owner, 'kind')}/{_text(owner, 'name')}"
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {named}'
                )
                errors.append(invalid(path, value, detail))
            controller = controller or named
    return errors


def _text(owner: Mapping[str, Any], field: str) -> str:
    found = owner.get(field, "")
    return found[: formats.SUBDOMAIN_LENGTH] if isinstance(found, str) else shown(found)


def _finalizers(value: Any, path: str) -> list[FieldError]:
    finalizers = _strings(value)
    faults = (invalid(path, name, fault) for name in finalizers[:_MOST] for fault in formats.label_key(name))
    errors = list(islice(faults, ENOUGH))
    if all(name in finalizers for name in _EXCLUSIVE_FINALIZERS):
        first, second = _EXCLUSIVE_FINALIZERS
        errors.append(invalid(path, finalizers, f"finalizer {first} and {second} cannot be both set"))
    return errors


def _name(meta: Mapping[str, Any], path: str, rule: Callable[[str], Iterable[str]]) -> list[FieldError]:
    errors: list[FieldError] = []
    prefix, name = meta.get("generateName"), meta.get("name")
    if isinstance(prefix, str) and prefix:
        # A dash at the end is fine in a prefix, because something follows it; the character before is not looked at.
        checked = prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
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
    meta = meta if isinstance(meta, dict) else {}
    errors = _name(meta, path, name_rule)
    namespace = meta.get("namespace")
    if not namespace:
        errors.append(required(f"{path}.namespace", ""))
    elif isinstance(namespace, str):
        errors += [invalid(f"{path}.namespace", namespace, fault) for fault in formats.dns_1123_label(namespace)]
    for field, check in _CHECKS:
        if (value := meta.get(field)) is not None:
            errors += check(value, f"{path}.{field}")
    return errors


_CHECKS: Final = (
    ("labels", _labels),
    ("annotations", _annotations),
    ("ownerReferences", _owners),
    ("finalizers", _finalizers),
)
