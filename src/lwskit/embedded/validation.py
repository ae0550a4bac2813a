"""The rules of objects, by kind: which a real server refuses with 422, and its texts. Pure."""

from __future__ import annotations

from lwskit.embedded.failures import FieldError
from lwskit.embedded.resources import Resource
from lwskit.runtime.objects import Obj


def create(resource: Resource, obj: Obj) -> list[FieldError]:
    """The broken rules of a new object."""
    if resource.custom is not None:
        return resource.custom.validator.errors(obj)
    return []


def update(resource: Resource, new: Obj, old: Obj, subresource: str) -> list[FieldError]:
    """The broken rules of a changed object."""
    if resource.custom is not None:
        return resource.custom.validator.errors(new)
    return []
