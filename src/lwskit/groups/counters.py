"""How often each group has been restarted: the annotation of a set that counts it. Pure.

Specification: 20 §12.1, §12.5. The annotation is a JSON object, `<revision key>/<group index>` to a number. A second
one says which leader was counted last, so that a deletion that fails after its count is not counted again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from lwskit.api import names
from lwskit.groups import ownership
from lwskit.groups.model import DecisionError
from lwskit.groups.spec import is_count
from lwskit.runtime.objects import Obj, annotations_of, labels_of, uid_of

Counters = Mapping[str, int]
"""Restarts by counter key."""
Change = Callable[[Obj], Obj | None]
"""A pure function from a set as it is to the changed one, None where nothing changes."""

_SHOWN = 60
_REMEMBERED = 1024
"""Leaders whose deletion may be under way at once: entries of the second annotation, 64 KiB of the 256 that all
annotations of an object may have."""


def key_of_group(leader: Mapping[str, Any]) -> str:
    """The counter of a leader's group: of its revision and its index."""
    return f"{ownership.revision_key(leader)}/{labels_of(leader).get(names.GROUP_INDEX_LABEL, '')}"


def read(lws: Mapping[str, Any]) -> Counters:
    """The counters of a set, none without the annotation.

    Raises DecisionError for text that is no JSON object of whole numbers from 0 to 2³¹-1.
    """
    text = annotations_of(lws).get(names.GROUP_RESTART_COUNTS_ANNOTATION)
    return _read(text) if text else {}


@lru_cache(maxsize=256)
def _read(text: str) -> Counters:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(f"{_short(text)} is no JSON: {error or 'nested too deeply'}") from error
    if not isinstance(found, dict):
        raise _unreadable(f"{_short(text)} is no JSON object")
    for key, count in found.items():
        if isinstance(count, bool) or not isinstance(count, int):
            raise _unreadable(f"the count of {_short(key)} is {_short(json.dumps(count))}, not a whole number")
        if not 0 <= count <= names.INT32_MAX:
            raise _unreadable(
                f"the count of {_short(key)} is {_short(str(count))}, not one from 0 to {names.INT32_MAX}"
            )
    return MappingProxyType(found)


def is_counted(lws: Mapping[str, Any], leader: Mapping[str, Any]) -> bool:
    """Whether the restart of this very leader's group has been counted, so that only its deletion is left to do."""
    return _leaders(lws).get(key_of_group(leader)) == uid_of(leader)


def raised(leader: Mapping[str, Any], count: int, uid: str) -> Change:
    """A change that stores `count` for a leader's group, in the set with that UID. No count ever gets lower."""
    key = key_of_group(leader)

    def change(lws: Obj) -> Obj | None:
        if uid_of(lws) != uid:
            return None
        found = read(lws)
        if found.get(key, -1) >= count:
            return None
        leaders = {k: v for k, v in _leaders(lws).items() if k != key}
        latest = dict([*leaders.items(), (key, uid_of(leader))][-_REMEMBERED:])
        return _noted(written(lws, {**found, key: count}), names.GROUP_RESTART_LEADERS_ANNOTATION, latest)

    return change


def dropped(gone: Callable[[Obj], Collection[str]], uid: str) -> Change:
    """A change that removes the counters which `gone` picks of a set, from the set with that UID."""

    def change(lws: Obj) -> Obj | None:
        if uid_of(lws) != uid:
            return None
        found, lost = read(lws), set(gone(lws))
        if not lost & found.keys():
            return None
        leaders = {key: leader for key, leader in _leaders(lws).items() if key not in lost}
        kept = written(lws, {key: count for key, count in found.items() if key not in lost})
        return _noted(kept, names.GROUP_RESTART_LEADERS_ANNOTATION, leaders)

    return change


def not_owned(counters: Mapping[str, int], revision: str, owned: Collection[str]) -> list[str]:
    """The counters of a revision that none of the groups `owned` has: the highest first, then by their keys."""
    found = [key for key in counters if key.rpartition("/")[0] == revision and key.rpartition("/")[2] not in owned]
    return sorted(found, key=lambda key: (-counters[key], key))


