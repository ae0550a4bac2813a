"""The reconciler of DisaggregatedSets: their children, scalers and status.

What is decided stands in `lwskit.disaggregated.decide`; this is observing for it and executing what it says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from lwskit.disaggregated.decide import decide
from lwskit.disaggregated.model import Pass, Snapshot
from lwskit.groups.model import DecisionError
from lwskit.reconcilers.disaggregated_watches import DisaggregatedWatches, Live
from lwskit.reconcilers.stats import ChangeTimes
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.execute import ROUNDS, Executor
from lwskit.runtime.objects import Key
from lwskit.runtime.plan import NeedFresh
from lwskit.runtime.queue_base import BaseQueue
from lwskit.runtime.request import DONE, Request, Result


class Again:
    """Has requests worked on again after a while, also where their pass has failed and is tried again with back-off."""

    def __init__(self) -> None:
        self._queues: list[BaseQueue[Request]] = []

    def start(self, queue: BaseQueue[Request]) -> None:
        """Ask this queue from now on."""
        self._queues.append(queue)

    def __call__(self, request: Request, after: float) -> None:
        """Ask for a request at the latest in `after` seconds."""
        for queue in self._queues:
            queue.add(request, after=after)


class DisaggregatedReconciler:
    """Reconciles one DisaggregatedSet at a time (specification: 50 §5)."""

    def __init__(
        self,
        watches: DisaggregatedWatches,
        executor: Executor,
        clock: Clock,
        again: Again | None = None,
        times: ChangeTimes | None = None,
    ) -> None:
        self._again = again or Again()
        self._times = times or ChangeTimes()
        self._watches = watches
        self._executor = executor
        self._clock = clock
        self._written: dict[Key, float] = {}
        """When the status of each set was last written, on the monotonic clock."""

    async def __call__(self, request: Request) -> Result:
        """Observe, decide, execute; where an action asks for a look, read live and do it again.

        The slices do not stop each other, and whatever becomes of them the status is written. Raises what the decision
        or a request raises, of several slices all of it in one DecisionError. Cancelling it ends it between writes.
        """
        live, failed = Live(), dict[int, Exception]()
        for left in reversed(range(ROUNDS)):
            found = decide(self._observe(request.key, live))
            first = found.look or await self._executor.attempt(found.before)
            if isinstance(first, NeedFresh):
                if left:
                    await self._look([first], live)
                    continue
                return Result(requeue=True, reason=first.why)
            if found.stop or first is not found.before.result:
                return first
            results, looks = await self._slices(found, failed)
            if looks and left:
                try:
                    await self._look(looks.values(), live)
                except LwskitError as error:
                    failed |= dict.fromkeys(looks, error)
                else:
                    continue
            results += [Result(requeue=True, reason=look.why) for look in looks.values()]
            return await self._finish(request, found, failed, results)
        raise AssertionError("the last round always ends")

    def _observe(self, key: Key, live: Live) -> Snapshot:
        snapshot = self._watches.snapshot(key, self._clock.now(), live)
        if snapshot.ds is None:
            self._written.pop(key, None)
        self._times.seen(key, snapshot.ds, self._clock.monotonic())
        age = self._clock.monotonic() - self._written.get(key, -math.inf)
        return replace(snapshot, status_age=age)

    async def _slices(self, found: Pass, failed: dict[int, Exception]) -> tuple[list[Result], dict[int, NeedFresh]]:
        """Carry out the slices that have not failed yet; adds to `failed` those that do."""
        results: list[Result] = []
        looks: dict[int, NeedFresh] = {}
        for part in found.slices:
            if part.slice in failed:
                continue
            try:
                result = await self._executor.attempt(part.plan)
            except LwskitError as error:
                failed[part.slice] = error
                continue
            if isinstance(result, NeedFresh):
                looks[part.slice] = result
            else:
                results.append(result)
        return results, looks

    async def _finish(
        self, request: Request, found: Pass, failed: dict[int, Exception], results: list[Result]
    ) -> Result:
        errors = [f"slice {number}: {error}" for number, error in failed.items()]
        errors += [f"slice {part.slice}: {part.error}" for part in found.slices if part.error]
        errors += [found.error] if found.error else []
        causes: list[Exception] = [*failed.values()]
        for plan in (found.scalers, found.status):
            try:
                results.append(await self._executor.execute(plan))
            except LwskitError as error:
                errors.append(str(error))
                causes.append(error)
            else:
                # One that was refused has not been written: its next try waits for the back-off and not for the pace.
                if plan is found.status and plan.actions and not results[-1].requeue:
                    self._written[request.key] = self._clock.monotonic()
        if errors:
            # The slices that have not failed wait no longer for it.
            if delays := [result.after for result in results if result.after]:
                self._again(request, min(delays))
            raise DecisionError("; ".join(errors)) from (causes[0] if causes else None)
        return _soonest(results)

    async def _look(self, looks: Iterable[NeedFresh], live: Live) -> None:
        keys = tuple(dict.fromkeys(key for look in looks for key in look.keys))
        before = [self._watches.cached(kind, key) for kind, key in keys]
        live.take(await self._executor.refresh(keys), before)


def _soonest(results: Iterable[Result]) -> Result:
    """What several parts of a pass ask for together: at once with back-off, else after the smallest delay."""
    asked = [result for result in results if result.requeue or result.after]
    return min(asked, key=lambda result: (not result.requeue, result.after), default=DONE)
