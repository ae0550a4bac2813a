from collections.abc import Callable
from functools import partial
from typing import Any, cast

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lwskit.runtime.client import requests
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.errors import ApiError, InvalidRequest, NotFound
from lwskit.runtime.kinds import CONFIG_MAP, NODE, POD, TOKEN_REVIEW, Kind
from lwskit.testing import fake


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


LISTED = requests.list_(Kind("example.com", "v1", "Widget", "widgets"), "d")


@pytest.mark.parametrize(
    ("status", "body", "code", "text"),
    [
        (
            200,
            b"",
            502,
            "the server's answer to GET /apis/example.com/v1/namespaces/d/widgets is not JSON, but nothing",
        ),
        (204, b"", 502, "is not JSON, but nothing"),
        (200, b"<html>", 502, "is not JSON, but b'<html>'"),
        (200, b"null", 502, "is not a JSON object, but b'null'"),
        (200, b"[1]", 502, r"is not a JSON object, but b'\[1\]'"),
        (200, b"[" * 100_000, 502, "is not JSON"),
        (304, b"", 304, "the server answered 304 to GET .*: no text; an API server sends nobody elsewhere$"),
        (302, b"go", 302, "answered 302 to .*: go; .* nobody elsewhere, as this one does, to http://login/"),
        (999, b"{}", 999, "the server answered 999"),
    ],
)
def test_only_a_json_object_in_2xx_is_an_answer(status: int, body: bytes, code: int, text: str):
    headers = {"location": "http://login/"} if status == 302 else {}
    with pytest.raises(ApiError, match=text) as e:
        requests.read(HttpResponse(status, body, headers), LISTED)
    assert e.value.code == code


def test_a_status_of_failure_is_one_whatever_the_code_of_http():
    body = orjson.dumps(NotFound("no such thing").status)
    with pytest.raises(NotFound, match="no such thing"):
        requests.read(HttpResponse(200, body))
    done = b'{"kind": "Status", "status": "Success"}'
    assert requests.read(HttpResponse(200, done))["status"] == "Success"


@pytest.mark.parametrize("body", [b"{}", b'{"metadata": 5, "items": []}', b'{"metadata": {}, "items": "x"}'])
async def test_an_answer_that_is_no_list_is_not_taken_for_one(body: bytes):
    class Server:
        async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
            return HttpResponse(200, body)

    with pytest.raises(ApiError, match="answer to a list of pods has no metadata or no items"):
        await Client(cast(Any, Server())).list_all(POD)


def test_a_path_that_nothing_serves_is_named_with_what_may_be_missing():
    with pytest.raises(NotFound) as e:
        requests.read(HttpResponse(404, b"404 page not found\n"), LISTED)
    assert str(e.value) == (
        "the server answered 404 to GET /apis/example.com/v1/namespaces/d/widgets: 404 page not found; "
        "if widgets.example.com are custom resources, their CustomResourceDefinition may not be installed"
    )
    with pytest.raises(NotFound, match=r"page not found$"):
        requests.read(HttpResponse(404, b"404 page not found"), requests.list_(POD, "d"))


@pytest.mark.parametrize("obj", [{}, None, [], "x", {"metadata": None}, {"metadata": "x"}])
async def test_what_is_no_object_is_not_written(obj: Any):
    client = fake.client()
    for verb in (client.create, client.update, partial(client.apply, field_manager="m")):
        with pytest.raises(InvalidRequest, match="a ConfigMap to be written needs metadata with its name"):
            await verb(CONFIG_MAP, obj)
    with pytest.raises(InvalidRequest, match="a ConfigMap to be written needs metadata with its name"):
        await client.kind(CONFIG_MAP, namespace="d").create(obj)
    with pytest.raises(InvalidRequest, match="a ConfigMap to be written needs metadata with its name"):
        await client.patch_from(CONFIG_MAP, obj, obj)
    assert client.interceptor.requests == []


async def test_a_review_has_no_name():
    review = {"metadata": {}, "spec": {"token": "x"}}
    assert (await fake.client().create(TOKEN_REVIEW, review))["status"] is not None
    with pytest.raises(InvalidRequest, match="is for one ConfigMap, so it needs a name"):
        await fake.client().update(CONFIG_MAP, {"metadata": {}})


@pytest.mark.parametrize("value", [{1}, object(), float, 2**70, "\ud800", {5: 1}])
def test_what_json_has_no_form_for_is_not_sent(value: Any):
    with pytest.raises(InvalidRequest, match="the body of a request cannot be written as JSON: "):
        requests.patch(CONFIG_MAP, "d", "c", {"data": value}, PatchType.MERGE)
    with pytest.raises(InvalidRequest, match="cannot be written as JSON"):
        requests.delete(CONFIG_MAP, "d", "c", uid=value)


def test_the_type_of_a_patch_may_be_its_content_type():
    given: Any = "application/merge-patch+json"
    assert requests.patch(POD, "d", "p", {}, given).headers["content-type"] == given
    given = "merge"
    with pytest.raises(InvalidRequest, match="there is no type of patch 'merge'; there are: application/json-patch"):
        requests.patch(POD, "d", "p", {}, given)


async def test_a_kind_is_a_kind():
    client, kind = fake.client(), cast(Any, "pods")
    for call in (
        client.get(kind, "a", "t"),
        client.list(kind),
        client.create(kind, {"metadata": {"name": "a"}}),
        client.delete(kind, "a", "t"),
        client.delete_collection(kind, "t"),
        client.patch(kind, "a", {}, "t"),
    ):
        with pytest.raises(InvalidRequest, match=r"a kind is given as a Kind, .*, not as 'pods'"):
            await call
