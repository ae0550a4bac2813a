"""From kubeconfigs to clients: what is found, and one sentence for everything that is wrong with it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from lwskit.runtime.certs import make_ca
from lwskit.runtime.client.config import connect, environment_proxy, find_access, server_url
from lwskit.runtime.client.kubeconfig import Access, from_kubeconfig, from_service_account
from lwskit.runtime.client.tokens import FileToken, PluginToken
from lwskit.runtime.clock import RealClock
from lwskit.runtime.errors import ConfigurationError

Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a kubeconfig of one context `c`, with parts of it replaced."""

    def to_file(name: str = "config", *, cluster: Any = None, user: Any = None, **top: Any) -> Path:
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1"} | (cluster or {})}],
            "users": [{"name": "u", "user": {"token": "t"} if user is None else user}],
        } | top
        path = tmp_path / name
        path.write_text(yaml.safe_dump(document))
        return path

    return to_file


@pytest.fixture
async def server() -> AsyncIterator[tuple[str, list[str]]]:
    """A server that answers /api to the token `good`, and the credentials it saw."""
    seen: list[str] = []

    async def api(request: web.Request) -> web.Response:
        seen.append(request.headers.get("authorization", ""))
        return web.json_response({"kind": "APIVersions"}, status=200 if seen[-1] == "Bearer good" else 401)

    app = web.Application()
    app.router.add_get("/api", api)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", seen
    await runner.cleanup()


def refusal(path: Path, context: str | None = None) -> str:
    with pytest.raises(ConfigurationError) as e:
        from_kubeconfig([path], context)
    assert "\n" not in str(e.value)
    return str(e.value)


async def test_a_client_is_connected_and_names_its_server(write: Write, server: tuple[str, list[str]]) -> None:
    url, seen = server
    path = write(cluster={"server": url}, user={"token": "good"})
    client = await connect(str(path), user_agent="lwskit/test", field_manager="me")
    assert (server_url(client), client.field_manager, seen) == (url, "me", ["Bearer good"])
    await client.close()


async def test_refused_credentials_are_one_sentence(write: Write, server: tuple[str, list[str]]) -> None:
    path = write(cluster={"server": server[0]}, user={"token": "bad"})
    with pytest.raises(ConfigurationError) as e:
        await connect(str(path), user_agent="x")
    assert str(e.value) == (f"the API server {server[0]} refuses the credentials of kubeconfig {path}, context 'c'")


async def test_an_unreachable_server_is_one_sentence_and_only_checked_where_wanted(write: Write) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    path = write(cluster={"server": f"http://127.0.0.1:{port}"})
    with pytest.raises(ConfigurationError, match=rf"context 'c' cannot be used: .*127\.0\.0\.1:{port} refuses"):
        await connect(str(path), user_agent="x")
    client = await connect(str(path), user_agent="x", check=False)
    await client.close()


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config"
    assert refusal(path) == f"kubeconfig {path} cannot be read: no such file or directory"
    for text, why in (
        ("", "is empty"),
        ("a: b: c", "is not YAML at line 1: "),
        ("- a", "is not a kubeconfig"),
        ("kind: Pod", "is not a kubeconfig"),
        ("kind: Config", "has no current-context"),
    ):
        path.write_text(text)
        assert why in refusal(path)


def test_a_context_that_is_not_there_is_answered_with_those_that_are(write: Write) -> None:
    assert refusal(write(), "x").endswith("has no context 'x'; it has: c")


