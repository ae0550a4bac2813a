"""Headless Services: one for the set, or one for each group (specification: 20 §4)."""

from __future__ import annotations

import pytest

from lwskit.api import names
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.kinds import POD, SERVICE, STATEFUL_SET
from lwskit.runtime.objects import Obj, controller_of
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import matching
from tests.scenarios.support import Sets
from tests.scenarios.written import summary

UNIQUE = {"subdomainPolicy": "UniquePerReplica"}


async def services(cluster: TestCluster) -> list[str]:
    return [n for n in await cluster.names(SERVICE) if n != "kubernetes"]


async def test_a_shared_service_belongs_to_the_set(cluster: TestCluster, sets: Sets):
    """20 §14 line 22: given Shared, exactly one Service with the set's name, selector and owner."""
    created = await sets.create()

    async def one() -> None:
        assert await services(cluster) == ["llm"]

    await cluster.eventually(one)
    service = await cluster.get(SERVICE, "llm")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"] == {names.NAME_LABEL: "llm"}
    assert service["metadata"]["labels"] == {names.NAME_LABEL: "llm"}
    owner = controller_of(service)
    assert owner is not None
    assert owner["uid"] == created["metadata"]["uid"]
    await cluster.consistently(one)


async def test_a_deleted_shared_service_comes_back(cluster: TestCluster, sets: Sets):
    """20 §14 line 22: given the shared Service deleted, it is recreated; no pod is touched."""
    await sets.running()
    before, pods = await cluster.get(SERVICE, "llm"), await sets.pod_uids()
    await cluster.delete(SERVICE, "llm")

    async def back() -> None:
        assert (await cluster.get(SERVICE, "llm"))["metadata"]["uid"] != before["metadata"]["uid"]

    await cluster.eventually(back)
    await sets.settled()
    assert await sets.pod_uids() == pods


async def test_a_changed_shared_service_is_left_alone(cluster: TestCluster, sets: Sets):
    """20 §4: Services are only created; an existing one is never patched."""
    await sets.running()
    await cluster.patch(SERVICE, "llm", {"metadata": {"labels": {"mine": "1"}}})
    await sets.scale(1)
    await sets.ready()
    assert (await cluster.get(SERVICE, "llm"))["metadata"]["labels"]["mine"] == "1"


async def test_a_service_for_each_group(cluster: TestCluster, sets: Sets):
    """20 §14 line 23: given UniquePerReplica with N leaders, N Services named like the leaders and none for the set."""
    await sets.running(networkConfig=UNIQUE)
    assert await services(cluster) == ["llm-0", "llm-1"]
    for index in ("0", "1"):
        service = await cluster.get(SERVICE, f"llm-{index}")
        assert service["spec"]["selector"] == {names.NAME_LABEL: "llm", names.GROUP_INDEX_LABEL: index}
        owner = controller_of(service)
        assert owner is not None
        leader = await cluster.get(POD, f"llm-{index}")
        assert (owner["kind"], owner["uid"]) == ("Pod", leader["metadata"]["uid"])


async def test_unique_subdomains_are_in_the_pods_and_addresses(sets: Sets):
    """10 §8.4 and 20 §14 line 66: each group is found under its leader's name."""
    await sets.running(networkConfig=UNIQUE)
    namespace = sets.cluster.namespace
    for name, pod in (await sets.pods()).items():
        leader = f"llm-{pod['metadata']['labels'][names.GROUP_INDEX_LABEL]}"
        assert pod["spec"]["subdomain"] == leader, name
        env = {e["name"]: e["value"] for e in pod["spec"]["containers"][0]["env"]}
        assert env["LWS_LEADER_ADDRESS"] == f"{leader}.{leader}.{namespace}"


async def test_the_service_of_a_replaced_leader_is_made_anew(cluster: TestCluster, sets: Sets):
    """20 §14 lines 24, 25: the old group's Service goes with its leader, the new leader gets one of its own."""
    await sets.running(networkConfig=UNIQUE)
    before = await cluster.uids(SERVICE)
    await cluster.delete(POD, "llm-0")

    async def replaced() -> None:
        after = await cluster.uids(SERVICE)
        assert after["llm-0"] != before["llm-0"]
        assert after["llm-1"] == before["llm-1"]
        owner = controller_of(await cluster.get(SERVICE, "llm-0"))
        assert owner is not None
        assert owner["uid"] == (await cluster.get(POD, "llm-0"))["metadata"]["uid"]

    await cluster.eventually(replaced)
    await sets.ready()


