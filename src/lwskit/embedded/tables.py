"""Tables for kubectl."""

from __future__ import annotations

from lwskit.embedded.codec import Codec
from lwskit.embedded.formats import Objects
from lwskit.embedded.resources import Resource
from lwskit.runtime.clock import Clock


class Tables(Objects):
    """Objects as rows."""

    def __init__(self, resource: Resource, codec: Codec, clock: Clock, include: str) -> None:
        super().__init__(resource, codec)
