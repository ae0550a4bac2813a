"""A rollout of a set in Hash mode played ahead: what the manager decides, and what the Deployment makes of it. Pure.

The decisions are `groups.hashed.decide` and `groups.turns.of`, the very ones that the manager carries out. Groups are
gone, and become ready, when they are told to.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lwskit.api import names
from lwskit.groups import gates, hashbudget, hashed, turns
from lwskit.groups.budget import WANTED
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError, MemberSnapshot, SetSnapshot
from lwskit.groups.ports import LeaderBackend
from lwskit.runtime import deployment_sizes as sizes
from lwskit.runtime.kinds import CONTROLLER_REVISION, POD, SERVICE
from lwskit.runtime.objects import Obj, annotations_of, generation_of, is_deleting, key_of, labels_of, uid_of
from lwskit.runtime.plan import Apply, Create, Delete, Emit, Modify, NeedFresh, Patch, UpdateStatus
from lwskit.simulate.hashed_fleet import UID, Fleet, Leaving
from lwskit.simulate.hashed_start import Member, Start, content_of, template_of
from lwskit.simulate.start import as_recorded

_ROUNDS = 1000
"""Turns without an event after which something is taken to repeat for ever."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One group after a step. `template` is the UID of the ReplicaSet that its leader is of."""

    name: str
    number: int
    template: str
    gated: bool
    ready: bool
    going: bool
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HashStep:
    """What follows from one event until nothing follows any more."""

    event: str
    replicas: int
    """Groups that the Deployment is asked for."""
    key: str
    """Of the revision that is rolled out."""
    down: tuple[Leaving, ...]
    """Groups that are taken away."""
    made: tuple[str, ...]
    """Groups whose leaders are made; each waits at its gate at first."""
    let_in: tuple[str, ...]
    """Groups whose leaders leave their gate."""
    waiting: tuple[str, ...]
    """Groups at their gate after the step."""
    either: tuple[str, ...]
    """Of those at their gate: they come just when groups are taken away, and may be let in before that is seen."""
    going: tuple[str, ...]
    """Groups on their way out after the step, which take room until their pods are gone."""
    ready: int
    updated: int
    total: int
    """Groups that take room: those that were let in, and those that go."""
    pods: int
    """Pods of these."""
    why: str
    notes: tuple[str, ...] = ()
    """Events of the manager."""
    wrote: bool = False
    """The Deployment is written."""
    groups: tuple[Standing, ...] = ()

    @property
    def moves(self) -> bool:
        """Whether anything is written, or any group made, let in or taken away."""
        return bool(self.wrote or self.down or self.made or self.let_in)