def to_hand_over(counters: Mapping[str, int], key: str, owned: Collection[str]) -> str:
    """The counter that the group of counter `key` takes over, empty if it has one or none is free."""
    if key in counters:
        return ""
    return next(iter(not_owned(counters, key.rpartition("/")[0], owned)), "")


def handed_over(key: str, owned: Collection[str], uid: str) -> Change:
    """A change that gives the group of counter `key` the highest count of its revision that no group `owned` has."""

    def change(lws: Obj) -> Obj | None:
        if uid_of(lws) != uid:
            return None
        found = read(lws)
        former = to_hand_over(found, key, owned)
        if not former:
            return None
        moved = {key if k == former else k: count for k, count in found.items()}
        leaders = {k: leader for k, leader in _leaders(lws).items() if k != former}
        return _noted(written(lws, moved), names.GROUP_RESTART_LEADERS_ANNOTATION, leaders)

    return change


def gone_for_good(lws: Mapping[str, Any], limit: int, kept: Collection[int], current: str) -> Collection[str]:
    """The counters of a set that nothing will ask for again: of removed groups, and with `current`, the key of the only
    revision that is left, those of other revisions.

    A set at rest costs one look-up, however many counters it has. Raises DecisionError where they cannot be read.
    """
    text = annotations_of(lws).get(names.GROUP_RESTART_COUNTS_ANNOTATION)
    if not text:
        return ()
    largest, revisions = _extent(text)
    if largest < limit and (not current or revisions <= {current}):
        return ()
    found = _read(text)
    others = of_other_revisions(found, current) if current else ()
    return {*of_removed_groups(found, limit, kept), *others}


@lru_cache(maxsize=256)
def _extent(text: str) -> tuple[int, frozenset[str]]:
    """The largest index that is counted for, -1 without any, and the keys of all revisions."""
    found = _read(text)
    return max((_index(key) for key in found), default=-1), frozenset(key.rpartition("/")[0] for key in found)


def of_removed_groups(counters: Mapping[str, int], limit: int, kept: Collection[int] = ()) -> list[str]:
    """The counters of groups with an index from `limit` on that is none of `kept`.

    Raises DecisionError for a key that is not of the form `<revision key>/<number>`.
    """
    return [key for key in counters if (index := _index(key)) >= limit and index not in kept]


def of_other_revisions(counters: Mapping[str, int], revision: str) -> list[str]:
    """The counters of groups of any other revision than the one with that key."""
    return [key for key in counters if key.rpartition("/")[0] != revision]


def written(lws: Obj, counters: Mapping[str, int]) -> Obj:
    """The set with these counters: a copy. The annotation goes with the last of them."""
    return _noted(lws, names.GROUP_RESTART_COUNTS_ANNOTATION, dict(sorted(counters.items())))


def _leaders(lws: Mapping[str, Any]) -> Mapping[str, str]:
    """UID of the leader that was counted last, by counter key; what cannot be read is nothing."""
    try:
        found: object = json.loads(annotations_of(lws).get(names.GROUP_RESTART_LEADERS_ANNOTATION) or "{}")
    except (ValueError, RecursionError):
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}


def _noted(lws: Obj, name: str, value: Mapping[str, Any]) -> Obj:
    """The set with a JSON object as annotation, or without the annotation if the object is empty."""
    notes = {k: v for k, v in annotations_of(lws).items() if k != name}
    if value:
        notes[name] = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    meta = {k: v for k, v in lws["metadata"].items() if k != "annotations"}
    return {**lws, "metadata": {**meta, "annotations": notes} if notes else meta}


def _index(key: str) -> int:
    index = key.rpartition("/")[2]
    if "/" not in key or not is_count(index):
        raise _unreadable(f"the key {_short(key)} is not of the form <revision>/<group index>")
    return int(index)


def _unreadable(what: str) -> DecisionError:
    return DecisionError(
        f"annotation {names.GROUP_RESTART_COUNTS_ANNOTATION} cannot be read: {what}; correct or remove it"
    )


def _short(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}…"
