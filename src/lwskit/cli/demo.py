"""`lwskit demo`: a set becomes ready, loses a worker, and exactly that group is made anew."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lwskit.api import disaggregated_names, names
from lwskit.cli import disaggregated_demo, logs, manifests
from lwskit.cli.interrupt import run_until_interrupted
from lwskit.cli.session import Session, embedded_session
from lwskit.groups import spec
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import ConfigurationError, LwskitError
from lwskit.runtime.kinds import CORE_EVENT, POD
from lwskit.runtime.objects import Key, Obj, generation_of, is_deleting, is_true, key_of, labels_of, uid_of

REFRESH = 0.1
PIPE_WIDTH = 160
NARROW = 100
"""Columns below which the node of a pod is not shown, so that its UID fits."""
_GONE = "–"


@dataclass(frozen=True, slots=True)
class View:
    """What one look at the cluster shows: the set and its pods by name."""

    lws: Obj
    pods: Mapping[str, Obj]

    @property
    def replicas(self) -> int:
        """Groups asked for."""
        return self.lws["spec"].get("replicas", 1)

    @property
    def available(self) -> bool:
        """Whether the set says of its present generation that all groups are ready."""
        status = self.lws.get("status") or {}
        return (
            is_true(self.lws, names.CONDITION_AVAILABLE)
            and status.get("observedGeneration") == generation_of(self.lws)
            and status.get("readyReplicas", 0) == self.replicas
        )

    def group(self, index: str) -> dict[str, str]:
        """UIDs by name of one group's pods."""
        return {n: uid_of(p) for n, p in self.pods.items() if labels_of(p).get(names.GROUP_INDEX_LABEL) == index}


@click.command("demo")
@click.option("-f", "--filename", metavar="FILE", help="A manifest with a set, instead of the sample.")
@click.option("--disaggregated", is_flag=True, help="A DisaggregatedSet, whose roles are rolled together.")
@click.option("--nodes", default=3, show_default=True, type=click.IntRange(1, 1000), help="Nodes of the cluster.")
@click.option(
    "--timeout", default=60.0, show_default=True, type=click.FloatRange(1.0), help="Seconds to wait for each step."
)
@click.pass_context
def command(context: click.Context, filename: str | None, disaggregated: bool, nodes: int, timeout: float) -> None:
    """Start a cluster in this process, run a LeaderWorkerSet on it, delete a worker and watch its group come back.

    With --disaggregated: run a DisaggregatedSet, and watch its roles roll together.
    """
    logs.setup(context, "panic")
    sample = str(sample_path("disaggregatedset" if disaggregated else "leaderworkerset"))
    kind = disaggregated_names.KIND if disaggregated else names.KIND
    objects = manifests.read(filename or sample)
    sets = [o for o in objects if o["kind"] == kind]
    if not sets:
        raise ConfigurationError(f"{filename} holds no {kind}; the demo needs one to show")
    if len(sets) > 1:
        click.echo(f"{filename} holds {len(sets)} sets; all are applied, {sets[0]['metadata']['name']} is shown.")
    show = disaggregated_demo.run if disaggregated else _demo
    if run_until_interrupted(show(_console(), objects, sets[0], filename or sample, nodes, timeout)):
        raise click.Abort


def sample_path(name: str = "leaderworkerset") -> Any:
    """Where the installed copy of a sample manifest lies."""
    return resources.files("lwskit.cli").joinpath(f"samples/{name}.yaml")


async def _demo(console: Console, objects: list[Obj], lws: Obj, manifest: str, nodes: int, timeout: float) -> None:
    console.print(f"Starting a cluster with {nodes} nodes and the LeaderWorkerSet manager in this process…")
    async with embedded_session(nodes=nodes) as session:
        await manifests.apply(session.client, objects)
        key = Key(lws["metadata"].get("namespace") or "default", lws["metadata"]["name"])
        ready = await _until_ready(console, session, key, timeout)
        if not ready.pods:
            console.print(f"{key} asks for no groups, so there is no worker to delete.")
            return
        victim, index = _victim(ready)
        lost = _lost(ready, victim, index)
        console.print(f"Deleting pod [bold]{victim}[/] of group {_short(index)}; {_expectation(ready)}.")
        await session.client.delete(POD, victim, key.namespace)
        after = await _until_replaced(console, session, key, ready, lost, timeout)
        console.print(_comparison(ready, after, index))
        _check(ready, after, lost)
        _how_to_go_on(console, manifest, ready, victim)


