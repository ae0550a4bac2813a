"""What a change of a set does to its groups: what is made anew, what waits, what cannot be. Pure.

Specification: 20 §3, §5, §10.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lwskit.api import names
from lwskit.groups import revisions, spec
from lwskit.groups.model import DecisionError
from lwskit.groups.templates import claims
from lwskit.lint.findings import AT_NEXT_RESTART, CLAIMS_IMMUTABLE, GROUPS_REMOVED, ROLLS_GROUPS, Fault
from lwskit.lint.rules.paths import TEMPLATE
from lwskit.runtime.objects import Obj, annotations_of, labels_of

_SHOWN: Final = 5
"""Fields that a message names."""
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_TOPOLOGIES: Final = (names.EXCLUSIVE_TOPOLOGY_ANNOTATION, names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION)
_READ_BY_CONTROLLER: Final = frozenset({*_TOPOLOGIES, names.RECREATE_AFTER_START_ANNOTATION, _LAST_APPLIED})


def applied(written: Obj, old: Obj) -> Obj:
    """The manifest as it is with what the set has already: replicas that it leaves out stay as they are."""
    inner = written.get("spec")
    if not isinstance(inner, dict) or "replicas" in inner:
        return written
    return {**written, "spec": {**inner, "replicas": spec.replicas(old)}}


def check(old: Obj, new: Obj) -> Iterator[Fault]:
    """What follows from storing `new` in place of `old`, both with their defaults."""
    yield from _startup(old, new)
    if _claims(old) != _claims(new):
        # Nothing else of the change happens either, so nothing else is told of it.
        text = (
            "StatefulSets refuse another list of volume claim templates: the change never reaches any group, and "
            "every later one, scaling included, is stuck until this is taken back"
        )
        hint = "undo it, or delete the set and create it anew"
        yield Fault(CLAIMS_IMMUTABLE, f"{TEMPLATE}.volumeClaimTemplates", text, hint)
        return
    yield from _rolls(old, new)
    yield from _waits(old, new)
    fewer = spec.replicas(new)
    if fewer < spec.replicas(old):
        gone = spec.replicas(old) - fewer
        which = "1 group is" if gone == 1 else f"{gone} groups are"
        text = f"{which} removed: replicas goes from {spec.replicas(old)} to {fewer}"
        hint = "leave replicas out of the manifest of a set that is scaled by something else"
        yield Fault(GROUPS_REMOVED, "spec.replicas", text, hint)


def _rolls(old: Obj, new: Obj) -> Iterator[Fault]:
    try:
        before, after = revisions.record(old), revisions.record(new)
    except DecisionError:
        return
    causes = list(differences(before, after, ""))
    policy = spec.subgroup_policy(new) is not None
    for key in _TOPOLOGIES if policy else _TOPOLOGIES[:1]:
        if (annotations_of(old).get(key) or "") != (annotations_of(new).get(key) or ""):
            causes.append(f"metadata.annotations[{key}]")
    if not causes:
        return
    total, partition = spec.replicas(new), spec.partition(new)
    rolled = max(0, total - partition)
    if not rolled:
        return
    held = f"; the partition holds {min(partition, total)} back" if partition else ""
    text = f"{rolled} of {total} group{'' if total == 1 else 's'} will be made anew{held}: changed {listed(causes)}"
    yield Fault(ROLLS_GROUPS, causes[0], text)


def listed(fields: Sequence[str]) -> str:
    """A few of these fields, and how many more there are."""
    more = f" and {len(fields) - _SHOWN} more" if len(fields) > _SHOWN else ""
    return ", ".join(fields[:_SHOWN]) + more


def _claims(lws: Obj) -> Sequence[Obj] | None:
    try:
        return claims(lws)
    except KeyError:
        return None


def _has_workers(lws: Obj) -> bool:
    return spec.size(lws) > 1 and spec.replicas(lws) > 0


def _startup(old: Obj, new: Obj) -> Iterator[Fault]:
    if _has_workers(new) and spec.startup_policy(old) != spec.startup_policy(new):
        text = "a changed startupPolicy applies to groups that are made from now on; those that run stay as they are"
        yield Fault(AT_NEXT_RESTART, "spec.startupPolicy", text)


def _waits(old: Obj, new: Obj) -> Iterator[Fault]:
    """What workers get only when they are made."""
    if not _has_workers(new):
        return
    for what, before, after in (
        ("labels", labels_of(old), labels_of(new)),
        ("annotations", annotations_of(old), annotations_of(new)),
    ):
        keys = [k for k in sorted({**before, **after}) if before.get(k) != after.get(k)]
        keys = [k for k in keys if k not in _READ_BY_CONTROLLER]
        if keys:
            text = (
                f"changed {what} of the set ({', '.join(keys)}) reach the leaders' StatefulSet at once, and the "
                "workers' only when their groups are made anew"
            )
            yield Fault(AT_NEXT_RESTART, f"metadata.{what}[{keys[0]}]", text)


def differences(old: Any, new: Any, path: str) -> Iterator[str]:
    """The paths of the innermost parts that differ; of lists of different lengths, that of the list."""
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in [*new, *(n for n in old if n not in new)]:
            yield from differences(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{path}[{index}]")
    else:
        yield path
