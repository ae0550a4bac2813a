"""The groups of a simulated set in Hash mode, with the Deployment and the ReplicaSets that make their leaders. Pure.

The sizes of ReplicaSets are those of `runtime.deployment_rounds`, which pods go is said by `runtime.ranking`. Both act
at once; a group that is taken away takes its place until it is told to be gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lwskit.api import names
from lwskit.groups import gates, identity, status
from lwskit.groups.pool import GroupPool, place_of
from lwskit.runtime import deployment_rounds as rounds
from lwskit.runtime import deployment_sizes as sizes
from lwskit.runtime.deployment_templates import HASH_LABEL, by_age
from lwskit.runtime.kinds import DEPLOYMENT, POD, REPLICA_SET
from lwskit.runtime.objects import Obj, annotations_of, controller_reference, generation_of, is_deleting, uid_of
from lwskit.runtime.ranking import OF_AN_AGE, UNDECIDED, is_active, ranked
from lwskit.simulate.hashed_start import Member, Start

UID = "simulated"
_BY_TIME = ("ready", "created", "newest")
"""How reasons begin that hang on when the controller looks."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """A group that goes, and what puts it before those that stay; `sure` where neither chance nor time decides it."""

    name: str
    why: str
    sure: bool


class Fleet:
    """Groups, ReplicaSets and the Deployment of one set, changed by what is done to them."""

    def __init__(self, start: Start, now: datetime) -> None:
        self.workload = start.workload
        self.sets = {uid_of(s): s for s in start.sets}
        self.newest = start.newest
        """UID of the ReplicaSet of the present template, empty where there is none yet."""
        self.groups: dict[str, Member] = {}
        self.pool = GroupPool()
        self.now = now
        self.close: set[str] = set()
        """UIDs of leaders that came just when others were taken away, since time passed last."""
        self._made = self._brief = 0
        for one in start.groups:
            self._add(replace(one))

    # Groups -------------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> int:
        """How many groups are ready and stay."""
        return sum(one.ready for one in self.groups.values())

    @property
    def room(self) -> tuple[int, int]:
        """How many groups take room, and how many pods those have."""
        found = [one.size for one in self.groups.values() if one.takes_room]
        return len(found), sum(found)

    @property
    def gated(self) -> list[Member]:
        """Groups whose leaders wait at their gate, the first in the row first."""
        found = (one for one in self.groups.values() if one.alive and one.gated)
        return sorted(found, key=lambda one: place_of(one.pod))

    def is_rolling(self) -> bool:
        """Whether there are groups of other templates than the present one."""
        return any(one.alive and one.set_uid != self.newest for one in self.groups.values())

    def put(self, one: Member, pod: Obj) -> None:
        """A group's leader is like this now."""
        self.pool.apply(POD, one.pod, pod)
        one.pod = pod

    def remove(self, one: Member) -> None:
        """Nothing is left of a group."""
        del self.groups[one.name]
        self.pool.apply(POD, one.pod, None)

    def take_down(self, one: Member) -> None:
        """Delete a leader. One at its gate is on no node and has no workers, so it is gone at once."""
        if one.gated:
            self.remove(one)
            return
        self.put(one, {**one.pod, "metadata": {**one.pod["metadata"], "deletionTimestamp": status.stamp(self.now)}})

    def keep(self, one: Member) -> None:
        """Mark a group as having no restart left: it stays once its leader is deleted (20 §12.3)."""
        notes = {**annotations_of(one.pod), names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION: "true"}
        notes.pop(names.RECOVER_ANNOTATION, None)
        self.put(one, {**one.pod, "metadata": {**one.pod["metadata"], "annotations": notes}})

    def make_ready(self, one: Member) -> None:
        """A group is ready as a whole."""
        told = one.pod.get("status") or {}
        kinds = ("Ready", "ContainersReady", names.GROUP_READY_GATE)
        conditions = [c for c in told.get("conditions") or () if c["type"] not in kinds]
        conditions += [{"type": kind, "status": "True", "lastTransitionTime": status.stamp(self.now)} for kind in kinds]
        self.put(one, _placed({**one.pod, "status": {**told, "phase": "Running", "conditions": conditions}}))

    def number(self, before: Iterable[str]) -> None:
        """Number the groups that were not there before: those of older templates first, then as they came.

        Those that go again already are no more than told of.
        """
        known = set(before)
        new = [one for one in self.groups.values() if one.led and one.name not in known]
        new.sort(key=lambda one: (one.set_uid == self.newest, place_of(one.pod)))
        number = max((one.number for one in self.groups.values()), default=0)
        for one in new:
            del self.groups[one.name]
            if one.alive:
                number += 1
                one.number, one.name = number, f"new {number}"
            else:
                self._brief += 1
                one.name = f"brief {self._brief}"
        self.groups |= {one.name: one for one in new}

    def _add(self, one: Member) -> None:
        self.groups[one.name] = one
        self.pool.apply(POD, None, one.pod)
        if one.ready:
            self.put(one, _placed(one.pod))

    def born(self, obj: Obj) -> Obj:
        """An object as the server makes it."""
        self._made += 1
        meta = {"creationTimestamp": status.stamp(self.now), **obj["metadata"]}
        return {**obj, "metadata": {**meta, "uid": f"{UID}-{self._made:06}", "resourceVersion": "1"}}

    def later(self) -> None:
        """Time passes. A ReplicaSet that is being deleted is gone once it has no leader left."""
        self.now += timedelta(seconds=1)
        self.close.clear()
        owners = {one.set_uid for one in self.groups.values()}
        for uid in [u for u, one in self.sets.items() if is_deleting(one) and u not in owners]:
            del self.sets[uid]
            self.newest = "" if uid == self.newest else self.newest

    def set_of(self, template: Obj) -> str:
        """The ReplicaSet of a template: labels and annotations name the revision and all that is not in it."""
        wanted = _marks(template)
        return next(
            (uid_of(s) for s in by_age(self.sets.values()) if _marks(s["spec"].get("template") or {}) == wanted), ""
        )

    # The Deployment and its ReplicaSets ---------------------------------------------------------------------------

    def deployment(self) -> bool:
        """One round of the Deployment's controller."""
        deployment = self.workload
        if deployment is None:
            return False
        new = self.sets.get(self.newest)
        old = by_age(s for s in self.sets.values() if s is not new)
        changed = False
        if deployment["spec"].get("paused") or rounds.is_scaled(deployment, self.sets.values()):
            found = rounds.rescaled(deployment, old, new)
        else:
            if new is None:
                new = self._new_set(deployment, old)
                changed = True
            found, _ = rounds.rolled(deployment, old, new)
        for one in found:
            changed |= self._resize(deployment, one)
        return self._counted(deployment) or changed

    def _new_set(self, deployment: Obj, old: Sequence[Obj]) -> Obj:
        made = self.born(
            {
                "metadata": {
                    "name": f"{deployment['metadata']['name']}-{UID}{self._made}",
                    "namespace": deployment["metadata"]["namespace"],
                    "annotations": rounds.with_size({}, deployment),
                    "ownerReferences": [controller_reference(deployment, DEPLOYMENT)],
                },
                "spec": {
                    "replicas": sizes.size_of_new(deployment, 0, sizes.total(old)),
                    "template": deployment["spec"]["template"],
                },
                "status": {},
            }
        )
        self.newest = uid_of(made)
        self.sets[self.newest] = made
        return made

    def _resize(self, deployment: Obj, found: rounds.Resize) -> bool:
        one = self.sets[uid_of(found.set)]
        notes = rounds.with_size(annotations_of(one), deployment)
        same = sizes.wanted(one) == found.size
        if same and not (found.always and notes != annotations_of(one)):
            return False
        meta = {**one["metadata"], "annotations": notes}
        self.sets[uid_of(one)] = {**one, "metadata": meta, "spec": {**one["spec"], "replicas": found.size}}
        return True

    def _counted(self, deployment: Obj) -> bool:
        """Bring the counts of the Deployment up to date."""
        new = self.sets.get(self.newest)
        told = {
            **(deployment.get("status") or {}),
            "observedGeneration": generation_of(deployment),
            "replicas": sizes.counted(self.sets.values(), "replicas"),
            "readyReplicas": sizes.counted(self.sets.values(), "readyReplicas"),
            "availableReplicas": sizes.counted(self.sets.values(), "availableReplicas"),
            "updatedReplicas": sizes.counted([new] if new is not None else [], "replicas"),
        }
        if told == deployment.get("status"):
            return False
        self.workload = {**deployment, "status": told}
        return True

    def replica_sets(self, left: dict[str, Leaving]) -> bool:
        """Let each ReplicaSet make the leaders that it lacks, or take away those that are too many; it then counts.

        One that is being deleted only counts.
        """
        changed = False
        there, going = set(self.groups), sum(one.going for one in self.groups.values())
        for uid in list(self.sets):
            missing = 0 if is_deleting(self.sets[uid]) else sizes.wanted(self.sets[uid]) - len(self._of(uid))
            for _ in range(missing):
                self._create(self.sets[uid])
            if missing < 0:
                for one in self._surplus(uid, -missing):
                    left[one.name] = one
                    self.take_down(self.groups[one.name])
            mine = [one.ready for one in self._of(uid)]
            told = {"replicas": len(mine), "readyReplicas": sum(mine), "availableReplicas": sum(mine)}
            before = self.sets[uid].get("status") or {}
            if missing or any(before.get(k, 0) != v for k, v in told.items()):
                self.sets[uid] = {**self.sets[uid], "status": {**before, **told}}
                changed = True
        if sum(one.going for one in self.groups.values()) > going:
            self.close |= {uid_of(one.pod) for name, one in self.groups.items() if name not in there}
        return changed

    def _of(self, uid: str) -> list[Member]:
        return [one for one in self.groups.values() if one.led and one.set_uid == uid and is_active(one.pod)]

    def _surplus(self, uid: str, count: int) -> Iterable[Leaving]:
        """The leaders of a ReplicaSet that go first, and what puts each before the first that stays."""
        by_pod = {uid_of(one.pod): one.name for one in self.groups.values()}
        related = [one.pod for one in self.groups.values() if one.led and one.set_uid in self.sets]
        order = ranked([one.pod for one in self._of(uid)], related, self.now)
        stays = order[count].pod if count < len(order) else None
        for found in order[:count]:
            why = "no group of its template stays"
            if stays is not None:
                first = ranked([found.pod, stays], related, self.now)[0]
                why = first.why if first.pod is found.pod else found.why
            sure = why not in (OF_AN_AGE, UNDECIDED) and not why.startswith(_BY_TIME)
            yield Leaving(by_pod[uid_of(found.pod)], why, sure)

    def _create(self, one: Obj) -> None:
        """A leader as its ReplicaSet makes it, and as it is admitted."""
        template = one["spec"]["template"]
        meta = template.get("metadata") or {}
        made = self.born(
            {
                "metadata": {
                    "name": f"{one['metadata']['name']}-{self._made:06}",
                    "namespace": one["metadata"]["namespace"],
                    "labels": dict(meta.get("labels") or {}),
                    "annotations": dict(meta.get("annotations") or {}),
                    "ownerReferences": [controller_reference(one, REPLICA_SET)],
                },
                "spec": {k: v for k, v in (template.get("spec") or {}).items() if k != "nodeName"},
                "status": {"phase": "Pending"},
            }
        )
        drawn = uid_of(made)
        pod = gates.with_gate(identity.identified(made, one["metadata"]["namespace"], lambda _: drawn))
        self._add(Member(pod["metadata"]["name"], pod, identity.group_size(pod)))


def _marks(template: Obj) -> tuple[dict[str, str], dict[str, str]]:
    meta = template.get("metadata") or {}
    labels = {k: v for k, v in (meta.get("labels") or {}).items() if k != HASH_LABEL}
    return labels, dict(meta.get("annotations") or {})


def _placed(pod: Obj) -> Obj:
    """What runs is on a node; one of its own where nothing is known of it."""
    return {**pod, "spec": {**pod["spec"], "nodeName": pod["spec"].get("nodeName") or f"of {uid_of(pod)}"}}
