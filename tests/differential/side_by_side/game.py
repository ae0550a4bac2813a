"""What is played side by side on an embedded cluster and a real one: one kind of workload, and what happens to it."""

from __future__ import annotations

import random
from typing import Any, Protocol

from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj
from tests.differential.side_by_side.mirror import Place

Write = dict[str, Any]
"""A request as data, which can be sent to any cluster."""
Move = list[Write]
"""A few requests, after which everything may come to rest."""


class Moves(Protocol):
    """Chooses moves by what is there."""

    def next(self, place: Place) -> list[Move]:
        """The next moves, one after the other."""
        ...


class Witness(Protocol):
    """Holds what something foretells against what a cluster then does, for one move."""

    judged: bool
    """Whether anything was foretold."""

    def wrote(self, write: Write, said: str, obj: Obj | None) -> None:
        """A request of the move was answered."""
        ...

    def wrong(self, place: Place) -> list[str]:
        """What came otherwise."""
        ...


class Game(Protocol):
    """One kind of workload with its moves, and what is compared."""

    kinds: tuple[Kind, ...]
    """What is watched and, when a sequence has ended, taken away, in this order."""
    rests: float
    """Real seconds that a cluster has at least after each move."""

    def profile(self, seed: int) -> str:
        """What kind of sequence a seed plays."""
        ...

    def place(self) -> Place:
        """A namespace in which nothing was seen yet."""
        ...

    def moves(self, rng: random.Random, profile: str) -> Moves:
        """A source of moves."""
        ...

    async def begin(self, client: Client, namespace: str, clock: Clock) -> str:
        """Make what is there from the beginning; what requests then refer to."""
        ...

    async def send(
        self, client: Client, namespace: str, write: Write, clock: Clock, given: str, place: Place
    ) -> tuple[str, Obj | None]:
        """Send one request: `ok` or the reason of the refusal, and the object that was answered."""
        ...

    def witness(self, place: Place, clock: Clock) -> Witness:
        """Somebody who looks at the next move."""
        ...

    def state(self, place: Place, given: str) -> dict[str, Any]:
        """The namespace in comparable form."""
        ...

    def told(self, write: Write) -> str:
        """A request in one line."""
        ...
