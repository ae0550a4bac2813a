"""Credential programs: answers of every form, and an end for each of them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lwskit.runtime.client import tokens
from lwskit.runtime.client.exec_plugin import run_plugin
from lwskit.runtime.client.kubeconfig import Access
from lwskit.runtime.client.tokens import PluginToken
from lwskit.runtime.clock import RealClock
from lwskit.runtime.errors import ConfigurationError

V1 = "client.authentication.k8s.io/v1"
Script = Callable[..., dict[str, Any]]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Write a shell script and give the entry that names it."""

    def write(body: str, **entry: Any) -> dict[str, Any]:
        path = tmp_path / "plugin"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never", **entry}

    return write


def printing(answer: Any) -> str:
    text = json.dumps(answer).replace("'", "")
    return f"cat <<'END'\n{text}\nEND"


def answer(**status: Any) -> str:
    return printing({"apiVersion": V1, "kind": "ExecCredential", "status": status})


async def refusal(entry: Any, base: Path) -> str:
    with pytest.raises(ConfigurationError) as e:
        await run_plugin(entry, base)
    assert "\n" not in str(e.value)
    return str(e.value)


async def test_a_token_and_its_expiry_are_taken(script: Script, tmp_path: Path) -> None:
    found = await run_plugin(script(answer(token="t", expirationTimestamp="2030-01-01T00:00:00.5Z")), tmp_path)
    assert (found.token, found.certificate) == ("t", None)
    assert found.expires == datetime(2030, 1, 1, 0, 0, 0, 500000, tzinfo=UTC)


async def test_a_program_is_given_arguments_environment_and_what_is_asked_of_it(script: Script, tmp_path: Path) -> None:
    body = """printf '{"apiVersion":"%s","status":{"token":"%s %s %s"}}' \
"$(echo "$KUBERNETES_EXEC_INFO" | grep -o 'client[^"]*')" "$1" "$A" \
"$(echo "$KUBERNETES_EXEC_INFO" | grep -o 'interactive[^}]*' | tr -d '"')" """
    found = await run_plugin(script(body, args=["one"], env=[{"name": "A", "value": "two"}]), tmp_path)
    assert found.token == "one two interactive:false"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("echo null", "printed JSON that is no ExecCredential"),
        ("echo '[]'", "printed JSON that is no ExecCredential"),
        ("true", "printed nothing"),
        ("printf '\\377\\376'", "printed what is not JSON"),
        (printing({"apiVersion": "v2", "status": {}}), "an answer of apiVersion 'v2', where the kubeconfig asks for"),
        (printing({"apiVersion": V1}), "an ExecCredential without a status"),
        (printing({"apiVersion": V1, "status": None}), "an ExecCredential without a status"),
        (printing({"apiVersion": V1, "status": "x"}), "an ExecCredential without a status"),
        (answer(token=5), "a token that is no text"),
        (answer(clientCertificateData="x"), "neither a token nor a client certificate with its key"),
        (answer(clientCertificateData=5, clientKeyData=6), "a clientCertificateData that is no text"),
        (answer(clientCertificateData="x", clientKeyData="y"), "a client certificate that cannot be used"),
        (answer(token="t", expirationTimestamp="2020-01-01T00:00:00"), "no time with a zone: '2020-01-01T00:00:00'"),
        (answer(token="t", expirationTimestamp=5), "no time with a zone: 5"),
        (answer(token="t", expirationTimestamp={"a": 1}), "no time with a zone: {'a': 1}"),
        (answer(token="t", expirationTimestamp="soon"), "no time with a zone: 'soon'"),
        ("printf 'a\\nb\\n' >&2; exit 3", "failed with code 3: a b"),
        ("head -c 5000000 /dev/zero; sleep 60", "prints more than 4194304 bytes"),
        ("kill -9 $$", "failed with code -9"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_one_sentence(
    script: Script, tmp_path: Path, body: str, why: str
) -> None:
    text = await refusal(script(body), tmp_path)
    assert text.startswith("'./plugin' ")
    assert why in text


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"args": "x"}, "exec.args must be a list of texts, not 'x'"),
        ({"args": [1]}, "exec.args must be a list of texts, not [1]"),
        ({"env": {"a": 1}}, "exec.env must be a list of entries with name and value"),
        ({"env": [{"a": 1}]}, "exec.env must be a list of entries with name and value"),
        ({"env": [{"name": "A=B", "value": "c"}]}, "cannot be run"),
        ({"command": 5}, "exec.command must be text, not 5"),
        ({"apiVersion": None}, "exec.apiVersion must be text, not None"),
        ({"interactiveMode": "Sometimes"}, "must be Never, IfAvailable or Always, not 'Sometimes'"),
        ({"interactiveMode": "Always"}, "wants to ask at a terminal (interactiveMode Always), and there is none"),
        ({"command": "/etc/passwd"}, "'/etc/passwd' cannot be run: "),
        ({"command": "./none", "installHint": "get\nit"}, "'./none' is not installed; get it"),
    ],
)
async def test_an_entry_that_cannot_be_used_is_one_sentence(
    script: Script, tmp_path: Path, change: Any, why: str
) -> None:
    assert why in await refusal(script("echo x", **change), tmp_path)


@pytest.mark.parametrize("entry", ["x", ["x"], 5])
async def test_an_entry_that_is_none_is_one_sentence(entry: Any, tmp_path: Path) -> None:
    assert "exec must have apiVersion and command, and is" in await refusal(entry, tmp_path)
    for plugin, why in (({"exec": entry}, "exec must have"), ({"auth-provider": entry}, "auth-provider must have")):
        with pytest.raises(ConfigurationError, match=f"the credential plugin of f: {why}"):
            await PluginToken(Access("https://h", "f", plugin=plugin), RealClock())(False)


HANGS = "exec 3>life\necho up >&3\nsleep 60 &\nwait"
"""A program that hangs with a child of its own; both hold the pipe `life` until they end."""


class Life:
    """The other end of a pipe that programs hold while they live."""

    def __init__(self, folder: Path) -> None:
        os.mkfifo(folder / "life")
        self._file = os.open(folder / "life", os.O_RDONLY | os.O_NONBLOCK)
        self.up, self.over = asyncio.Event(), asyncio.Event()
        asyncio.get_running_loop().add_reader(self._file, self._read)

    def _read(self) -> None:
        if os.read(self._file, 100):
            self.up.set()
        elif self.up.is_set():
            self.over.set()
            self.close()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._file)
        os.close(self._file)


async def test_a_program_that_is_given_up_does_not_stay(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    life = Life(tmp_path)
    task = asyncio.create_task(run_plugin(script(HANGS), tmp_path))
    await life.up.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(life.over.wait(), 30)


async def test_a_program_that_takes_too_long_does_not_stay(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    life = Life(tmp_path)
    # What is left behind holds the output, too.
    access = Access("https://h", "f", plugin={"exec": script(HANGS + " & exit 0")}, base=tmp_path)
    for limit in (0.2, 2.0, 20.0):
        monkeypatch.setattr(tokens, "PLUGIN_TIMEOUT", limit)
        with pytest.raises(ConfigurationError, match=f"the credential plugin of f: it did not end within {limit:g} s"):
            await PluginToken(access, RealClock())(False)
        if life.up.is_set():
            break  # On a busy machine it may be given up before it has begun.
    assert life.up.is_set()
    await asyncio.wait_for(life.over.wait(), 30)
