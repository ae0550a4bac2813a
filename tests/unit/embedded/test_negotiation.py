"""What a request may say of its body and of the answer it wants, and options that are none."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from lwskit.embedded import negotiation
from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.transport import InProcessTransport
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.errors import NotAcceptable, UnsupportedMediaType

MAPS = "/api/v1/namespaces/default/configmaps"
ONE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


@pytest.fixture
def transport() -> InProcessTransport:
    return InProcessTransport(ApiServer(rng=random.Random(1)))


async def ask(transport: InProcessTransport, method: str, path: str, body: Any = None, **more: Any) -> HttpResponse:
    headers = {"content-type": more.get("type", "application/json"), "accept": more.get("accept", "application/json")}
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    return await transport.send(HttpRequest(method, path, tuple(more.get("query", {}).items()), headers, raw))


def status(answer: HttpResponse) -> tuple[int, str]:
    return answer.status, json.loads(answer.body)["message"]


@pytest.mark.parametrize("text", ["", "application/json; charset=utf-8", "APPLICATION/JSON", " application/json ;x=1"])
def test_a_body_of_json_is_known(text):
    assert negotiation.body_type(text) == "application/json"


@pytest.mark.parametrize(
    "text", ["application/xml", "nonsense", "application/json;a", "application/json, text/plain", "*/*"]
)
def test_another_body_is_refused(text):
    with pytest.raises(UnsupportedMediaType, match="accepted media types include: application/json, application/yaml"):
        negotiation.body_type(text)


@pytest.mark.parametrize(
    ("header", "media_type", "kind"),
    [
        ("", "application/json", ""),
        ("*/*", "application/json", ""),
        ("application/*", "application/json", ""),
        ("application/xml, application/yaml;q=0.1", "application/yaml", ""),
        ("application/json;q=0.5, application/yaml", "application/yaml", ""),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", "application/json", "Table"),
        ("application/json;as=Other;v=v1;g=meta.k8s.io, application/json", "application/json", ""),
    ],
)
def test_what_is_written(header, media_type, kind):
    assert negotiation.output(header) == negotiation.Chosen(media_type, kind)


@pytest.mark.parametrize(
    "header", ["application/xml", "text/*", "nonsense", "application/json;stream=x", "application/json;as=Table"]
)
def test_what_cannot_be_written(header):
    with pytest.raises(NotAcceptable, match="only the following media types"):
        negotiation.output(header)


def test_a_refusal_never_becomes_a_table():
    assert negotiation.chosen("application/yaml;as=Table;v=v1;g=meta.k8s.io", objects=False) is None


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("POST", MAPS, ONE), ("PUT", f"{MAPS}/a", ONE), ("DELETE", f"{MAPS}/a", {"dryRun": ["All"]})],
)
async def test_xml_is_415(transport, method, path, body):
    code, text = status(await ask(transport, method, path, body, type="application/xml"))
    assert code == 415
    assert text.startswith("the body of the request was in an unknown format")


@pytest.mark.parametrize("path", [MAPS, f"{MAPS}/a", "/api", "/apis/apps/v1", "/version"])
async def test_an_answer_nobody_can_give_is_406(transport, path):
    code, text = status(await ask(transport, "GET", path, accept="application/xml"))
    assert code == 406
    assert text.startswith("406: Not Acceptable\n\nAvailable representations: application/json")


async def test_nothing_is_written_when_the_answer_is_not_wanted(transport):
    assert (await ask(transport, "POST", MAPS, ONE, accept="text/html")).status == 406
    assert (await ask(transport, "GET", f"{MAPS}/a")).status == 404


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ({"limit": "a"}, 400, 'strconv.ParseInt: parsing "a": invalid syntax'),
        ({"limit": "9" * 20}, 400, f'strconv.ParseInt: parsing "{"9" * 20}": value out of range'),
        ({"limit": "a", "timeoutSeconds": "b"}, 400, 'strconv.ParseInt: parsing "b": invalid syntax'),
        (
            {"continue": "x"},
            400,
            "invalid continue token: continue key is not valid: illegal base64 data at input byte 0",
        ),
        ({"fieldSelector": "metadata.name=a="}, 400, "invalid field selector: unescaped character in value: 61"),
    ],
)
async def test_bad_parameters_of_a_list(transport, method, query, code, text):
    await ask(transport, "POST", MAPS, ONE)
    assert status(await ask(transport, method, MAPS, query=query)) == (code, text)
    assert (await ask(transport, "GET", f"{MAPS}/a")).status == 200


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"gracePeriodSeconds": "1"}, "string into Go struct field DeleteOptions.gracePeriodSeconds of type int64"),
        ({"gracePeriodSeconds": 1.5}, "number 1.5 into Go struct field DeleteOptions.gracePeriodSeconds of type int64"),
        (
            {"propagationPolicy": 1},
            "number into Go struct field DeleteOptions.propagationPolicy of type v1.DeletionPropagation",
        ),
        (
            {"preconditions": {"uid": 1}},
            "number into Go struct field Preconditions.preconditions.uid of type types.UID",
        ),
        ({"orphanDependents": "true"}, "string into Go struct field DeleteOptions.orphanDependents of type bool"),
        ({"dryRun": "All"}, "string into Go struct field DeleteOptions.dryRun of type []string"),
    ],
)
async def test_options_of_a_wrong_type_delete_nothing(transport, body, text):
    await ask(transport, "POST", MAPS, ONE)
    for path in (MAPS, f"{MAPS}/a"):
        assert status(await ask(transport, "DELETE", path, body)) == (400, f"json: cannot unmarshal {text}")
    assert (await ask(transport, "GET", f"{MAPS}/a")).status == 200


async def test_options_in_yaml_and_in_the_query(transport):
    await ask(transport, "POST", MAPS, ONE)
    dry = await ask(transport, "DELETE", f"{MAPS}/a", b"dryRun: [All]\n", type="application/yaml")
    assert dry.status == 200
    assert (await ask(transport, "GET", f"{MAPS}/a")).status == 200
    refused = await ask(transport, "DELETE", f"{MAPS}/a", query={"gracePeriodSeconds": "x"})
    assert status(refused) == (400, 'strconv.ParseInt: parsing "x": invalid syntax')
    # What the query says does not count beside a body.
    assert (await ask(transport, "DELETE", f"{MAPS}/a", {}, query={"dryRun": "All"})).status == 200
    assert (await ask(transport, "GET", f"{MAPS}/a")).status == 404


async def test_a_selector_with_escaped_signs(transport):
    await ask(transport, "POST", MAPS, ONE)
    for text, found in (("metadata.name=a\\,b", 0), ("=", 1), ("metadata.name=a,=", 1)):
        body = json.loads((await ask(transport, "GET", MAPS, query={"fieldSelector": text})).body)
        assert len(body["items"]) == found


async def test_one_object_at_a_version_that_is_none(transport):
    await ask(transport, "POST", MAPS, ONE)
    assert (await ask(transport, "GET", f"{MAPS}/a", query={"resourceVersion": "x"})).status == 500
    assert (await ask(transport, "GET", f"{MAPS}/a", query={"resourceVersion": "99999"})).status == 504
    assert (await ask(transport, "GET", f"{MAPS}/a", query={"watch": "true"})).status == 200
