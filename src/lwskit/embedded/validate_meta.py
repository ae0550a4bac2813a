"""Rules of every object's metadata. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lwskit.embedded import names
from lwskit.embedded.failures import FieldError, forbidden_field, invalid_value, required
from lwskit.embedded.resources import Resource
from lwskit.runtime.objects import Obj

ANNOTATIONS_LIMIT = 256 * 1024
_STANDARD = frozenset({"foregroundDeletion", "orphan", "kubernetes", "customresourcecleanup.apiextensions.k8s.io"})
_LABEL_NAMES = frozenset({"/namespaces", "/services", "apps/statefulsets"})
_SEGMENTS = frozenset({"rbac.authorization.k8s.io"})


def create(resource: Resource, obj: Obj) -> list[FieldError]:
    """The broken rules of a new object's metadata."""
    meta = obj["metadata"]
    errors = [*_prefix(resource, meta), *_name(resource, meta), *common(obj)]
    return errors if resource.custom is not None else [*errors, *finalizers(obj)]


def _prefix(resource: Resource, meta: Mapping[str, Any]) -> list[FieldError]:
    """The broken rules of what a name is to begin with; a dash at its end is no mistake, nor what is before it."""
    prefix = meta.get("generateName", "")
    texts = _name_texts(resource, f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix)
    return [invalid_value("metadata.generateName", prefix, text) for text in texts] if prefix else []


def _name(resource: Resource, meta: Mapping[str, Any]) -> list[FieldError]:
    name = meta.get("name", "")
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    return [invalid_value("metadata.name", name, text) for text in _name_texts(resource, name)]


def _name_texts(resource: Resource, name: str) -> list[str]:
    if resource.storage in _LABEL_NAMES:
        return names.label(name)
    if resource.group in _SEGMENTS:
        return names.path_segment(name)
    return names.path_segment(name) or names.subdomain(name) if "/" in name else names.subdomain(name)


def labels(found: Mapping[str, str] | None, field: str) -> list[FieldError]:
    """The broken rules of labels."""
    errors = []
    for key, value in (found or {}).items():
        errors.extend(invalid_value(field, key, text) for text in names.qualified(key))
        errors.extend(invalid_value(field, value, text) for text in names.label_value(value))
    return errors


def annotation_keys(found: Mapping[str, str] | None, field: str) -> list[FieldError]:
    """The broken rules of annotations."""
    errors = []
    for key in found or {}:
        errors.extend(invalid_value(field, key, text) for text in names.qualified(key.lower()))
    size = sum(len(k.encode()) + len(v.encode()) for k, v in (found or {}).items())
    if size > ANNOTATIONS_LIMIT:
        text = f"Too long: may not be more than {ANNOTATIONS_LIMIT} bytes"
        errors.append(FieldError("FieldValueTooLong", field, text))
    return errors


def common(obj: Obj) -> list[FieldError]:
    """The broken rules of metadata that hold for new and for changed objects of all kinds."""
    meta = obj["metadata"]
    errors = _unbound(meta)
    if meta.get("generation", 0) < 0:
        errors.insert(0, invalid_value("metadata.generation", meta["generation"], "must be greater than or equal to 0"))
    found = meta.get("finalizers") or []
    for finalizer in found:
        errors.extend(invalid_value("metadata.finalizers", finalizer, text) for text in names.qualified(finalizer))
    if {"orphan", "foregroundDeletion"} <= set(found):
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid_value("metadata.finalizers", found, text))
    return errors


def finalizers(obj: Obj) -> list[FieldError]:
    """The broken rules of finalizers of built-in objects."""
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid_value(f"metadata.finalizers[{i}]", finalizer, text)
        for i, finalizer in enumerate(obj["metadata"].get("finalizers") or ())
        if "/" not in finalizer and finalizer not in _STANDARD
    ]


def _unbound(meta: Mapping[str, Any]) -> list[FieldError]:
    """The broken rules of labels, annotations and owners."""
    return [
        *labels(meta.get("labels"), "metadata.labels"),
        *annotation_keys(meta.get("annotations"), "metadata.annotations"),
        *_owners(meta.get("ownerReferences") or []),
    ]


def _owners(refs: list[dict[str, Any]]) -> list[FieldError]:
    errors = []
    controller: dict[str, Any] | None = None
    for i, ref in enumerate(refs):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not ref.get(name):
                errors.append(required(f"metadata.ownerReferences[{i}].{name}", "must not be empty"))
            elif name == "apiVersion" and (ref[name].count("/") > 1 or ref[name].endswith("/")):
                text = "must be <group>/<version> or <version>"
                errors.append(invalid_value(f"metadata.ownerReferences[{i}].apiVersion", ref[name], text))
        if ref.get("apiVersion") in ("v1", "events.k8s.io/v1") and ref.get("kind") == "Event":
            text = f"{_shown_kind(ref['apiVersion'])}, Kind=Event is disallowed from being an owner"
            errors.append(invalid_value(f"metadata.ownerReferences[{i}]", _in_order(ref), text))
        if ref.get("controller"):
            if controller is not None:
                shown = [_in_order(r) for r in refs]
                text = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller['kind']}/{controller['name']} and {ref['kind']}/{ref['name']}"
                )
                errors.append(invalid_value("metadata.ownerReferences", shown, text))
            controller = ref
    return errors


def _shown_kind(version: str) -> str:
    return version if "/" in version else f"/{version}"


def _in_order(ref: Mapping[str, Any]) -> dict[str, Any]:
    order = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    return {k: ref[k] for k in order if k in ref}


def update(resource: Resource, new: Obj, old: Obj, given: Mapping[str, Any]) -> list[FieldError]:
    """The broken rules of a changed object's metadata; `given` is what the client sent for fields the server keeps."""
    errors = _unbound(new["metadata"])
    if given.get("uid") and given["uid"] != old["metadata"].get("uid"):
        errors.append(invalid_value("metadata.uid", given["uid"], "field is immutable"))
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        before = old["metadata"].get(name)
        if given.get(name) is not None and (before is None or (name != "deletionTimestamp" and given[name] != before)):
            errors.append(invalid_value(f"metadata.{name}", given[name], "field is immutable"))
    if "deletionTimestamp" in old["metadata"]:
        before = set(old["metadata"].get("finalizers") or ())
        added = [f for f in new["metadata"].get("finalizers") or () if f not in before]
        if added:
            listed = ", ".join(f'"{f}"' for f in added)
            text = (
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}"
            )
            errors.append(forbidden_field("metadata.finalizers", text))
    return errors