def test_entries_that_are_missing_are_named(write: Write) -> None:
    assert "context 'c': its cluster 'k' is not in the file" in refusal(write(clusters=None))
    assert "context 'c': its user 'u' is not in the file" in refusal(write(users=[{"name": "v"}]))
    assert "cluster 'k': it has no server" in refusal(write(cluster={"server": ""}))
    assert "must start with https://" in refusal(write(cluster={"server": "127.0.0.1:6443"}))
    assert "user 'u': token must be text, not 5" in refusal(write(user={"token": 5}))


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        ({"server": "https://127.0.0.1:99999"}, "it is not a URL (Port out of range 0-65535)"),
        ({"server": "https://127.0.0.1:abc"}, "it is not a URL (Port could not be cast"),
        ({"server": "https://[::1"}, "it is not a URL (Invalid IPv6 URL)"),
        ({"server": "https://"}, "it has no host"),
        ({"server": "https://a b"}, "must be plain ASCII without spaces"),
        ({"server": "https://é.invalid"}, "must be plain ASCII without spaces"),
        ({"server": "https://.."}, "has a part that is empty or too long"),
        ({"server": "https://h:0"}, "its port must not be 0"),
        ({"server": "https://user:pw@h"}, "it must not hold a user and password; write these where credentials are"),
        ({"server": "https://h/?x=y"}, "it must not have a query or a fragment"),
        ({"server": "https://h/a b"}, "its path has characters that must be percent-encoded"),
        ({"tls-server-name": ".x"}, "has a part that is empty or too long"),
        ({"tls-server-name": "a" * 300}, "has a part that is empty or too long"),
        ({"proxy-url": "socks5://h:1"}, "proxies with socks5:// are not supported; use an http:// or https:// proxy"),
        ({"proxy-url": "h:1"}, "it must be a URL, as in http://127.0.0.1:3128"),
        ({"proxy-url": "http://"}, "it has no host"),
        ({"proxy-url": "http://h:99999"}, "it is not a URL (Port out of range"),
    ],
)
def test_urls_and_names_that_cannot_be_used_are_told_at_once(write: Write, cluster: Any, why: str) -> None:
    text = refusal(write(cluster=cluster))
    assert f", cluster 'k': {next(iter(cluster))} '" in text
    assert why in text


def test_credentials_that_no_header_can_carry_are_told_at_once(write: Write) -> None:
    for token in ("a\nb", "a\r\nX-Evil: 1", "\u00e9", "a\x00"):
        assert "user 'u': token must be one line of plain characters" in refusal(write(user={"token": token}))
    assert "header impersonate-user, 'a\\nb' cannot be used" in refusal(write(user={"token": "t", "as": "a\nb"}))


def test_names_that_are_no_text_are_told_as_such(write: Write) -> None:
    assert "contexts: a name must be text, not 5; put it in quotes" in refusal(
        write(contexts=[{"name": 5, "context": {"cluster": "k", "user": "u"}}])
    )
    assert "current-context must be text, not 5; put it in quotes" in refusal(write(**{"current-context": 5}))


def test_whoever_is_acted_as_has_groups_and_more(write: Write) -> None:
    extra = {"example.com/Scope": ["a", "b"]}
    user = {"token": "t", "as": "jane", "as-uid": "7", "as-groups": ["g", "h"], "as-user-extra": extra}
    assert from_kubeconfig([write(user=user)]).headers == {
        "impersonate-user": "jane",
        "impersonate-uid": "7",
        "impersonate-group": ("g", "h"),
        "impersonate-extra-example.com%2Fscope": ("a", "b"),
    }
    for wrong, why in (
        ({"as-groups": "g"}, "as-groups must be a list of texts, not 'g'"),
        ({"as-user-extra": {"a": "b"}}, "as-user-extra must be names, each with a list of texts"),
        ({"as": None}, "are only for a user to act as, which `as` names"),
    ):
        assert why in refusal(write(user=user | wrong))


HTTPS = {"server": "https://127.0.0.1:1"}


def test_certificates_that_cannot_be_used_are_named(write: Write, tmp_path: Path) -> None:
    junk = base64.b64encode(b"junk").decode()
    for cluster, why in (
        ({"certificate-authority-data": "%%%"}, "certificate-authority-data is not base64"),
        ({"certificate-authority-data": junk}, "certificate-authority holds no certificate"),
        ({"certificate-authority": "ca.crt"}, f"certificate-authority {tmp_path}/ca.crt cannot be read: no such file"),
    ):
        assert f"cluster 'k': {why}" in refusal(write(cluster=HTTPS | cluster))
    alone = {"client-certificate-data": junk}
    assert "must be given together" in refusal(write(cluster=HTTPS, user=alone))
    both = alone | {"client-key-data": junk}
    assert "are not a PEM certificate and its key" in refusal(write(cluster=HTTPS, user=both))
    assert from_kubeconfig([write(cluster=HTTPS | {"insecure-skip-tls-verify": True})]).tls is not None