class HashRollout:
    """A set and its groups in a simulation, changed by what is done to it. Not for sharing."""

    def __init__(self, start: Start, leaders: LeaderBackend, now: datetime) -> None:
        self.lws = start.lws
        self.fleet = Fleet(start, now)
        self._leaders = leaders
        self._revisions = list(start.revisions)
        self._service = start.service
        self._content, self._template = "", {}
        if start.base is not None:
            self._content = content_of(start.base, self.key)
            self._template = template_of(as_recorded(start.base), self.key)
        # What a rollout that goes on already has made is still starting.
        self._starting = start.newest if self.fleet.is_rolling() else ""

    # What happens -------------------------------------------------------------------------------------------------

    def edit(self, lws: Obj) -> None:
        """Store another set in place of the one that is there."""
        old = self.lws
        meta = dict(lws["metadata"])
        meta.setdefault("uid", old["metadata"]["uid"] if old is not None else UID)
        meta["generation"] = 1
        if old is not None:
            meta["generation"] = generation_of(old) + (old["spec"] != lws["spec"])
        self.lws = {**lws, "metadata": meta}
        if old is not None and "status" in old:
            self.lws["status"] = old["status"]

    def make_ready(self, *numbers: int) -> list[str]:
        """Groups become ready, as a whole; returns how they are called."""
        found = [one for one in self.fleet.groups.values() if one.number in numbers and one.led]
        for one in found:
            self.fleet.make_ready(one)
        return [one.name for one in found]

    def end(self) -> list[str]:
        """The pods of all groups on their way out are gone; returns how these are called."""
        found = [one for one in self.fleet.groups.values() if one.going]
        for one in found:
            self.fleet.remove(one)
        return [one.name for one in found]

    # How it stands ------------------------------------------------------------------------------------------------

    @property
    def key(self) -> str:
        """The key of the revision that the Deployment is of."""
        workload = self.fleet.workload
        return self._leaders.observe(workload).revision if workload is not None else ""

    @property
    def going(self) -> bool:
        """Whether groups are on their way out."""
        return any(one.going for one in self.fleet.groups.values())

    @property
    def pending(self) -> list[int]:
        """Groups that are not ready and are taken to become it, by number.

        They start here, or are of the template that is rolled out now or was when the simulation began, and not stuck.
        """
        return sorted(one.number for one in self.fleet.groups.values() if self._may_become_ready(one))

    def _may_become_ready(self, one: Member) -> bool:
        if not one.alive or one.ready or one.gated or one.kept or one.stuck:
            return False
        return one.made or one.set_uid in (self.fleet.newest, self._starting)

    def why_gated(self) -> str:
        """Why the first leader at its gate is not let in, in the manager's words."""
        first = next(iter(self.fleet.gated), None)
        if first is None or self.lws is None:
            return ""
        return turns.of(self._snapshot(first.pod), self.lws, first.pod, self._leaders).why

    def standings(self) -> tuple[Standing, ...]:
        """All groups that exist."""
        groups = self.fleet.groups.values()
        return tuple(Standing(g.name, g.number, g.set_uid, g.gated, g.ready, g.going or g.kept, g.size) for g in groups)

    def settle(self, event: str, restarted: str = "", *, kept: bool = False) -> HashStep:
        """Let manager, Deployment and ReplicaSets act until none of them changes anything. Raises DecisionError.

        The group called `restarted` is recreated first, as after the failure of one of its pods: its leader is deleted.
        With `kept` it has no restart left, and its leader is marked and stays.
        """
        fleet = self.fleet
        fleet.later()
        before, written = {n: (g.alive, g.gated) for n, g in fleet.groups.items()}, self._written()
        left: dict[str, Leaving] = {}
        if restarted:
            left[restarted] = Leaving(restarted, "it has no restart left" if kept else "it is recreated", True)
            if kept:
                fleet.keep(fleet.groups[restarted])
            fleet.take_down(fleet.groups[restarted])
        why, notes = "", ()
        # A leader is let in by one request; what the Deployment is told of an edit takes some.
        self._gates()
        for _ in range(_ROUNDS):
            changed, why, more = self._decide()
            notes = (*notes, *more)
            changed |= fleet.replica_sets(left) | self._gates() | fleet.deployment()
            changed |= fleet.replica_sets(left) | self._gates()
            if not changed:
                break
        else:
            raise DecisionError("the decisions about this set repeat for ever; nothing comes of that edit")
        fleet.number(before)
        total, pods = fleet.room
        groups = list(fleet.groups.values())
        return HashStep(
            event=event,
            replicas=sizes.wanted(fleet.workload) if fleet.workload is not None else 0,
            key=self.key,
            down=tuple(one for name, one in left.items() if before.get(name, (False,))[0]),
            made=tuple(g.name for g in groups if g.alive and g.name not in before),
            let_in=tuple(g.name for g in groups if g.alive and not g.gated and before.get(g.name, (True, True))[1]),
            waiting=tuple(g.name for g in groups if g.alive and g.gated),
            either=tuple(g.name for g in groups if g.alive and g.gated and uid_of(g.pod) in fleet.close),
            going=tuple(g.name for g in groups if g.going),
            ready=fleet.ready,
            updated=sum(g.alive and g.set_uid == fleet.newest for g in groups),
            total=total,
            pods=pods,
            why=why,
            notes=notes,
            wrote=self._written() != written,
            groups=self.standings(),
        )

    def _written(self) -> tuple[int, str, Obj] | None:
        workload = self.fleet.workload
        if workload is None:
            return None
        return sizes.wanted(workload), self._content, workload["spec"].get("strategy") or {}

    # The manager --------------------------------------------------------------------------------------------------

    def _decide(self) -> tuple[bool, str, tuple[str, ...]]:
        """Decide once about the set and carry it out: whether anything changed, why, and the notes of the events."""
        assert self.lws is not None
        fleet, key = self.fleet, key_of(self.lws)
        snapshot = SetSnapshot(
            now=fleet.now,
            lws=self.lws,
            workload=fleet.workload,
            revisions=self._revisions,
            shared_service=self._service,
            pool=fleet.pool.state_of(key),
            owned=fleet.pool.owned(key, self.key),
            live=frozenset({(self._leaders.kind, key), (LEADER_WORKER_SET, key)}),
        )
        plan = hashed.decide(snapshot, self._leaders)
        if isinstance(plan, NeedFresh):
            raise DecisionError("the decision needs a look at the cluster")
        notes: list[str] = []
        changed = False
        for action in plan.actions:
            match action:
                case Create(kind=kind, obj=obj) if kind == CONTROLLER_REVISION:
                    self._revisions.append(fleet.born(obj))
                case Create(kind=kind, obj=obj) if kind == SERVICE:
                    self._service = fleet.born(obj)
                case Apply(obj=obj):
                    changed |= self._apply(obj)
                case UpdateStatus(obj=obj):
                    self.lws = {**self.lws, "status": obj["status"]}
                    changed = True
                case Delete(kind=kind, key=gone) if kind == CONTROLLER_REVISION:
                    self._revisions = [r for r in self._revisions if r["metadata"]["name"] != gone.name]
                case Modify(change=change):
                    self.lws = change(self.lws) or self.lws
                case Emit(event=event):
                    notes.append(event.note)
            if isinstance(action, Apply) and action.on_success is not None:
                notes.append(action.on_success.note)
        return changed | self._release(), plan.note, tuple(notes)

    def _apply(self, wanted: Obj) -> bool:
        """Write the Deployment as server-side apply does: what others have added to it stays."""
        assert self.lws is not None
        fleet, old = self.fleet, self.fleet.workload
        key = self._leaders.observe(wanted).revision
        content, template = content_of(self.lws, key), wanted["spec"]["template"]
        if old is None:
            fleet.workload = fleet.born({**wanted, "metadata": {**wanted["metadata"], "generation": 1}, "status": {}})
            self._content, self._template = content, template
            return True
        spec = {**old["spec"], **{k: wanted["spec"][k] for k in ("replicas", "strategy")}}
        if content != self._content:
            spec["template"] = _merged(old["spec"]["template"], self._template, template)
            self._content, self._template = content, template
            fleet.newest = fleet.set_of(spec["template"])
        labels, notes = labels_of(wanted), annotations_of(wanted)
        same = all(old["spec"].get(k) == spec[k] for k in ("replicas", "strategy", "template"))
        if same and labels_of(old).items() >= labels.items() and annotations_of(old).items() >= notes.items():
            return False
        meta = {
            **old["metadata"],
            "labels": {**labels_of(old), **labels},
            "annotations": {**annotations_of(old), **notes},
            "generation": generation_of(old) + (not same),
        }
        fleet.workload = {**old, "metadata": meta, "spec": spec}
        return True

    def _snapshot(self, leader: Obj) -> MemberSnapshot:
        assert self.lws is not None
        pool, key = self.fleet.pool, key_of(self.lws)
        return MemberSnapshot(
            now=self.fleet.now,
            pod=leader,
            lws=self.lws,
            leader=leader,
            workload=self.fleet.workload,
            pool=pool.state_of(key),
            owned=pool.owned(key, labels_of(leader).get(names.REVISION_LABEL, "")),
        )

    def _release(self) -> bool:
        """Let go of groups that were kept without a restart left and are not wanted any more."""
        assert self.lws is not None
        changed = False
        for one in [g for g in self.fleet.groups.values() if g.kept]:
            if hashbudget.unwanted(self._snapshot(one.pod), self.lws, one.pod, self._leaders) == WANTED:
                continue
            mark = names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION
            notes = {k: v for k, v in annotations_of(one.pod).items() if k != mark}
            self.fleet.put(one, {**one.pod, "metadata": {**one.pod["metadata"], "annotations": notes}})
            if not is_deleting(one.pod):
                self.fleet.take_down(one)
            changed = True
        return changed

    def _gates(self) -> bool:
        """Let in the leaders whose turn it is, the oldest first."""
        changed = False
        for one in self.fleet.gated:
            assert self.lws is not None
            turn = turns.of(self._snapshot(one.pod), self.lws, one.pod, self._leaders)
            for action in turn.actions:
                match action:
                    case Modify(change=change):
                        self.lws = change(self.lws) or self.lws
                    case Patch(kind=kind, body=body) if kind == POD:
                        self.fleet.put(one, _admitted(one.pod, body))
                    case _:
                        continue
            if turn.admitted:
                one.made = changed = True
        return changed


def _merged(live: Obj, before: Obj, wanted: Obj) -> Obj:
    """A template in place of one that was applied before, with the labels and annotations that others have added."""
    meta = dict(wanted.get("metadata") or {})
    for part in ("labels", "annotations"):
        there, own = ((t.get("metadata") or {}).get(part) or {} for t in (live, before))
        meta[part] = {**{k: v for k, v in there.items() if k not in own}, **(meta.get(part) or {})}
    return {**wanted, "metadata": meta}


def _admitted(pod: Obj, patch: Obj) -> Obj:
    """A leader after the patch that lifts its gate."""
    changed = gates.without_gate(pod) or pod
    gone = {k for k, v in ((patch.get("metadata") or {}).get("annotations") or {}).items() if v is None}
    notes = {k: v for k, v in annotations_of(changed).items() if k not in gone}
    return {**changed, "metadata": {**changed["metadata"], "annotations": notes}}
