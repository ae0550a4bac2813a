import asyncio
import random

import pytest

from lwskit.embedded.cluster import Cluster
from lwskit.embedded.controllers.events import CoreRecorder
from lwskit.runtime.clock import Clock
from lwskit.runtime.kinds import CORE_EVENT
from lwskit.runtime.objects import ObjectRef
from lwskit.runtime.plan import Event

pytestmark = pytest.mark.virtual

THING = ObjectRef("v1", "Pod", "default", "p", "u", "7")


async def test_repeated_events_are_counted(clock: Clock):
    client = Cluster(clock, random.Random(1)).client
    recorder = CoreRecorder(client, clock, "tester", "node-1")
    task = asyncio.create_task(recorder.run())
    for _ in range(3):
        recorder.event(Event(THING, "Happened", "Happened", "it happened"))
        await asyncio.sleep(5)
    recorder.event(Event(THING, "Happened", "Happened", "something else", "Warning"))
    await asyncio.sleep(1)
    events = {e["message"]: e for e in (await client.list(CORE_EVENT, "default"))["items"]}
    first = events["it happened"]
    assert (first["count"], first["source"]) == (3, {"component": "tester", "host": "node-1"})
    assert first["firstTimestamp"] < first["lastTimestamp"]
    assert first["involvedObject"]["uid"] == "u"
    assert (events["something else"]["count"], events["something else"]["type"]) == (1, "Warning")
    # One that somebody has deleted is made anew, and a server that refuses does not end the recorder.
    await client.delete(CORE_EVENT, first["metadata"]["name"], "default")
    recorder.event(Event(ObjectRef("v1", "Pod", "no-such-namespace", "p"), "Lost", "Lost", "nobody hears it"))
    recorder.event(Event(THING, "Happened", "Happened", "it happened"))
    await asyncio.sleep(1)
    assert {e["message"] for e in (await client.list(CORE_EVENT, "default"))["items"]} == events.keys()
    task.cancel()


async def test_two_recorders_may_write_at_the_same_moment(clock: Clock):
    client = Cluster(clock, random.Random(1)).client
    recorders = [CoreRecorder(client, clock, name) for name in ("one", "two")]
    tasks = [asyncio.create_task(r.run()) for r in recorders]
    for recorder in recorders:
        recorder.event(Event(THING, "Happened", "Happened", "it happened"))
    await asyncio.sleep(1)
    assert {e["source"]["component"] for e in (await client.list(CORE_EVENT, "default"))["items"]} == {"one", "two"}
    for task in tasks:
        task.cancel()
