"""A control plane that a test may mistreat: its API server is killed, stopped and started, its etcd compacted."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from lwskit.runtime.client.http import CALL_TIMEOUT, HttpTransport, TokenProvider, tls_context
from lwskit.runtime.client.transport import HttpRequest
from lwskit.testing.polling import eventually
from tools.controlplane.plane import Plane

API_SERVER = "apiserver"
READY = 120.0
"""Seconds that an API server may take to get ready on a busy machine."""
SOON = 60.0
"""The same for what takes it a moment."""
READYZ = HttpRequest("GET", "/readyz")


class Server:
    """The API server and the etcd of one control plane, by their process ids."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self._command = self._read("cmdline").split("\0")[:-1]
        self._etcd = f"http://127.0.0.1:{int(plane.server.rpartition(':')[2]) + 1}"

    @property
    def pid(self) -> int:
        """The API server's process id."""
        return int(self._pid_file.read_text())

    @property
    def _pid_file(self) -> Path:
        return self.plane.folder / f"{API_SERVER}.pid"

    def _read(self, name: str) -> str:
        return Path(f"/proc/{self.pid}/{name}").read_text()

    async def kill(self) -> None:
        """End the API server as a crash does; returns when it is gone and its port is free."""
        os.kill(self.pid, signal.SIGKILL)
        await eventually(self._is_gone, SOON, 0.01)

    def _has_ended(self) -> bool:
        try:
            return self._read("stat").rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    def _is_gone(self) -> bool:
        """Whether the process has ended with all its threads: the first may be a zombie while others hold the port."""
        if not self._has_ended():
            return False
        host, _, port = self.plane.server.rpartition("//")[2].rpartition(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) != 0

    def start(self) -> None:
        """Start the API server as it was, as nobody's child, so that it is gone when it has ended."""
        script = f'setsid "$@" >>{API_SERVER}.log 2>&1 </dev/null & echo $! >{API_SERVER}.pid'
        subprocess.run(["sh", "-c", script, "sh", *self._command], cwd=self.plane.folder, check=True)

    def pause(self) -> None:
        """Let the API server say nothing more; the kernel keeps its connections."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    async def revision(self) -> int:
        """The latest revision of etcd, asked through its JSON gateway."""
        key = base64.b64encode(b"/registry/").decode()
        answer = await self._ask("kv/range", {"key": key, "limit": 1, "keys_only": True})
        return int(answer["header"]["revision"])

    async def compact(self) -> int:
        """Have etcd forget everything before its latest revision, which is returned."""
        revision = await self.revision()
        await self._ask("kv/compaction", {"revision": revision, "physical": True})
        return revision

    async def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self._etcd}/v3/{path}", json=body) as response,
        ):
            assert response.status == 200, await response.text()
            return await response.json()

    async def wait_ready(self) -> None:
        """Wait until the API server answers that it is ready; one that could not begin is started again."""
        transport = HttpTransport(self.plane.server, tls=tls_context(insecure=True), timeout=2.0)

        async def answers() -> bool:
            if self._has_ended():
                self.start()
            return (await transport.send(READYZ)).status == 200

        try:
            await eventually(answers, READY)
        finally:
            await transport.close()

    def transport(self, token: TokenProvider | None = None, *, timeout: float = CALL_TIMEOUT) -> HttpTransport:
        """A connection of its own, as the administrator unless there is a `token` provider."""
        config = yaml.safe_load(self.plane.kubeconfig.read_text())
        admin = config["users"][0]["user"]["token"]
        tls = tls_context(insecure=True)
        return HttpTransport(self.plane.server, tls=tls, token=token or (lambda renew: admin), timeout=timeout)
