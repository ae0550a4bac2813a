"""How often a group in Hash mode takes the place of one that was recreated: a loop in which each has another key. Pure.

A ReplicaSet makes the next leader the moment one is deleted, so who came when a group was recreated is its successor.
Of several at one moment any may be taken for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lwskit.api import names
from lwskit.groups import recreations, restarts
from lwskit.groups.pool import group_name
from lwskit.groups.recreations import Run
from lwskit.groups.scene import Scene, moment
from lwskit.runtime.kinds import REPLICA_SET
from lwskit.runtime.objects import Obj

_AT_ONCE = timedelta(seconds=5)
"""How far the times of one moment are apart at most, as several programs tell them."""
_SECOND = timedelta(seconds=1)
_AT_GATE = timedelta(minutes=2)
"""How long a leader may have been at its gate, where only that it left it is known."""
_CREATED = "Created pod: "


@dataclass(frozen=True, slots=True)
class Known:
    """What events tell: recreations (when, which leader was deleted, which pod had failed), oldest first; when leaders
    were made; and when they left their gate."""

    recreated: Sequence[tuple[datetime, str, str]] = ()
    made: Mapping[str, datetime] = field(default_factory=dict)
    let_in: Mapping[str, datetime] = field(default_factory=dict)


def known(scene: Scene) -> Known:
    """All that the events of a set and of its ReplicaSets tell."""
    recreated: list[tuple[datetime, str, str]] = []
    for h in recreations.of_set(scene, names.EVENT_RECREATE_GROUP):
        told, time = restarts.told_of_key(h.note), moment(h.time)
        if told is not None and time is not None:
            recreated.append((time, told[1], told[0]))
    sets = {s["metadata"]["name"] for s in scene.between}
    made: dict[str, datetime] = {}
    for h in scene.happenings:
        if h.kind == REPLICA_SET.kind and h.name in sets and h.note.startswith(_CREATED):
            time = moment(h.first or h.time)
            if time is not None:
                made[h.note.removeprefix(_CREATED)] = time
    let_in = {
        h.related: time
        for h in recreations.of_set(scene, names.EVENT_GROUP_REPLACEMENT_ADMITTED)
        if (time := moment(h.first or h.time)) is not None
    }
    return Known(sorted(recreated), made, let_in)


def find(scene: Scene, told: Known, leader: Obj, newest: str, now: datetime) -> Run | None:
    """The recreations in a row that end with this leader's group, all of the same template; None where there are none.

    `newest` is the key of the revision that the leaders are to have. Where the set counts more restarts, the count is
    believed.
    """
    assert scene.lws is not None
    meta = leader["metadata"]
    name, born = meta["name"], moment(meta.get("creationTimestamp", ""))
    most = recreations.longest_quiet(scene.lws)
    left = [r for r in told.recreated if _set_of(r[1]) == _set_of(name)]
    found: Run | None = None
    next_time = now
    while left:
        before = _before(left, born, told.let_in.get(name))
        if before is None or next_time - before[0] > most:
            break
        time, name, pod = before
        if found is None:
            found = Run(1, time, time, pod)
        else:
            found = Run(found.count + 1, time, found.last, found.pod, max(found.longest, next_time - time))
        left = [r for r in left if r[0] <= time and r is not before]
        next_time, born = time, told.made.get(name)
    events = found.count if found is not None else 0
    return recreations.by_count(scene, found, events, group_name(leader), leader, newest, now)


def _before(
    recreated: Sequence[tuple[datetime, str, str]], born: datetime | None, let_in: datetime | None
) -> tuple[datetime, str, str] | None:
    """The recreation that made room for a leader: the nearest to when it was made, or the last before it was let in.

    None comes after the leader was let in, which is told more finely than its birth.
    """
    if born is not None:
        near = [r for r in recreated if _apart(r[0], born) <= _AT_ONCE and (let_in is None or r[0] <= let_in)]
        return min(reversed(near), key=lambda r: _apart(r[0], born), default=None)
    if let_in is None:
        return None
    return next((r for r in reversed(recreated) if -_AT_ONCE <= let_in - r[0] <= _AT_GATE), None)


def _apart(time: datetime, born: datetime) -> timedelta:
    """How far a time is from a birth, which is told in whole seconds and so may have been up to a second later."""
    return max(born - time, time - born - _SECOND, timedelta())


def _set_of(leader: str) -> str:
    """The name of the ReplicaSet that a leader is named after."""
    return leader.rpartition("-")[0]
