"""How often a group has been recreated of late: a crash loop under the policies that recreate groups. Pure.

Each recreation takes the pods with it, and with them what their containers ended with: only the events of the set
remember it, and its counters of restarts where it has some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lwskit.api import names
from lwskit.groups import backoff, counters, ownership, restarts, revisions
from lwskit.groups.model import DecisionError
from lwskit.groups.scene import Happening, Scene, moment
from lwskit.runtime.objects import Obj, uid_of

LOOP = 3
"""From how many recreations in a row on a group is in a loop; fewer are what happens to pods now and then."""
QUIET = timedelta(minutes=30)
"""A recreation that comes later than this after the one before follows from something else."""

_SOON = timedelta(minutes=1)
_ROUNDS = 3
"""So many of its longest rounds a loop may be silent; a group that has lived longer does better than before."""
_MOST = 10_000
"""Repetitions of one event that are counted at most."""


@dataclass(frozen=True, slots=True)
class Run:
    """Recreations of one group in a row, on one revision: how many, since when, and the pod that failed last.

    `longest` is the longest time between two of them, on average where they are only counted; `pod` is empty then.
    """

    count: int
    first: datetime
    last: datetime
    pod: str
    longest: timedelta = timedelta()

    def is_loop(self, now: datetime) -> bool:
        """Whether the group is recreated again and again, and was so lately enough for that to go on."""
        return self.count >= LOOP and now - self.last <= max(_SOON, _ROUNDS * self.longest)


Known = Mapping[int, Sequence[tuple[datetime, str]]]
"""By group: when it was recreated and for which pod, oldest first."""


def find(scene: Scene, known: Known, ordinal: int, leader: Obj | None, newest: str, now: datetime) -> Run | None:
    """The recreations of a group up to now, None where there are none, or where they were over long ago.

    `newest` is the key of the revision that the leaders are to have. Where the set counts more restarts than events
    tell of, for those may not be read or have expired, the count is believed.
    """
    assert scene.lws is not None
    most = longest_quiet(scene.lws)
    key = ownership.revision_key(leader) if leader is not None else newest
    since = _since(scene, key, newest)
    told = _told(known.get(ordinal, ()), since, most, now)
    return by_count(scene, told, len(known.get(ordinal, ())), str(ordinal), leader, newest, now)


def by_count(
    scene: Scene, told: Run | None, events: int, group: str, leader: Obj | None, newest: str, now: datetime
) -> Run | None:
    """What events tell of a group, or the set's count of its restarts where that is higher than they are."""
    assert scene.lws is not None
    if told is not None and told.count >= LOOP:
        return told
    key = ownership.revision_key(leader) if leader is not None else newest
    count = _counted(scene.lws, key, group)
    if count <= events:
        return told
    since = _since(scene, key, newest)
    last = moment(leader["metadata"].get("creationTimestamp", "")) if leader is not None else now
    if last is None or last - since > count * longest_quiet(scene.lws):
        return told
    return Run(count, since, last, "", (last - since) / count)


def longest_quiet(lws: Obj) -> timedelta:
    """How long after the one before a recreation may come and still follow from the same."""
    return QUIET + timedelta(seconds=_longest_wait(lws))


def _counted(lws: Obj, key: str, group: str) -> int:
    """Restarts of a group on a revision, as the set counts them; 0 where it does not."""
    try:
        return counters.read(lws).get(f"{key}/{group}", 0)
    except DecisionError:
        return 0


def _told(known: Sequence[tuple[datetime, str]], since: datetime, most: timedelta, now: datetime) -> Run | None:
    """The recreations in a row, each at most so long after the one before."""
    found: Run | None = None
    next_time = now
    for time, pod in reversed(known):
        if time < since or next_time - time > most:
            break
        if found is None:
            found = Run(1, time, time, pod)
        else:
            found = Run(found.count + 1, time, found.last, found.pod, max(found.longest, next_time - time))
        next_time = time
    return found


def known(scene: Scene) -> Known:
    """All recreations that the events tell of. Repetitions of one event are spread evenly over its time."""
    found: dict[int, list[tuple[datetime, str]]] = {}
    for h in of_set(scene, names.EVENT_RECREATE_GROUP):
        told = restarts.told(h.note)
        last = moment(h.time)
        if told is None or last is None:
            continue
        first = moment(h.first) or last
        times = (last - (last - first) * i / max(1, h.count - 1) for i in range(min(h.count, _MOST)))
        found.setdefault(told.group, []).extend((time, told.pod) for time in times)
    return {group: sorted(times) for group, times in found.items()}


def _since(scene: Scene, key: str, newest: str) -> datetime:
    """Since when the group may be on its revision: what happened to it before says nothing of this one."""
    assert scene.lws is not None
    start = datetime.min.replace(tzinfo=UTC)
    revision = revisions.choose(revisions.own(scene.lws, scene.revisions), key) if key else None
    if revision is None:
        return start
    times = [moment(revision["metadata"].get("creationTimestamp", ""))]
    if key == newest:
        # A revision that was there earlier is taken up again by a rollback: its own age tells too little.
        own = revision["metadata"]["name"]
        for h in of_set(scene, names.EVENT_GROUPS_UPDATING):
            times.append(moment(h.first if h.related == own else h.time))
    return max((t for t in times if t is not None), default=start)


def of_set(scene: Scene, reason: str) -> Iterator[Happening]:
    """The events of a set for that reason."""
    assert scene.lws is not None
    uid = uid_of(scene.lws)
    for h in scene.happenings:
        if (h.kind, h.name, h.reason) == (names.KIND, scene.name, reason) and h.uid in ("", uid):
            yield h


def _longest_wait(lws: Obj) -> float:
    """Seconds for which a recreation may be put off."""
    wanted = backoff.settings(lws)
    return backoff.delay(names.INT32_MAX, None, wanted.get("capSeconds")) if wanted is not None else 0.0
