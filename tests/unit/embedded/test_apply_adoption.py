"""kubectl's move from client-side to server-side apply: it takes over what it recorded, unless somebody changed it."""

from __future__ import annotations

import random

import orjson
import pytest

from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.store import Store
from lwskit.embedded.transport import InProcessTransport
from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import Conflict
from lwskit.runtime.kinds import CONFIG_MAP
from lwskit.runtime.objects import Obj
from lwskit.testing.virtual import VirtualClock

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
WANTED: Obj = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "c", "namespace": "default"},
    "data": {"a": "1", "b": "1"},
}


async def applied_by_the_client() -> Client:
    clock = VirtualClock()
    client = Client(InProcessTransport(ApiServer(Store(), clock, random.Random(1))), clock=clock)
    recorded = {"annotations": {LAST_APPLIED: orjson.dumps(WANTED).decode()}}
    first = {**WANTED, "metadata": {**WANTED["metadata"], **recorded}}
    await client.create(CONFIG_MAP, first, field_manager="kubectl-client-side-apply")
    return client


@pytest.mark.virtual
async def test_what_is_as_recorded_is_taken_over():
    client = await applied_by_the_client()
    change = {**WANTED, "data": {"a": "2", "b": "1"}}
    answer = await client.apply(CONFIG_MAP, change, field_manager="kubectl", force=False)
    assert answer["data"] == {"a": "2", "b": "1"}


@pytest.mark.virtual
async def test_what_somebody_else_changed_is_a_conflict():
    client = await applied_by_the_client()
    await client.patch(CONFIG_MAP, "c", {"data": {"a": "3"}}, "default", field_manager="somebody")
    with pytest.raises(Conflict, match=r'conflict with "somebody" using v1: \.data\.a'):
        await client.apply(CONFIG_MAP, WANTED, field_manager="kubectl", force=False)
