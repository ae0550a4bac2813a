"""The roles of a DisaggregatedSet as its rules read them: whatever is written there, and what has a wrong type once.

Specification: 50 §1.1, §11.1, §19.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lwskit.api import disaggregated_names as names
from lwskit.api.names import DEFAULT_SIZE, INT32_MAX
from lwskit.api.validation.errors import FieldError
from lwskit.api.validation.reading import Reader


@dataclass(frozen=True, slots=True)
class SubRole:
    """A sub-role: `replicas` as it is written, None if it is not."""

    reader: Reader
    name: str
    is_external: bool
    replicas: int | None

    @property
    def counted(self) -> int:
        """Groups that the rules count: 1 where the set does not say it."""
        return 1 if self.is_external or self.replicas is None else self.replicas


@dataclass(frozen=True, slots=True)
class Role:
    """A role: `written` are its own replicas as they are written, None if they are not."""

    reader: Reader
    name: str
    is_external: bool
    written: int | None
    size: int
    subroles: Sequence[SubRole]
    metadata: Reader
    spec: Reader
    template: Reader
    strategy: Reader
    pace: Reader

    @property
    def replicas(self) -> int | None:
        """Groups that the rules count: those of the sub-roles together, else those written; None if nothing is."""
        if not self.subroles:
            return self.written
        return min(INT32_MAX, sum(sub.counted for sub in self.subroles))

    def templates(self) -> Sequence[Reader]:
        """The metadata of its pod templates: worker, then leader."""
        return [self.template.child(name).child("metadata") for name in ("workerTemplate", "leaderTemplate")]


def roles_of(spec: Reader) -> Sequence[Role]:
    """The roles of a DisaggregatedSet's spec, no more than it may have; what has a wrong type goes to its errors."""
    found = spec.items("roles")[: names.MAX_ROLES]
    return [_role(value, f"{spec.at('roles')}[{index}]", spec.errors) for index, value in enumerate(found)]


def _role(value: Any, path: str, errors: list[FieldError]) -> Role:
    reader = Reader(value, path, errors)
    spec = reader.child("spec")
    template, strategy = spec.child("leaderWorkerTemplate"), spec.child("rolloutStrategy")
    size = template.integer("size")
    subroles = reader.items("subRoles")[: names.MAX_SUBROLES]
    return Role(
        reader,
        reader.text("name"),
        _is_external(reader),
        spec.integer("replicas"),
        DEFAULT_SIZE if size is None else size,
        [_subrole(sub, f"{reader.at('subRoles')}[{index}]", errors) for index, sub in enumerate(subroles)],
        reader.child("metadata"),
        spec,
        template,
        strategy,
        strategy.child("rollingUpdateConfiguration"),
    )


def _subrole(value: Any, path: str, errors: list[FieldError]) -> SubRole:
    reader = Reader(value, path, errors)
    return SubRole(reader, reader.text("name"), _is_external(reader), reader.integer("replicas"))


def _is_external(reader: Reader) -> bool:
    return reader.child("scaling").text("mode") == names.SCALING_EXTERNAL
