"""The project's checks, one session each; `nox -l` lists them. CI runs the same through .ci/run."""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_external_run = True
nox.options.sessions = ["lint", "types", "imports", "docs", "unit", "scenarios"]

CONSTRAINTS = "constraints.txt"


def install(session: nox.Session, extra: str) -> None:
    """Install the project, editable, with an extra, in the versions that CI has."""
    session.install("-c", CONSTRAINTS, "-e", f".[{extra}]")


def install_only(session: nox.Session, *packages: str) -> None:
    """Install tools without the project."""
    session.install("-c", CONSTRAINTS, *packages)


@nox.session
def lint(session: nox.Session) -> None:
    """Style: ruff's checks and its formatting."""
    install_only(session, "ruff")
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Types, with pyright."""
    install(session, "dev")
    session.run("pyright", "--pythonpath", f"{session.bin}/python", *session.posargs)


@nox.session
def imports(session: nox.Session) -> None:
    """The layers: who may import whom."""
    install(session, "dev")
    session.run("lint-imports", "--no-cache")


@nox.session
def docs(session: nox.Session) -> None:
    """The pages: links lead somewhere, the commands shown exist, and what is made from code is current."""
    install(session, "test")
    session.run("python", "-m", "tools.check_docs")
    session.run("python", "-m", "tools.checklist", "--check")
    session.run("python", "-m", "tools.names_page", "--check")


@nox.session
def unit(session: nox.Session) -> None:
    """Tests without I/O."""
    install(session, "test")
    session.run("python", "-m", "pytest", "tests/unit", *session.posargs)


@nox.session
def scenarios(session: nox.Session) -> None:
    """Behaviour on the embedded cluster, and a sample of what `explore` tries."""
    install(session, "test")
    folders = ("tests/scenarios", "tests/exploration")
    session.run("python", "-m", "pytest", *folders, *session.posargs, env={"LWSKIT_CLUSTER": "embedded"})


@nox.session
def explore(session: nox.Session) -> None:
    """Every life and every scenario of sets, with the manager disturbed at every point; takes an hour or more."""
    install(session, "test")
    session.run("python", "-m", "tools.explore", *session.posargs)


@nox.session(reuse_venv=False)
def stranger(session: nox.Session) -> None:
    """Another project's tests, with lwskit installed as its users install it and none of this folder's files."""
    session.install("-c", CONSTRAINTS, ".[test]")
    project = Path(session.create_tmp()) / "other_project"
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree("tests/other_project", project)
    session.chdir(project)
    session.run("python", "-m", "pytest", "--rootdir", ".", *session.posargs)


@nox.session
def real(session: nox.Session) -> None:
    """The same scenarios on a real control plane, built once where Go is there; skipped where none can be had."""
    install(session, "test")
    session.run("python", "-m", "tools.lanes", "real", *session.posargs)


@nox.session
def conformance(session: nox.Session) -> None:
    """The recorded cases on the embedded cluster and, where it can be had, on a real control plane."""
    install(session, "test")
    session.run("python", "-m", "tools.lanes", "conformance", *session.posargs)


@nox.session
def differential(session: nox.Session) -> None:
    """Random requests to the embedded API server and to a real one; skipped where none can be had."""
    install(session, "test")
    session.run("python", "-m", "tools.lanes", "differential", *session.posargs)


@nox.session
def statefulsets(session: nox.Session) -> None:
    """Random StatefulSets on the embedded cluster and on a real one; skipped where none can be had."""
    install(session, "test")
    session.run("python", "-m", "tools.lanes", "statefulsets", *session.posargs)


@nox.session
def deployments(session: nox.Session) -> None:
    """Random Deployments on the embedded cluster and on a real one; skipped where none can be had."""
    install(session, "test")
    session.run("python", "-m", "tools.lanes", "deployments", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """A hundred thousand odd admission reviews: none is answered with 500 or takes long."""
    install(session, "test")
    session.run("python", "-m", "tests.fuzz.reviews", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """The controller core against orjson, asyncio and other clients; decisions; on a control plane, the manager."""
    install(session, "test")
    kopf = Path(session.cache_dir, "kopf")
    if not (kopf / "bin" / "kopf").exists():
        session.run("python", "-m", "venv", str(kopf), silent=True)
        session.run(str(kopf / "bin" / "pip"), "install", "-q", "kopf", external=True, success_codes=[0, 1])
    python = {"LWSKIT_BENCH_KOPF": str(kopf / "bin" / "python")} if (kopf / "bin" / "kopf").exists() else {}
    session.run("python", "-m", "tests.bench.runtime", env=python)
    session.run("python", "-m", "tests.bench.decisions")
    session.run("python", "-m", "tests.bench.scaling")
    session.run("python", "-m", "tests.bench.coordinated")
    session.run("python", "-m", "tests.bench.planning")
    session.run("python", "-m", "tests.bench.groups", *session.posargs)


@nox.session(reuse_venv=False)
def constraints(session: nox.Session) -> None:
    """Renew constraints.txt: the newest versions within the bounds of pyproject.toml."""
    session.install("hatchling", "-e", ".[dev]")
    frozen = str(session.run("python", "-m", "pip", "freeze", "--exclude-editable", silent=True))
    pins = [line for line in frozen.splitlines() if "==" in line and not line.startswith("#")]
    file = Path(CONSTRAINTS)
    comments = [line for line in file.read_text().splitlines() if line.startswith("#")]
    file.write_text("\n".join([*comments, *pins]) + "\n")
