"""Compares the embedded API server with a real one.

python -m tests.differential --server URL --token TOKEN [--faults] [--rules] [--seed N] [--steps M] [--sequences K]
                             [--seconds S]

With --faults each fault that is known of pods, claims and metadata (faults.py) is sent, too, in a request of its own;
with --rules what single expressions are, and what is said of rules that cannot be used (rules/).
Each sequence has its own seed, counted from --seed. Where the servers part, the sequence is made short and printed; its
seed plays it again. With --keep FILE what was found is added to a file of recordings, with the real server's answers;
with --record FILE whole sequences are in which the servers agree. --again FILE… records the sequences of such files
anew, for another version of the real server or after a change of what is compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import ssl
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lwskit.runtime.client.http import HttpTransport
from tests.differential import faults
from tests.differential.compare import Difference, Pair, Run, shortest
from tests.differential.generate import Generator
from tests.differential.recording import as_recording, load, save
from tests.differential.rules import expressions
from tests.differential.steps import Step

SHOWN = 20
"""How many lines of a difference are printed."""


def transport(server: str, token: str) -> HttpTransport:
    """A transport to a real server whose certificate is not checked: it is one of this machine."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return HttpTransport(server, tls=context, token=lambda _: token)


def sequence(seed: int, steps: int, kinds: list[str]) -> list[Step]:
    """The steps of a seed."""
    return Generator(random.Random(seed), kinds).steps(steps)


async def minimised(pair: Pair, run: Run, found: Difference) -> Run:
    """The shortest run that parts as `run` did in `found`."""
    steps = list(run.steps)
    best = run
    if found.step is not None:
        steps = steps[: found.step + 1]
        same = [s for s in steps if s.get("look") == steps[-1].get("look")]
        steps = same if (await pair.run(same, with_events=False)).difference else steps

    async def fails(candidate: Sequence[Step]) -> bool:
        nonlocal best
        tried = await pair.run(candidate, with_events=found.step is None)
        if tried.difference is None or (tried.difference.step is None) != (found.step is None):
            return False
        best = tried
        return True

    await fails(steps)
    await shortest(steps, fails)
    return best


def shown(run: Run, seed: int, original: int | None) -> str:
    """A failing run for a person."""
    assert run.difference is not None
    place = "the watch events" if original is None else f"step {original}"
    lines = [f"--- seed {seed}: the servers part at {place}; in short, {len(run.steps)} steps:"]
    lines += [f"  {json.dumps(s)}" for s in run.steps]
    found = run.difference.lines
    # Where the one refuses and the other does not, every part of the answer differs: the refusal says enough.
    if any(line.startswith("answer.code:") for line in found):
        found = [line for line in found if line.startswith(("answer.code:", "answer.body.message:", "answer.text:"))]
    lines += [f"  embedded | real at {run.difference.step}: {line}" for line in found[:SHOWN]]
    return "\n".join(lines)


async def record_again(pair: Pair, file: Path) -> None:
    """Write the real server's answers of now into a file of recordings."""
    found = []
    for one in load(file):
        run = await pair.run([e["step"] for e in one["steps"]], with_events=bool(one["events"]), go_on=True)
        found.append(as_recording(run, one["about"]))
        for difference in run.differences:
            print(f"{file.name}: {one['about'][:60]}: {difference.lines[0][:300]}")
    save(file, found)


async def play_faults(pair: Pair, steps: list[Step]) -> list[Run]:
    """The requests with one fault each, in runs of their own where the servers part, and one of all the others."""
    run = await pair.run(steps, with_events=False, go_on=True)
    parted = {d.step: d for d in run.differences if d.step is not None}
    alike = Run([], [])
    runs = [alike]
    for number, (step, recorded) in enumerate(zip(run.steps, run.recorded, strict=True)):
        if number in parted:
            runs.append(Run([step], [recorded], differences=[Difference(0, parted[number].lines)]))
        elif recorded["answer"]["code"] >= 400:
            alike.steps = [*alike.steps, step]
            alike.recorded.append(recorded)
    return runs


async def main(arguments: argparse.Namespace) -> int:
    """Run the sequences; 1 if the servers parted."""
    real = transport(arguments.server, arguments.token)
    pair = Pair(real, f"d{arguments.seed}-{int(time.time())}")
    await pair.prepare()
    for file in arguments.again:
        await record_again(pair, file)
    started, total, failed = time.monotonic(), 0, 0
    seen: Counter[str] = Counter()
    kept: list[dict[str, Any]] = []
    agreed: list[dict[str, Any]] = []
    seed = arguments.seed
    single = [("faults that are refused, one by one", faults.steps)] if arguments.faults else []
    single += [("expressions, and rules that are refused", expressions.steps)] if arguments.rules else []
    for about, made in single:
        alike, *parted = await play_faults(pair, list(made()))
        total += len(alike.steps) + len(parted)
        agreed.append(as_recording(alike, about))
        for run in parted:
            failed += 1
            seen[run.differences[0].signature] += 1
            print(shown(run, 0, 0), flush=True)
            kept.append(as_recording(run, run.differences[0].lines[0]))
    while seed < arguments.seed + arguments.sequences:
        if arguments.seconds and time.monotonic() - started > arguments.seconds:
            break
        run = await pair.run(sequence(seed, arguments.steps, arguments.kinds), go_on=arguments.go_on)
        total += len(run.recorded)
        failed += bool(run.differences)
        for found in run.differences:
            seen[found.signature] += 1
            if seen[found.signature] <= arguments.repeat and not arguments.count:
                short = run if arguments.whole else await minimised(pair, run, found)
                print(shown(short, seed, found.step), flush=True)
                print(
                    f"again: python -m tools.lanes differential --seed {seed} --steps {arguments.steps} --sequences 1"
                )
                kept.append(as_recording(short, found.lines[0]))
        if not run.differences:
            agreed.append(as_recording(run, f"a sequence of seed {seed}"))
        seed += 1
    if arguments.count:
        for signature, number in seen.most_common():
            print(f"{number:5} {signature}")
    for file, found in ((arguments.keep, kept), (arguments.record, agreed)):
        if file:
            save(file, [*(load(file) if file.exists() else []), *found])
    done = seed - arguments.seed
    print(
        f"{done} sequences, {total} steps, {failed} with {seen.total()} differences, {time.monotonic() - started:.0f} s"
    )
    await real.close()
    return 1 if failed else 0


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--sequences", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--faults", action="store_true", help="send each known fault by itself, too")
    parser.add_argument("--rules", action="store_true", help="send the expressions and the rules of CRDs, too")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=[])
    parser.add_argument("--repeat", type=int, default=1, help="how often an equal difference is shown")
    parser.add_argument("--go-on", action="store_true", help="play on after a difference, without its object")
    parser.add_argument("--count", action="store_true", help="list the differences by how often they came")
    parser.add_argument("--whole", action="store_true", help="do not make failing sequences short")
    parser.add_argument("--again", type=Path, nargs="*", default=[], help="files of recordings to record anew")
    parser.add_argument("--keep", type=Path, help="file of recordings to add the differences to")
    parser.add_argument("--record", type=Path, help="file of recordings to add sequences without differences to")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(parse(sys.argv[1:]))))
