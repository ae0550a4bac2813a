"""Asks every webhook a great many odd things: none may be answered with 500 or take more than 100 ms.

python -m tests.fuzz.reviews [--count 100000] [--seed 1] [--only NUMBER]

Prints what it was asked with when an answer is wrong, and how to ask it again.
"""

from __future__ import annotations

import argparse
import base64
import copy
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from lwskit.admission.webhooks import handlers
from lwskit.api import names
from lwskit.api.validation import SchedulingSupport
from lwskit.embedded.patch import json_patch
from lwskit.runtime.webhook import Handler, review
from tests.bench.rounds import collector
from tests.fuzz import generate, hostile
from tests.fuzz.generate import Asked

SLOWEST = 0.1
"""Seconds that an answer may take."""
CODES = frozenset((200, 400, 403, 413, 422))
LISTED = 3_000_000
"""Bytes of an answer about a small pod: the hosts of its group are listed in every container for accelerators."""
LARGE_EVERY = 1000
"""Among so many generated reviews is a large one."""


def answerers(seed: int) -> list[Mapping[str, Handler]]:
    """The webhooks of managers without gang scheduling, and with each provider of it."""
    supports = [SchedulingSupport()]
    supports += [SchedulingSupport(gate=True, provider=provider) for provider in (*names.SCHEDULER_PROVIDERS, None)]
    return [handlers(random.Random(seed), support=support) for support in supports]


@dataclass
class Tally:
    """What was answered."""

    asked: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    slowest_name: str = ""
    faults: int = 0
    undecodable: int = 0
    """Reviews that take too long because decoding them does."""

    def __str__(self) -> str:
        codes = ", ".join(f"{count} × {what}" for what, count in sorted(self.outcomes.items()))
        return (
            f"{self.asked} reviews: {codes}; slowest {self.slowest * 1000:.1f} ms ({self.slowest_name}); "
            f"{self.undecodable} for which decoding alone takes half of more than {SLOWEST * 1000:g} ms; "
            f"{self.faults} faults"
        )


def seconds_of(handler: Handler, asked: Asked) -> tuple[float, bytes, list[str]]:
    """How long an answer takes in processor time, the answer, and the exceptions in it."""
    panics: list[str] = []
    began = time.process_time()
    status, answer = review(handler, asked.body, asked.content_type, lambda: panics.append("exception"))
    took = time.process_time() - began
    return took, answer, [*panics, *([] if status == 200 else [f"HTTP status {status}"])]


def decoding(asked: Asked) -> float:
    """Seconds of processor time that orjson needs for a body."""
    began = time.process_time()
    decoded = orjson.loads(asked.body)
    took = time.process_time() - began
    del decoded
    return took


def faults_of(handler: Handler, asked: Asked, answer: bytes) -> Iterator[str]:
    """What is wrong with an answer, apart from its time."""
    response = orjson.loads(answer)["response"]
    status = response["status"]
    if status["code"] not in CODES:
        yield f"code {status['code']}: {status.get('message')}"
    if response["allowed"] != (status["code"] == 200):
        yield f"allowed is {response['allowed']} with code {status['code']}"
    if not response["allowed"] and not status.get("message"):
        yield "a no without a reason"
    if len(answer) > 4 * len(asked.body) + LISTED:
        yield f"an answer of {len(answer)} bytes to {len(asked.body)}"
    if "uid" in response and response["uid"] != (orjson.loads(asked.body)["request"].get("uid") or ""):
        yield "the uid is not that of the request"
    if "patch" in response:
        request = orjson.loads(asked.body)["request"]
        patch = orjson.loads(base64.b64decode(response["patch"]))
        made = json_patch(request["object"], copy.deepcopy(patch))
        again = handler({**request, "object": made})
        if _became_leader(patch):
            return
        if not again.get("allowed") or again.get("patch"):
            yield f"patched and asked again, it answers {str(again)[:300]}"


def _became_leader(patch: list[dict[str, Any]]) -> bool:
    """Whether a pod was taken for the worker 0, which no workload makes: asked again it is a leader."""
    index = names.WORKER_INDEX_LABEL.replace("/", "~1")
    return any(o["path"].endswith(index) and o.get("value") == names.LEADER_INDEX for o in patch) or any(
        isinstance(o.get("value"), dict) and o["value"].get(names.WORKER_INDEX_LABEL) == names.LEADER_INDEX
        for o in patch
    )


def outcome(answer: bytes) -> str:
    """The kind of an answer, for the tally."""
    response: dict[str, Any] = orjson.loads(answer)["response"]
    if response["allowed"]:
        return "patched" if "patch" in response else "allowed"
    code = response["status"]["code"]
    return {403: "denied", 400: "bad request", 413: "too large"}.get(code, str(code))


def ask(
    tally: Tally,
    all_handlers: Sequence[Mapping[str, Handler]],
    number: int,
    name: str,
    asked: Asked,
    slowest: float = SLOWEST,
) -> list[str]:
    """Ask once, count it, and return what is wrong.

    A slow answer is asked for three times, and the quickest counts. Where decoding alone takes half of that, it is
    only counted: a megabyte of brackets is a million objects for orjson.
    """
    handler = all_handlers[number % len(all_handlers)][asked.path]
    took, answer, faults = seconds_of(handler, asked)
    for _ in range(2):
        if took > slowest:
            took = min(took, seconds_of(handler, asked)[0])
    if not faults:
        faults = list(faults_of(handler, asked, answer))
    if took > slowest:
        if took < 2 * min(decoding(asked) for _ in range(3)):
            tally.undecodable += 1
        else:
            faults.append(f"took {took * 1000:.0f} ms")
    tally.asked += 1
    tally.outcomes[outcome(answer)] += 1
    tally.faults += bool(faults)
    if took > tally.slowest:
        tally.slowest, tally.slowest_name = took, name
    return faults


def run(count: int, seed: int, only: int | None = None) -> Tally:
    """Ask `count` generated reviews of a seed, and the large ones in between; print what is wrong."""
    tally, found, large = Tally(), answerers(seed), hostile.cases()
    with collector():
        for number in range(count) if only is None else (only,):
            asked = generate.review(seed, number)
            if faults := ask(tally, found, number, f"number {number}", asked):
                print(f"--seed {seed} --only {number}: {asked.path}: {'; '.join(faults)}", file=sys.stderr)
            if only is not None:
                print(asked.content_type, asked.body[:20_000].decode(errors="backslashreplace"))
            elif number % LARGE_EVERY == 0:
                name = [*large][number // LARGE_EVERY % len(large)]
                if faults := ask(tally, found, 0, name, large[name]()):
                    print(f"large: {name}: {'; '.join(faults)}", file=sys.stderr)
    return tally


def main(argv: Sequence[str]) -> int:
    """Run and print the tally; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.reviews", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="ask one review and print it")
    options = parser.parse_args(argv)
    tally = run(options.count, options.seed, options.only)
    print(tally)
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
