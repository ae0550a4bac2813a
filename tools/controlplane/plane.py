"""A real control plane on this machine: finds or builds its programs, starts and stops it through up.sh and down.sh."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
GO = (1, 26)


class Unavailable(Exception):
    """No control plane can be had on this machine; the message says what is missing."""


@dataclass(frozen=True)
class Programs:
    """Where the programs lie, and where they come from: `built` or `KUBEBUILDER_ASSETS`."""

    folder: Path
    origin: str

    def has(self, name: str) -> bool:
        """Whether the program is there."""
        return os.access(self.folder / name, os.X_OK)

    def describe(self) -> str:
        """One line for a person: which API server this is and whose controllers run on it."""
        own = [what for what, name in (("controllers", NAMES[2]), ("scheduler", NAMES[3])) if not self.has(name)]
        rest = f"; the embedded {' and '.join(own)} on it" if own else ""
        return f"kube-apiserver of {self.folder} ({self.origin}){rest}"


@dataclass(frozen=True)
class Plane:
    """A control plane that runs: its folder of logs and pids, its URL, the administrator's kubeconfig, its programs."""

    folder: Path
    server: str
    kubeconfig: Path
    programs: Programs


def cache() -> Path:
    """Where built programs are kept between checkouts: `$LWSKIT_CACHE/controlplane`, `~/.cache/lwskit/controlplane`."""
    base = os.environ.get("LWSKIT_CACHE")
    return (Path(base) if base else Path.home() / ".cache" / "lwskit") / "controlplane"


def missing_go() -> str | None:
    """Why Go cannot build the control plane here, or None if it can."""
    if shutil.which("go") is None:
        return "there is no Go"
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    version = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, env=env).stdout.strip()
    found = re.match(r"go(\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) < GO:
        return f"Go is {version or 'unusable'}, {GO[0]}.{GO[1]} is needed"
    return None


def ensure_built() -> Programs:
    """Build what the cache lacks (about ten minutes when it is empty) and return it.

    Raises Unavailable where Go is missing and the cache is not complete.
    """
    programs = Programs(cache(), "built")
    reason = missing_go()
    if reason is not None:
        if all(programs.has(name) for name in NAMES):
            return programs
        raise Unavailable(f"no control plane: {reason} to build one")
    programs.folder.mkdir(parents=True, exist_ok=True)
    with (programs.folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([str(HERE / "build.sh"), str(programs.folder)], check=True)
    return programs


def find() -> Programs:
    """The programs to use: built ones where Go is there, else KUBEBUILDER_ASSETS; Unavailable where neither is."""
    try:
        return ensure_built()
    except Unavailable as e:
        assets = os.environ.get("KUBEBUILDER_ASSETS")
        if not assets:
            raise Unavailable(f"{e}, and KUBEBUILDER_ASSETS is not set") from None
        programs = Programs(Path(assets), "KUBEBUILDER_ASSETS")
        lacking = [name for name in NAMES[:2] if not programs.has(name)]
        if lacking:
            raise Unavailable(f"{e}, and KUBEBUILDER_ASSETS={assets} has no {' and no '.join(lacking)}") from None
        return programs


def free_ports(count: int) -> int:
    """The first of `count` consecutive ports of 127.0.0.1 that nobody listens on now."""
    for base in range(21000 + os.getpid() % 500 * 20, 60000, 10):
        with contextlib.ExitStack() as held:
            try:
                for port in range(base, base + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return base
    raise Unavailable("no free ports on 127.0.0.1")


def start(
    programs: Programs,
    folder: Path,
    *,
    port: int | None = None,
    nodes: int = 0,
    arguments: dict[str, str] | None = None,
    controllers: bool = True,
    without: Collection[str] = (),
    cores: int | None = None,
) -> Plane:
    """Start a control plane; its port and the two after it must be free (any, if not given).

    With `nodes` a scheduler and a kubelet run too; without `controllers` only the API server and etcd. `without` names
    controllers that are left out, as the embedded cluster calls them: statefulset, garbage or namespace. `arguments`
    are further ones for APISERVER, KCM, SCHEDULER or KUBELET. `cores` is how many of the machine's each program takes
    at most; all, if not given.
    Raises Unavailable, with nothing left running, if it does not come up.
    """
    port = free_ports(3) if port is None else port
    extra = {f"{name}_ARGS": text for name, text in (arguments or {}).items()}
    env = {**os.environ, "NODES": str(nodes), "PYTHON": sys.executable, **extra}
    env["CONTROLLERS"] = "1" if controllers else "0"
    env["WITHOUT"] = " ".join(without)
    if cores is not None:
        env["GOMAXPROCS"] = str(cores)
    command = [str(HERE / "up.sh"), str(programs.folder), str(folder), str(port)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    plane = Plane(folder, f"https://127.0.0.1:{port}", folder / "kubeconfig", programs)
    if done.returncode:
        stop(plane)
        raise Unavailable(f"the control plane does not start: {done.stderr.strip()}")
    return plane


def stop(plane: Plane) -> None:
    """Stop it. Stopping what does not run does nothing."""
    subprocess.run([str(HERE / "down.sh"), str(plane.folder)], check=False)


@contextlib.contextmanager
def running(
    programs: Programs | None = None,
    *,
    nodes: int = 0,
    arguments: dict[str, str] | None = None,
    controllers: bool = True,
    without: Collection[str] = (),
    cores: int | None = None,
) -> Iterator[Plane]:
    """A control plane in a temporary folder, stopped and removed at the end; an error keeps the folder and names it."""
    programs = find() if programs is None else programs
    folder = Path(tempfile.mkdtemp(prefix="lwskit-controlplane-"))
    plane = start(
        programs, folder, nodes=nodes, arguments=arguments, controllers=controllers, without=without, cores=cores
    )
    try:
        yield plane
    except BaseException:
        stop(plane)
        # Standard error may be what has just broken.
        with contextlib.suppress(OSError):
            print(f"the control plane's logs are in {folder}", file=sys.stderr)
        raise
    stop(plane)
    shutil.rmtree(folder, ignore_errors=True)
