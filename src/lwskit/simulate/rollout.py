"""A rollout played ahead: what the manager decides and what the StatefulSet controller makes of it, in turns. Pure.

The decision is `groups.ordinal.decide`, the very one that the manager carries out; the controller is
`groups.forecast`. Whatever the controller does is taken to be done at once; groups become ready when they are told to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from lwskit.api import names
from lwskit.groups import forecast, ordinal, spec, templates
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import READY, UPDATED, DecisionError, Groups, SetSnapshot
from lwskit.groups.ports import LeaderBackend
from lwskit.runtime.kinds import CONTROLLER_REVISION, SERVICE
from lwskit.runtime.objects import Obj, key_of
from lwskit.runtime.plan import Apply, Create, Delete, Emit, NeedFresh, UpdateStatus
from lwskit.simulate.seen import Seen
from lwskit.simulate.start import Group, Start, as_recorded

_UID = "simulated"
_ROUNDS = 1000
"""Turns without an event after which something is taken to repeat for ever."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One group after a step: which revision its leader is of, and whether it is ready."""

    ordinal: int
    key: str
    ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One decision and what follows from it at once."""

    event: str
    """What it follows from; empty for what follows from the step before."""
    partition: int
    replicas: int
    key: str
    """Of the revision that the leaders are updated to."""
    down: tuple[int, ...]
    """Groups that are taken down to be made anew, highest first."""
    removed: tuple[int, ...]
    """Groups that are given up."""
    up: tuple[int, ...]
    """Groups that are made."""
    ready: int
    updated: int
    pods: int
    total: int
    """Groups that exist."""
    why: str
    notes: tuple[str, ...] = ()
    """Events of the manager."""
    removed_ready: int = 0
    """How many of the groups that are given up were ready."""
    wrote: bool = False
    """The leader workload is written."""
    groups: tuple[Standing, ...] = ()
    """Each of them, in a detailed simulation."""

    @property
    def moves(self) -> bool:
        """Whether anything is written, or any group made or taken down."""
        return bool(self.wrote or self.down or self.removed or self.up)


class Rollout:
    """A set, its leader workload and its groups in a simulation, changed by what is done to it. Not for sharing.

    With `detailed` each step tells how every group stands, which costs as much again.
    """

    def __init__(self, start: Start, leaders: LeaderBackend, now: datetime, *, detailed: bool = False) -> None:
        self.lws = start.lws
        self.workload = start.workload
        self.groups = {o: replace(g) for o, g in start.groups.items()}
        self.refused = ""
        """Why the leader workload cannot be written, if it cannot."""
        self.key = leaders.observe(start.workload).revision if start.workload is not None else ""
        self._leaders = leaders
        self._now = now
        self._detailed = detailed
        self._seen = Seen()
        for o, group in self.groups.items():
            self._seen.put(o, group)
        self._templates = start.templates
        self._current, self._update = start.current, start.update
        # Once all leaders were ready, what is not is no longer starting.
        self._starting = start.update if start.current != start.update else ""
        self._claims = start.claims
        self._revisions = list(start.revisions)
        self._service = start.service
        self._made = 0

    def edit(self, lws: Obj) -> None:
        """Store another set in place of the one that is there."""
        old = self.lws
        meta = dict(lws["metadata"])
        meta.setdefault("uid", old["metadata"]["uid"] if old is not None else _UID)
        if old is not None:
            meta["generation"] = old["metadata"].get("generation", 0) + (old["spec"] != lws["spec"])
        else:
            meta["generation"] = 1
        self.lws = {**lws, "metadata": meta}
        if old is not None and "status" in old:
            self.lws["status"] = old["status"]

    def make_ready(self, *ordinals: int, ready: bool = True) -> None:
        """Groups become ready, or unready, as a whole."""
        for o in ordinals:
            group = self.groups[o]
            group.leader_ready = group.workers_ready = ready
            group.has_workers = group.has_workers or (ready and group.size > 1)
            if group.has_workers:
                group.workers_key = group.key
            self._seen.put(o, group)
        self._count()

    @property
    def pending(self) -> list[int]:
        """Groups that are not ready and are taken to become it.

        They are made here, or of the template that is rolled out now or was when the simulation began, and not stuck.
        """
        return [o for o, g in sorted(self.groups.items()) if self._may_become_ready(g)]

    def _may_become_ready(self, group: Group) -> bool:
        if group.ready or group.kept or group.terminating or group.ended or group.stuck:
            return False
        return group.made or group.template in (self._update, self._starting)

    @property
    def starting(self) -> set[int]:
        """Groups that are not ready because a rollout that was going on when the simulation began has made them."""
        return {o for o, g in self.groups.items() if not g.ready and not g.made and g.template == self._starting}

    def view(self) -> Groups:
        """The groups against the revision that is rolled out, in ordinal order."""
        assert self.lws is not None
        return self._seen.state().groups(self.key, alone=spec.size(self.lws) == 1)

    def standings(self) -> tuple[Standing, ...]:
        """All groups that exist."""
        view = self.view()
        return tuple(Standing(o, g.key, view[o].ready) for o, g in sorted(self.groups.items()))

    def settle(self, event: str) -> list[Step]:
        """Decide and let the controller act, in turns, until neither changes anything. Always gives the first step."""
        steps: list[Step] = []
        for _ in range(_ROUNDS):
            before = self._written()
            why, notes = self._decide()
            down, removed, up, removed_ready = self._act()
            step = self._step(event, why, notes, (down, removed, up, removed_ready), before != self._written())
            if step.moves or not steps:
                steps.append(step)
            if not step.moves:
                return steps
            event = ""
        raise DecisionError("the decisions about this set repeat for ever; nothing comes of that edit")

    # Inside -------------------------------------------------------------------------------------------------------

    def _step(
        self,
        event: str,
        why: str,
        notes: tuple[str, ...],
        moved: tuple[list[int], list[int], list[int], int],
        wrote: bool,
    ) -> Step:
        now = self._leaders.observe(self.workload) if self.workload is not None else None
        view = self.view()
        down, removed, up, removed_ready = moved
        return Step(
            event=event,
            partition=now.partition if now else 0,
            replicas=now.replicas if now else 0,
            key=self.key,
            down=tuple(down),
            removed=tuple(removed),
            up=tuple(up),
            ready=view.count(READY),
            updated=view.count(UPDATED),
            pods=sum(g.size for g in self.groups.values()),
            total=len(self.groups),
            why=why,
            notes=notes,
            removed_ready=removed_ready,
            wrote=wrote,
            groups=self.standings() if self._detailed else (),
        )

    def _written(self) -> tuple[int, int, str, str, int] | None:
        if self.workload is None:
            return None
        now = self._leaders.observe(self.workload)
        return now.partition, now.replicas, now.revision, self._update, self._max_unavailable()

    def _max_unavailable(self) -> int:
        assert self.workload is not None
        rolling = (self.workload["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        return rolling.get("maxUnavailable", 1)

    def _decide(self) -> tuple[str, tuple[str, ...]]:
        """Decide once and carry it out; the reason, and the notes of the events."""
        snapshot = SetSnapshot(
            now=self._now,
            lws=self.lws,
            workload=self.workload,
            revisions=self._revisions,
            shared_service=self._service,
            state=self._seen.state(),
            live=frozenset(
                (kind, key_of(self.lws)) for kind in (self._leaders.kind, LEADER_WORKER_SET) if self.lws is not None
            ),
        )
        plan = ordinal.decide(snapshot, self._leaders)
        if isinstance(plan, NeedFresh):
            raise DecisionError("the decision needs a look at the cluster")
        notes: list[str] = []
        for action in plan.actions:
            match action:
                case Create(kind=kind, obj=obj) if kind == CONTROLLER_REVISION:
                    self._revisions.append(self._born(obj))
                case Create(kind=kind, obj=obj) if kind == SERVICE:
                    self._service = self._born(obj)
                case Apply(obj=obj):
                    if not self._apply(obj):
                        return plan.note, tuple(notes)
                case UpdateStatus(obj=obj):
                    assert self.lws is not None
                    self.lws = dict(self.lws) | {"status": obj["status"]}
                case Delete(kind=kind, key=key) if kind == CONTROLLER_REVISION:
                    self._revisions = [r for r in self._revisions if r["metadata"]["name"] != key.name]
                case Emit(event=event):
                    notes.append(event.note)
            if isinstance(action, Apply) and action.on_success is not None:
                notes.append(action.on_success.note)
        return plan.note, tuple(notes)

    def _born(self, obj: Obj) -> Obj:
        self._made += 1
        return {**obj, "metadata": {**obj["metadata"], "uid": f"{_UID}-{self._made}", "resourceVersion": "1"}}

    def _apply(self, obj: Obj) -> bool:
        """Write the leader workload; False where the API server refuses that."""
        assert self.lws is not None
        claims = templates.claims(as_recorded(self.lws))
        if self.workload is not None and self._claims is not None and claims != self._claims:
            self.refused = "a StatefulSet's volumeClaimTemplates cannot be changed"
            return False
        self.refused = ""
        self._claims = claims
        old = self.workload
        new: Obj = self._born(obj)
        if old is not None:
            new["metadata"]["uid"] = old["metadata"]["uid"]
            new["status"] = old.get("status") or {}
        self.workload = new
        self.key = self._leaders.observe(self.workload).revision
        self._update = self._templates.name_of(self.lws, self.key)
        self._current = self._current or self._update
        return True

    def _act(self) -> tuple[list[int], list[int], list[int], int]:
        """Let the controller do all that it does without anything else happening: down, removed, up, ready removed."""
        down: list[int] = []
        removed: list[int] = []
        up: list[int] = []
        removed_ready = 0
        if self.workload is None:
            return down, removed, up, removed_ready
        while True:
            down += self._let_go()
            asked = self._asked()
            found = forecast.next_round(asked, self._seen.leaders)
            if not found:
                break
            for o in found.condemned:
                removed_ready += self._remove(o).ready
                removed.append(o)
            for o in (*found.ended, *found.replaced):
                self._remove(o)
                down.append(o)
            for o, template in found.create.items():
                self._create(o, template)
                up.append(o)
        self._count()
        return down, removed, up, removed_ready

    def _let_go(self) -> list[int]:
        """What is on its way out is gone; what was kept goes once its group is not wanted as it is (20 §12.4).

        Returns the kept groups that are updated.
        """
        assert self.workload is not None
        now, wanted = self._leaders.observe(self.workload), self._leaders.ordinals(self.workload)
        let_go: list[int] = []
        for o, group in list(self.groups.items()):
            updated = group.kept and o in wanted and o >= now.partition and group.key != now.revision
            if updated:
                let_go.append(o)
            if updated or group.terminating or (group.kept and o not in wanted):
                self._remove(o)
        return let_go

    def _remove(self, o: int) -> Group:
        self._seen.put(o, None)
        return self.groups.pop(o)

    def _create(self, o: int, template: str) -> None:
        assert self.lws is not None
        key = self._templates.keys.get(template, self.key)
        size = self._templates.sizes.get(key, spec.size(self.lws))
        workers = size > 1 and spec.startup_policy(self.lws) != names.STARTUP_LEADER_READY
        group = Group(key, template, size, key if workers else "", has_workers=workers, made=True)
        self.groups[o] = group
        self._seen.put(o, group)

    def _asked(self) -> forecast.Workload:
        assert self.workload is not None
        now, wanted = self._leaders.observe(self.workload), self._leaders.ordinals(self.workload)
        start = wanted[0] if wanted else 0
        return forecast.Workload(
            now.replicas, now.partition, self._max_unavailable(), self._current, self._update, start
        )

    def _count(self) -> None:
        """The status of the leader workload, and its current revision."""
        if self.workload is None:
            return
        self._current = forecast.settle_revision(self._asked(), self._seen.leaders).current
        self.workload = {**self.workload, "status": {"replicas": len(self.groups)}}
