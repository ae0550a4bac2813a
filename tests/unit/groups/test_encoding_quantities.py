"""Quantities of a set are stored as the API's types spell them; nothing else of it changes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from lwskit.groups.encoding import TEMPLATE_TYPE, canonical_quantities, table
from lwskit.runtime.typed import TypeRef


def _set(template: object) -> dict[str, Any]:
    return {"metadata": {"name": "s"}, "spec": {"replicas": 1, "leaderWorkerTemplate": template}}


def _places(ref: TypeRef) -> Iterator[tuple[str, ...]]:
    """The ways to the quantities in values of a type: names of fields, `[]` for an item, `{}` for an entry."""
    if ref.element is not None:
        step = "[]" if ref.shape == "list" else "{}"
        yield from ((step, *rest) for rest in _places(ref.element))
    elif ref.shape == "struct":
        for field in table().fields(ref.name).values():
            yield from ((field.name, *rest) for rest in _places(field.type))
    elif ref.name == "quantity":
        yield ()


PLACES = sorted(".".join(place) for place in _places(TypeRef("struct", TEMPLATE_TYPE)))
POD_PLACES = {
    "containers.[].env.[].valueFrom.resourceFieldRef.divisor",
    "containers.[].resources.limits.{}",
    "containers.[].resources.requests.{}",
    "ephemeralContainers.[].env.[].valueFrom.resourceFieldRef.divisor",
    "ephemeralContainers.[].resources.limits.{}",
    "ephemeralContainers.[].resources.requests.{}",
    "initContainers.[].env.[].valueFrom.resourceFieldRef.divisor",
    "initContainers.[].resources.limits.{}",
    "initContainers.[].resources.requests.{}",
    "overhead.{}",
    "resources.limits.{}",
    "resources.requests.{}",
    "volumes.[].downwardAPI.items.[].resourceFieldRef.divisor",
    "volumes.[].emptyDir.sizeLimit",
    "volumes.[].ephemeral.volumeClaimTemplate.spec.resources.limits.{}",
    "volumes.[].ephemeral.volumeClaimTemplate.spec.resources.requests.{}",
    "volumes.[].projected.sources.[].downwardAPI.items.[].resourceFieldRef.divisor",
}


def test_the_places_of_quantities_in_a_pod():
    prefix = "workerTemplate.spec."
    assert {place.removeprefix(prefix) for place in PLACES if place.startswith(prefix)} == POD_PLACES


def _at(place: str, value: Any) -> Any:
    for step in reversed(place.split(".")):
        value = (
            [{"other": 1}, value] if step == "[]" else {"k": value} if step == "{}" else {"other": "1000m", step: value}
        )
    return value


@pytest.mark.parametrize("place", PLACES)
def test_a_quantity_is_respelled_wherever_one_can_be(place: str):
    for given, stored in (("1000m", "1"), (2, "2"), ("2", "2"), ("many", "many"), (None, None), ([1], [1])):
        lws = _set(_at(place, given))
        before = copy.deepcopy(lws)
        assert canonical_quantities(lws) == _set(_at(place, stored))
        assert lws == before
        assert (canonical_quantities(lws) is lws) == (given == stored)


def test_quantities_are_respelled_and_what_stays_is_shared():
    container = {"name": "c", "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}}, "env": [], "later": {}}
    lws = _set({"size": 2, "workerTemplate": {"spec": {"containers": [{}, container], "future": ["x"]}}})
    changed = canonical_quantities(lws)
    spec = changed["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]
    assert spec["containers"][1]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert spec["containers"][1]["later"] is container["later"]
    assert spec["containers"][0] == {}
    assert spec["future"] == ["x"]
    assert changed["metadata"] is lws["metadata"]
    assert container["resources"]["requests"]["cpu"] == "1000m"


def test_a_template_that_cannot_be_read_stays_for_the_schema_to_refuse():
    lws = _set({"workerTemplate": {"spec": {"containers": "many"}}})
    assert canonical_quantities(lws) is lws
    for odd in ({"spec": None}, {"spec": []}, {}):
        assert canonical_quantities(odd) is odd


def test_lists_that_no_pod_can_have_are_left_alone():
    containers = [{"resources": {"limits": {"cpu": "1000m"}}}] * 10_001
    lws = _set({"workerTemplate": {"spec": {"containers": containers}}})
    assert canonical_quantities(lws) is lws
    limits = {f"example.com/r{i}": "1000m" for i in range(10_001)}
    lws = _set({"workerTemplate": {"spec": {"overhead": limits}}})
    assert canonical_quantities(lws) is lws