async def test_services_go_with_their_groups(cluster: TestCluster, sets: Sets):
    """20 §4: a group that is scaled away takes its Service along."""
    await sets.running(networkConfig=UNIQUE)
    await sets.scale(1)

    async def one() -> None:
        assert await services(cluster) == ["llm-0"]

    await cluster.eventually(one)


async def test_the_service_of_a_group_comes_back(cluster: TestCluster, sets: Sets):
    """Nothing else happens to the group then that could bring it back."""
    await sets.running(networkConfig=UNIQUE)
    before, pods = await cluster.uids(SERVICE), await sets.pod_uids()
    await cluster.delete(SERVICE, "llm-1")

    async def back() -> None:
        after = await cluster.uids(SERVICE)
        assert after["llm-1"] != before["llm-1"]
        assert after["llm-0"] == before["llm-0"]

    await cluster.eventually(back)
    await sets.settled()
    assert await sets.pod_uids() == pods


@pytest.mark.undisturbed("it counts requests")
async def test_no_service_is_made_for_a_leader_that_is_gone_unseen(cluster: TestCluster, sets: Sets):
    """The collector removes it at once, which would call for the next one, and so on while the cache is late."""
    await sets.running(replicas=1, size=1, networkConfig=UNIQUE)
    await sets.settled()

    def lag(request: HttpRequest) -> float:
        return 5.0 if request.path.endswith("/pods") else 0.0

    connection = cluster.interceptors[0]
    first = (await cluster.get(POD, "llm-0"))["metadata"]["uid"]
    before = connection.count(matching("POST", "/services$"))
    with cluster.slow_watches(lag):
        await cluster.delete(POD, "llm-0", propagation="Background")
        await cluster.clock.sleep(3.0)
        # That of the next leader; if it came after the collector was seen at work, it is for the cache to tell of it.
        assert connection.count(matching("POST", "/services$")) <= before + 1

    async def of_the_next() -> None:
        owner = (await cluster.get(SERVICE, "llm-0"))["metadata"]["ownerReferences"][0]["uid"]
        assert owner == (await cluster.get(POD, "llm-0"))["metadata"]["uid"] != first

    await cluster.eventually(of_the_next)
    await sets.ready()
    assert await services(cluster) == ["llm-0"]
    assert connection.count(matching("POST", "/services$")) == before + 1


def of_somebody_else(name: str) -> Obj:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "selector": {"app": "other"}}}


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_a_foreign_service_in_the_way_of_a_groups(cluster: TestCluster, sets: Sets):
    """20 §14 line 25: it is left untouched and told of, and once it is gone the group is made without delay."""
    await cluster.create(SERVICE, of_somebody_else("llm-1"))
    await sets.create(networkConfig=UNIQUE)
    note = "Failed to create headless service for error: Service llm-1 belongs to another object than leader pod llm-1"
    await sets.has_event(
        "FailedCreate", f"{note}; delete it or rename it, for the group needs its name", type="Warning"
    )
    await sets.settled()
    assert (await cluster.get(SERVICE, "llm-1"))["spec"]["selector"] == {"app": "other"}
    assert await cluster.names(STATEFUL_SET) == ["llm", "llm-0"]
    await cluster.delete(SERVICE, "llm-1")

    async def made() -> None:
        assert "llm-1" in await cluster.names(STATEFUL_SET)

    # Where time is virtual, without delay is sooner than the next try would come.
    await cluster.eventually(made, timeout=2 if cluster.embedded else None)
    await sets.ready()


@pytest.mark.undisturbed("it counts requests")
async def test_a_service_of_the_sets_name_costs_no_requests(cluster: TestCluster, sets: Sets):
    """20 §15 item 5: it serves whoever owns it, and nobody tries to make another one again and again."""
    await cluster.create(SERVICE, of_somebody_else("llm"))
    # News of Services and of sets reach the manager by different ways.
    await sets.settled()
    await sets.running()
    await sets.scale(3)
    await sets.ready()
    assert "create services" not in summary(cluster)
    assert (await cluster.get(SERVICE, "llm"))["spec"]["selector"] == {"app": "other"}
    await cluster.delete(SERVICE, "llm")

    async def ours() -> None:
        assert (await cluster.get(SERVICE, "llm"))["spec"]["clusterIP"] == "None"

    await cluster.eventually(ours)
