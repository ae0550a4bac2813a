from collections.abc import Callable
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lwskit.runtime.client import requests
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import InvalidRequest
from lwskit.runtime.kinds import CONFIG_MAP, NODE, POD


def test_bodies_are_spelled_as_servers_spell_them():
    assert requests.encode({"b": "<&>\u2028", "a": 1}) == b'{"a":1,"b":"\\u003c\\u0026\\u003e\\u2028"}'
    obj = {"metadata": {"name": "c", "namespace": "d"}, "data": {"k": "a&b"}}
    expected = b'{"data":{"k":"a\\u0026b"},"metadata":{"name":"c","namespace":"d"}}'
    assert requests.create(CONFIG_MAP, obj).body == expected
    assert requests.update(CONFIG_MAP, obj).body == expected
    assert requests.patch(CONFIG_MAP, "d", "c", obj, PatchType.MERGE).body == expected


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_the_body_of_an_apply_is_the_same_text_to_a_yaml_parser(text: str):
    request = requests.patch(POD, "ns", "p", {"text": text}, PatchType.APPLY, field_manager="m")
    assert request.body is not None
    assert orjson.loads(request.body) == {"text": text}
    assert yaml.safe_load(request.body) == {"text": text}


def test_line_separators_in_an_apply_are_escaped():
    request = requests.patch(POD, "ns", "p", {"a": "\u2028 é 漢 \x85\x7f"}, PatchType.APPLY, field_manager="m")
    assert request.body == '{"a":"\\u2028 é 漢 \\u0085\\u007f"}'.encode()


OBJECTS: list[Callable[[Any], HttpRequest]] = [
    lambda name: requests.get(CONFIG_MAP, "d", name),
    lambda name: requests.get(CONFIG_MAP, "d", name, "status"),
    lambda name: requests.update(CONFIG_MAP, {"metadata": {"name": name, "namespace": "d"}}),
    lambda name: requests.create(POD, {"metadata": {"name": name, "namespace": "d"}}, subresource="eviction"),
    lambda name: requests.patch(CONFIG_MAP, "d", name, {}, PatchType.MERGE),
    lambda name: requests.patch(CONFIG_MAP, "d", name, {}, PatchType.APPLY, field_manager="m"),
    lambda name: requests.delete(CONFIG_MAP, "d", name),
]


@pytest.mark.parametrize("build", OBJECTS)
@pytest.mark.parametrize("name", ["", None])
def test_a_request_for_one_object_is_never_one_for_all_of_them(build: Callable[[Any], HttpRequest], name: Any):
    with pytest.raises(InvalidRequest, match=r"is for one (ConfigMap|Pod), so it needs a name"):
        build(name)


def test_an_object_in_a_namespace_is_not_asked_for_without_it():
    with pytest.raises(InvalidRequest, match="the Pod 'p' is in a namespace, which must be given"):
        requests.delete(POD, None, "p")
    assert requests.delete(NODE, None, "n").path == "/api/v1/nodes/n"


def test_collections_have_no_name():
    paths = {requests.list_(POD, None).path, requests.watch(POD, "").path, requests.delete_collection(POD, None).path}
    assert paths == {"/api/v1/pods"}
    assert requests.create(POD, {"metadata": {"generateName": "p-", "namespace": "d"}}).path.endswith("/d/pods")