def test_what_a_kubeconfig_says_is_taken(write: Write, tmp_path: Path) -> None:
    access = from_kubeconfig([write(cluster=HTTPS | {"tls-server-name": "n", "proxy-url": "http://p:1"})])
    assert (access.url, access.token, access.server_name, access.proxy) == (HTTPS["server"], "t", "n", "http://p:1")
    assert from_kubeconfig([write(user={"tokenFile": "tok", "token": "t"})]).token_file == tmp_path / "tok"
    headers = from_kubeconfig([write(user={"username": "a", "password": "b", "as": "c"})]).headers
    assert headers == {"authorization": "Basic YTpi", "impersonate-user": "c"}


def test_files_in_the_environment_are_merged_and_the_first_counts(write: Write, tmp_path: Path) -> None:
    first = write("one", contexts=[{"name": "d", "context": {"cluster": "k2", "user": "u"}}], user={"token": "one"})
    second = write("two", clusters=[{"name": "k2", "cluster": {"server": "http://two:1"}}], user={"token": "two"})
    environment = {"KUBECONFIG": os.pathsep.join([str(tmp_path / "none"), str(first), str(second)])}
    access = find_access(None, "d", environment)
    assert (access.url, access.token) == ("http://two:1", "one")


def test_the_namespace_is_that_of_the_context(write: Write) -> None:
    links = [{"name": n, "context": {"cluster": "k", "user": "u", "namespace": f"team-{n}"}} for n in ("c", "d")]
    file = write(contexts=links)
    assert from_kubeconfig([file]).namespace == "team-c"
    assert from_kubeconfig([file], "d").namespace == "team-d"
    assert from_kubeconfig([write()]).namespace == ""
    with pytest.raises(ConfigurationError, match="namespace must be text, not 7"):
        from_kubeconfig([write(contexts=[{"name": "c", "context": {"cluster": "k", "namespace": 7}}])])


def test_the_order_of_places(write: Write, tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    with pytest.raises(ConfigurationError, match=r"no cluster is configured: .* does not exist, KUBECONFIG is not set"):
        find_access(None, None, home)
    (tmp_path / ".kube").mkdir()
    write(".kube/config", cluster={"server": "http://home:1"})
    assert find_access(None, None, home).url == "http://home:1"
    named = home | {"KUBECONFIG": str(write("named", cluster={"server": "http://named:1"}))}
    assert find_access(None, None, named).url == "http://named:1"
    flag = write("flag", cluster={"server": "http://flag:1"})
    assert find_access(str(flag), None, named).url == "http://flag:1"


def test_inside_a_pod_the_service_account_is_used(tmp_path: Path) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert from_service_account(environment, tmp_path) is None
    (tmp_path / "token").write_text("abc")
    with pytest.raises(ConfigurationError, match=r"the CA of the service account .* cannot be used: no such file"):
        from_service_account(environment, tmp_path)
    (tmp_path / "ca.crt").write_text("junk")
    with pytest.raises(ConfigurationError, match="cannot be used"):
        from_service_account(environment, tmp_path)
    now, rng = RealClock().now(), random.Random(1)
    (tmp_path / "ca.crt").write_bytes(make_ca(now, rng).cert_pem)
    found = from_service_account(environment, tmp_path)
    assert found is not None
    assert (found.url, found.token_file) == ("https://[fd00::1]:443", tmp_path / "token")
    assert found.namespace == ""
    (tmp_path / "namespace").write_text("team\n")
    found = from_service_account(environment, tmp_path)
    assert found is not None
    assert found.namespace == "team"
    with pytest.raises(ConfigurationError, match="make 'https://a b:443': the host name 'a b' must be plain ASCII"):
        from_service_account(environment | {"KUBERNETES_SERVICE_HOST": "a b"}, tmp_path)


def test_a_proxy_of_the_environment_may_lack_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "proxy:3128")
    monkeypatch.setenv("http_proxy", "https://proxy:3129")
    assert environment_proxy("https://h:1") == "http://proxy:3128"
    assert environment_proxy("http://h:1") == "https://proxy:3129"
    assert environment_proxy("https://127.0.0.1:1") is None


