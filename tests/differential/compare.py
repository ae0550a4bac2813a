"""Plays sequences on both servers and tells where they part; makes a failing sequence short."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.transport import InProcessTransport
from lwskit.runtime.client.transport import HttpRequest, Transport
from lwskit.runtime.clock import RealClock
from tests.differential import widget
from tests.differential.kinds import ALL, Tested
from tests.differential.normal import differences
from tests.differential.rules import expressions, ruled
from tests.differential.session import SENTINEL, Session, SetClock, second
from tests.differential.steps import Step

T = TypeVar("T")

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SELECTED = "tier=a"
"""The selector of the second watch of each collection."""


@dataclass
class Difference:
    """Where the servers part: at a step (None: in the watch events), and in which lines `embedded | real`."""

    step: int | None
    lines: list[str]

    @property
    def signature(self) -> str:
        """What the first line is about, to tell equal defects of different sequences."""
        line = next((e for e in self.lines if ".message: '" in e or ".message: absent" in e), self.lines[0])
        return re.sub(r'"[^"]*"|\d+', "", line)[:160]


@dataclass
class Run:
    """What a sequence gave: for each step its time and what the real server said; the events; the differences."""

    steps: Sequence[Step]
    recorded: list[dict[str, Any]] = field(default_factory=list)
    events: dict[str, list[Any]] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    @property
    def difference(self) -> Difference | None:
        """The first difference."""
        return self.differences[0] if self.differences else None


def collections() -> list[str]:
    """The collections that are watched."""
    return [t.collection for t in ALL.values()]


def last_object(tested: Tested) -> dict[str, Any]:
    """The object whose creation ends a watch; all selectors select it."""
    made = tested.whole(SENTINEL)
    made["metadata"]["labels"] = {"tier": "a"}
    return made


class Pair:
    """Both servers: a real one behind `real`, and an embedded one of its own."""

    def __init__(self, real: Transport, prefix: str) -> None:
        self._real = real
        self._prefix = prefix
        self._count = 0
        self._clock = SetClock(second(RealClock().now()))
        self.server = ApiServer(clock=self._clock, rng=random.Random(1))
        self._embedded = InProcessTransport(self.server)

    async def prepare(self) -> None:
        """Make the custom resource on both servers."""
        await install(self._real)
        await install(self._embedded)

    async def run(self, steps: Sequence[Step], *, with_events: bool = True, go_on: bool = False) -> Run:
        """Play steps in a new namespace until the servers part.

        With `go_on` the object on which they parted is taken away on both and the rest is played too; watch events are
        then not compared.
        """
        self._count += 1
        namespace = f"{self._prefix}-{self._count}"
        real, ours = Session(self._real, namespace), Session(self._embedded, namespace)
        since_real = await real.start((), collections())
        since_ours = await ours.start((), collections())
        run = Run(steps)
        for number, step in enumerate(steps):
            now = second(RealClock().now())
            theirs = await real.play(step)
            self._clock.moment = max(self._clock.moment, real.time(now))
            mine = await ours.play(step)
            run.recorded.append({"time": self._clock.moment.isoformat(), **theirs})
            found = differences(mine, theirs)
            if found:
                run.differences.append(Difference(number, found))
                if not go_on:
                    return run
                for session in (ours, real):
                    await session.forget(step.get("look"))
        if with_events and not run.differences:
            await self._compare_events(run, (ours, since_ours), (real, since_real))
        return run

    async def _compare_events(self, run: Run, *sides: tuple[Session, dict[str, str]]) -> None:
        for tested in ALL.values():
            for session, _ in sides:
                await session.post(tested.collection, last_object(tested))
            for selector in ("", SELECTED):
                found = [await s.events(tested.collection, since[tested.collection], selector) for s, since in sides]
                run.events[f"{tested.collection}?{selector}"] = found[1]
                lines = differences(found[0], found[1])
                if lines and not run.differences:
                    texts = [f"events of {tested.kind} {selector}: {line}" for line in lines]
                    run.differences.append(Difference(None, texts))


async def install(transport: Transport) -> None:
    """Make the custom resources and wait until they are served."""
    headers = {"content-type": "application/json"}
    for crd in (widget.CRD, ruled.CRD, *expressions.crds()):
        made = await transport.send(HttpRequest("POST", CRDS, (), headers, json.dumps(crd).encode()))
        spec = crd["spec"]
        if made.status not in (201, 409):
            raise RuntimeError(f"the custom resource {spec['names']['kind']} is refused: {made.body.decode()[:2000]}")
        path = f"/apis/{spec['group']}/v1/namespaces/default/{spec['names']['plural']}"
        for _ in range(100):
            answer = await transport.send(HttpRequest("GET", path))
            if answer.status == 200:
                break
            await asyncio.sleep(0.1)
        else:
            raise RuntimeError(f"the custom resource {spec['names']['kind']} is not served")


async def shortest(steps: Sequence[T], fails: Callable[[Sequence[T]], Awaitable[bool]]) -> list[T]:
    """A subsequence that still fails and of which no step can be left out (delta debugging)."""
    current = list(steps)
    size = max(1, len(current) // 2)
    while True:
        start, reduced = 0, False
        while start < len(current):
            rest = current[:start] + current[start + size :]
            if rest and await fails(rest):
                current, reduced = rest, True
            else:
                start += size
        if size == 1 and not reduced:
            return current
        size = max(1, size // 2) if not reduced or size > 1 else 1
