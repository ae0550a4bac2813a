"""Holds lwskit's ranking of pods against which ones a ReplicaSet controller then deletes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from lwskit.runtime.clock import Clock
from lwskit.runtime.kinds import POD, REPLICA_SET
from lwskit.runtime.objects import Obj, controller_of, is_deleting, uid_of
from lwskit.runtime.ranking import OF_AN_AGE, UNDECIDED, is_active, ranked
from tests.differential.deployments.view import View
from tests.differential.side_by_side.game import Write
from tests.differential.side_by_side.mirror import Place

LATER = [timedelta(seconds=n / 4) for n in range(17)]
"""How much later than the move began the controller may have looked."""


class Ranks:
    """Foretells, for moves that touch no pod, which pods go, by UID: equal pods and ages are told apart, too."""

    def __init__(self, place: View, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.now()
        self._pods = dict(place.of(POD))
        self._sets = dict(place.of(REPLICA_SET))
        self._fit = True
        self.judged = False

    def wrote(self, write: Write, said: str, obj: Obj | None) -> None:
        """A request of the move was answered; deletions and what is done to pods are not foretold."""
        self._fit &= write["kind"] == "deployments" and write["verb"] == "patch"

    def wrong(self, place: Place) -> list[str]:
        """The ReplicaSets of which other pods went than the first in the order."""
        assert isinstance(place, View)
        lines: list[str] = []
        for uid, replica_set in ((uid_of(s), s) for s in self._sets.values()):
            mine = [p for p in self._pods.values() if (controller_of(p) or {}).get("uid") == uid and is_active(p)]
            gone = {uid_of(p) for p in mine if self._is_gone(p, place)}
            if not self._fit or not gone or len(gone) == len(mine) or place.born().get(place.symbol(replica_set)):
                continue
            related = self._related(replica_set)
            wanted = self._foretold(mine, related, len(gone))
            if wanted is None:
                continue
            self.judged = True
            if wanted != gone:
                order = [f"{r.pod['metadata']['name']} ({r.why})" for r in ranked(mine, related, self._began)]
                names = sorted(p["metadata"]["name"] for p in mine if uid_of(p) in gone)
                lines.append(f"{place.symbol(replica_set)}: in order {order}, gone {names}")
        return lines

    @staticmethod
    def _is_gone(pod: Obj, place: Place) -> bool:
        now = place.of(POD).get(pod["metadata"]["name"])
        return now is None or is_deleting(now)

    def _related(self, replica_set: Obj) -> list[Obj]:
        owner = controller_of(replica_set)
        if owner is None:
            return []
        sets = {uid_of(s) for s in self._sets.values() if (controller_of(s) or {}).get("uid") == owner["uid"]}
        return [p for p in self._pods.values() if (controller_of(p) or {}).get("uid") in sets]

    def _foretold(self, mine: list[Obj], related: list[Obj], count: int) -> set[str] | None:
        """Who goes; None where it depends on when the controller looks, in how many steps it deletes, or on chance."""
        found: list[set[str]] = []
        why = [r.why for r in ranked(mine, related, self._began)]
        born = [p["metadata"]["creationTimestamp"] for p in mine]
        if why[count - 1] == UNDECIDED or (OF_AN_AGE in why and len(set(born)) < len(born)):
            # Pods of one second among others that go by their UID are in no order at all.
            return None
        for now in (self._began + later for later in LATER):
            found.append({uid_of(r.pod) for r in ranked(mine, related, now)[:count]})
            found.append(_one_by_one(mine, related, count, now))
        return found[0] if all(f == found[0] for f in found) else None


def _one_by_one(mine: Iterable[Obj], related: Iterable[Obj], count: int, now: datetime) -> set[str]:
    gone: set[str] = set()
    for _ in range(count):
        left = [p for p in mine if uid_of(p) not in gone]
        others = [p for p in related if uid_of(p) not in gone]
        gone.add(uid_of(ranked(left, others, now)[0].pod))
    return gone
