"""A controller as somebody else writes it: every Greeting becomes a ConfigMap, and says so in its status."""

from __future__ import annotations

import random
from typing import Any

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock, rfc3339
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.errors import NotFound
from lwskit.runtime.kinds import CONFIG_MAP, Kind
from lwskit.runtime.owners import set_controller_reference
from lwskit.runtime.request import Request
from lwskit.runtime.upsert import Outcome, create_or_patch, create_or_update
from lwskit.runtime.webhook import AdmissionDenied, Warn, defaulter, validator

GREETING = Kind("greeter.example", "v1", "Greeting", "greetings")


class Greeter:
    """Reconciles Greetings through any client: one of a cluster, or a fake one."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.client = client
        self.clock = clock

    async def __call__(self, request: Request) -> None:
        """One Greeting."""
        try:
            greeting = await self.client.get(GREETING, request.name, request.namespace)
        except NotFound:
            return

        def wanted(obj: dict[str, Any]) -> None:
            set_controller_reference(obj, greeting, GREETING)
            obj["data"] = {"text": f"Hello, {greeting['spec']['name']}!"}

        place = {"metadata": {"name": request.name, "namespace": request.namespace}}
        outcome, _ = await create_or_update(self.client, CONFIG_MAP, place, wanted)
        if outcome is not Outcome.UNCHANGED or "status" not in greeting:

            def told(obj: dict[str, Any]) -> None:
                obj["status"] = {"writtenAt": rfc3339(self.clock.now())}

            await create_or_patch(self.client, GREETING, place, told)


def default(greeting: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """Who is not named is the world."""
    greeting["spec"].setdefault("name", "world")
    return greeting


def check(greeting: dict[str, Any], warn: Warn) -> None:
    """Nobody is greeted without a name."""
    if not greeting["spec"]["name"]:
        raise AdmissionDenied("spec.name is empty")


defaults, validation = defaulter(default), validator(create=check)


def controller(client: Client, cache: Cache, clock: Clock, rng: random.Random) -> Controller:
    """The controller `greeting`, which also repairs the ConfigMaps."""
    builder = Builder(Greeter(client, clock), clock=clock, rng=rng)
    return builder.for_(cache.informer(GREETING)).owns(cache.informer(CONFIG_MAP)).build()
