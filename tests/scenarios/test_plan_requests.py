"""What `lwskit plan` asks a cluster: as `kubectl apply` would, whoever else writes the set meanwhile."""

from __future__ import annotations

from typing import Any

from lwskit.api import names
from lwskit.cli import planning
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest, HttpResponse, Transport
from lwskit.runtime.errors import AlreadyExists, Conflict
from lwskit.runtime.objects import Obj
from lwskit.simulate import order as orders
from lwskit.simulate.edit import Verdict
from lwskit.simulate.report import Report
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import Interceptor, matching
from tests.scenarios.support import Sets, set_object


class Restless(Interceptor):
    """A connection on which somebody writes the set just before each dry run of it."""

    def __init__(self, inner: Transport, cluster: TestCluster) -> None:
        super().__init__(inner)
        self.cluster = cluster
        self.writes = 0

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        if request.method != "GET":
            self.writes += 1
            notes = {"metadata": {"annotations": {"somebody/writes": str(self.writes)}}}
            await self.cluster.patch(LEADER_WORKER_SET, "llm", notes)
        return await super().send(request, timeout=timeout)


def manifest(cluster: TestCluster, **fields: Any) -> Obj:
    lws = set_object(**fields)
    return {**lws, "metadata": {**lws["metadata"], "namespace": cluster.namespace}}


async def planned(cluster: TestCluster, lws: Obj, client: Client | None = None) -> Report:
    return await planning.on_cluster(client or cluster.client, lws, orders.HIGHEST, cluster.clock.now())


async def test_a_set_that_is_written_all_the_time_is_planned(cluster: TestCluster, sets: Sets) -> None:
    await sets.running(replicas=2, size=1)
    restless = Restless(await cluster.connect("planner"), cluster)
    client = Client(restless, clock=cluster.clock)
    report = await planned(cluster, manifest(cluster, replicas=2, size=1, image="img:v2"), client)
    assert (report.verdict, report.rolled) == (Verdict.ROLLS, 2)
    assert restless.writes == 1


async def test_who_comes_between_is_looked_at_again(cluster: TestCluster, sets: Sets) -> None:
    """The server gives up on a patch; somebody creates the set first."""
    transport = await cluster.connect("planner")
    client = Client(transport, clock=cluster.clock)
    transport.fail(matching("POST"), AlreadyExists("somebody was faster"))
    lws = manifest(cluster, replicas=1, size=1)
    assert (await planned(cluster, lws, client)).verdict is Verdict.CREATES
    await sets.running(replicas=1, size=1)
    transport.fail(matching("PATCH"), Conflict("the object has been modified"), times=2)
    assert (await planned(cluster, lws, client)).verdict is Verdict.NOTHING


async def test_a_field_that_does_not_exist_is_refused(cluster: TestCluster, sets: Sets) -> None:
    """Whether the set is there or not, as kubectl's own requests have it refused."""
    lws = manifest(cluster, replicas=1, size=1)
    lws["spec"]["replicaz"] = 4
    new = await planned(cluster, lws)
    assert new.verdict is Verdict.REFUSED
    assert 'unknown field "spec.replicaz"' in new.notices[0].message
    await sets.running(replicas=1, size=1)
    edit = await planned(cluster, lws)
    assert edit.verdict is Verdict.REFUSED
    assert edit.notices[0].message == 'strict decoding error: unknown field "spec.replicaz"'


async def test_the_controllers_own_annotations_are_no_part_of_the_edit(cluster: TestCluster, sets: Sets) -> None:
    """A set whose groups have a budget of restarts, one of which is used."""
    record = '{"metadata":{"annotations":{},"name":"llm"}}'
    group = {"maxGroupRestarts": 3}
    lws = manifest(cluster, replicas=1, size=2, group=group)
    notes = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": record}}
    await sets.running(replicas=1, size=2, group=group, metadata=notes)
    await cluster.kubelet.restart_container("llm-0-1")

    async def counted() -> None:
        assert names.GROUP_RESTART_COUNTS_ANNOTATION in (await sets.live())["metadata"]["annotations"]

    await cluster.eventually(counted)
    report = await planned(cluster, lws)
    assert (report.verdict, report.changed) == (Verdict.NOTHING, ())
