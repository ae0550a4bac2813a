"""What a lane needs of a cluster it started: its address and token, a program beside it, and waiting for both."""

from __future__ import annotations

import base64
import json
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SETS = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets"


class LaneError(Exception):
    """The lane cannot go on; the message says what happened and ends with what the program printed."""


@dataclass(frozen=True)
class Cluster:
    """An API server, the administrator's token, and the file of its certificate authority (None: not checked)."""

    server: str
    token: str
    authority: Path | None

    @classmethod
    def read(cls, kubeconfig: Path, folder: Path) -> Cluster:
        """Read the only cluster of a kubeconfig; an inline authority is written into `folder`."""
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        token = config["users"][0]["user"]["token"]
        authority: Path | None = None
        if "certificate-authority-data" in cluster:
            authority = folder / "authority.crt"
            authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        elif "certificate-authority" in cluster:
            authority = kubeconfig.parent / cluster["certificate-authority"]
        return cls(cluster["server"], token, authority)

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """One request; the status and the decoded answer. Status 0 stands for no answer at all."""
        context = (
            ssl.create_default_context(cafile=str(self.authority))
            if self.authority
            else ssl._create_unverified_context()
        )
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=context, timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as e:
            text = e.read()
            return e.code, json.loads(text) if text.startswith(b"{") else {"message": text.decode(errors="replace")}
        except OSError as e:
            return 0, {"message": str(e)}


class Program:
    """A `lwskit` command that runs beside the lane, as a context manager: Ctrl-C at the end, its output in a file."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        self.command = [sys.executable, "-m", "lwskit", *arguments]
        self.log = log

    def __enter__(self) -> Program:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is not None:
            print(f"unasked, {self.error(f'ended with code {self.process.returncode}')}", file=sys.stderr)
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            print(f"{' '.join(self.command[2:])} did not end within 15 seconds of a Ctrl-C", file=sys.stderr)

    def check(self) -> None:
        """Raise LaneError if the program has ended."""
        if self.process.poll() is not None:
            raise self.error(f"ended with code {self.process.returncode}")

    def error(self, what: str) -> LaneError:
        """A LaneError about this program, with the end of its output."""
        end = "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])
        return LaneError(f"{' '.join(self.command[2:])}: {what}\n{end}")

    def wait_until(self, true: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait until `true()`; raise LaneError if the program ends or `seconds` pass first."""
        end = time.monotonic() + seconds
        while not true():
            self.check()
            if time.monotonic() > end:
                raise self.error(f"{what} did not happen within {seconds:g} seconds")
            time.sleep(0.1)

    def await_file(self, path: Path) -> None:
        """Wait until the program has written a file."""
        self.wait_until(lambda: path.exists() and path.stat().st_size > 0, 30, f"writing {path.name}")


def _sample(name: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    spec = {"replicas": 0, "leaderWorkerTemplate": {"size": 1, "workerTemplate": template}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": spec,
    }


def await_webhooks(cluster: Cluster, program: Program) -> None:
    """Wait until a set that is created gets the defaults which only the webhook gives."""

    def defaulted() -> bool:
        status, answer = cluster.call("POST", SETS + "?dryRun=All", _sample("lane-probe"))
        return status == 201 and "networkConfig" in answer["spec"]

    program.wait_until(defaulted, 60, "serving the webhooks")


def await_collector(cluster: Cluster, program: Program) -> None:
    """Wait until the garbage collector watches the sets: only then does it finish a foreground deletion.

    A garbage collector learns of a new CRD at its next discovery, which may be half a minute away.
    """
    status, answer = cluster.call("POST", SETS, _sample("lane-probe"))
    if status != 201:
        raise program.error(f"a set was refused: {answer.get('message')}")
    cluster.call("DELETE", f"{SETS}/lane-probe", {"propagationPolicy": "Foreground"})

    def gone() -> bool:
        return cluster.call("GET", f"{SETS}/lane-probe")[0] == 404

    program.wait_until(gone, 120, "a foreground deletion by the garbage collector")
