"""What is left in a namespace that is being deleted, as the conditions that say so. Pure.

Source: Kubernetes API reference, NamespaceCondition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj

_FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@dataclass(slots=True)
class Content:
    """What one pass over a namespace has found: objects left by kind, finalizers that hold them, and failures."""

    remaining: Counter[Kind] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def count(self, kind: Kind, objects: Sequence[Mapping[str, Any]]) -> None:
        """Add what is left of a kind."""
        if objects:
            self.remaining[kind] += len(objects)
        for obj in objects:
            self.finalizers.update(obj["metadata"].get("finalizers") or ())

    def conditions(self, old: Sequence[Obj], now: str) -> list[Obj]:
        """The namespace's conditions after this pass; `now` is the time of those whose status changes."""
        found = {c["type"]: c for c in old}
        for kind, (reason, message) in (_FINE | self._problems()).items():
            status = "False" if (reason, message) == _FINE[kind] else "True"
            before = found.get(kind, {})
            moment = before.get("lastTransitionTime", now) if before.get("status") == status else now
            found[kind] = {
                "type": kind,
                "status": status,
                "lastTransitionTime": moment,
                "reason": reason,
                "message": message,
            }
        return list(found.values())

    def _problems(self) -> dict[str, tuple[str, str]]:
        problems: dict[str, tuple[str, str]] = {}
        if self.failures:
            text = f"Failed to delete all resource types, {len(self.failures)} remaining: "
            problems["NamespaceDeletionContentFailure"] = (
                "ContentDeletionFailed",
                text + ", ".join(sorted(self.failures)),
            )
        if self.remaining:
            left = sorted(f"{k.plural}.{k.group} has {n} resource instances" for k, n in self.remaining.items())
            problems["NamespaceContentRemaining"] = (
                "SomeResourcesRemain",
                f"Some resources are remaining: {', '.join(left)}",
            )
        if self.finalizers:
            holding = sorted(f"{f} in {n} resource instances" for f, n in self.finalizers.items())
            problems["NamespaceFinalizersRemaining"] = (
                "SomeFinalizersRemain",
                f"Some content in the namespace has finalizers remaining: {', '.join(holding)}",
            )
        return problems