def _console() -> Console:
    """The terminal; into a pipe or a file lines are not broken at a width that nobody has."""
    console = Console(highlight=False, soft_wrap=True)
    return console if console.is_terminal else Console(highlight=False, soft_wrap=True, width=PIPE_WIDTH)


async def _look(client: Client, key: Key) -> View:
    lws = await client.get(LEADER_WORKER_SET, key.name, key.namespace)
    listed = await client.list(POD, key.namespace, label_selector=f"{names.NAME_LABEL}={key.name}")
    return View(lws, {p["metadata"]["name"]: p for p in sorted(listed["items"], key=_order)})


def _order(pod: Obj) -> tuple[str, int]:
    labels = labels_of(pod)
    index = labels.get(names.GROUP_INDEX_LABEL, "")
    return (index.zfill(8), int(labels.get(names.WORKER_INDEX_LABEL, "0")))


async def _until_ready(console: Console, session: Session, key: Key, timeout: float) -> View:
    return await _follow(console, session.client, key, timeout, lambda view: view.available, "to become ready")


async def _until_replaced(
    console: Console, session: Session, key: Key, before: View, lost: Collection[str], timeout: float
) -> View:
    names_of_them = ", ".join(sorted(lost))
    what = f"to have others for {names_of_them}" if spec.is_hashed(before.lws) else f"to have {names_of_them} back"

    def reached(view: View) -> bool:
        return _is_replaced(before, view, lost)

    return await _follow(console, session.client, key, timeout, reached, what)


def _is_replaced(before: View, now: View, lost: Collection[str]) -> bool:
    """Whether the lost pods are gone, and as many others are ready: in Hash mode under other names."""
    known = {uid_of(pod) for pod in before.pods.values()}
    there = {uid_of(pod) for pod in now.pods.values()}
    new = {name for name, pod in now.pods.items() if uid_of(pod) not in known and is_true(pod, "Ready")}
    back = len(new) >= len(lost) if spec.is_hashed(before.lws) else new >= set(lost)
    return now.available and back and not there & {uid_of(before.pods[name]) for name in lost}


async def _follow(console: Console, client: Client, key: Key, timeout: float, reached: Any, what: str) -> View:
    """Show the set until `reached` says so. Raises LwskitError when it takes longer than `timeout` seconds."""
    view = await _look(client, key)
    try:
        async with asyncio.timeout(timeout):
            with Live(_state(view, console.width), console=console, refresh_per_second=10, transient=False) as live:
                while not reached(view):
                    await asyncio.sleep(REFRESH)
                    view = await _look(client, key)
                    live.update(_state(view, console.width))
            _end_of_live(console)
    except TimeoutError:
        _end_of_live(console)
        raise LwskitError(
            f"waited {timeout:g} s for {names.KIND} {key} {what}; {await _hindrance(client, view)}"
        ) from None
    return view


def _end_of_live(console: Console) -> None:
    """Where output is no terminal, a live table is printed once, without the end of its last line."""
    if not console.is_terminal:
        console.print()


async def _hindrance(client: Client, view: View) -> str:
    """The most telling thing about a set that does not get ready: a pod's condition, else the latest warning."""
    for pod in view.pods.values():
        for condition in (pod.get("status") or {}).get("conditions") or ():
            if condition.get("status") == "False" and condition.get("message"):
                return f"pod {pod['metadata']['name']}: {condition['message']}"
    events = (await client.list(CORE_EVENT, view.lws["metadata"]["namespace"]))["items"]
    warnings = [e for e in events if e.get("type") == "Warning" and e.get("message")]
    if warnings:
        latest = max(warnings, key=lambda e: int(e["metadata"]["resourceVersion"]))
        about = latest["involvedObject"]
        return f"{about['kind']} {about['name']}: {latest['message']}"
    waiting = sum(not is_true(p, "Ready") for p in view.pods.values())
    return f"{waiting} of {len(view.pods)} pods are not ready; a longer --timeout may be enough"


