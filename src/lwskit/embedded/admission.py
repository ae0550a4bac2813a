"""Admission webhooks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lwskit.embedded.resources import Registry, Resource
from lwskit.embedded.store import Store
from lwskit.runtime.clock import Clock
from lwskit.runtime.objects import Obj


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a webhook is told about a request besides the objects."""

    operation: str
    resource: Resource
    subresource: str
    namespace: str
    name: str
    user: str
    dry_run: bool
    options: Obj
    warnings: list[str] = field(default_factory=list)


Handler = Callable[[dict[str, Any]], dict[str, Any]]


class Admission:
    """Calls the webhooks that the stored configurations name."""

    def __init__(self, store: Store, registry: Registry, clock: Clock) -> None:
        self._store = store

    def register(self, target: str, handler: Handler) -> None:
        """Answer calls to `target` by a function."""

    async def mutate(self, attributes: Attributes, obj: Obj, old: Obj | None) -> Obj:
        """The object after all mutating webhooks; the same object when none changed it."""
        return obj

    async def validate(self, attributes: Attributes, obj: Obj | None, old: Obj | None) -> None:
        """Ask the validating webhooks. Raises the ApiError of a refusal."""
