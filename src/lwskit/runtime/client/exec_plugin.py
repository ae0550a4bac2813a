"""Running the credential program of a kubeconfig's user, and reading what it prints.

Source: Kubernetes documentation, "Authenticating", client-go credential plugins.
"""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from lwskit.runtime.client.contexts import add_client_certificate
from lwskit.runtime.clock import parse_time
from lwskit.runtime.errors import ConfigurationError

_LIMIT = 4 * 1024 * 1024
"""Bytes that a program may print."""
_SHOWN = 300
"""How much of what a program complains of is in a message."""


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """What a program printed: a token, a client certificate with its key as PEM text, or both; and until when."""

    token: str | None
    certificate: tuple[str, str] | None
    expires: datetime | None


async def run_plugin(entry: Any, base: Path) -> ExecCredential:
    """Run the program that the `exec` entry of a user names; relative paths are relative to `base`.

    Raises ConfigurationError with a sentence for what is wrong with the entry, the program or its answer. Cancelling it
    kills the program and what it has started.
    """
    command, arguments, version, mode, variables = _read_entry(entry)
    # Without a directory it is looked up; otherwise it is written relative to the kubeconfig.
    program = str(base / command) if "/" in command else command
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if mode == "Always" and not terminal:
        raise ConfigurationError(f"{command!r} wants to ask at a terminal (interactiveMode Always), and there is none")
    interactive = terminal and mode != "Never"
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": interactive}}
    environment = {**os.environ, **variables, "KUBERNETES_EXEC_INFO": orjson.dumps(info).decode()}
    try:
        code, output, complaint = await _run([program, *arguments], environment, interactive)
    except FileNotFoundError as e:
        hint = entry.get("installHint")
        raise ConfigurationError(f"{command!r} is not installed" + (f"; {_line(str(hint))}" if hint else "")) from e
    except (OSError, ValueError) as e:
        raise ConfigurationError(f"{command!r} cannot be run: {e}") from e
    if code:
        said = _line(complaint.decode(errors="replace"))
        raise ConfigurationError(f"{command!r} failed with code {code}" + (f": {said}" if said else ""))
    try:
        return _read_answer(output, version)
    except ConfigurationError as e:
        raise ConfigurationError(f"{command!r} printed {e}") from e


class _Program(asyncio.SubprocessProtocol):
    """What a program prints until it and all that hold its output have ended."""

    def __init__(self) -> None:
        self.printed = {1: bytearray(), 2: bytearray()}
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.gone = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.printed[fd] += data
        if len(self.printed[fd]) > _LIMIT and not self.ended.done():
            self.ended.set_exception(ValueError(f"it prints more than {_LIMIT} bytes"))

    def process_exited(self) -> None:
        self.gone.set()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


async def _run(command: list[str], environment: Mapping[str, str], interactive: bool) -> tuple[int, bytes, bytes]:
    """Exit code and output. A program that may ask at the terminal is in this group, others in one of their own."""
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            _Program,
            *command,
            env=environment,
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=not interactive,
        )
    )
    try:
        transport, program = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # The start takes no time, but cancelled itself it would wait for whatever the program has started.
        await asyncio.wait({starting})
        if starting.exception() is None:
            await _end(*starting.result(), group=not interactive)
        raise
    try:
        await program.ended
    finally:
        await _end(transport, program, group=not interactive)
    return transport.get_returncode() or 0, bytes(program.printed[1]), bytes(program.printed[2])


async def _end(transport: asyncio.SubprocessTransport, program: _Program, group: bool) -> None:
    """Kill what has not ended. One that ended by itself may leave others behind that do not hold its output."""
    if group and (not program.ended.done() or program.ended.cancelled() or program.ended.exception()):
        with suppress(ProcessLookupError, PermissionError):
            # Also when the program itself has ended: what it has started holds its output.
            os.killpg(transport.get_pid(), signal.SIGKILL)
    transport.close()
    await program.gone.wait()


def _read_entry(entry: Any) -> tuple[str, list[str], str, str, dict[str, str]]:
    """Command, arguments, apiVersion, interactiveMode and environment."""
    if not isinstance(entry, Mapping):
        raise ConfigurationError(f"exec must have apiVersion and command, and is {entry!r}")
    for name in ("command", "apiVersion"):
        if not isinstance(entry.get(name), str) or not entry[name]:
            raise ConfigurationError(f"exec.{name} must be text, not {entry.get(name)!r}")
    arguments = entry.get("args") or []
    if not isinstance(arguments, list) or not all(isinstance(argument, str) for argument in arguments):
        raise ConfigurationError(f"exec.args must be a list of texts, not {arguments!r}")
    variables = entry.get("env") or []
    if not isinstance(variables, list) or not all(_is_variable(variable) for variable in variables):
        raise ConfigurationError("exec.env must be a list of entries with name and value, both of them text")
    mode = entry.get("interactiveMode") or "IfAvailable"
    if mode not in ("Never", "IfAvailable", "Always"):
        raise ConfigurationError(f"exec.interactiveMode must be Never, IfAvailable or Always, not {mode!r}")
    return entry["command"], arguments, entry["apiVersion"], mode, {v["name"]: v["value"] for v in variables}


def _is_variable(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("name"), str) and isinstance(value.get("value"), str)


def _read_answer(output: bytes, version: str) -> ExecCredential:
    """What was printed. The texts of its errors go on from `printed`."""
    try:
        answer = orjson.loads(output)
    except orjson.JSONDecodeError as e:
        raise ConfigurationError(f"what is not JSON ({e})" if output.strip() else "nothing") from e
    if not isinstance(answer, dict):
        raise ConfigurationError("JSON that is no ExecCredential")
    if answer.get("apiVersion") != version:
        given = answer.get("apiVersion")
        raise ConfigurationError(f"an answer of apiVersion {given!r}, where the kubeconfig asks for {version!r}")
    status = answer.get("status")
    if not isinstance(status, dict):
        raise ConfigurationError("an ExecCredential without a status")
    token, certificate, key = (_text(status, n) for n in ("token", "clientCertificateData", "clientKeyData"))
    if bool(certificate) != bool(key) or not (token or certificate):
        raise ConfigurationError("neither a token nor a client certificate with its key")
    expires = _expiry(status.get("expirationTimestamp"))
    if not certificate or not key:
        return ExecCredential(token, None, expires)
    ends = _end_of(certificate, key)
    return ExecCredential(token, (certificate, key), min(expires, ends) if expires else ends)


def _text(status: Mapping[str, Any], name: str) -> str | None:
    value = status.get(name)
    if value is not None and not isinstance(value, str):
        raise ConfigurationError(f"a {name} that is no text")
    return value or None


def _expiry(given: Any) -> datetime | None:
    if given is None or given == "":
        return None
    try:
        expires = parse_time(given) if isinstance(given, str) else None
    except ValueError:
        expires = None
    if expires is None or expires.tzinfo is None:
        raise ConfigurationError(f"an expirationTimestamp that is no time with a zone: {given!r}")
    return expires


def _end_of(certificate: str, key: str) -> datetime:
    """Until when a certificate is valid, after a try whether TLS can use it."""
    from cryptography import x509

    try:
        add_client_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate, key)
        return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc
    except (OSError, ValueError) as e:
        raise ConfigurationError(f"a client certificate that cannot be used ({e})") from e


def _line(text: str) -> str:
    return " ".join(text.split())[-_SHOWN:]
