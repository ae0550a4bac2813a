"""Discovery, OpenAPI, reviews, protobuf bodies, JSON paths, table texts, kubeconfig."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
import yaml

from lwskit.embedded import jsonpath, kubeconfig, table_text
from lwskit.embedded.protobuf import Decoder
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import InvalidRequest
from lwskit.runtime.kinds import CUSTOM_RESOURCE_DEFINITION
from lwskit.runtime.typed import load_resource

from .serving import WIDGET, ask, client, server, widget, widget_crd

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
NOW = datetime(2026, 6, 1, tzinfo=UTC)


async def test_a_crd_is_discovered_at_once():
    api = server()
    await client(api).create(CUSTOM_RESOURCE_DEFINITION, widget_crd())
    groups = await ask(api, "/apis", AGGREGATED)
    [group] = [g for g in groups["items"] if g["metadata"]["name"] == "example.com"]
    [resource] = group["versions"][0]["resources"]
    assert resource["shortNames"] == ["wd"]
    assert {s["subresource"] for s in resource["subresources"]} == {"status", "scale"}
    plain = await ask(api, "/apis/example.com/v1")
    assert [r["name"] for r in plain["resources"]] == ["widgets", "widgets/status", "widgets/scale"]
    assert "example.com" in [g["name"] for g in (await ask(api, "/apis"))["groups"]]


async def test_openapi_has_what_kubectl_looks_for():
    api = server()
    await client(api).create(CUSTOM_RESOURCE_DEFINITION, widget_crd())
    index = await ask(api, "/openapi/v3")
    assert "hash=" in index["paths"]["apis/example.com/v1"]["serverRelativeURL"]
    document = await ask(api, "/openapi/v3/apis/apps/v1")
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}"]["patch"]
    assert "fieldValidation" in [p["name"] for p in patch["parameters"]]
    containers = document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    own = await ask(api, "/openapi/v3/apis/example.com/v1")
    schema = own["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "kind": "Widget", "version": "v1"}]


async def test_documents_point_only_at_what_they_have():
    document = await ask(server(), "/openapi/v3/api/v1")
    schemas = document["components"]["schemas"]
    found: set[str] = set()

    def walk(value) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                found.add(value["$ref"].removeprefix("#/components/schemas/"))
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(document)
    assert found
    assert found <= schemas.keys()


async def test_reviews():
    api = server()
    access = await ask(
        api,
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        method="POST",
        spec={"resourceAttributes": {"verb": "get", "resource": "pods"}},
    )
    assert access["status"] == {"allowed": True}
    api.backend.tokens["secret"] = "somebody"
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    known = await ask(api, path, method="POST", spec={"token": "secret"})
    assert known["status"]["user"]["username"] == "somebody"
    assert "authenticated" not in (await ask(api, path, method="POST", spec={"token": "other"}))["status"]


async def test_columns_of_a_custom_resource():
    api = server()
    c = client(api)
    columns = [
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "Count", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
        {"name": "None", "type": "string", "jsonPath": ".spec.none"},
    ]
    await c.create(CUSTOM_RESOURCE_DEFINITION, widget_crd(additionalPrinterColumns=columns))
    await c.create(WIDGET, widget())
    table = await ask(api, "/apis/example.com/v1/widgets", TABLE)
    assert [(d["name"], d["priority"]) for d in table["columnDefinitions"]] == [
        ("Name", 0),
        ("Color", 0),
        ("Count", 1),
        ("None", 0),
    ]
    assert table["rows"][0]["cells"] == ["w", "red", 1, None]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        ("{.a.b}", [1]),
        (".l[1].v", [2]),
        (".l[*].v", [1, 2]),
        ('.l[?(@.n=="y")].v', [2]),
        (".l[?(@.n!='y')].v", [1]),
        (r".m.x\.y/z", ["dotted"]),
        (".m['x.y/z']", ["dotted"]),
        (".nope.x", []),
        (".l[9]", []),
        (".l[", []),
    ],
)
def test_json_paths(path: str, found: list):
    obj = {"a": {"b": 1}, "l": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "m": {"x.y/z": "dotted"}}
    assert jsonpath.find(path, obj) == found


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (3600, "60m"),
        (3 * 3600 + 60, "3h1m"),
        (20 * 3600, "20h"),
        (50 * 3600, "2d2h"),
        (10 * 86400, "10d"),
        (800 * 86400, "2y70d"),
        (-5, "<invalid>"),
    ],
)
def test_ages(seconds: int, text: str):
    assert table_text.duration(seconds) == text


def state(status: dict, **spec) -> table_text.PodState:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "m"}], **spec}, "status": status}
    return table_text.PodState(pod, NOW)


def test_states_of_pods():
    running = {"name": "m", "ready": True, "restartCount": 2, "state": {"running": {}}}
    finished = (NOW - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    restarted = {**running, "lastState": {"terminated": {"finishedAt": finished}}}
    shown = state({"phase": "Running", "containerStatuses": [restarted]})
    assert (shown.reason, shown.ready, shown.restarts_text) == ("Running", 1, "2 (5m ago)")
    crashing = {"name": "m", "restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    assert state({"phase": "Running", "containerStatuses": [crashing]}).reason == "CrashLoopBackOff"
    waiting = {"name": "i", "restartCount": 0, "state": {"running": {}}}
    starting = state({"phase": "Pending", "initContainerStatuses": [waiting]}, initContainers=[{"name": "i"}])
    assert starting.reason == "Init:0/1"
    assert state({"phase": "Failed", "reason": "Evicted"}).reason == "Evicted"


def message(*fields: tuple[int, bytes]) -> bytes:
    return b"".join(bytes([number << 3 | 2, len(value)]) + value for number, value in fields)


def test_protobuf_bodies():
    decoder = Decoder(load_resource("lwskit.embedded", "builtin-types.json"))
    meta = message((1, b"web"), (11, message((1, b"app"), (2, b"x"))))
    port = message((1, b"http")) + bytes([3 << 3, 0xBB, 0x03]) + message((4, bytes([1 << 3, 0, 2 << 3, 0x50])))
    service = message((1, meta), (2, message((1, port), (3, b"None"))))
    envelope = message((1, message((1, b"v1"), (2, b"Service"))), (2, service))
    assert orjson.loads(decoder.body(b"k8s\0" + envelope)) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "labels": {"app": "x"}},
        "spec": {"ports": [{"name": "http", "port": 443, "targetPort": 80}], "clusterIP": "None"},
    }


@pytest.mark.parametrize("raw", [b"", b"{}", b"k8s\0\x0a\xff", b"k8s\0"])
def test_broken_protobuf_bodies(raw: bytes):
    decoder = Decoder(load_resource("lwskit.embedded", "builtin-types.json"))
    with pytest.raises(InvalidRequest):
        decoder.body(raw)


async def test_a_body_that_is_too_large():
    request = HttpRequest("POST", "/api/v1/namespaces/default/configmaps", (), {}, b" " * (3 * 1024 * 1024 + 1))
    assert (await server().handle(request)).status == 413


def test_a_kubeconfig_is_its_owners(tmp_path: Path):
    path = tmp_path / "config"
    kubeconfig.write(path, server="https://127.0.0.1:1", token="t", ca_pem=b"pem")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = yaml.safe_load(path.read_text())
    assert content["users"][0]["user"]["token"] == "t"
    assert content["current-context"] == content["contexts"][0]["name"]
