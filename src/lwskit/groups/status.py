"""The status of a set: counts and conditions. Pure.

Specification: 20 §8 with the rules of v1.0.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lwskit.api import names
from lwskit.groups.model import COUNTED, EXHAUSTED, READY, UPDATED, Groups
from lwskit.runtime.objects import Obj

COUNTS = frozenset({"replicas", "readyReplicas", "updatedReplicas"})
"""The fields that only count."""
PAUSE = 0.01
"""Seconds for each group between two writes of a status of which the second only counts otherwise: the groups of a
large set get ready one after the other."""
LONGEST_PAUSE = 5.0
MOMENT = 0.001
"""Seconds that are not worth another decision."""
_EXCLUSIVE = {
    names.CONDITION_AVAILABLE: (names.CONDITION_PROGRESSING, names.CONDITION_UPDATE_IN_PROGRESS),
    names.CONDITION_PROGRESSING: (names.CONDITION_AVAILABLE,),
    names.CONDITION_UPDATE_IN_PROGRESS: (names.CONDITION_AVAILABLE,),
}


@dataclass(frozen=True, slots=True)
class Counts:
    """How many groups are in which state (specification: 20 §8.2)."""

    replicas: int
    """Groups wanted."""
    existing: int
    """Groups that exist, with surge."""
    partition: int
    """The user's partition: groups below it are not in the window."""
    ready: int
    """Ready groups of any revision, with surge."""
    updated: int
    """Updated groups, ready or not, with surge."""
    wanted_ready: int
    """Ready groups that are wanted and have not used up their restarts."""
    window: int
    """Groups that exist in the window."""
    window_updated: int
    window_done: int
    """Ready and updated ones in the window."""
    degraded: int
    """Groups that have used up their restarts."""
    wanted_degraded: int

    @property
    def available(self) -> bool:
        """Whether all wanted groups are ready and those in the window are updated."""
        return self.wanted_ready == self.replicas and self.window_done == self.window

    @property
    def rolling(self) -> bool:
        """Whether a group in the window is of an older revision."""
        return self.window_updated < self.window

    @property
    def progressing(self) -> bool:
        """Whether anything is still going to happen by itself."""
        return self.rolling or self.wanted_ready + self.wanted_degraded < self.replicas

    @property
    def update_done(self) -> bool:
        """Whether the whole set is on its current revision (specification: 20 §8.4)."""
        return self.partition == 0 and self.window_done == self.replicas


@dataclass(frozen=True, slots=True)
class Shown:
    """The numbers of groups that a status shows."""

    wanted: int
    created: int
    """Leaders that exist."""
    ready: int
    updated: int

    @classmethod
    def of(cls, counts: Counts, created: int) -> Shown:
        """Those of groups that were counted here, of whose leaders the leader workload counts `created`.

        One that was made anew has taken its leaders over, one by one, before it counts them.
        """
        return cls(counts.replicas, max(created, counts.existing), counts.ready, counts.updated)


@dataclass(frozen=True, slots=True)
class Requested:
    """A condition as the counts ask for it. An empty reason keeps that of the stored condition, and its message."""

    type: str
    status: bool
    reason: str = ""
    message: str = ""


def count(groups: Groups, replicas: int, partition: int) -> Counts:
    """Count the groups of a set, as all its leaders are known, surge included."""
    window = {"start": partition, "stop": max(partition, replicas)}
    return Counts(
        replicas=replicas,
        existing=groups.count(COUNTED),
        partition=partition,
        ready=groups.count(READY),
        updated=groups.count(UPDATED),
        wanted_ready=groups.count(READY, EXHAUSTED, stop=replicas),
        window=groups.count(COUNTED, **window),
        window_updated=groups.count(UPDATED, **window),
        window_done=groups.count(READY | UPDATED, **window),
        degraded=groups.count(EXHAUSTED),
        wanted_degraded=groups.count(EXHAUSTED, stop=replicas),
    )


def requested(counts: Counts, stored: Sequence[Mapping[str, Any]] = ()) -> list[Requested]:
    """The conditions that the counts ask for, in order (specification: 20 §8.3)."""
    degraded = counts.degraded > 0
    exceeded = names.REASON_RESTART_BUDGET_EXCEEDED
    if counts.rolling:
        found = [_update_in_progress(), _progressing()]
    elif counts.available:
        found = [_available()]
    elif degraded:
        found = [
            Requested(names.CONDITION_AVAILABLE, False, exceeded, names.MESSAGE_NOT_AVAILABLE),
            _progressing() if counts.progressing else _stopped(),
            Requested(names.CONDITION_UPDATE_IN_PROGRESS, False, exceeded, names.MESSAGE_NO_UPDATE_IN_PROGRESS),
        ]
    else:
        found = [_progressing(), *_no_longer_updating(stored)]
    return [*found, _degraded(degraded)]


