"""`lwskit demo --disaggregated`: the children of a set, their labels and owners, and both roles rolled step by step."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.cli import manifests
from lwskit.cli.session import embedded_session
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.disaggregated.model import Child
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.scene import owner_name
from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.kinds import CORE_EVENT
from lwskit.runtime.objects import Key, Obj, condition_of, generation_of, is_true, key_of, labels_of

REFRESH = 0.1
TOLD = 10.0
"""Seconds in which the end of a rollout is told by an event; without it the others are shown."""
ROUND = "demo.lwskit/round"
"""The annotation on the templates that is changed to roll all roles."""
_LABELS = (names.NAME_LABEL, names.ROLE_LABEL, names.SLICE_LABEL, names.REVISION_LABEL, names.APP_LABEL)
_GROUP = "■"
_UNREADY = "□"


@dataclass(frozen=True, slots=True)
class View:
    """What one look at the cluster shows: the set, and its children that stay."""

    ds: Obj
    children: tuple[Child, ...]

    @property
    def roles(self) -> list[str]:
        """The roles in spec order, then those that only children have."""
        wanted = [role["name"] for role in self.ds["spec"]["roles"]]
        return [*wanted, *sorted({child.role for child in self.children} - {*wanted})]

    @property
    def available(self) -> bool:
        """Whether the set says of its present generation that all is as it should be."""
        status = self.ds.get("status") or {}
        seen = status.get("observedGeneration") == generation_of(self.ds)
        return seen and is_true(self.ds, names.CONDITION_AVAILABLE)

    @property
    def rows(self) -> list[Obj]:
        """The rows of its status."""
        return (self.ds.get("status") or {}).get("roleStatuses") or []

    def counts(self, role: str, revision: str) -> tuple[int, int, int]:
        """Groups of a role, asked for of other revisions and of this one, and how many of this one are ready."""
        mine = [child for child in self.children if child.role == role]
        old = sum(child.replicas for child in mine if child.revision != revision)
        current = [child for child in mine if child.revision == revision]
        return old, sum(child.replicas for child in current), sum(map(_ready, current))


def _ready(child: Child) -> int:
    return (child.obj.get("status") or {}).get("readyReplicas", 0)


async def run(console: Console, objects: list[Obj], ds: Obj, manifest: str, nodes: int, timeout: float) -> None:
    """Run the demo. Raises LwskitError if a step takes longer than `timeout` seconds; cancelled, the cluster ends."""
    console.print(f"Starting a cluster with {nodes} nodes and the manager in this process…")
    async with embedded_session(nodes=nodes) as session:
        await manifests.apply(session.client, objects)
        key = Key(ds["metadata"].get("namespace") or "default", ds["metadata"]["name"])
        await show(console, session.client, key, timeout)
        _how_to_go_on(console, manifest, key)


async def show(console: Console, client: Client, key: Key, timeout: float) -> None:
    """Show a set that was just made become available, and roll all its roles.

    Raises LwskitError if either takes longer than `timeout` seconds; when cancelled, it shows no more.
    """
    demo = _Demo(console, client, key, timeout)
    before = await demo.follow(lambda view: view.available, children_table, "to become available")
    console.print(labels_table(before))
    console.print(status_table(before))
    after = await demo.roll(before)
    console.print(children_table(after))
    console.print(status_table(after))
    console.print(events_table(await demo.events_of(after)))


class _Demo:
    def __init__(self, console: Console, client: Client, key: Key, timeout: float) -> None:
        self.console, self.client, self.key, self.timeout = console, client, key, timeout

    async def look(self) -> View:
        ds = await self.client.get(DISAGGREGATED_SET, self.key.name, self.key.namespace)
        selector = f"{names.NAME_LABEL}={self.key.name}"
        listed = await self.client.list(LEADER_WORKER_SET, self.key.namespace, label_selector=selector)
        found = sorted((Child.of(lws) for lws in listed["items"]), key=lambda c: (c.slice or 0, c.created, c.name))
        return View(ds, tuple(child for child in found if not child.is_terminating))

    async def roll(self, before: View) -> View:
        """Give all roles another template, and draw what is asked for of each revision at every step."""
        revisions = ", ".join(sorted({child.revision for child in before.children}))
        self.console.print(f"\nRolling all roles of {self.key}: their templates get another annotation.")
        old, drawing = {child.uid for child in before.children}, Drawing(before)

        def reached(view: View) -> bool:
            over = view.available and not old & {child.uid for child in view.children}
            # The watch may be behind what was looked at.
            return over and drawing.shows(view)

        # Steps may follow one another faster than anybody can look, so each change is seen as it comes.
        watching = asyncio.Event()
        watch = asyncio.create_task(self._watch(drawing, watching), name="demo: watch")
        try:
            await watching.wait()
            await self.client.patch_from(DISAGGREGATED_SET, before.ds, with_round(before.ds))
            after = await self.follow(reached, lambda _: drawing.table(), f"to leave revision {revisions}")
        finally:
            watch.cancel()
            await asyncio.wait({watch})
        check(before, after)
        return after

    async def _watch(self, drawing: Drawing, watching: asyncio.Event) -> None:
        """Tell the drawing of each change of a child, until cancelled."""
        listed = await self.client.list(LEADER_WORKER_SET, self.key.namespace)
        version = listed["metadata"]["resourceVersion"]
        async with self.client.watch(LEADER_WORKER_SET, self.key.namespace, resourceVersion=version) as response:
            watching.set()
            rest = b""
            async for chunk in response.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                for event in (orjson.loads(line) for line in lines if line.strip()):
                    drawing.see(event["object"], gone=event["type"] == "DELETED")

    async def follow(self, reached: Callable[[View], bool], draw: Callable[[View], Group], what: str) -> View:
        """Show the set until `reached` says so. Raises LwskitError when that takes too long."""
        view = await self.look()
        try:
            async with asyncio.timeout(self.timeout):
                with Live(draw(view), console=self.console, refresh_per_second=10, transient=False) as live:
                    while not reached(view):
                        await asyncio.sleep(REFRESH)
                        view = await self.look()
                        live.update(draw(view))
                self._end_of_live()
        except TimeoutError:
            self._end_of_live()
            kind = names.KIND
            raise LwskitError(f"waited {self.timeout:g} s for {kind} {self.key} {what}; {hindrance(view)}") from None
        return view

    def _end_of_live(self) -> None:
        """Where output is no terminal, a live table is printed once, without the end of its last line."""
        if not self.console.is_terminal:
            self.console.print()

    async def events_of(self, after: View) -> list[Obj]:
        """The events about the set, oldest first; that its rollout is over is waited for, but not for long."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + TOLD
        revisions = {child.revision for child in after.children}
        while True:
            found = await self.events()
            over = [e for e in found if e["reason"] == names.EVENT_ROLLING_UPDATE_COMPLETED]
            if any(revision in e.get("message", "") for e in over for revision in revisions) or loop.time() > deadline:
                return found
            await asyncio.sleep(REFRESH)

    async def events(self) -> list[Obj]:
        """The events about the set, oldest first."""
        found = (await self.client.list(CORE_EVENT, self.key.namespace))["items"]
        mine = [e for e in found if e["involvedObject"]["kind"] == names.KIND]
        return sorted(mine, key=lambda e: int(e["metadata"]["resourceVersion"]))


