"""Field sets, merging and managed fields."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lwskit.embedded import fieldset, merging
from lwskit.embedded.structure import Structures
from lwskit.runtime.errors import Conflict
from lwskit.runtime.kinds import CONFIG_MAP, STATEFUL_SET
from lwskit.runtime.typed import load_resource

from .serving import client, config_map, pod, server

TYPES = load_resource("lwskit.embedded", "builtin-types.json")
POD = Structures(TYPES).builtin("core.v1.Pod")
CONTAINERS = ("f:spec", "f:containers")

elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
paths = st.sets(st.lists(elements, min_size=1, max_size=4).map(tuple), max_size=12)


@settings(max_examples=40)
@given(paths)
def test_field_sets_survive_their_encoding(found: set):
    assert fieldset.decode(fieldset.encode(found)) == found


def test_the_fields_of_an_object():
    found = fieldset.of_object(POD, {"spec": {"containers": [{"name": "x", "ports": [{"containerPort": 1}]}]}})
    item = (*CONTAINERS, 'k:{"name":"x"}')
    port = (*item, "f:ports", 'k:{"containerPort":1,"protocol":"TCP"}')
    assert found == {item, (*item, "f:name"), port, (*port, "f:containerPort")}


def test_paths_as_text():
    path = (*CONTAINERS, 'k:{"name":"x"}', "f:image")
    assert fieldset.text(path) == '.spec.containers[name="x"].image'


def names(value: dict) -> list[str]:
    return [c["name"] for c in value["spec"]["containers"]]


@pytest.mark.parametrize(
    ("live", "config", "merged"),
    [
        ("abc", "", "abc"),
        ("abc", "cd", "abcd"),
        ("abc", "ca", "bca"),
        ("abc", "dab", "dabc"),
        ("", "ab", "ab"),
    ],
)
def test_keyed_lists_keep_the_order_of_the_configuration(live: str, config: str, merged: str):
    def made(text: str) -> dict:
        return {"spec": {"containers": [{"name": n} for n in text]}}

    assert "".join(names(merging.merge(POD, made(live), made(config)))) == merged


async def test_two_appliers():
    c = client(server(), None)
    await c.apply(CONFIG_MAP, config_map(k="1", own="1"), field_manager="one")
    with pytest.raises(Conflict, match=r'Apply failed with 1 conflict: conflict with "one": \.data\.k'):
        await c.apply(CONFIG_MAP, config_map(k="2"), field_manager="two", force=False)
    taken = await c.apply(CONFIG_MAP, config_map(k="2"), field_manager="two")
    assert taken["data"] == {"k": "2", "own": "1"}
    owners = {e["manager"]: e["fieldsV1"] for e in taken["metadata"]["managedFields"]}
    assert owners == {"one": {"f:data": {"f:own": {}}}, "two": {"f:data": {"f:k": {}}}}
    left = await c.apply(CONFIG_MAP, config_map(), field_manager="one")
    assert left["data"] == {"k": "2"}


async def test_an_update_takes_over_and_a_removal_frees():
    c = client(server(), None)
    await c.apply(CONFIG_MAP, config_map(k="1", own="1"), field_manager="one")
    await c.patch(CONFIG_MAP, "a", {"data": {"k": "2", "own": None}}, "default", field_manager="editor")
    live = await c.get(CONFIG_MAP, "a", "default")
    owners = {(e["manager"], e["operation"]): e["fieldsV1"] for e in live["metadata"]["managedFields"]}
    assert owners == {("editor", "Update"): {"f:data": {"f:k": {}}}}


async def test_the_manager_is_the_user_agent_where_none_is_named():
    made = await client(server(), None).create(CONFIG_MAP, config_map(k="1"))
    assert made["metadata"]["managedFields"][0]["manager"] == "lwskit"


async def test_applying_the_same_again_changes_nothing():
    c = client(server(), None)
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]},
    }
    meta = {"name": "s", "namespace": "default"}
    intent = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}
    first = await c.apply(STATEFUL_SET, intent, field_manager="m")
    assert await c.apply(STATEFUL_SET, intent, field_manager="m") == first
