"""The tutorial's controller: its own tests, collected as this file's, and the program around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import copy_configmap
import pytest

from examples.test_copy_configmap import (  # noqa: F401
    config_map,
    copied,
    namespace,
    running,
    source,
    test_it_catches_up_after_a_broken_connection,
    test_one_reconcile_copies_and_the_next_has_nothing_to_do,
    test_the_copy_follows_the_source_and_the_label,
    test_what_somebody_else_wrote_is_left_alone,
)
from lwskit.runtime.client.client import Client
from lwskit.runtime.kinds import CONFIG_MAP, NAMESPACE
from lwskit.testing.cluster import TestCluster


async def test_the_program_copies_until_it_is_stopped(cluster: TestCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(await cluster.connect("tutorial"), clock=cluster.clock)

    async def connect(**options: Any) -> Client:
        assert options == {"user_agent": "copy-configmap"}
        return client

    class Signals:
        """There are no signals in virtual time: the test sends its own."""

        def __init__(self, stop: Callable[[], None]) -> None:
            self.install = lambda: stops.append(stop)

    stops: list[Callable[[], None]] = []
    monkeypatch.setattr(copy_configmap, "connect", connect)
    monkeypatch.setattr(copy_configmap, "SignalHandler", Signals)
    await cluster.client.create(NAMESPACE, namespace("company"))
    await cluster.client.create(CONFIG_MAP, config_map("company", ca="one"))
    await cluster.client.patch(NAMESPACE, cluster.namespace, {"metadata": {"labels": {copy_configmap.LABEL: "true"}}})
    program = asyncio.create_task(copy_configmap.main(), name="program")
    await copied(cluster, "one")
    stops[0]()
    await program
