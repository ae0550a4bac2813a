"""Deployments as they are played side by side."""

from __future__ import annotations

import random
from typing import Any

from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock, rfc3339
from lwskit.runtime.objects import Obj
from tests.differential.deployments.moves import ANY, SETTLED, DeploymentMoves
from tests.differential.deployments.ranks import Ranks
from tests.differential.deployments.state import state
from tests.differential.deployments.view import KINDS, View
from tests.differential.deployments.writes import send, told
from tests.differential.side_by_side.game import Write
from tests.differential.side_by_side.mirror import Place


class Deployments:
    """One Deployment with its ReplicaSets and pods."""

    kinds = KINDS
    rests = 1.1
    """No two ReplicaSets are made in one second: what is of one age is sorted by name, which has a hash in it."""

    def profile(self, seed: int) -> str:
        """In every third most pods run, and the order in which they go is tried."""
        return SETTLED if seed % 3 == 0 else ANY

    def place(self) -> Place:
        """A namespace in which nothing was seen yet."""
        return View()

    def moves(self, rng: random.Random, profile: str) -> DeploymentMoves:
        """A source of moves."""
        return DeploymentMoves(rng, profile)

    async def begin(self, client: Client, namespace: str, clock: Clock) -> str:
        """The time at which the sequence begins."""
        return rfc3339(clock.now())

    async def send(
        self, client: Client, namespace: str, write: Write, clock: Clock, given: str, place: Place
    ) -> tuple[str, Obj | None]:
        """Send one request."""
        return await send(client, namespace, write, clock, given, _view(place))

    def witness(self, place: Place, clock: Clock) -> Ranks:
        """The order in which pods are to go."""
        return Ranks(_view(place), clock)

    def state(self, place: Place, given: str) -> dict[str, Any]:
        """The namespace in comparable form."""
        return state(_view(place))

    def told(self, write: Write) -> str:
        """A request in one line."""
        return told(write)


def _view(place: Place) -> View:
    assert isinstance(place, View)
    return place
