"""Compares the StatefulSet controller of the embedded cluster with a real one, and lwskit's forecast with both.

python -m tests.differential.statefulsets --kubeconfig FILE [--seed N] [--steps M] [--sets K] [--at-once J]

Each set has its own seed, counted from --seed. Where the clusters part the moves are made fewer and printed; the seed
plays them again. After --seconds no further set is begun. With --record FILE the sequences in which the clusters agree
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
from tests.differential.statefulsets.mirror import Mirror
from tests.differential.statefulsets.moves import ANY, LEADERS, Move
from tests.differential.statefulsets.play import CROWDED, Parting, Played, Real, play_embedded, replay_embedded
from tests.differential.statefulsets.recording import as_recording, save
from tests.differential.statefulsets.writes import told

SHOWN = 25
"""How many lines of a difference are printed."""


def profile_of(seed: int) -> str:
    """What kind of sets a seed plays."""
    return LEADERS if seed % 3 == 0 else ANY


def shown(seed: int, moves: Sequence[Move], parting: Parting) -> str:
    """A parting for a person."""
    lines = [f"--- seed {seed}: the clusters part at move {parting.step}:"]
    lines += [f"  {i}: {' ; '.join(told(w) for w in move)}" for i, move in enumerate(moves)]
    lines += [f"  embedded | real: {line}" for line in parting.lines[:SHOWN]]
    return "\n".join(lines)


class Run:
    """All sequences of a run, and what came of them."""

    def __init__(self, arguments: argparse.Namespace, real: Real) -> None:
        self.arguments = arguments
        self.real = real
        self.sets = self.moves = self.judged = self.parted = self.unsteady = self.wrong = 0
        self.agreed: list[dict[str, Any]] = []
        self.doubtful: list[tuple[int, list[Played], Parting]] = []

    def foretold(self, seed: int, where: str, moves: Sequence[Move], wrong: Sequence[list[str]]) -> None:
        """Print what the forecast got wrong on one of the clusters, the first time in a sequence."""
        for number, lines in enumerate(wrong):
            if lines:
                self.wrong += 1
                text = "\n".join(f"  {i}: {' ; '.join(told(w) for w in m)}" for i, m in enumerate(moves[: number + 1]))
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
        self.sets += 1
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
            move = " ; ".join(told(w) for w in moves[first.step])
            print(f"seed {seed} parted once, and not again, at move {first.step}: {move}", flush=True)
            print(f"  embedded | real: {first.lines[0]}", flush=True)
            return
        self.parted += 1
        moves = moves[: parting.step + 1]
        if not self.arguments.whole:
            moves, parting = await self.short(moves, parting)
        print(shown(seed, moves, parting), flush=True)

    async def short(self, moves: list[Move], parting: Parting) -> tuple[list[Move], Parting]:
        """Leave out moves as long as the clusters still part."""
        best = parting

        async def fails(candidate: Sequence[Move]) -> bool:
            nonlocal best
            found = (await self.real.compare(await asyncio.to_thread(replay_embedded, list(candidate))))[1]
            if found is not None:
                best = found
            return found is not None

        found = await shortest(moves, fails)
        return list(found), best


async def main(arguments: argparse.Namespace) -> int:
    """Play the sequences; 1 if the clusters parted or the forecast was wrong."""
    began = time.monotonic()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    client = await connect(arguments.kubeconfig, user_agent="lwskit-differential")
    prefix = f"sets{arguments.seed}-{random.Random(began).getrandbits(24):06x}"
    try:
        async with Mirror(client) as mirror:
            run = Run(arguments, Real(client, mirror, prefix))
            slots = asyncio.Semaphore(arguments.at_once)

            async def played(seed: int) -> None:
                async with slots:
                    if arguments.seconds and time.monotonic() - began > arguments.seconds:
                        return
                    expected = await asyncio.to_thread(play_embedded, seed, profile_of(seed), arguments.steps)
                    await run.one(seed, expected)

            async with asyncio.TaskGroup() as group:
                for seed in range(arguments.seed, arguments.seed + arguments.sets):
                    group.create_task(played(seed), name=f"sequence {seed}")
            for doubt in run.doubtful:
                await run.once_more(*doubt)
    finally:
        await client.close()
    if arguments.record:
        save(arguments.record, run.agreed)
    print(
        f"{run.sets} sets, {run.moves} moves alike, {run.parted} sets part, {run.unsteady} did so once;"
        f" {run.judged + run.real.judged} forecasts, wrong in {run.wrong} sets; {time.monotonic() - began:.0f} s"
    )
    return 1 if run.parted or run.wrong else 0


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--at-once", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--record", type=Path, help="file of recordings to write the sequences to")
    parser.add_argument("--whole", action="store_true", help="do not leave out moves of sequences that part")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(parse(sys.argv[1:]))))