def test_a_token_file_is_read_again_when_it_may_have_changed(tmp_path: Path) -> None:
    class Time(RealClock):
        seconds = 0.0

        def monotonic(self) -> float:
            return self.seconds

    clock, path = Time(), tmp_path / "token"
    token = FileToken(path, clock)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        token(False)
    path.write_text(" one\n")
    assert token(False) == "one"
    path.write_text("two")
    assert token(False) == "one"
    clock.seconds = 60.0
    assert token(False) == "two"
    path.write_text("three")
    assert token(True) == "three"
    path.write_text("four\nlines")
    assert token(True) == "three"
    path.unlink()
    assert token(True) == "three"
    path.write_text("two\nlines")
    with pytest.raises(ConfigurationError, match="holds more than one line of plain characters"):
        FileToken(path, clock)(False)


def plugin(tmp_path: Path, body: str, **entry: Any) -> Access:
    script = tmp_path / "plugin.py"
    script.write_text(body)
    spec = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(script)]} | entry
    return Access("https://x", "kubeconfig f", plugin={"exec": spec}, base=tmp_path)


PRINT = """
import json, pathlib
runs = pathlib.Path(__file__).with_suffix(".runs")
n = len(runs.read_text()) if runs.exists() else 0
runs.write_text("x" * (n + 1))
status = %s | {"token": f"token-{n}"}
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""


async def test_an_exec_plugin_is_run_when_its_token_expires_or_is_refused(tmp_path: Path) -> None:
    lasting = PluginToken(plugin(tmp_path, PRINT % {"expirationTimestamp": "2999-01-01T00:00:00Z"}), RealClock())
    assert [await lasting(False), await lasting(False), await lasting(True)] == ["token-0", "token-0", "token-1"]
    expired = PluginToken(plugin(tmp_path, PRINT % {"expirationTimestamp": "2000-01-01T00:00:00Z"}), RealClock())
    assert [await expired(False), await expired(False)] == ["token-2", "token-3"]


@pytest.mark.parametrize(
    ("body", "entry", "why"),
    [
        ("", {"command": "no-such-plugin", "installHint": "get it"}, "'no-such-plugin' is not installed; get it"),
        ("import sys; sys.exit('log in first')", {}, "log in first"),
        ("print('x')", {}, "printed what is not JSON"),
        (
            'print(\'{"apiVersion":"client.authentication.k8s.io/v1","kind":"x","status":{}}\')',
            {},
            "printed neither a token nor a client certificate",
        ),
    ],
)
async def test_a_plugin_that_fails_is_one_sentence(tmp_path: Path, body: str, entry: Any, why: str) -> None:
    with pytest.raises(ConfigurationError) as e:
        await PluginToken(plugin(tmp_path, body, **entry), RealClock())(False)
    assert str(e.value).startswith("the credential plugin of kubeconfig f: ")
    assert why in str(e.value)


async def test_an_auth_provider_is_asked_through_the_library(write: Write) -> None:
    payload = base64.urlsafe_b64encode(json.dumps({"exp": 32503680000}).encode()).decode().rstrip("=")
    token = f"e30.{payload}.sig"
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}
    access = from_kubeconfig([write(user=user)])
    assert await PluginToken(access, RealClock())(False) == token


def test_a_plain_kubeconfig_costs_no_import_of_the_kubernetes_client(write: Write) -> None:
    code = (
        "import asyncio, sys\n"
        "from lwskit.runtime.client.config import connect\n"
        f"asyncio.run(connect({str(write())!r}, user_agent='x', check=False))\n"
        "assert 'kubernetes_asyncio' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


async def test_cancelling_leaves_nothing_open(write: Write) -> None:
    waiting: list[asyncio.StreamWriter] = []
    accepted = asyncio.Event()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting.append(writer)
        accepted.set()

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    path = write(cluster={"server": f"http://127.0.0.1:{port}"})
    task = asyncio.create_task(connect(str(path), user_agent="x"))
    await accepted.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for writer in waiting:
        writer.close()
        await writer.wait_closed()
    listener.close()
    await listener.wait_closed()