def with_round(ds: Obj) -> Obj:
    """The set with another annotation on each template, which makes a new revision of all roles."""
    new = copy.deepcopy(ds)
    for role in new["spec"]["roles"]:
        template = role["spec"]["leaderWorkerTemplate"]
        for part in ("leaderTemplate", "workerTemplate"):
            if template.get(part) is not None:
                notes = template[part].setdefault("metadata", {}).setdefault("annotations", {})
                notes[ROUND] = str(int(notes.get(ROUND, "1")) + 1)
    return new


class Drawing:
    """A rollout as it comes, write by write: what is asked for of old revisions and of the new one, by role."""

    def __init__(self, before: View) -> None:
        """`before` is how things stand when it begins."""
        self._before = before
        self._old = {child.revision for child in before.children}
        self._children = {child.uid: child for child in before.children}
        self._shown: list[View] = [before]

    def see(self, lws: Obj, *, gone: bool) -> None:
        """Take a change of a child in. A step of the manager is a write for each child that it resizes."""
        if labels_of(lws).get(names.NAME_LABEL) != self._before.ds["metadata"]["name"]:
            return
        child = Child.of(lws)
        self._children[child.uid] = child
        if gone or child.is_terminating:
            del self._children[child.uid]
        view = View(self._before.ds, tuple(self._children.values()))
        if self._asked(view) == self._asked(self._shown[-1]):
            # Nothing else is asked for; more groups are ready.
            self._shown[-1] = view
        else:
            self._shown.append(view)

    @property
    def steps(self) -> list[tuple[tuple[int, int], ...]]:
        """What was asked for at the beginning and after each write: old and new groups by role."""
        return [self._asked(view) for view in self._shown]

    def shows(self, view: View) -> bool:
        """Whether the last row is how things stand in that view."""
        return self._asked(self._shown[-1]) == self._asked(view)

    def _revision(self, view: View) -> str:
        """The new revision, a text that is none while it has no children."""
        return next((c.revision for c in view.children if c.revision not in self._old), "-")

    def _asked(self, view: View) -> tuple[tuple[int, int], ...]:
        return tuple(view.counts(role, self._revision(view))[:2] for role in self._before.roles)

    def table(self) -> Group:
        """A row for each write: groups of old revisions, and of the new one with those that are not ready hollow."""
        table = Table()
        table.add_column("WRITE", no_wrap=True)
        for role in self._before.roles:
            table.add_column(f"{role.upper()} OLD", no_wrap=True)
            table.add_column(f"{role.upper()} NEW", no_wrap=True)
        for number, view in enumerate(self._shown):
            cells: list[Text] = []
            for role in self._before.roles:
                old, new, ready = view.counts(role, self._revision(view))
                cells.append(Text(f"{_GROUP * old} {old}".strip(), style="yellow"))
                bar = _GROUP * min(ready, new) + _UNREADY * max(0, new - ready)
                cells.append(Text(f"{bar} {new}".strip(), style="green"))
            table.add_row(str(number), *cells)
        title = f"Groups of each role that are asked for, old and new, after each write; {_UNREADY} is not ready yet"
        return Group(Text(title, style="italic"), table)


