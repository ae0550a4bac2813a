"""The manager as a program on one cluster: caches, controllers, events and election, wired together once."""

from __future__ import annotations

import random
from collections.abc import Mapping

from lwskit.admission.webhooks import handlers
from lwskit.api import disaggregated_names, names
from lwskit.backends import registry
from lwskit.backends.registry import Backends
from lwskit.groups.ports import PodScheduler
from lwskit.manager.options import ElectionOptions, Options
from lwskit.reconcilers.disaggregated_watches import DisaggregatedWatches
from lwskit.reconcilers.setup import disaggregated_controller, group_controller, set_controller
from lwskit.reconcilers.stats import ChangeTimes, SetStats
from lwskit.reconcilers.watches import Watches
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.election import Elector, make_identity
from lwskit.runtime.events import Recorder
from lwskit.runtime.execute import Executor
from lwskit.runtime.fence import fenced
from lwskit.runtime.manager import Manager
from lwskit.runtime.webhook import Handler

FIELD_MANAGER = "lwskit"
"""The field manager of writes that are no server-side applies."""


class Program:
    """Everything that one manager process does on a cluster, whatever transport leads there.

    `client` is used for all requests; `hostname` names this process in events and on the Lease; `backends` are those
    that the options name, unless given here; `scheduler` is the part of a gang scheduler in the admission of pods.
    `manager` can be given more to run (servers) before `run`.
    `admission` are the webhook handlers by path; who serves them is the caller's business.
    """

    def __init__(
        self,
        client: Client,
        options: Options,
        *,
        clock: Clock,
        rng: random.Random,
        hostname: str,
        backends: Backends | None = None,
        scheduler: PodScheduler | None = None,
    ) -> None:
        self.cache = Cache(client, clock, rng, keep_manager=names.FIELD_MANAGER)
        self.watches = Watches(self.cache, backends or registry.find(options.backend))
        self.disaggregated = DisaggregatedWatches(self.cache, self.watches, clock)
        self.recorder = Recorder(client, clock, names.EVENT_CONTROLLER, f"{names.EVENT_CONTROLLER}-{hostname}")
        controller = disaggregated_names.CONTROLLER
        self.disaggregated_recorder = Recorder(client, clock, controller, f"{controller}-{hostname}")
        self.recorders = (self.recorder, self.disaggregated_recorder)
        self.elector = _elector(client, clock, rng, options, hostname, self.recorder)
        writer = fenced(client, self.elector) if self.elector is not None else client
        executor = Executor(writer, self.cache, self.recorder, clock, FIELD_MANAGER)
        telling_of_sets = Executor(writer, self.cache, self.disaggregated_recorder, clock, FIELD_MANAGER)
        self.manager = Manager(clock, rng, self.elector, options.graceful_timeout)
        self.stats = SetStats()
        """What the controllers count of LeaderWorkerSets."""
        self.disaggregated_times = ChangeTimes()
        """How long changes of DisaggregatedSets took."""
        self.controllers = (
            set_controller(self.watches, executor, clock, rng, options.concurrency, self.stats),
            group_controller(self.watches, executor, clock, rng, options.concurrency, self.stats),
            disaggregated_controller(
                self.disaggregated, telling_of_sets, clock, rng, options.concurrency, self.disaggregated_times
            ),
        )
        self.admission: Mapping[str, Handler] = handlers(rng, scheduler, support=options.scheduling)
        for runnable in (*self.recorders, self.cache, *self.controllers):
            self.manager.add(runnable)

    async def run(self) -> None:
        """Run until cancelled or until something fails.

        Raises the first error, LeaderElectionLost among them. When cancelled, controllers end first, then the caches,
        then the servers.
        """
        await self.manager.run()


def _elector(
    client: Client, clock: Clock, rng: random.Random, options: Options, hostname: str, recorder: Recorder
) -> Elector | None:
    election: ElectionOptions = options.election
    if not election.enabled:
        return None
    identity = make_identity(hostname, rng)
    return Elector(
        client,
        clock,
        rng,
        options.namespace,
        election.name,
        identity,
        election.lease,
        election.renew,
        election.retry,
        release_on_cancel=election.release,
        recorder=recorder.core(identity),
    )
