"""Plays random sequences on an embedded cluster and on a real one, and says where they part.

Each sequence has its own seed, counted from --seed. Where the clusters part the moves are made fewer and printed; the
seed plays them again. After --seconds no further sequence is begun. With --record FILE those in which they agree
are written to a file of recordings.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog

from lwskit.runtime.client.config import connect
from tests.differential.compare import shortest
from tests.differential.side_by_side.game import Game, Move
from tests.differential.side_by_side.mirror import Mirror
from tests.differential.side_by_side.play import CROWDED, Parting, Played, Real, play_embedded, replay_embedded
from tests.differential.side_by_side.recording import as_recording, save

SHOWN = 25
"""How many lines of a difference are printed."""


def shown(game: Game, seed: int, moves: Sequence[Move], parting: Parting) -> str:
    """A parting for a person."""
    lines = [f"--- seed {seed}: the clusters part at move {parting.step}:"]
    lines += [f"  {i}: {' ; '.join(game.told(w) for w in move)}" for i, move in enumerate(moves)]
    lines += [f"  embedded | real: {line}" for line in parting.lines[:SHOWN]]
    return "\n".join(lines)


class Run:
    """All sequences of a run, and what came of them."""

    def __init__(self, game: Game, arguments: argparse.Namespace, real: Real) -> None:
        self.game = game
        self.arguments = arguments
        self.real = real
        self.sequences = self.moves = self.judged = self.parted = self.unsteady = self.wrong = 0
        self.agreed: list[dict[str, Any]] = []
        self.doubtful: list[tuple[int, list[Played], Parting]] = []

    def foretold(self, seed: int, where: str, moves: Sequence[Move], wrong: Sequence[list[str]]) -> None:
        """Print what the forecast got wrong on one of the clusters, the first time in a sequence."""
        for number, lines in enumerate(wrong):
            if lines:
                self.wrong += 1
                text = "\n".join(
                    f"  {i}: {' ; '.join(self.game.told(w) for w in m)}" for i, m in enumerate(moves[: number + 1])
                )
                said = "\n".join(f"  {line}" for line in lines)
                print(f"--- seed {seed}: the forecast is wrong on the {where} cluster\n{text}\n{said}", flush=True)
                return

    async def one(self, seed: int, expected: list[Played]) -> None:
        """Play one sequence on the real cluster."""
        moves = [p.move for p in expected]
        self.judged += sum(p.judged for p in expected)
        self.foretold(seed, "embedded", moves, [p.wrong for p in expected])
        wrong, parting = await self.real.compare(expected, CROWDED)
        self.moves += len(wrong)
        self.foretold(seed, "real", moves, wrong)
        self.sequences += 1
        if parting is None:
            self.agreed.append(as_recording(seed, expected))
        else:
            self.doubtful.append((seed, expected, parting))

    async def once_more(self, seed: int, expected: list[Played], first: Parting) -> None:
        """Play one that parted while others were played, by itself: it counts if it parts again."""
        moves = [p.move for p in expected]
        wrong, parting = await self.real.compare(expected)
        self.moves += max(0, len(wrong) - first.step)
        self.foretold(seed, "real", moves, wrong)
        if parting is None:
            self.unsteady += 1
            move = " ; ".join(self.game.told(w) for w in moves[first.step])
            print(f"seed {seed} parted once, and not again, at move {first.step}: {move}", flush=True)
            print(f"  embedded | real: {first.lines[0]}", flush=True)
            return
        self.parted += 1
        moves = moves[: parting.step + 1]
        if not self.arguments.whole:
            moves, parting = await self.short(moves, parting)
        print(shown(self.game, seed, moves, parting), flush=True)

    async def short(self, moves: list[Move], parting: Parting) -> tuple[list[Move], Parting]:
        """Leave out moves as long as the clusters still part."""
        best = parting

        async def fails(candidate: Sequence[Move]) -> bool:
            nonlocal best
            found = (await self.real.compare(await asyncio.to_thread(replay_embedded, self.game, list(candidate))))[1]
            if found is not None:
                best = found
            return found is not None

        found = await shortest(moves, fails)
        return list(found), best


async def main(game: Game, arguments: argparse.Namespace) -> int:
    """Play the sequences; 1 if the clusters parted or the forecast was wrong."""
    began = time.monotonic()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    client = await connect(arguments.kubeconfig, user_agent="lwskit-differential")
    prefix = f"played{arguments.seed}-{random.Random(began).getrandbits(24):06x}"
    try:
        async with Mirror(client, game.kinds, game.place) as mirror:
            run = Run(game, arguments, Real(game, client, mirror, prefix))
            slots = asyncio.Semaphore(arguments.at_once)

            async def played(seed: int) -> None:
                async with slots:
                    if arguments.seconds and time.monotonic() - began > arguments.seconds:
                        return
                    expected = await asyncio.to_thread(play_embedded, game, seed, arguments.steps)
                    await run.one(seed, expected)

            async with asyncio.TaskGroup() as group:
                for seed in range(arguments.seed, arguments.seed + arguments.sequences):
                    group.create_task(played(seed), name=f"sequence {seed}")
            for doubt in run.doubtful:
                await run.once_more(*doubt)
    finally:
        await client.close()
    if arguments.record:
        save(arguments.record, run.agreed)
    print(
        f"{run.sequences} sequences, {run.moves} moves alike, {run.parted} part, {run.unsteady} did so once;"
        f" {run.judged + run.real.judged} forecasts, wrong in {run.wrong} sequences; {time.monotonic() - began:.0f} s"
    )
    return 1 if run.parted or run.wrong else 0


def parse(description: str | None, argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--sets", "--sequences", type=int, default=10, dest="sequences")
    parser.add_argument("--at-once", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--record", type=Path, help="file of recordings to write the sequences to")
    parser.add_argument("--whole", action="store_true", help="do not leave out moves of sequences that part")
    return parser.parse_args(argv)


def play(game: Game, description: str | None) -> None:
    """Play as the command line says, and end the program: with 1 if the clusters parted or a forecast was wrong."""
    sys.exit(asyncio.run(main(game, parse(description, sys.argv[1:]))))
