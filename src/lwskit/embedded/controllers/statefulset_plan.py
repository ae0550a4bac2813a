"""What a StatefulSet needs next: pods to create, delete and correct, and its status. Pure.

Source: Kubernetes documentation, "StatefulSets": deployment and scaling guarantees, update strategies, maximum
unavailable pods; API reference: StatefulSetStatus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import floor
from typing import Any

from lwskit.embedded.controllers import statefulset_claims as claims
from lwskit.embedded.controllers import statefulset_revisions as revisions
from lwskit.embedded.controllers.pods import (
    is_available,
    is_running_and_ready,
    is_terminal,
    is_unavailable,
    phase_of,
    ready_since,
)
from lwskit.embedded.controllers.statefulset_pods import (
    has_identity,
    has_storage,
    identity_labels,
    new_pod,
    ordinal_of,
    ordinals_of,
    revision_of,
    with_claims,
)
from lwskit.runtime.errors import InvalidRequest
from lwskit.runtime.kinds import PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, generation_of, is_deleting, key_of, ref_of, uid_of
from lwskit.runtime.plan import AnyAction, Create, Delete, Emit, Event, OnError, Patch

_COUNTS = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a decision is made from.

    `pods` are those the set controls; `claims` the namespace's volume claims by name; `current` and `update` the
    ControllerRevisions that pods below and from the partition are made from; `now` decides about minReadySeconds.
    """

    set: Obj
    pods: Sequence[Obj]
    current: Obj
    update: Obj
    now: datetime
    claims: Mapping[str, Obj] = field(default_factory=dict)
    collisions: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """What is done for one pod. `refused` stops the round after it, as a failed action does."""

    actions: tuple[AnyAction, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Phase:
    """Items in order. `burst`: in batches that double, a failure stops after its batch; else at the first failure."""

    items: tuple[Item, ...]
    burst: bool


@dataclass(frozen=True, slots=True)
class SetPlan:
    """Phases in order, then the status (also after a failure), then again in `after` seconds unless that is 0.

    `counted` is the status before anything is done, for a set that wants `replicas` pods; the last phase takes
    `updates` pods down that are of an older revision.
    """

    phases: tuple[Phase, ...]
    counted: Obj
    replicas: int
    after: float = 0.0
    updates: int = 0

    @property
    def status(self) -> Obj:
        """The status after all phases."""
        return self.status_after(self.updates)

    def status_after(self, updates: int) -> Obj:
        """The status after so many deletions of the last phase.

        They are counted down at once, so that it does not say for a moment that old pods still stand.
        """
        status = dict(self.counted)
        if updates:
            _put(status, "currentReplicas", max(0, status.get("currentReplicas", 0) - updates))
        _complete(self.replicas, status)
        return status


@dataclass(slots=True)
class _Slot:
    """One pod in view: live, or the one to be created at its ordinal."""

    pod: Obj
    ordinal: int
    live: bool


def decide(snapshot: Snapshot) -> SetPlan:
    """The next round for one StatefulSet. Raises InvalidRequest for a maxUnavailable that cannot be read."""
    return _Round(snapshot).plan()


class _Round:
    def __init__(self, snapshot: Snapshot) -> None:
        self.s = snapshot
        self.spec = snapshot.set["spec"]
        self.min_ready = self.spec.get("minReadySeconds", 0)
        self.burst = self.spec.get("podManagementPolicy") == "Parallel"
        self.current_name = snapshot.current["metadata"]["name"]
        self.update_name = snapshot.update["metadata"]["name"]
        strategy = self.spec.get("updateStrategy") or {}
        self.rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
        self.rolling_update = strategy.get("rollingUpdate")
        self.phases: list[Phase] = []

    def plan(self) -> SetPlan:
        status = self._status()
        wanted, updates = len(ordinals_of(self.s.set)), 0
        if is_deleting(self.s.set):
            return SetPlan((), status, wanted, self._after(status))
        replicas, condemned = self._place()
        reached = self._each([self._replica(slot) for slot in replicas])
        reached = reached and self._each([(self._retention(p, condemned=True), False) for p in condemned])
        if reached and self._each(self._condemned(replicas, condemned)) and self.rolling:
            updates = self._update(replicas)
        return SetPlan(tuple(self.phases), status, wanted, self._after(status), updates)

    def _place(self) -> tuple[list[_Slot], list[Obj]]:
        """Live pods and pods to create, in ordinal order; and the pods beyond the range, highest ordinal first."""
        wanted = ordinals_of(self.s.set)
        live = {ordinal_of(p): p for p in self.s.pods}
        replicas = [_Slot(live[o], o, True) if o in live else _Slot(self._new(o), o, False) for o in wanted]
        condemned = [live[o] for o in sorted(live, reverse=True) if o >= 0 and o not in wanted]
        return replicas, condemned

    def _new(self, ordinal: int) -> Obj:
        start = ordinals_of(self.s.set).start
        status = self.s.set.get("status") or {}
        if self.rolling_update is not None:
            old = ordinal < start + self.rolling_update.get("partition", 0)
        else:
            old = self.rolling and ordinal < start + status.get("currentReplicas", 0)
        revision = self.s.current if old else self.s.update
        return new_pod(self.s.set, revisions.template_of(revision), revision["metadata"]["name"], ordinal)

    def _each(self, items: Sequence[tuple[Item, bool]]) -> bool:
        """Add a phase of (item, whether an ordered set waits after it); returns whether the round goes on."""
        chosen: list[Item] = []
        going = True
        for item, waits in items:
            chosen.append(item)
            if not self.burst and (waits or item.refused):
                going = False
                break
        self.phases.append(Phase(tuple(chosen), self.burst))
        return going

    def _replica(self, slot: _Slot) -> tuple[Item, bool]:
        pod = slot.pod
        if slot.live and is_terminal(pod):
            why = f"the pod has {phase_of(pod).lower()}; a new one takes its place"
            return Item(() if is_deleting(pod) else (self._delete(pod, why),)), True
        if not slot.live:
            return self._create(slot), True
        actions: list[AnyAction] = []
        if phase_of(pod) == "Pending":
            made = self._claims(slot.ordinal, pod, owned=True)
            if made.refused:
                return made, True
            actions += made.actions
        owned = self._retention(pod, condemned=False).actions
        if phase_of(pod) == "Pending":
            actions += owned
            owned = ()
        ready = is_running_and_ready(pod) and is_available(pod, self.min_ready, self.s.now)
        if not self.burst and (is_deleting(pod) or not ready):
            return Item(tuple(actions)), True
        actions += owned
        if not has_storage(self.s.set, pod):
            made = self._claims(slot.ordinal, pod)
            actions += [a for a in made.actions if a not in actions]
            if made.refused:
                return self._refused(actions, "Update", pod, made.refused), True
        elif has_identity(self.s.set, pod):
            return Item(tuple(actions)), False
        actions.append(self._correct(slot))
        return Item(tuple(actions)), False

    def _create(self, slot: _Slot) -> Item:
        pod = slot.pod
        if claims.retention_of(self.s.set)[1]:
            names = [claims.claim_name(self.s.set, t, slot.ordinal) for t in claims.claims_of(self.s.set)]
            if any(claims.is_stale(self.s.claims[n], pod, POD) for n in names if n in self.s.claims):
                # It is being removed with the pod that stood here before.
                return Item()
        made = self._claims(slot.ordinal, pod)
        if made.refused:
            return self._refused(made.actions, "Create", pod, made.refused)
        create = Create(
            why=f"no pod stands at ordinal {slot.ordinal}",
            kind=POD,
            obj=pod,
            on_success=self._event("SuccessfulCreate", _done("Create", "Pod", pod, self.s.set)),
            on_failure=self._event("FailedCreate", _failed("Create", "Pod", pod, self.s.set), "Warning"),
            # The old pod of this name is still there: it has to go first.
            errors={"AlreadyExists": OnError.REQUEUE},
        )
        # Claims that are new get their owners in the next round, which sees them.
        return Item((*made.actions, create, *self._retention(pod, condemned=False).actions))

    def _refused(self, actions: Sequence[AnyAction], verb: str, pod: Obj, why: str) -> Item:
        text = _failed(verb, "Pod", pod, self.s.set).format(error=why)
        return Item((*actions, Emit(why=why, event=self._event(f"Failed{verb}", text, "Warning"))), why)

    def _claims(self, ordinal: int, pod: Obj, *, owned: bool = False) -> Item:
        """Create the claims that the pod at an ordinal lacks; refused while an old one is on its way out.

        Unless they are `owned` from the beginning, they get their owners when there is a pod.
        """
        actions: list[AnyAction] = []
        refused: list[str] = []
        for template in claims.claims_of(self.s.set):
            name = claims.claim_name(self.s.set, template, ordinal)
            claim = self.s.claims.get(name)
            if claim is not None:
                if is_deleting(claim):
                    refused.append(f"pvc {name} is being deleted")
                continue
            new = claims.new_claim(self.s.set, template, ordinal)
            owners = claims.wanted_owners(self.s.set, pod, new, False) if owned else None
            if owners:
                new["metadata"]["ownerReferences"] = owners
            where = f"Pod {pod['metadata']['name']} in StatefulSet {self.s.set['metadata']['name']}"
            actions.append(
                Create(
                    why=f"the pod at ordinal {ordinal} needs it",
                    kind=PERSISTENT_VOLUME_CLAIM,
                    obj=new,
                    on_success=self._event("SuccessfulCreate", f"Create Claim {name} {where} success"),
                    on_failure=self._event(
                        "FailedCreate", f"Create Claim {name} for {where} failed error: {{error}}", "Warning"
                    ),
                    errors={"AlreadyExists": OnError.REQUEUE},
                )
            )
        return Item(tuple(actions), refused[0] if len(refused) == 1 else f"[{', '.join(refused)}]" if refused else "")

    def _retention(self, pod: Obj, *, condemned: bool) -> Item:
        actions: list[AnyAction] = []
        for template in claims.claims_of(self.s.set):
            claim = self.s.claims.get(claims.claim_name(self.s.set, template, ordinal_of(pod)))
            if claim is not None:
                actions += self._own(claim, pod, condemned=condemned)
        return Item(tuple(actions))

    def _own(self, claim: Obj, pod: Obj, *, condemned: bool) -> list[AnyAction]:
        owners = claims.wanted_owners(self.s.set, pod, claim, condemned)
        if owners is None:
            return []
        actions: list[AnyAction] = []
        name = claim["metadata"]["name"]
        if claims.has_foreign_controller(self.s.set, pod, claim):
            text = (
                f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, "
                "the retention policy is ignored for this claim"
            )
            actions.append(Emit(why=text, event=self._event("ConflictingController", text, "Warning")))
        body = {"metadata": {"ownerReferences": owners, "resourceVersion": claim["metadata"]["resourceVersion"]}}
        actions.append(
            Patch(
                why="its owners follow the retention policy",
                kind=PERSISTENT_VOLUME_CLAIM,
                key=key_of(claim),
                body=body,
                uid=uid_of(claim),
                errors={"Conflict": OnError.REQUEUE, "NotFound": OnError.REQUEUE},
            )
        )
        return actions

    def _correct(self, slot: _Slot) -> Patch:
        """The pod's labels and volumes as its ordinal has them; the API server refuses other volumes."""
        pod = slot.pod
        body: Obj = {"metadata": {"labels": identity_labels(pod["metadata"]["name"], slot.ordinal)}}
        if not has_storage(self.s.set, pod):
            body["spec"] = {"volumes": with_claims(self.s.set, pod["spec"].get("volumes") or (), slot.ordinal)}
        return Patch(
            why="the pod lacks the labels or the claims of its ordinal",
            kind=POD,
            key=key_of(slot.pod),
            uid=uid_of(slot.pod),
            body=body,
            on_success=self._event("SuccessfulUpdate", _done("Update", "Pod", slot.pod, self.s.set)),
            on_failure=self._event("FailedUpdate", _failed("Update", "Pod", slot.pod, self.s.set), "Warning"),
            errors={"NotFound": OnError.REQUEUE},
        )

    def _condemned(self, replicas: Sequence[_Slot], condemned: Sequence[Obj]) -> list[tuple[Item, bool]]:
        in_order = [s.pod for s in replicas] + list(reversed(condemned))
        first = next((p for p in in_order if self._unavailable(p)), None)
        items: list[tuple[Item, bool]] = []
        for pod in condemned:
            healthy = is_running_and_ready(pod) and is_available(pod, self.min_ready, self.s.now)
            if is_deleting(pod) or (not self.burst and not healthy and pod is not first):
                items.append((Item(), True))
            else:
                items.append((Item((self._delete(pod, "the set is scaled below its ordinal"),)), True))
        return items

    def _update(self, replicas: Sequence[_Slot]) -> int:
        """Add the deletions that bring pods to the update revision; returns how many."""
        partition, budget = 0, 1
        if self.rolling_update is not None:
            partition = self.rolling_update.get("partition", 0)
            budget = max_unavailable(self.rolling_update.get("maxUnavailable", 1), self.spec.get("replicas", 1))
        pods = [s.pod for s in replicas]
        down = sum(self._unavailable(p) for p in pods)
        old = [p for p in pods[partition:] if revision_of(p) != self.update_name and not is_deleting(p)]
        old.reverse()
        room = max(0, budget - down)
        if self.burst:
            # Pods that are down anyway go without touching the budget, wherever they stand.
            broken = [p for p in old if not is_available(p, self.min_ready, self.s.now) and uid_of(p)]
            victims = broken + [p for p in old if not self._unavailable(p)][:room]
        else:
            victims = old[:room]
        items = tuple(Item((self._delete(p, "it is of an older revision"),)) for p in victims)
        self.phases.append(Phase(items, False))
        return len(victims)

    def _unavailable(self, pod: Obj) -> bool:
        return is_unavailable(pod, self.min_ready, self.s.now)

    def _delete(self, pod: Obj, why: str) -> Delete:
        return Delete(
            why=why,
            kind=POD,
            key=key_of(pod),
            uid=uid_of(pod),
            on_success=self._event("SuccessfulDelete", _done("Delete", "Pod", pod, self.s.set)),
            on_failure=self._event("FailedDelete", _failed("Delete", "Pod", pod, self.s.set), "Warning"),
            errors={"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE},
        )

    def _event(self, reason: str, note: str, kind: str = "Normal") -> Event:
        return Event(ref_of(self.s.set, STATEFUL_SET), reason, reason, note, kind)

    def _status(self) -> Obj:
        counts = dict.fromkeys(_COUNTS, 0)
        # Of several pods of one ordinal, as web-1 and web-01 are, only one is in view.
        pods = self.s.pods if is_deleting(self.s.set) else {ordinal_of(p): p for p in self.s.pods}.values()
        for pod in pods:
            counts["replicas"] += 1
            if is_running_and_ready(pod):
                counts["readyReplicas"] += 1
                counts["availableReplicas"] += is_available(pod, self.min_ready, self.s.now)
            if not is_deleting(pod):
                counts["currentReplicas"] += revision_of(pod) == self.current_name
                counts["updatedReplicas"] += revision_of(pod) == self.update_name
        old = self.s.set.get("status") or {}
        status: Obj = {
            "observedGeneration": generation_of(self.s.set),
            "currentRevision": self.current_name,
            "updateRevision": self.update_name,
            "collisionCount": self.s.collisions,
        }
        always = ("replicas", "availableReplicas")
        status |= {k: v for k, v in counts.items() if v or k in always}
        if old.get("conditions"):
            status["conditions"] = old["conditions"]
        return status

    def _after(self, status: Mapping[str, Any]) -> float:
        """Seconds until the next pod has been ready for minReadySeconds, 0 when none is waited for."""
        if not self.min_ready or status.get("readyReplicas", 0) == status.get("availableReplicas", 0):
            return 0.0
        span = timedelta(seconds=self.min_ready)
        left = [
            (since + span - self.s.now).total_seconds()
            for since in (ready_since(p) for p in self.s.pods if not is_available(p, self.min_ready, self.s.now))
            if since is not None
        ]
        # A timer may fire a moment early.
        return max(0.001, min(left, default=float(self.min_ready)) + 0.001)


def max_unavailable(value: int | str, replicas: int) -> int:
    """How many pods may be down at once: a number or a percentage of `replicas` rounded down, at least 1.

    Raises InvalidRequest for text that is no percentage.
    """
    if isinstance(value, int):
        return max(1, value)
    digits = value.removesuffix("%")
    if not value.endswith("%") or not digits.isdecimal():
        raise InvalidRequest(f"maxUnavailable {value!r} is neither a number nor a percentage such as '25%'")
    return max(1, floor(int(digits) * replicas / 100))


def _complete(wanted: int, status: Obj) -> None:
    """When every pod is updated and ready, the update revision becomes the current one."""
    if all(status.get(k, 0) == wanted for k in ("updatedReplicas", "readyReplicas", "replicas")):
        status["currentRevision"] = status["updateRevision"]
        _put(status, "currentReplicas", wanted)


def _put(status: Obj, field: str, count: int) -> None:
    """Set a count, which is left out when it is 0."""
    status.pop(field, None)
    if count:
        status[field] = count


def status_differs(stateful_set: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether a status has to be written: a field differs, or the generation has moved on."""
    old = stateful_set.get("status") or {}
    return (
        status.get("observedGeneration", 0) > old.get("observedGeneration", 0)
        or any(status.get(k, 0) != old.get(k, 0) for k in _COUNTS)
        or any(status.get(k, "") != old.get(k, "") for k in ("currentRevision", "updateRevision"))
        or (status.get("conditions") or []) != (old.get("conditions") or [])
    )


def batches(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Items in batches of 1, 2, 4… up to 500: how a burst finds out early that nothing can be created."""
    found: list[Sequence[Item]] = []
    size, start = 1, 0
    while start < len(items):
        found.append(items[start : start + size])
        start += size
        size = min(2 * size, 500)
    return found


def _done(verb: str, what: str, pod: Obj, stateful_set: Obj) -> str:
    return f"{verb} {what} {pod['metadata']['name']} in StatefulSet {stateful_set['metadata']['name']} successful"


def _failed(verb: str, what: str, pod: Obj, stateful_set: Obj) -> str:
    name = stateful_set["metadata"]["name"]
    return f"{verb} {what} {pod['metadata']['name']} in StatefulSet {name} failed error: {{error}}"