def _state(view: View, width: int) -> Group:
    status = view.lws.get("status") or {}
    conditions = ", ".join(c["type"] for c in status.get("conditions") or () if c["status"] == "True") or "not yet"
    title = f"{key_of(view.lws)}: {status.get('readyReplicas', 0)} of {view.replicas} groups ready ({conditions})"
    table = Table()
    for column in ("GROUP", "POD", "STATE", *(("NODE",) if width >= NARROW else ()), "UID"):
        table.add_column(column, no_wrap=True)
    for name, pod in view.pods.items():
        node = (pod["spec"].get("nodeName", ""),) if width >= NARROW else ()
        table.add_row(_short(_group_of(pod)), name, _phase(pod), *node, uid_of(pod)[:8])
    return Group(Text(title, style="italic"), table)


def _phase(pod: Obj) -> str:
    if is_deleting(pod):
        return "[yellow]Terminating[/]"
    if is_true(pod, "Ready"):
        return "[green]Ready[/]"
    return (pod.get("status") or {}).get("phase", "Pending")


def _victim(view: View) -> tuple[str, str]:
    """The first worker of the first group, or its leader where groups have only one pod."""
    workers = [n for n, p in view.pods.items() if labels_of(p).get(names.WORKER_INDEX_LABEL) != names.LEADER_INDEX]
    name = (workers or list(view.pods))[0]
    return name, labels_of(view.pods[name])[names.GROUP_INDEX_LABEL]


def _recreates(view: View) -> bool:
    """Whether the set's restart policy takes a whole group down with one of its pods."""
    return view.lws["spec"]["leaderWorkerTemplate"].get("restartPolicy") != names.RESTART_NONE


def _lost(view: View, victim: str, index: str) -> Collection[str]:
    """The pods that have to come back, with new UIDs, once the victim is deleted."""
    return view.group(index).keys() if _recreates(view) else {victim}


def _expectation(view: View) -> str:
    if _recreates(view):
        if spec.is_hashed(view.lws):
            return "its whole group must be replaced by one with another key, and no other group"
        return "its whole group must come back, no other"
    verb = "be replaced" if spec.is_hashed(view.lws) else "come back"
    return f"under restart policy {names.RESTART_NONE} it must {verb} alone"


def _comparison(before: View, after: View, index: str) -> Group:
    table = Table()
    for column in ("GROUP", "POD", "UID BEFORE", "UID AFTER", ""):
        table.add_column(column, no_wrap=True)
    for name in sorted(
        before.pods.keys() | after.pods.keys(), key=lambda n: _order(after.pods.get(n) or before.pods[n])
    ):
        pod = after.pods.get(name) or before.pods[name]
        old, new = _uid(before.pods.get(name)), _uid(after.pods.get(name))
        verdict = "[green]kept[/]" if old == new else "[yellow]gone[/]" if new == _GONE else "[cyan]new[/]"
        table.add_row(_short(_group_of(pod)), name, old, new, verdict)
    return Group(Text(f"Before and after the deletion in group {_short(index)}", style="italic"), table)


def _group_of(pod: Obj) -> str:
    return labels_of(pod).get(names.GROUP_INDEX_LABEL, "?")


def _short(group: str) -> str:
    """A group's ordinal, or so much of its key as its host name has."""
    return group if len(group) <= names.HASH_KEY_PREFIX else f"{group[: names.HASH_KEY_PREFIX]}…"


def _uid(pod: Obj | None) -> str:
    return uid_of(pod)[:8] if pod else _GONE


def _check(before: View, after: View, lost: Collection[str]) -> None:
    """Raises LwskitError when another pod than those of `lost` was replaced."""
    changed = [n for n, pod in before.pods.items() if n not in lost and _uid(pod) != _uid(after.pods.get(n))]
    if changed:
        raise LwskitError(f"other pods were replaced too, which must not happen: {', '.join(changed)}")


def _how_to_go_on(console: Console, manifest: str, view: View, victim: str) -> None:
    hashed = spec.is_hashed(view.lws)
    console.print(
        "\nGo on with kubectl: [bold]lwskit up[/] starts the same cluster, stays, and prints the kubeconfig it wrote:\n"
        "  export KUBECONFIG=<the path it prints>\n"
        f"  kubectl apply -f {manifest}\n"
        f"  kubectl get leaderworkerset,{'deployment,' if hashed else ''}statefulset,pods\n"
        f"  kubectl delete pod {'<one of them>' if hashed else victim} && kubectl get pods -w",
        highlight=False,
    )
