"""The server on a socket."""

from __future__ import annotations

import io
import random
import socket
import ssl
from pathlib import Path

import aiohttp
import orjson
import pytest
from yarl import URL

from lwskit.embedded.http import serve
from lwskit.runtime.clock import RealClock
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import CONFIG_MAP

from .serving import client, config_map, server


def serving(api, **more):
    return serve(api, clock=RealClock(), rng=random.Random(1), **more)


def session(served, token: str | None) -> aiohttp.ClientSession:
    context = ssl.create_default_context(cadata=served.ca_pem.decode())
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return aiohttp.ClientSession(served.url, headers=headers, connector=aiohttp.TCPConnector(ssl=context))


async def test_only_the_token_opens_it():
    async with serving(server()) as served:
        for token in (None, "wrong"):
            async with session(served, token) as http, http.get("/api/v1/pods") as answer:
                assert answer.status == 401
                assert (await answer.json())["reason"] == "Unauthorized"
        async with session(served, served.token) as http, http.get("/api/v1/pods") as answer:
            assert answer.status == 200
        async with session(served, None) as http, http.get("/readyz") as answer:
            assert await answer.text() == "ok"


async def test_watches_stream_and_end_with_the_server():
    api = server()
    async with (
        serving(api) as served,
        session(served, served.token) as http,
        http.get("/api/v1/configmaps", params={"watch": "1"}) as answer,
    ):
        await client(api).create(CONFIG_MAP, config_map("x"))
        event = orjson.loads(await answer.content.readline())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "x")
        api.store.close_watches()
        assert await answer.content.read() == b""


async def test_bodies_json_yaml_and_too_large():
    async with serving(server()) as served, session(served, served.token) as http:
        path = "/api/v1/namespaces/default/configmaps"
        yaml = {"Content-Type": "application/yaml"}
        async with http.post(path, data="metadata: {name: y}\ndata: {a: b}\n", headers=yaml) as answer:
            assert answer.status == 201
        async with http.post(path, data="{", headers={"Content-Type": "application/json"}) as answer:
            assert answer.status == 400
        async with http.post(path, data=io.BytesIO(b" " * (3 * 1024 * 1024 + 1))) as answer:
            assert answer.status == 413


async def test_large_answers_are_compressed_when_asked():
    api = server()
    await client(api).create(CONFIG_MAP, config_map("big", a="x" * 300_000))
    async with (
        serving(api) as served,
        session(served, served.token) as http,
        http.get("/api/v1/configmaps", headers={"Accept-Encoding": "gzip"}) as answer,
    ):
        assert answer.headers["Content-Encoding"] == "gzip"
        assert len((await answer.json())["items"][0]["data"]["a"]) == 300_000


async def test_a_port_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with serving(server(), port=port):
                pass


async def test_the_kubeconfig_goes_with_the_server(tmp_path: Path):
    path = tmp_path / "config"
    async with serving(server()) as served:
        with served.kubeconfig(path):
            assert served.token in path.read_text()
        assert not path.exists()


async def test_paths_are_decoded_once_and_before_they_are_split():
    api = server()
    await client(api).create(CONFIG_MAP, config_map("x"))
    async with serving(api) as served, session(served, served.token) as http:
        base = f"{served.url}/api/v1/namespaces/default/configmaps"
        for path, code, text in (
            ("/x", 200, "ConfigMap"),
            ("%2Fx", 200, "ConfigMap"),
            ("/a%2Fb", 404, "the server could not find the requested resource"),
            ("/a%3Fb", 404, 'configmaps "a?b" not found'),
            ("/a%252Fb", 400, "Name parameter invalid: \"a%2Fb\": may not contain '%'"),
            ("/%2E%2E", 400, "Name parameter invalid: \"..\": may not be '..'"),
        ):
            async with http.get(URL(base + path, encoded=True)) as answer:
                body = await answer.json()
                assert (answer.status, body.get("message", body["kind"])) == (code, text)
