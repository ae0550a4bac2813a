"""Plays sequences: first on an embedded cluster in virtual time, then the same requests on a real one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lwskit.embedded.cluster import Cluster
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock, RealClock
from lwskit.runtime.errors import ApiError
from lwskit.runtime.kinds import NAMESPACE
from lwskit.testing.virtual import VirtualClock
from lwskit.testing.virtual import run as run_virtually
from tests.differential.normal import differences
from tests.differential.side_by_side.game import Game, Move, Witness
from tests.differential.side_by_side.mirror import Mirror, Place

REST = 30.0
"""Virtual seconds after a move until the embedded cluster is taken to have come to rest."""
PAUSE = 0.2
"""Seconds between two requests of a move."""
PATIENCE = 10.0
"""Real seconds until the real cluster is taken not to come to the same."""
CROWDED = 30.0
"""The same while many sequences are played at a time."""
CLEARINGS = 5
"""How often what is left of a sequence is taken away."""
QUIET = 0.3
"""Real seconds for which it has to stay so."""


@dataclass
class Played:
    """What a move led to: answers, the namespace afterwards, and what the forecast said wrongly."""

    move: Move
    answers: list[str]
    state: dict[str, Any]
    wrong: list[str] = field(default_factory=list)
    judged: bool = False
    """Whether a forecast was made for it."""


@dataclass
class Parting:
    """Where the clusters part, in lines `embedded | real`."""

    step: int
    lines: list[str]


async def _do(
    game: Game, client: Client, namespace: str, move: Move, clock: Clock, given: str, place: Place, witness: Witness
) -> list[str]:
    answers = []
    for number, write in enumerate(move):
        if number:
            # What the one before has brought about is to be seen by then.
            await asyncio.sleep(PAUSE)
        said, obj = await game.send(client, namespace, write, clock, given, place)
        answers.append(said)
        witness.wrote(write, said, obj)
    return answers


async def _embedded(game: Game, given: Sequence[Move] | None, seed: int, steps: int) -> list[Played]:
    clock = VirtualClock()
    moves = game.moves(random.Random(seed), game.profile(seed))
    played: list[Played] = []
    async with Cluster(clock, random.Random(1), nodes=0, without={"scheduler", "kubelet"}) as cluster:
        client = cluster.client_for("player")
        await client.create(NAMESPACE, {"metadata": {"name": "test"}})
        start = await game.begin(client, "test", clock)
        async with Mirror(client, game.kinds, game.place) as mirror:
            place = mirror.place("test")
            waiting = list(given or ())
            while waiting or (given is None and len(played) < steps):
                if not waiting:
                    waiting = moves.next(place)
                move = waiting.pop(0)
                place.turn()
                witness = game.witness(place, clock)
                answers = await _do(game, client, "test", move, clock, start, place, witness)
                await asyncio.sleep(REST)
                mirror.place("test")
                wrong = witness.wrong(place)
                played.append(Played(move, answers, game.state(place, start), wrong, witness.judged))
    return played


def play_embedded(game: Game, seed: int, steps: int) -> list[Played]:
    """Play random moves on an embedded cluster."""
    return run_virtually(_embedded(game, None, seed, steps))


def replay_embedded(game: Game, moves: Sequence[Move]) -> list[Played]:
    """Play these moves on an embedded cluster."""
    return run_virtually(_embedded(game, moves, 0, 0))


class Real:
    """A real cluster that moves are played on, many sequences at a time."""

    def __init__(self, game: Game, client: Client, mirror: Mirror, prefix: str) -> None:
        self._game = game
        self._client = client
        self._mirror = mirror
        self._prefix = prefix
        self._count = 0
        self._clock = RealClock()
        self.judged = 0

    async def compare(
        self, expected: Sequence[Played], patience: float = PATIENCE
    ) -> tuple[list[list[str]], Parting | None]:
        """Play what was played on the embedded cluster, until it parts; for each step what the forecast got wrong.

        `patience` is in seconds; `judged` counts the forecasts.
        """
        self._count += 1
        namespace = f"{self._prefix}-{self._count}"
        await self._client.create(NAMESPACE, {"metadata": {"name": namespace}})
        try:
            given = await self._game.begin(self._client, namespace, self._clock)
            place = self._mirror.place(namespace)
            wrong: list[list[str]] = []
            for number, step in enumerate(expected):
                place.turn()
                witness = self._game.witness(place, self._clock)
                over = asyncio.get_running_loop().time() + self._game.rests
                answers = await _do(self._game, self._client, namespace, step.move, self._clock, given, place, witness)
                lines = differences(step.answers, answers, "answers")
                lines = lines or await self._reached(namespace, place, given, step.state, patience)
                await asyncio.sleep(max(0.0, over - asyncio.get_running_loop().time()))
                if lines:
                    return wrong, Parting(number, lines)
                wrong.append(witness.wrong(place))
                self.judged += witness.judged
            return wrong, None
        finally:
            await self._clear(namespace)

    async def _clear(self, namespace: str) -> None:
        """Leave nothing behind that a controller would try again for ever."""
        place = self._mirror.place(namespace)
        for _ in range(CLEARINGS):
            for kind in self._game.kinds:
                for name in list(place.of(kind)):
                    with suppress(ApiError):
                        await self._client.delete(kind, name, namespace, propagation="Orphan", grace_seconds=0)
                    with suppress(ApiError):
                        await self._client.patch(kind, name, {"metadata": {"finalizers": None}}, namespace)
            await asyncio.sleep(QUIET)
            if not any(place.objects.values()):
                break
        await self._client.delete(NAMESPACE, namespace)

    async def _reached(
        self, namespace: str, place: Place, given: str, wanted: dict[str, Any], patience: float
    ) -> list[str]:
        """Wait until the namespace is as wanted, and for a while stays so; the differences if it does not."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        since: float | None = None
        found: list[str] = []
        while True:
            now = loop.time()
            self._mirror.place(namespace)
            place.changed.clear()
            found = differences(wanted, self._game.state(place, given))
            if found:
                since = None
            elif since is None:
                since = now
            elif now - since >= QUIET:
                return []
            if found and now >= deadline:
                return found
            left = QUIET if since is not None else deadline - now
            try:
                await asyncio.wait_for(place.changed.wait(), max(0.01, min(left, 1.0)))
            except TimeoutError:
                pass
