"""What admission makes of a pod of a set (specification: 10 §8.2). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lwskit.groups import environment, identity
from lwskit.runtime.errors import InvalidRequest
from lwskit.runtime.objects import Obj


@dataclass(frozen=True, slots=True)
class _Needed:
    """A shape that null, or nothing, does not stand for an empty value of."""

    shape: Any


_TEXTS = {str: str}
_CONTAINERS = [{"env": [{"name": _Needed(str)}]}]
_TERMS = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": str}]}
_METADATA = {"name": str, "generateName": str, "labels": _TEXTS, "annotations": _TEXTS}
_SPEC = {
    "hostname": str,
    "subdomain": str,
    "containers": _CONTAINERS,
    "initContainers": _CONTAINERS,
    "affinity": {"podAffinity": _TERMS, "podAntiAffinity": _TERMS},
}
_POD = _Needed({"metadata": _Needed(_METADATA), "spec": _Needed(_SPEC)})
"""The shape of all that is read of a pod: texts, objects by field, maps of texts, lists of one shape each."""


def admitted(pod: Obj, namespace: str) -> Obj:
    """The pod with its place in its group: labels, subdomain, exclusive terms, then environment; a copy.

    A pod of no set is returned as it is. Raises DecisionError with the sentence that it is denied with, and
    InvalidRequest for what is no pod.
    """
    for fault in _faults(pod, _POD, ""):
        raise InvalidRequest(f"this is no pod: {fault}")
    return environment.with_environment(identity.identified(pod, namespace), namespace)


def _faults(value: Any, shape: Any, path: str) -> Iterator[str]:
    """Where a value has not the shape that it should have, and what must be there."""
    if isinstance(shape, _Needed):
        shape = shape.shape
    elif value is None:
        return
    if shape is str:
        if not isinstance(value, str):
            yield f"{path} must be a text"
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{path} must be a list"
            return
        for index, item in enumerate(value):
            yield from _faults(item, _Needed(shape[0]), f"{path}[{index}]")
    elif not isinstance(value, dict):
        yield f"{path or 'it'} must be an object"
    elif shape is _TEXTS:
        for key, item in value.items():
            yield from _faults(item, _Needed(str), f"{path}[{key}]")
    else:
        for name, inner in shape.items():
            yield from _faults(value.get(name), inner, f"{path}.{name}" if path else name)