def requested_of_pool(
    *, updating: bool, available: bool, progressing: bool, degraded: bool, stored: Sequence[Mapping[str, Any]] = ()
) -> list[Requested]:
    """The conditions of a set in Hash mode, in order (specification: 30 §12)."""
    exceeded = names.REASON_RESTART_BUDGET_EXCEEDED
    goes_on = _progressing() if progressing else _stopped()
    unavailable = Requested(names.CONDITION_AVAILABLE, False, exceeded, names.MESSAGE_NOT_AVAILABLE)
    if updating:
        found = [*([unavailable] if degraded else []), _update_in_progress(), goes_on]
    elif available:
        found = [_available()]
    elif degraded:
        no_update = Requested(names.CONDITION_UPDATE_IN_PROGRESS, False, exceeded, names.MESSAGE_NO_UPDATE_IN_PROGRESS)
        found = [unavailable, goes_on, no_update]
    else:
        found = [_progressing(), *_no_longer_updating(stored)]
    return [*found, _degraded(degraded)]


def headline(found: Sequence[Requested]) -> Requested:
    """The requested condition that the event about a change speaks of: Degraded if it is true, else the first."""
    return next((r for r in found if r.type == names.CONDITION_DEGRADED and r.status), found[0])


def merge(stored: Sequence[Obj], found: Sequence[Requested], generation: int, now: str) -> list[Obj]:
    """The stored conditions with the requested ones merged in; equal to `stored` if nothing changes.

    `now` is the time of a transition as objects carry it. Specification: 20 §8.5.
    """
    merged = [dict(c) for c in stored]
    for request in found:
        _merge_one(merged, request, generation, now)
    for condition in merged:
        condition["observedGeneration"] = generation
    return merged


def _merge_one(merged: list[Obj], request: Requested, generation: int, now: str) -> None:
    place = next((i for i, c in enumerate(merged) if c["type"] == request.type), None)
    old = merged[place] if place is not None else {}
    new = {
        "type": request.type,
        "status": str(request.status),
        "reason": request.reason or old.get("reason", ""),
        "message": request.message or old.get("message", ""),
        "lastTransitionTime": old.get("lastTransitionTime", now) if old.get("status") == str(request.status) else now,
        "observedGeneration": generation,
    }
    if place is None:
        merged.append(new)
    else:
        merged[place] = new
    if request.status:
        for other in merged:
            if other["type"] in _EXCLUSIVE.get(request.type, ()) and other["status"] == "True":
                other |= {"status": "False", "lastTransitionTime": now, "observedGeneration": generation}


def new_status(lws: Obj, shown: Shown, conditions: Sequence[Obj]) -> Obj:
    """The set's status. Specification: 20 §8.1, 30 §12."""
    name = lws["metadata"]["name"]
    old = lws.get("status") or {}
    selector = old.get("hpaPodSelector") or f"{names.NAME_LABEL}={name},{names.WORKER_INDEX_LABEL}={names.LEADER_INDEX}"
    new = {
        **old,
        "conditions": list(conditions),
        "replicas": shown.created,
        "readyReplicas": shown.ready,
        "updatedReplicas": shown.updated,
        "hpaPodSelector": selector,
        "observedGeneration": lws["metadata"].get("generation", 0),
    }
    return {field: value for field, value in new.items() if value not in (0, "", [], None)}


def pause(old: Mapping[str, Any], new: Mapping[str, Any], replicas: int) -> float:
    """Seconds that are to pass between a set's last write of its status and the one from `old` to `new`."""
    if any(old.get(field) != new.get(field) for field in (old.keys() | new.keys()) - COUNTS):
        return 0.0
    return min(LONGEST_PAUSE, replicas * PAUSE)


def note(found: Sequence[Requested], shown: Shown) -> str:
    """The note of the event about a change of conditions."""
    return f"{headline(found).message}, with {shown.ready} groups ready of total {shown.wanted} groups"


def stamp(moment: datetime) -> str:
    """A time as conditions carry it, in UTC and whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _progressing() -> Requested:
    return Requested(names.CONDITION_PROGRESSING, True, names.REASON_GROUPS_PROGRESSING, names.MESSAGE_PROGRESSING)


def _stopped() -> Requested:
    exceeded = names.REASON_RESTART_BUDGET_EXCEEDED
    return Requested(names.CONDITION_PROGRESSING, False, exceeded, names.MESSAGE_DEGRADED)


def _available() -> Requested:
    return Requested(names.CONDITION_AVAILABLE, True, names.REASON_ALL_GROUPS_READY, names.MESSAGE_AVAILABLE)


def _degraded(degraded: bool) -> Requested:
    if degraded:
        reason, message = names.REASON_RESTART_BUDGET_EXCEEDED, names.MESSAGE_DEGRADED
    else:
        reason, message = names.REASON_AS_EXPECTED, names.MESSAGE_NOT_DEGRADED
    return Requested(names.CONDITION_DEGRADED, degraded, reason, message)


def _no_longer_updating(stored: Sequence[Mapping[str, Any]]) -> list[Requested]:
    updated = _is_true(stored, names.CONDITION_UPDATE_IN_PROGRESS)
    return [Requested(names.CONDITION_UPDATE_IN_PROGRESS, False)] if updated else []


def _update_in_progress() -> Requested:
    return Requested(
        names.CONDITION_UPDATE_IN_PROGRESS, True, names.REASON_GROUPS_UPDATING, names.MESSAGE_UPDATE_IN_PROGRESS
    )


def _is_true(stored: Sequence[Mapping[str, Any]], kind: str) -> bool:
    return any(c["type"] == kind and c["status"] == "True" for c in stored)
