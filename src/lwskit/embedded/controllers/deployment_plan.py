"""What a Deployment needs next: its new ReplicaSet, the sizes of all, which old ones go, and its status. Pure.

Source: Kubernetes documentation, "Deployments". Specification: 30 §13.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lwskit.embedded.controllers import deployment_revisions as revisions
from lwskit.embedded.controllers import deployment_status as conditions
from lwskit.embedded.controllers.pods import is_terminal
from lwskit.runtime import deployment_rounds as rounds
from lwskit.runtime import deployment_sizes as scale
from lwskit.runtime import deployment_templates as templates
from lwskit.runtime.deployment_sizes import PROGRESSING, wanted
from lwskit.runtime.kinds import DEPLOYMENT, REPLICA_SET
from lwskit.runtime.objects import Obj, annotations_of, generation_of, is_deleting, key_of, ref_of, uid_of
from lwskit.runtime.patch import merge_patch
from lwskit.runtime.plan import AnyAction, Create, Delete, Emit, Event, OnError, Patch

_FOREVER = 2**31 - 1
_CHANGED = {"Conflict": OnError.REQUEUE, "NotFound": OnError.REQUEUE}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a decision is made from: the ReplicaSets that the Deployment holds, and their pods by the UID of their set.

    The pods are only looked at for Recreate.
    """

    deployment: Obj
    sets: Sequence[Obj]
    pods: Mapping[str, Sequence[Obj]]
    now: datetime


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """A ReplicaSet to create, then actions in order, then the Deployment with the status to write, unless it is None.

    `again`: what was done is only the beginning. Otherwise it is looked at again in `after` seconds, unless that is 0.
    """

    create: Create | None = None
    actions: tuple[AnyAction, ...] = ()
    written: Obj | None = None
    again: bool = False
    after: float = 0.0


def decide(snapshot: Snapshot) -> RoundPlan:
    """The next round for one Deployment."""
    return _Round(snapshot).plan()


