"""Whether an object is a pod as far as its admission reads it, and if not, which field is wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lwskit.runtime.errors import InvalidRequest
from lwskit.runtime.objects import Obj

MOST_CONTAINERS = 5000
"""More containers, each with the set's variables, are no pod that an API server would store."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def check(pod: Any) -> None:
    """Raise InvalidRequest, which names the field, unless everything that admission reads has its type.

    Fields that nothing here reads are not looked at.
    """
    if type(pod) is not dict:
        raise _fault("it", "an object")
    metadata, spec = pod.get("metadata"), pod.get("spec")
    if type(metadata) is not dict:
        raise _fault("metadata", "an object")
    if type(spec) is not dict:
        raise _fault("spec", "an object")
    _texts_in(metadata, "metadata", ("name", "generateName"))
    for field in ("labels", "annotations"):
        for key, value in _object(metadata, "metadata", field).items():
            if type(value) is not str:
                raise _fault(f"metadata.{field}[{key}]", "a text")
    _texts_in(spec, "spec", ("hostname", "subdomain"))
    for field in ("containers", "initContainers"):
        containers = _objects(spec, "spec", field)
        if len(containers) > MOST_CONTAINERS:
            raise _fault(f"spec.{field}", f"a list of at most {MOST_CONTAINERS} containers")
        for index, container in enumerate(containers):
            _container(container, f"spec.{field}[{index}]")
    for gate, path in _paths(_objects(spec, "spec", "schedulingGates"), "spec.schedulingGates"):
        _texts_in(gate, path, ("name",))
    if spec.get("affinity") is not None:
        _affinity(_object(spec, "spec", "affinity"))


def _container(container: Obj, path: str) -> None:
    env = container.get("env")
    if env is not None and type(env) is not list:
        raise _fault(f"{path}.env", "a list")
    for index, entry in enumerate(env or ()):
        if type(entry) is not dict:
            raise _fault(f"{path}.env[{index}]", "an object")
        if type(entry.get("name")) is not str:
            raise _fault(f"{path}.env[{index}].name", "a text")
        value = entry.get("value")
        if value is not None and type(value) is not str:
            raise _fault(f"{path}.env[{index}].value", "a text")
    if container.get("resources") is not None:
        resources = _object(container, path, "resources")
        for field in ("limits", "requests"):
            _object(resources, f"{path}.resources", field)


def _affinity(affinity: Obj) -> None:
    for kind in ("podAffinity", "podAntiAffinity"):
        path = f"spec.affinity.{kind}"
        terms = _objects(_object(affinity, "spec.affinity", kind), path, _REQUIRED)
        for term, at in _paths(terms, f"{path}.{_REQUIRED}"):
            _texts_in(term, at, ("topologyKey",))


def _paths(items: Iterable[Obj], path: str) -> Iterable[tuple[Obj, str]]:
    return ((item, f"{path}[{index}]") for index, item in enumerate(items))


def _object(owner: Obj, path: str, field: str) -> Obj:
    value = owner.get(field)
    if value is None:
        return {}
    if type(value) is not dict:
        raise _fault(f"{path}.{field}", "an object")
    return value


def _objects(owner: Obj, path: str, field: str) -> list[Obj]:
    value = owner.get(field)
    if value is None:
        return []
    if type(value) is not list:
        raise _fault(f"{path}.{field}", "a list")
    for index, item in enumerate(value):
        if type(item) is not dict:
            raise _fault(f"{path}.{field}[{index}]", "an object")
    return value


def _texts_in(owner: Obj, path: str, fields: Iterable[str]) -> None:
    for field in fields:
        value = owner.get(field)
        if value is not None and type(value) is not str:
            raise _fault(f"{path}.{field}", "a text")


def _fault(path: str, wanted: str) -> InvalidRequest:
    return InvalidRequest(f"this is no pod: {path} must be {wanted}")
