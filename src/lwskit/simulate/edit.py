"""What an edit of a set is: the fields that it changes, and what those do. Pure.

Specification: 20 §3, §5, §6.8; 10 §5 for what an apply sends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from lwskit.groups import revisions, spec
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import Obj, annotations_of, labels_of

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SERVER_WRITES = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")


class Verdict(Enum):
    """What an edit comes to, the strongest of what its fields do."""

    REFUSED = "refused"
    NOTHING = "nothing"
    METADATA = "metadata only"
    NEXT_RESTART = "applies at the next restart"
    NEXT_ROLLOUT = "applies at the next rollout"
    SCALES = "scales"
    ROLLS = "rolls"
    CREATES = "creates"
    RESTARTS = "restarts"
    """No edit: a group is recreated."""


def applied(live: Obj | None, manifest: Obj) -> Obj:
    """What `kubectl apply` of the manifest sends: the live set with the manifest's fields in it.

    Fields that the last apply had and this one has not are removed, those of others stay; lists are replaced whole.
    """
    wanted = {name: value for name, value in manifest.items() if name != "status"}
    if live is None:
        return wanted
    before: Any = {}
    try:
        before = json.loads(annotations_of(live).get(LAST_APPLIED, "{}"))
    except ValueError:
        # Somebody wrote something else there; then nothing is known to have been applied.
        before = {}
    # Every apply has annotations, if only its own record; so those that it does not name are never removed as a whole.
    meta = wanted["metadata"]
    wanted["metadata"] = {**meta, "annotations": meta.get("annotations") or {}}
    merged = _merged(live, wanted, before if isinstance(before, Mapping) else {})
    if not annotations_of(live) and not annotations_of(wanted):
        del merged["metadata"]["annotations"]
    for name in _SERVER_WRITES:
        if name in live["metadata"]:
            merged["metadata"][name] = live["metadata"][name]
    return merged


def _merged(live: Any, wanted: Any, before: Any) -> Any:
    if not isinstance(live, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    known = before if isinstance(before, Mapping) else {}
    merged = {name: value for name, value in live.items() if name in wanted or name not in known}
    for name, value in wanted.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(live.get(name), value, known.get(name))
    return merged


def differences(old: Obj, new: Obj) -> list[str]:
    """The paths of the spec, labels and annotations that differ, innermost parts."""
    found = list(_differences(old["spec"], new["spec"], "spec"))
    for what, before, after in (
        ("labels", labels_of(old), labels_of(new)),
        ("annotations", annotations_of(old), annotations_of(new)),
    ):
        keys = [k for k in sorted({**before, **after}) if before.get(k) != after.get(k) and k != LAST_APPLIED]
        found += [f"metadata.{what}[{key}]" for key in keys]
    return found


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in [*new, *(n for n in old if n not in new)]:
            yield from _differences(old.get(name), new.get(name), f"{path}.{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _differences(before, after, f"{path}[{index}]")
    else:
        yield path


def new_template(old: Obj, new: Obj) -> bool:
    """Whether the edit makes a new revision."""
    try:
        return revisions.canonical(revisions.record(old)) != revisions.canonical(revisions.record(new))
    except DecisionError:
        return True


def classify(old: Obj | None, new: Obj, changed: list[str], rolled: int) -> Verdict:
    """What an edit comes to; `changed` are its differences, `rolled` how many groups it makes anew."""
    if old is None:
        return Verdict.CREATES
    if not changed:
        return Verdict.NOTHING
    if rolled or new_template(old, new):
        return Verdict.ROLLS
    if spec.replicas(old) != spec.replicas(new):
        return Verdict.SCALES
    if any(path.startswith(("spec.leaderWorkerTemplate", "spec.startupPolicy")) for path in changed):
        return Verdict.NEXT_RESTART
    if any(path.startswith("spec.") for path in changed):
        return Verdict.NEXT_ROLLOUT
    return Verdict.METADATA
