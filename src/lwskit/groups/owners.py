"""Whose the leaders of each set in Ordinal mode are, kept up to date as pods change. Pure.

Specification: 20 §1, §2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lwskit.groups import identity, ownership
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj, controller_of, is_deleting, is_of, key_of, uid_of

NOBODY = ""


class LeaderOwners:
    """Counts, for each set, the leaders that are there to stay by the UID of their owner.

    Leaders of other kinds than `leaders` are not counted: something else makes those.
    """

    def __init__(self, leaders: Kind) -> None:
        self._kind = leaders
        self._known: dict[str, tuple[Key, str]] = {}
        """Set and owner of each leader, by its UID."""
        self._counts: dict[Key, Counter[str]] = {}

    def apply(self, kind: Kind, old: Obj | None, new: Obj | None) -> None:
        """Take in one change of a pod: added (no `old`), changed, or removed (no `new`)."""
        for pod in (old, new):
            if pod is not None:
                self._forget(uid_of(pod))
        if new is not None:
            self._learn(new)

    def replace(self, kind: Kind, objects: Iterable[Obj]) -> None:
        """Take in that these are all pods there are."""
        self._known.clear()
        self._counts.clear()
        for pod in objects:
            self._learn(pod)

    def has_others(self, key: Key, workload_uid: str) -> bool:
        """Whether a leader of the set is not this leader workload's: it has no owner, or still that of before.

        The workload is about to take it over, or the collector to remove it.
        """
        counts = self._counts.get(key)
        return counts is not None and any(owner != workload_uid for owner in counts)

    def _learn(self, pod: Obj) -> None:
        name, owner = ownership.set_name(pod), controller_of(pod)
        if not name or not identity.is_leader(pod) or is_deleting(pod):
            return
        if identity.parse_ordinal(pod["metadata"]["name"])[0] != name:
            return
        if owner is not None and not is_of(owner, self._kind):
            return
        found = Key(key_of(pod).namespace, name), owner["uid"] if owner is not None else NOBODY
        self._known[uid_of(pod)] = found
        self._counts.setdefault(found[0], Counter())[found[1]] += 1

    def _forget(self, uid: str) -> None:
        found = self._known.pop(uid, None)
        if found is None:
            return
        counts = self._counts[found[0]]
        counts[found[1]] -= 1
        if not counts[found[1]]:
            del counts[found[1]]
        if not counts:
            del self._counts[found[0]]