def children_table(view: View) -> Group:
    """The children with their owners, groups and ready groups."""
    condition = "available" if view.available else "progressing"
    table = Table()
    for column in ("CHILD (LEADERWORKERSET)", "ROLE", "SLICE", "REVISION", "OWNER", "GROUPS", "READY"):
        table.add_column(column, no_wrap=True)
    for child in view.children:
        counts = str(child.replicas), str(_ready(child))
        owner = owner_name(child.obj)
        table.add_row(child.name, child.role, str(child.slice), child.revision, owner, *counts)
    return Group(Text(f"{key_of(view.ds)}: {len(view.children)} children ({condition})", style="italic"), table)


def labels_table(view: View) -> Group:
    """The labels by which children and their pods are found."""
    table = Table()
    table.add_column("LABEL", no_wrap=True)
    for child in view.children:
        table.add_column(child.name, no_wrap=True)
    for label in _LABELS:
        table.add_row(label, *(labels_of(child.obj).get(label, "") for child in view.children))
    return Group(Text("Labels of the children and of their pods", style="italic"), table)


def status_table(view: View) -> Group:
    """status.roleStatuses."""
    table = Table()
    fields = ("name", "desiredReplicas", "replicas", "readyReplicas", "updatedReplicas")
    for field in fields:
        table.add_column(field, no_wrap=True)
    for row in view.rows:
        table.add_row(*(str(row.get(field, 0)) for field in fields))
    return Group(Text("status.roleStatuses", style="italic"), table)


def events_table(events: Sequence[Obj]) -> Group:
    """The events about the set, each note once."""
    table = Table()
    for column in ("EVENT", "NOTE"):
        table.add_column(column)
    for reason, note in dict.fromkeys((e["reason"], e.get("message") or "") for e in events):
        table.add_row(reason, Text(note))
    return Group(Text("What the manager told of it", style="italic"), table)


def check(before: View, after: View) -> None:
    """Raises LwskitError if a role has other counts than it had, or a child of before is left."""
    had = {row["name"]: row.get("desiredReplicas", 0) for row in before.rows}
    has = {row["name"]: row.get("readyReplicas", 0) for row in after.rows}
    if had != has:
        raise LwskitError(f"roles have other counts than before the rollout, which must not happen: {has}, not {had}")


def hindrance(view: View) -> str:
    """The most telling thing about a set that does not get where it should be."""
    waiting = [child for child in view.children if _ready(child) < child.replicas]
    if waiting:
        told = "; ".join(f"{c.name} has {_ready(c)} of {c.replicas} groups ready" for c in waiting)
        return f"{told}; a longer --timeout may be enough"
    condition = condition_of(view.ds, names.CONDITION_PROGRESSING) or {}
    return condition.get("message") or "a longer --timeout may be enough"


def _how_to_go_on(console: Console, manifest: str, key: Key) -> None:
    console.print(
        "\nGo on with kubectl: [bold]lwskit up[/] starts the same cluster, stays, and prints the kubeconfig it wrote:\n"
        "  export KUBECONFIG=<the path it prints>\n"
        f"  kubectl apply -f {manifest}\n"
        f"  kubectl get {base.PLURAL},pods -l {names.NAME_LABEL}={key.name}\n"
        f"  kubectl edit {names.SINGULAR} {key.name}     # what it would do: lwskit plan -f FILE\n"
        f"  lwskit explain ds/{key.name}",
        highlight=False,
    )
