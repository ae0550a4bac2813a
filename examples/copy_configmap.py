"""Keeps the ConfigMap company/ca copied into every namespace labelled copy-ca=true.

python copy_configmap.py
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.delegating import DelegatingClient
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.config import connect
from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.controller.handler import from_async_map
from lwskit.runtime.controller.predicate import where
from lwskit.runtime.controller_manager import ControllerManager
from lwskit.runtime.errors import NotFound
from lwskit.runtime.kinds import CONFIG_MAP, NAMESPACE
from lwskit.runtime.manager_options import ManagerOptions
from lwskit.runtime.objects import Key, Obj, is_deleting, key_of, labels_of
from lwskit.runtime.request import Request
from lwskit.runtime.signals import SignalHandler
from lwskit.runtime.upsert import create_or_update

NAME = "copy-configmap"
SOURCE = Key("company", "ca")
LABEL = "copy-ca"
MARK = "app.kubernetes.io/managed-by"


async def found(read: Awaitable[Obj]) -> Obj | None:
    """What is read, or None for an object that does not exist. Cancelling it only ends the wait."""
    try:
        return await read
    except NotFound:
        return None


class Copier:
    """Brings into order the namespace that a request names."""

    def __init__(self, client: Client, source: Key = SOURCE) -> None:
        self.client = client
        self.source = source

    async def __call__(self, request: Request) -> None:
        """Copy, bring up to date or take away. When cancelled, a write under way may or may not have taken effect."""
        namespace = await found(self.client.get(NAMESPACE, request.name))
        name = self.source.name
        source = await found(self.client.get(CONFIG_MAP, name, self.source.namespace))
        copy = await found(self.client.get(CONFIG_MAP, name, request.name))
        if not namespace or is_deleting(namespace) or (copy and labels_of(copy).get(MARK) != NAME):
            return  # Nobody is there to copy for, or somebody has a ConfigMap of that name: the source itself, too.
        if source and labels_of(namespace).get(LABEL) == "true":
            data = source.get("data", {})

            def wanted(obj: Obj) -> None:
                obj["metadata"].setdefault("labels", {})[MARK] = NAME
                obj["data"] = data

            place = {"metadata": {"name": name, "namespace": request.name}}
            await create_or_update(self.client, CONFIG_MAP, place, wanted)
        elif copy:
            await found(self.client.delete(CONFIG_MAP, name, request.name, uid=copy["metadata"]["uid"]))

    async def concerned(self, config_map: Obj) -> list[Request]:
        """The namespaces that a change concerns: a copy's own, the source's all. Cancelling it only ends the wait."""
        if key_of(config_map) != self.source:
            return [Request("", config_map["metadata"]["namespace"], NAMESPACE.kind)]
        labelled = await self.client.list_all(NAMESPACE, label_selector=f"{LABEL}=true")
        return [Request("", namespace["metadata"]["name"], NAMESPACE.kind) for namespace in labelled]


def controller(client: Client, cache: Cache, clock: Clock, rng: random.Random, source: Key = SOURCE) -> Controller:
    """The controller, for any manager."""
    copier = Copier(client, source)
    of_that_name = where(lambda obj: obj["metadata"]["name"] == source.name)
    builder = Builder(copier, clock=clock, rng=rng, name=NAME)
    builder.for_(cache.informer(NAMESPACE))
    builder.watches(cache.informer(CONFIG_MAP), from_async_map(copier.concerned), of_that_name)
    return builder.build()


async def main() -> None:
    """Run against the cluster that kubectl talks to, until a signal comes or it is cancelled."""
    client = await connect(user_agent=NAME)
    manager = ControllerManager(client, ManagerOptions(name=NAME))
    cached = DelegatingClient(manager.client, manager.cache)
    manager.add(controller(cached, manager.cache, manager.clock, manager.rng))
    SignalHandler(manager.stop).install()
    try:
        await manager.run()
    finally:
        await client.close()


if __name__ == "__main__":
    asyncio.run(main())
