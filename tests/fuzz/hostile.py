"""Reviews as large as an API server lets them become, of the shapes that cost most."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from lwskit.api import disaggregated_names, names
from tests.fuzz import objects
from tests.fuzz.generate import Asked

LARGEST = 1_500_000
"""Bytes of an object: etcd takes no larger value."""
LWS, POD = names.MUTATE_LWS_PATH, names.MUTATE_POD_PATH
DISAGGREGATED = disaggregated_names.VALIDATE_PATH


def _asked(path: str, obj: Any, old: Any = None) -> Asked:
    request = {
        "uid": "large",
        "operation": "UPDATE" if old is not None else "CREATE",
        "namespace": "ns",
        "object": obj,
        "oldObject": old,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return Asked(path, json.dumps(body, separators=(",", ":")).encode())


def _base(path: str) -> Any:
    """A pod or a set that shares no part of itself."""
    if path == DISAGGREGATED:
        return json.loads(json.dumps(objects.disaggregated_sets()[1]))
    of_pods = path in (names.MUTATE_POD_PATH, names.VALIDATE_POD_PATH)
    return json.loads(json.dumps(objects.pods()[4] if of_pods else objects.sets()[2]))


def _filled(path: str, at: str, item: str, largest: int, *, twice: bool = False, key: str = "") -> Asked:
    """A review with a list at a place of dots that holds an item, or a map with keys, until the object is large.

    `%d` in them is a number.
    """
    base = owner = _base(path)
    *parents, last = at.split(".")
    for name in parents:
        owner = owner[int(name)] if isinstance(owner, list) else owner.setdefault(name, {})
    parts: list[str] = []
    size = 0
    while size < largest:
        part = item.replace("%d", str(len(parts)))
        if key:
            part = f'"{key}":{part}'.replace("%d", str(len(parts)))
        parts.append(part)
        size += len(part) + 1
    text = f"{{{','.join(parts)}}}" if key else f"[{','.join(parts)}]"
    owner[last] = "@"
    asked = _asked(path, base, base if twice else None)
    return Asked(path, asked.body.replace(b'"@"', text.encode()))


def _text(path: str, at: str, text: str, largest: int) -> Asked:
    """A review with a text, repeated, at a place."""
    return _filled_with(path, at, text * (largest // len(text)))


def _filled_with(path: str, at: str, value: Any) -> Asked:
    base = owner = _base(path)
    *parents, last = at.split(".")
    for name in parents:
        owner = owner[int(name)] if isinstance(owner, list) else owner.setdefault(name, {})
    owner[int(last) if isinstance(owner, list) else last] = value
    return _asked(path, base)


_TEMPLATE = "spec.leaderWorkerTemplate.workerTemplate.spec"
_OWNER = '{"apiVersion":"v1","kind":"K","name":"n%d","uid":"u%d","controller":true}'
_VALIDATE = names.VALIDATE_LWS_PATH
_CONTAINER = '{"name":"c%d","env":[{"name":"A","value":"b"}],"resources":{"limits":{"cpu":"1%dm","memory":"1024Mi"}}}'


def cases(largest: int = LARGEST) -> Mapping[str, Callable[[], Asked]]:
    """The reviews by what is large in them: objects of so many bytes, and changes of such."""
    found: dict[str, Callable[[], Asked]] = {}

    def lists(path: str, name: str, at: str, item: str, key: str = "") -> None:
        found[f"{path}: {name}"] = partial(_filled, path, at, item, largest, key=key)
        if path != POD:
            found[f"{path}: {name}, changed"] = partial(_filled, path, at, item, largest, key=key, twice=True)

    for path in (LWS, _VALIDATE):
        lists(path, "labels", "metadata.labels", '""', "a%d")
        lists(path, "labels with prefixes", "metadata.labels", '"v%d"', "a%d.b/c")
        lists(path, "labels that are none", "metadata.labels", '"-%d"', "-%d/-/")
        lists(path, "annotations", "metadata.annotations", '""', "a%d")
        lists(path, "annotations that are no texts", "metadata.annotations", "[]", "a%d")
        lists(path, "controlling owners", "metadata.ownerReferences", _OWNER)
        lists(path, "empty owners", "metadata.ownerReferences", "{}")
        lists(path, "finalizers", "metadata.finalizers", '"orphan/%d/"')
        lists(path, "claims", "spec.leaderWorkerTemplate.volumeClaimTemplates", "{}")
        for what, text in (("digits", "1"), ("dashes", "-"), ("letters", "a"), ("dots", "a.")):
            found[f"{path}: a name of {what}"] = partial(_text, path, "metadata.name", text, largest)
            found[f"{path}: a key of {what}"] = partial(
                _filled_with, path, "metadata.labels", {text * (largest // len(text)): text * 1000}
            )
        percent = "9" * largest + "%"
        rolling = "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge"
        found[f"{path}: a percentage of digits"] = partial(_filled_with, path, rolling, percent)
        found[f"{path}: a policy of all the object"] = partial(
            _filled_with, path, "spec.podTerminationPolicy", [["x"] * 1000] * 300
        )
    lists(LWS, "containers", f"{_TEMPLATE}.containers", _CONTAINER)
    lists(LWS, "empty containers", f"{_TEMPLATE}.containers", "{}")
    lists(LWS, "variables", f"{_TEMPLATE}.containers.0.env", '{"name":"A%d","value":"b"}')
    lists(LWS, "limits", f"{_TEMPLATE}.containers.0.resources.limits", '"1%dm"', "r%d")
    lists(LWS, "volumes", f"{_TEMPLATE}.volumes", '{"name":"v%d","emptyDir":{"sizeLimit":"1%dm"}}')
    limit = f"{_TEMPLATE}.containers.0.resources.limits.cpu"
    for text in ("1" * largest, "1e" + "9" * largest, "0." + "0" * largest, "1e999999999"):
        found[f"{LWS}: a quantity {text[:4]}"] = partial(_filled_with, LWS, limit, text)
    lists(LWS, "containers with long quantities", f"{_TEMPLATE}.containers", _long_quantities())

    lists(POD, "containers", "spec.containers", _CONTAINER)
    for field in ("containers", "initContainers"):
        containers = _large_containers(min(5000, largest // 300))
        found[f"{POD}: 5000 {field}"] = partial(_filled_with, POD, f"spec.{field}", containers)
    lists(POD, "containers for TPUs", "spec.containers", _tpus())
    lists(POD, "empty containers", "spec.containers", "{}")
    lists(POD, "init containers", "spec.initContainers", '{"name":"c%d"}')
    lists(POD, "variables", "spec.containers.0.env", '{"name":"A%d","value":"b"}')
    lists(POD, "variables of one name", "spec.containers.0.env", '{"name":"A"}')
    lists(POD, "variables of two names each", "spec.containers.0.env", '{"name":"A%d"},{"name":"A%d"}')
    lists(POD, "labels", "metadata.labels", '""', "a%d")
    lists(POD, "terms", f"spec.affinity.podAffinity.{_REQUIRED}", '{"topologyKey":"t%d"}')
    lists(POD, "gates", "spec.schedulingGates", '{"name":"g%d"}')
    for what, at in (("name", "metadata.name"), ("host name", "spec.hostname"), ("subdomain", "spec.subdomain")):
        for text in ("1", "-1", "a"):
            found[f"{POD}: a {what} of {text}"] = partial(_text, POD, at, text, largest)
    for note in (names.SIZE_ANNOTATION, names.SUBGROUP_SIZE_ANNOTATION, names.LEADER_NAME_ANNOTATION):
        value = {names.SIZE_ANNOTATION: "5", note: "1" * largest}
        found[f"{POD}: a long {note}"] = partial(_filled_with, POD, "metadata.annotations", value)
    wide = {names.SIZE_ANNOTATION: "2147483647", names.SUBGROUP_SIZE_ANNOTATION: "2147483647"}
    found[f"{POD}: the largest group"] = partial(_filled_with, POD, "metadata.annotations", wide)
    lists(names.VALIDATE_POD_PATH, "containers", "spec.containers", _CONTAINER)
    lists(DISAGGREGATED, "roles", "spec.roles", '{"name":"r%d","scaling":{"mode":"External"},"spec":{"replicas":%d}}')
    lists(DISAGGREGATED, "roles that are none", "spec.roles", "[]")
    lists(DISAGGREGATED, "sub-roles", "spec.roles.1.subRoles", '{"name":"s%d","scaling":{"mode":"External"}}')
    lists(DISAGGREGATED, "labels", "spec.roles.0.metadata.labels", '""', "a%d")
    lists(DISAGGREGATED, "annotations", "spec.roles.0.metadata.annotations", '"v%d"', "a%d")
    scaled = [{"name": f"r{i}", "scaling": {"mode": disaggregated_names.SCALING_EXTERNAL}} for i in range(10)]
    for at in ("metadata.name", "spec.roles.0.name", "spec.roles.1.subRoles.1.name", "spec.placementPolicy.type"):
        for text in ("a", "-1", '"'):
            found[f"{DISAGGREGATED}: {at} of {text}"] = partial(_text, DISAGGREGATED, at, text, largest)
    found[f"{DISAGGREGATED}: ten names of scalers"] = partial(
        _filled_with, DISAGGREGATED, "spec.roles", [{**role, "name": role["name"] * (largest // 30)} for role in scaled]
    )
    rolling = "spec.roles.0.spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge"
    found[f"{DISAGGREGATED}: a percentage of digits"] = partial(
        _filled_with, DISAGGREGATED, rolling, "9" * largest + "%"
    )
    return found


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _large_containers(count: int) -> list[Any]:
    """Containers of 300 bytes each: of as many as a pod may have, it is as large as may be."""
    return [
        {
            "name": f"c{i}",
            "image": "i" * 100,
            "env": [{"name": "A", "value": "b" * 50}, {"name": "A"}, {"name": names.ENV_LEADER_ADDRESS, "value": "x"}],
            "resources": {"limits": {names.TPU_RESOURCE: f"{i}e-99"}},
        }
        for i in range(count)
    ]


def _long_quantities() -> str:
    return '{"name":"c%d","resources":{"limits":{"cpu":"%d' + "1" * 200 + 'Ei","memory":"1%de990"}}}'


def _tpus() -> str:
    return '{"name":"c%d","resources":{"limits":{"' + names.TPU_RESOURCE + '":"1%de990"}}}'
