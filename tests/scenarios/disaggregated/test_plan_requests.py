"""What `lwskit plan` of a DisaggregatedSet asks a cluster about the LeaderWorkerSets that follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lwskit.cli import disaggregated_planning
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.errors import Forbidden
from lwskit.runtime.objects import Obj
from lwskit.simulate.disaggregated_report import Report
from lwskit.simulate.report import Outcome
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import Interceptor, Send, matching
from tests.scenarios.disaggregated.support import role, set_object, two_roles

CHILDREN = matching("POST", "/leaderworkersets$")


async def asked(cluster: TestCluster, roles: Sequence[Obj], answer: Callable[[Interceptor], None]) -> Report:
    """The plan for a new set on a cluster that answers for LeaderWorkerSets like this."""
    connection = await cluster.connect("planner")
    answer(connection)
    ds = set_object(*roles, metadata={"namespace": cluster.namespace})
    report = await disaggregated_planning.on_cluster(
        Client(connection, clock=cluster.clock), ds, "", cluster.clock.now()
    )
    assert connection.count(CHILDREN) == len(roles)
    return report


async def test_the_cluster_is_asked_about_children(cluster: TestCluster) -> None:
    """What its admission says of a LeaderWorkerSet holds, whatever is known here; without a right to ask, this does."""
    good = two_roles(1, 2)
    bad = [good[0], role("decode", 1, size=5, group={"subGroupPolicy": {"subGroupSize": 3}})]
    denied = Forbidden('admission webhook "policy" denied the request: no')
    report = await asked(cluster, good, lambda c: c.fail(CHILDREN, denied, times=None))
    assert report.outcome is Outcome.STALLED
    told = [notice.message for notice in report.notices if notice.code == "child-refused"]
    assert [one.partition(": ")[0] for one in told] == ["role prefill", "role decode"]
    assert told[0].endswith(f"is refused by the API server: spec.roles[prefill]: {denied}")

    async def taken(request: HttpRequest, send: Send) -> HttpResponse:
        return HttpResponse(201, request.body or b"")

    accepted = await asked(cluster, bad, lambda c: c.around(CHILDREN, taken))
    assert accepted.outcome is Outcome.DONE
    nobody = Forbidden("leaderworkersets is forbidden: User cannot create resource")
    offline = await asked(cluster, bad, lambda c: c.fail(CHILDREN, nobody, times=None))
    assert [n.message.partition(": ")[0] for n in offline.notices if n.code == "child-refused"] == ["role decode"]
    assert not await cluster.list(LEADER_WORKER_SET)
