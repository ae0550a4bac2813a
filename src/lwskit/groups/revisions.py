"""Revisions: what a set's pods are made from, recorded as ControllerRevisions. Pure.

Specification: 20 §3. The data is byte-exact, so that names and keys agree with those of other implementations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from lwskit.api import names
from lwskit.groups import encoding
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError
from lwskit.groups.ownership import revision_key
from lwskit.runtime.kinds import CONTROLLER_REVISION
from lwskit.runtime.objects import Obj, controller_of, controller_reference, uid_of
from lwskit.runtime.typed import DecodeError

LIVE_FIELDS = ("maxGroupRestarts", "restartBackoff")
"""Fields of the template that no revision records: changing them starts no rollout (specification: 20 §3.1)."""

_RECORDED = ("leaderWorkerTemplate", "networkConfig")
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
_OFFSET, _PRIME, _MASK = 2166136261, 16777619, 0xFFFFFFFF


def canonical(value: object) -> str:
    """JSON as revisions are hashed: sorted keys, no spaces, `<`, `>`, `&` and line separators escaped, the rest raw."""
    try:
        known = orjson.dumps(value)
    except TypeError:
        # Numbers beyond 64 bits, or text that is no Unicode: rare enough to be written every time.
        return compact(value, sort_keys=True)
    return _canonical_again(known)


def compact(value: object, sort_keys: bool = False) -> str:
    """JSON in the same spelling, the keys in their order or sorted."""
    text = json.dumps(value, sort_keys=sort_keys, separators=(",", ":"), ensure_ascii=False)
    return text.translate(_ESCAPES)


@lru_cache(maxsize=256)
def _canonical_again(known: bytes) -> str:
    return compact(json.loads(known), sort_keys=True)


def record(lws: Mapping[str, Any]) -> Obj:
    """What a revision of the set as it is now records: shared, so not to be changed.

    Raises DecisionError for a template that has no such form.
    """
    spec = lws["spec"]
    parts = {name: spec[name] for name in _RECORDED if name in spec}
    try:
        known = orjson.dumps(parts)
    except TypeError:
        return _record(parts)
    return _record_again(known)


@lru_cache(maxsize=256)
def _record_again(known: bytes) -> Obj:
    """The template of a set is the same in nearly all decisions about it."""
    return _record(json.loads(known))


def _record(spec: Mapping[str, Any]) -> Obj:
    try:
        template = encoding.leader_worker_template(spec)
        network = encoding.network_config(spec)
    except DecodeError as error:
        raise DecisionError(f"the template cannot be recorded: {error}") from error
    kept = {name: value for name, value in template.items() if name not in LIVE_FIELDS}
    return {
        "spec": {
            "leaderWorkerTemplate": {**kept, "$patch": "replace"},
            "networkConfig": {**network, "$patch": "replace"},
        }
    }


def fnv1(data: bytes) -> int:
    """The 32-bit FNV-1 hash: multiply, then xor."""
    value = _OFFSET
    for byte in data:
        value = (value * _PRIME & _MASK) ^ byte
    return value


def safe(number: int) -> str:
    """A number in letters and digits that spell no words: each decimal digit replaced by another character."""
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(number))


def hash_of(data: Obj) -> str:
    """The hash of recorded data, which is also its key unless another was given."""
    return safe(fnv1(canonical(data).encode()))


def own(lws: Mapping[str, Any], found: Iterable[Obj]) -> list[Obj]:
    """Those revisions that belong to this set or to nobody; leftovers of another set of its name are not its own."""
    mine = []
    for revision in found:
        owner = controller_of(revision)
        if owner is None or owner["uid"] == uid_of(lws):
            mine.append(revision)
    return mine


def number_of(revision: Mapping[str, Any]) -> int:
    """The revision's number."""
    return revision.get("revision", 0)


def choose(mine: Sequence[Obj], key: str) -> Obj | None:
    """The revision with that key; of several, the one with the highest number."""
    return max((r for r in mine if revision_key(r) == key), key=number_of, default=None)


def recorded_as(mine: Sequence[Obj], data: Obj) -> Obj | None:
    """The revision that recorded exactly this data under its own hash; of several, that with the highest number."""
    text = canonical(data)
    same = [r for r in mine if canonical(r.get("data")) == text and revision_key(r) == hash_of(data)]
    return max(same, key=number_of, default=None)


def new_revision(lws: Mapping[str, Any], mine: Sequence[Obj], data: Obj, key: str = "") -> Obj:
    """The ControllerRevision to create for recorded data, numbered after all of `mine`; its key is its hash unless
    another is given."""
    digest = hash_of(data)
    number = 1 + max((number_of(r) for r in mine), default=0)
    name = lws["metadata"]["name"]
    prefix = name.encode()[: names.MAX_REVISION_PREFIX].decode(errors="ignore")
    return {
        "apiVersion": CONTROLLER_REVISION.api_version,
        "kind": CONTROLLER_REVISION.kind,
        "metadata": {
            "name": f"{prefix}-{digest}-{number}",
            "namespace": lws["metadata"].get("namespace", ""),
            "labels": {names.NAME_LABEL: name, names.REVISION_LABEL: key or digest},
            "ownerReferences": [controller_reference(lws, LEADER_WORKER_SET)],
        },
        "data": data,
        "revision": number,
    }


def with_revision(lws: Obj, revision: Mapping[str, Any]) -> Obj:
    """The set as it was when the revision was made: its template and network configuration; all else stays live."""
    recorded = (revision.get("data") or {}).get("spec") or {}
    live = lws["spec"]
    spec = dict(live)
    if recorded.get("leaderWorkerTemplate") is not None:
        old = {n: v for n, v in recorded["leaderWorkerTemplate"].items() if n != "$patch" and n not in LIVE_FIELDS}
        kept = {n: v for n, v in live["leaderWorkerTemplate"].items() if n in LIVE_FIELDS}
        spec["leaderWorkerTemplate"] = old | kept
    if recorded.get("networkConfig") is not None:
        spec["networkConfig"] = {n: v for n, v in recorded["networkConfig"].items() if n != "$patch"}
    return {**lws, "spec": spec}


def says_the_same(revision: Mapping[str, Any], data: Obj) -> bool:
    """Whether a revision records this data, byte by byte or in the way it would be written today.

    A later version may write the same template differently; that must not restart anything.
    """
    text = canonical(data)
    stored = canonical(revision.get("data"))
    return stored == text or _as_written_today(stored) == text


@lru_cache(maxsize=1024)
def _as_written_today(stored: str) -> str | None:
    """Recorded data decoded and encoded again, None if it cannot be read."""
    try:
        recorded = json.loads(stored)
        return canonical(record(with_revision({"spec": {"leaderWorkerTemplate": {}}}, {"data": recorded})))
    except (DecisionError, ValueError, KeyError, TypeError, AttributeError):
        return None


def superseded(mine: Sequence[Obj], key: str) -> list[Obj]:
    """What a finished rollout leaves behind: every revision with another key than the current one."""
    return [r for r in mine if revision_key(r) != key]
