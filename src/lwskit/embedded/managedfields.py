"""Managed fields."""

from __future__ import annotations

from lwskit.embedded.codec import Codec
from lwskit.embedded.resources import Resource
from lwskit.runtime.clock import Clock
from lwskit.runtime.objects import Obj


class FieldManager:
    """Keeps `metadata.managedFields`."""

    def __init__(self, codec: Codec, clock: Clock) -> None:
        self._codec = codec

    def updated(self, resource: Resource, live: Obj | None, new: Obj, manager: str, subresource: str) -> None:
        """Set the managed fields of an object that an update or create made, in place."""