class _Round:
    def __init__(self, snapshot: Snapshot) -> None:
        self.s = snapshot
        self.d = snapshot.deployment
        self.old = templates.by_age(snapshot.sets)
        """From the oldest to the newest."""
        self.new = templates.newest_of_template(self.d, self.old)
        if self.new is not None:
            self.old = [s for s in self.old if s is not self.new]
        self.conditions: list[Obj] = list((self.d.get("status") or {}).get("conditions") or ())
        self.annotations = dict(annotations_of(self.d))
        self.create: Create | None = None
        self.actions: list[AnyAction] = []
        self.touched: set[str] = set()
        self.again = False

    @property
    def sets(self) -> list[Obj]:
        return [*self.old, self.new] if self.new is not None else self.old

    def plan(self) -> RoundPlan:
        status = self._status()
        if status is None:
            return RoundPlan(actions=tuple(self.actions), again=True)
        live = self.d.get("status") or {}
        meta = self.d["metadata"] | {"annotations": self.annotations}
        noted = meta["annotations"] != annotations_of(self.d)
        if self.create is None and (noted or self.conditions != (live.get("conditions") or [])):
            # What was found out on the way is written by itself, with the counts as they were, which tell of progress.
            status = live | {"conditions": self.conditions} if self.conditions else live
            return RoundPlan(None, tuple(self.actions), self.d | {"metadata": meta, "status": status}, again=True)
        written = self.d | {"metadata": meta, "status": status} if noted or conditions.differs(live, status) else None
        after = conditions.next_look(self.d, status, self.s.now) if not self.d["spec"].get("paused") else 0.0
        return RoundPlan(self.create, tuple(self.actions), written, self.again, after)

    def _status(self) -> Obj | None:
        """Do what is to be done and return the status after it; None to stop here and look again."""
        if is_deleting(self.d):
            return self._counted() if self._find_new(create=False) else None
        self._note_pause()
        if self.d["spec"].get("paused"):
            return self._scale_only()
        back = revisions.rollback_wanted(self.d)
        if back is not None:
            return self._roll_back(back)
        if not self._find_new(create=False):
            return None
        if rounds.is_scaled(self.d, self.sets):
            return self._scale_only()
        return self._roll() if scale.is_rolling(self.d) else self._recreate()

    # The new ReplicaSet -----------------------------------------------------------------------------------------------

    def _find_new(self, *, create: bool) -> bool:
        """Bring the new ReplicaSet's annotations up to date, or create it; False where the round ends with that."""
        revision = revisions.highest(self.old) + 1
        if self.new is None:
            if create:
                self._create(revision)
            return True
        annotations = revisions.annotations_for_new(self.d, self.new, revision)
        seconds = self.d["spec"].get("minReadySeconds", 0)
        body: Obj = {}
        if self.new["spec"].get("minReadySeconds", 0) != seconds:
            body["spec"] = {"minReadySeconds": seconds}
        if annotations != annotations_of(self.new):
            body["metadata"] = {"annotations": annotations}
        if body:
            self._patch(self.new, body, "it is to be like its Deployment")
            return False
        self.annotations[revisions.REVISION] = annotations.get(revisions.REVISION, "")
        if conditions.has_deadline(self.d) and conditions.find(self.conditions, PROGRESSING) is None:
            self._progressing("True", conditions.FOUND, f'Found new replica set "{self.new["metadata"]["name"]}"')
        return True

    def _create(self, revision: int) -> None:
        made = revisions.new_set(self.d)
        size = scale.size_of_new(self.d, 0, scale.total(self.old))
        annotations = revisions.annotations_for_new(self.d, made, revision)
        made["metadata"]["annotations"] = rounds.with_size(annotations, self.d)
        made["spec"]["replicas"] = size
        name = made["metadata"]["name"]
        told = self._event("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}") if size else None
        failed = f'Failed to create new replica set "{name}": {{error}}'
        self.create = Create(
            why="no ReplicaSet has this template",
            kind=REPLICA_SET,
            obj=made,
            on_success=told,
            on_failure=self._event(conditions.CREATE_ERROR, failed, "Warning"),
        )
        self.new = made
        self.annotations[revisions.REVISION] = str(revision)
        if conditions.has_deadline(self.d):
            self._progressing("True", conditions.CREATED, f'Created new replica set "{name}"')

    def _progressing(self, status: str, reason: str, text: str) -> None:
        made = conditions.condition(PROGRESSING, status, reason, text, self.s.now)
        self.conditions = conditions.put(self.conditions, made)

    def _note_pause(self) -> None:
        """Progress is not expected of a Deployment that is paused, nor measured from before it was."""
        if not conditions.has_deadline(self.d):
            return
        reason = (conditions.find(self.conditions, PROGRESSING) or {}).get("reason")
        if reason == conditions.TIMED_OUT:
            return
        paused = bool(self.d["spec"].get("paused"))
        if paused and reason != conditions.PAUSED:
            self._progressing("Unknown", conditions.PAUSED, "Deployment is paused")
        elif not paused and reason == conditions.PAUSED:
            self._progressing("Unknown", conditions.RESUMED, "Deployment is resumed")

    # Sizes ------------------------------------------------------------------------------------------------------------

    def _size(self, one: Obj, size: int, *, always: bool = False) -> bool:
        """Give a ReplicaSet a size, and the annotations of it; with `always` also the annotations alone."""
        before = wanted(one)
        annotations = rounds.with_size(annotations_of(one), self.d)
        if before == size and not (always and annotations != annotations_of(one)):
            return False
        name = one["metadata"]["name"]
        how = "up" if before < size else "down"
        event = self._event("ScalingReplicaSet", f"Scaled {how} replica set {name} from {before} to {size}")
        body = {"metadata": {"annotations": annotations}, "spec": {"replicas": size}}
        self._patch(one, body, "the Deployment shares out its pods", event if before != size else None)
        changed = one | {
            "metadata": one["metadata"] | {"annotations": annotations},
            "spec": one["spec"] | {"replicas": size},
        }
        if self.new is one:
            self.new = changed
        self.old = [changed if s is one else s for s in self.old]
        return before != size

    def _patch(self, one: Obj, body: Obj, why: str, event: Event | None = None) -> None:
        if uid_of(one) not in self.touched:
            # After the first change the version is that of the answer.
            version = {"resourceVersion": one["metadata"]["resourceVersion"]}
            body = body | {"metadata": (body.get("metadata") or {}) | version}
        self.touched.add(uid_of(one))
        self.actions.append(
            Patch(
                why=why,
                kind=REPLICA_SET,
                key=key_of(one),
                body=body,
                uid=uid_of(one),
                on_success=event,
                errors=_CHANGED,
            )
        )

    def _scale_only(self) -> Obj | None:
        """Share out a new size among the ReplicaSets there are; no rollout goes on."""
        if not self._find_new(create=False):
            return None
        self._resize(rounds.rescaled(self.d, self.old, self.new))
        if self.d["spec"].get("paused") and revisions.rollback_wanted(self.d) is None:
            self._clean_up()
        return self._counted()

    def _resize(self, sizes: Sequence[rounds.Resize]) -> None:
        for found in sizes:
            name = found.set["metadata"]["name"]
            # It may have been given another size in this round before.
            one = next(s for s in self.sets if s["metadata"]["name"] == name)
            self._size(one, found.size, always=found.always)

    # A rollout --------------------------------------------------------------------------------------------------------

    def _roll(self) -> Obj | None:
        if not self._find_new(create=True):
            return None
        assert self.new is not None
        sizes, moved = rounds.rolled(self.d, self.old, self.new)
        self._resize(sizes)
        if not moved:
            self._clean_up_if_complete()
        return self._rolled()

    def _recreate(self) -> Obj | None:
        scaled = [self._size(one, 0) for one in rounds.active(self.old)]
        if any(scaled) or self._old_pods_run():
            return self._rolled()
        if self.new is None:
            self._find_new(create=True)
        if self.new is not None:
            self._size(self.new, wanted(self.d))
        self._clean_up_if_complete()
        return self._rolled()

    def _old_pods_run(self) -> bool:
        if scale.counted(self.old, "replicas") > 0:
            return True
        return any(not is_terminal(p) for s in self.old for p in self.s.pods.get(uid_of(s), ()))

    def _clean_up_if_complete(self) -> None:
        if conditions.is_complete(self.d, self.d.get("status") or {}):
            self._clean_up()

    def _clean_up(self) -> None:
        """Delete the oldest ReplicaSets beyond the history's limit; one that had pods when the round began stays.

        So one that a paused Deployment has just given pods can go, as on a real cluster.
        """
        limit = self.d["spec"].get("revisionHistoryLimit", _FOREVER)
        old = {uid_of(s) for s in self.old}
        alive = [s for s in self.s.sets if uid_of(s) in old and not is_deleting(s)]
        if limit == _FOREVER or len(alive) <= limit:
            return
        for one in revisions.by_revision(alive)[: len(alive) - limit]:
            status = one.get("status") or {}
            seen = generation_of(one) <= status.get("observedGeneration", 0)
            if wanted(one) == 0 and not status.get("replicas") and seen:
                why = "the history is longer than its limit"
                errors = {"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE}
                self.actions.append(Delete(why=why, kind=REPLICA_SET, key=key_of(one), uid=uid_of(one), errors=errors))

    # Back to an earlier revision --------------------------------------------------------------------------------------

    def _roll_back(self, revision: int) -> Obj | None:
        if not self._find_new(create=True):
            return None
        if self.create is not None:
            self.again = True
            return self._counted()
        revision = revision or revisions.last_but_one(self.sets)
        found = next((s for s in self.sets if revision and revisions.revision_of(s) == revision), None)
        name = self.d["metadata"]["name"]
        event: Event | None = None
        if found is None:
            text = "Unable to find the revision to rollback to." if revision else "Unable to find last revision."
            self._emit("DeploymentRollbackRevisionNotFound", text)
            target = revisions.without_rollback(self.d)
        elif templates.same_template(found["spec"]["template"], self.d["spec"]["template"]):
            text = f'The rollback revision contains the same template as current deployment "{name}"'
            self._emit("DeploymentRollbackTemplateUnchanged", text)
            target = revisions.without_rollback(self.d)
        else:
            event = self._event("DeploymentRollback", f'Rolled back deployment "{name}" to revision {revision}')
            target = revisions.rolled_back(self.d, found)
        body = merge_patch(self.d, target)
        version = {"resourceVersion": self.d["metadata"]["resourceVersion"]}
        self.actions.append(
            Patch(
                why="an earlier revision was asked for",
                kind=DEPLOYMENT,
                key=key_of(self.d),
                body=body | {"metadata": (body.get("metadata") or {}) | version},
                on_success=event,
                errors=_CHANGED,
            )
        )
        return None

    # Status -----------------------------------------------------------------------------------------------------------

    def _counted(self) -> Obj:
        status = conditions.counts(self.d, self.sets, self.new, self.conditions)
        return conditions.availability(self.d, status, self.s.now)

    def _rolled(self) -> Obj:
        current = conditions.find(self.conditions, PROGRESSING)
        status = conditions.progress(self.d, current, self._counted(), self.new, self.s.now)
        return conditions.failures(status, self.sets, self.new)

    def _emit(self, reason: str, text: str) -> None:
        self.actions.append(Emit(why=text, event=self._event(reason, text, "Warning")))

    def _event(self, reason: str, text: str, kind: str = "Normal") -> Event:
        return Event(ref_of(self.d, DEPLOYMENT), reason, reason, text, kind)
