"""StatefulSets as they are played side by side."""

from __future__ import annotations

import random
from typing import Any

from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.kinds import CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj
from tests.differential.side_by_side.mirror import Place
from tests.differential.statefulsets.foretold import Foretold
from tests.differential.statefulsets.moves import ANY, LEADERS, Moves
from tests.differential.statefulsets.state import state
from tests.differential.statefulsets.writes import Write, make_boss, send, told


class StatefulSets:
    """One StatefulSet; `only` is the kind of sets that all seeds play."""

    kinds = (STATEFUL_SET, POD, CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM)
    rests = 0.0

    def __init__(self, only: str = "") -> None:
        self._only = only

    def profile(self, seed: int) -> str:
        """Every third set is as lwskit makes them for leaders."""
        return self._only or (LEADERS if seed % 3 == 0 else ANY)

    def place(self) -> Place:
        """A namespace in which nothing was seen yet."""
        return Place(self.kinds)

    def moves(self, rng: random.Random, profile: str) -> Moves:
        """A source of moves."""
        return Moves(rng, profile)

    async def begin(self, client: Client, namespace: str, clock: Clock) -> str:
        """Make the ConfigMap that claims may belong to; its UID."""
        return await make_boss(client, namespace)

    async def send(
        self, client: Client, namespace: str, write: Write, clock: Clock, given: str, place: Place
    ) -> tuple[str, Obj | None]:
        """Send one request."""
        return await send(client, namespace, write, clock, given)

    def witness(self, place: Place, clock: Clock) -> Foretold:
        """lwskit's forecast of the next move."""
        return Foretold(place)

    def state(self, place: Place, given: str) -> dict[str, Any]:
        """The namespace in comparable form."""
        return state(place)

    def told(self, write: Write) -> str:
        """A request in one line."""
        return told(write)
