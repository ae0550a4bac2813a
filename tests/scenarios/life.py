"""What random lives of sets share: managers that come, go and die, webhooks, disturbances, and a log of the steps."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial

from lwskit.embedded.webhook_call import CallError
from lwskit.manager import inprocess, undertest
from lwskit.manager.program import FIELD_MANAGER, Program
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import Conflict, ConnectionFailed, InternalError
from lwskit.runtime.objects import Obj
from lwskit.runtime.webhook import Handler
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import Interceptor, matching
from tests.scenarios.manager import DIED, dies_after
from tests.scenarios.support import Sets

ERRORS = (Conflict("changed"), InternalError("try again"), ConnectionFailed("lost"))
WRITES = ("PATCH", "DELETE", "PUT", "POST")


def seeds(usual: int) -> range:
    """The seeds of a run: LWSKIT_REPEAT of them (without it the usual number) from LWSKIT_SEED on."""
    first = int(os.environ.get("LWSKIT_SEED") or 0)
    return range(first, first + int(os.environ.get("LWSKIT_REPEAT") or usual))


class Life:
    """What happens to one set. Everything that is left to chance is decided by `rng`; `log` tells what it was.

    To be entered: inside, the webhooks of a manager are there, whether one runs or not, unless `webhooks_down`; a real
    cluster has them from another replica. Leaving it ends the manager.
    """

    def __init__(self, cluster: TestCluster, sets: Sets, seed: int) -> None:
        self.cluster, self.sets, self.rng = cluster, sets, random.Random(seed)
        self.seed = seed
        self.log: list[str] = []
        self.webhooks_down = False
        self.begun = 0
        """How many managers have begun."""
        self._running: AsyncExitStack | None = None
        self._disturbed = AsyncExitStack()

    @property
    def managed(self) -> bool:
        """Whether a manager runs."""
        return self._running is not None

    @property
    def connection(self) -> Interceptor:
        """That of the manager which has begun last."""
        return self.cluster.interceptors[-1]

    @asynccontextmanager
    async def lived(self) -> AsyncIterator[None]:
        """Inside there are webhooks; an error is told with the seed and the steps that lead to it."""
        idle = await self._program()
        handlers = {path: partial(self._answer, handler) for path, handler in idle.admission.items()}
        self.cluster.interceptors.pop()
        await inprocess.register(self.cluster.server, self.cluster.client, handlers)
        try:
            yield
        except BaseException as error:
            steps = "\n".join(f"  {i}. {text}" for i, text in enumerate(self.log, 1))
            error.add_note(f"replay with LWSKIT_SEED={self.seed} LWSKIT_REPEAT=1; the steps:\n{steps}")
            if trail := self.trail():
                error.add_note("what has happened last:\n" + "\n".join(f"  {line}" for line in trail))
            raise
        finally:
            await self.end()
            await self._disturbed.aclose()

    def trail(self) -> Sequence[str]:
        """The last of what has happened, a line each, for whoever has to find out why a life went wrong."""
        return ()

    def _answer(self, handler: Handler, request: Obj) -> Obj:
        if self.webhooks_down:
            raise CallError("failed to call webhook: connection refused")
        return handler(request)

    async def _program(self) -> Program:
        cluster = self.cluster
        client = Client(await cluster.connect(undertest.USER_AGENT), field_manager=FIELD_MANAGER, clock=cluster.clock)
        return Program(client, undertest.OPTIONS, clock=cluster.clock, rng=cluster.rng, hostname="test")

    # Managers -----------------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """A manager begins, unless one runs."""
        if self._running is not None:
            return
        program = await self._program()
        self._running = AsyncExitStack()
        self.begun += 1
        await self._running.enter_async_context(undertest.running(program, program.manager.elected))

    async def end(self) -> None:
        """The manager ends, if one runs; what has disturbed its connection ends with it."""
        await self.calm()
        if self._running is not None:
            running, self._running = self._running, None
            await running.aclose()

    async def changes_managers(self) -> None:
        await self.end()
        await self.cluster.clock.sleep(self.rng.choice((0.0, 2.0)))
        await self.begin()

    async def dies(self) -> None:
        """The manager dies in the middle of its work: after a few writes nothing of what it does gets through."""
        if self._running is None:
            return
        self.connection.fail(dies_after(self.rng.randrange(6)), DIED, times=None)
        await self.cluster.clock.sleep(self.rng.choice((0.1, 1.0, 3.0)))
        await self.end()

    # Disturbances -------------------------------------------------------------------------------------------------

    async def cuts(self) -> None:
        self.cluster.cut_watches()

    async def breaks(self) -> None:
        """Some of the next writes fail."""
        matches, error = matching(self.rng.choice(WRITES)), self.rng.choice(ERRORS)
        self.connection.fail(matches, error, times=self.rng.choice((1, 3)))

    async def loses_answers(self) -> None:
        """Some of the next writes are carried out, and the manager is told that they have failed."""
        matches = matching(self.rng.choice(WRITES))
        self.connection.lose(matches, ConnectionFailed("lost"), times=self.rng.choice((1, 2)))

    async def slows(self) -> None:
        """From now on until it is calm again news reaches the manager late, that of each kind by another delay."""
        lags = [self.rng.choice((0.0, 0.05, 0.5, 2.0)) for _ in range(7)]

        def lag(request: HttpRequest) -> float:
            return lags[len(request.path) % len(lags)]

        self._disturbed.enter_context(self.connection.slow_watches(lag))

    async def silences(self) -> None:
        """The manager is told nothing until it is calm again."""
        self._disturbed.enter_context(self.connection.hold_watches())

    async def disconnects(self) -> None:
        """The manager's watches break and cannot be opened anew until it is calm again."""
        self._disturbed.enter_context(self.connection.watches_down())

    async def calm(self) -> None:
        """All that disturbs the manager's connection ends."""
        await self._disturbed.aclose()
        self._disturbed = AsyncExitStack()
        for interceptor in self.cluster.interceptors:
            interceptor.clear()

    # Choices ------------------------------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    @contextmanager
    def without_webhooks(self) -> Iterator[None]:
        """Inside the block the API server cannot reach the webhooks."""
        self.webhooks_down = True
        try:
            yield
        finally:
            self.webhooks_down = False
