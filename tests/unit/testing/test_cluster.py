"""The fixture `cluster` on the embedded cluster, with a program under test that knows nothing of any set."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import Conflict, NotFound
from lwskit.runtime.kinds import CONFIG_MAP, DEPLOYMENT, POD, STATEFUL_SET
from lwskit.runtime.objects import condition_of, is_true
from lwskit.testing.arguments import kinds_of
from lwskit.testing.cluster import ClusterOptions
from lwskit.testing.interceptors import matching
from lwskit.testing.kubelet import Kubelet
from lwskit.testing.provide import provide
from lwskit.testing.report import describe
from lwskit.testing.virtual import run

WIDGETS = {
    "metadata": {"name": "widgets.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}


@pytest.fixture(autouse=True)
def _embedded(monkeypatch):
    monkeypatch.delenv("LWSKIT_CLUSTER", raising=False)


@pytest.fixture
def cluster_crds():
    return [WIDGETS]


@pytest.fixture
def caches():
    return []


@pytest.fixture
def cluster_runnables(caches):
    @asynccontextmanager
    async def watches_config_maps(cluster):
        cache = Cache(Client(await cluster.connect("program"), clock=cluster.clock), cluster.clock, cluster.rng)
        caches.append(cache.informer(CONFIG_MAP, namespace=cluster.namespace).store)
        task = asyncio.create_task(cache.run(), name="program")
        try:
            await cache.wait_synced()
            yield cache
        finally:
            task.cancel()
            await asyncio.wait({task})

    return [watches_config_maps]


async def config_map(cluster, name):
    await cluster.create(CONFIG_MAP, {"metadata": {"name": name}})


def pod(name="p", **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


async def test_custom_kinds_are_served(cluster):
    (widget,) = kinds_of([WIDGETS])
    await cluster.create(widget, {"metadata": {"name": "w"}, "size": 3})
    assert (await cluster.get(widget, "w"))["size"] == 3


async def test_programs_run_and_their_requests_are_counted(cluster, caches):
    await config_map(cluster, "a")
    await cluster.eventually(lambda: len(caches[0]) >= 1)
    (program,) = cluster.interceptors
    assert {r.user_agent for r in program.requests} == {"program"}
    assert program.open_watches == 1


async def test_held_watches_tell_nothing(cluster, caches):
    known = len(caches[0])
    with cluster.hold_watches():
        await config_map(cluster, "a")
        await cluster.consistently(lambda: len(caches[0]) == known)
    await cluster.eventually(lambda: len(caches[0]) == known + 1)


async def test_cut_watches_are_opened_again(cluster, caches):
    assert cluster.cut_watches() == 1
    known = len(caches[0])
    await config_map(cluster, "a")
    await cluster.eventually(lambda: len(caches[0]) == known + 1)
    assert cluster.interceptors[0].open_watches == 1


async def test_watches_that_are_down_come_back_with_what_was_missed(cluster, caches):
    known = len(caches[0])
    with cluster.watches_down():
        await config_map(cluster, "a")
        await cluster.consistently(lambda: len(caches[0]) == known)
    await cluster.eventually(lambda: len(caches[0]) == known + 1)


async def test_the_test_plays_the_kubelet(cluster):
    await cluster.create(POD, pod())
    await cluster.kubelet.ready("p")
    status = (await cluster.get(POD, "p"))["status"]
    assert (status["phase"], status["containerStatuses"][0]["ready"]) == ("Running", True)
    await cluster.kubelet.restart_container("p")
    await cluster.kubelet.unready("p")
    live = await cluster.get(POD, "p")
    assert live["status"]["containerStatuses"][0]["restartCount"] == 1
    ready = condition_of(live, "Ready")
    assert ready is not None
    assert ready["status"] == "False"
    await cluster.kubelet.fail("p")
    assert (await cluster.get(POD, "p"))["status"]["phase"] == "Failed"
    with pytest.raises(NotFound):
        await cluster.kubelet.pending("absent")


async def between_a_look_and_its_status(cluster, act):
    """A kubelet before whose first status somebody else acts."""
    interceptor = await cluster.connect("kubelet")
    left = [act]

    async def first(request, send):
        if left:
            await left.pop()()
        return await send(request)

    interceptor.around(matching("PATCH", "/pods/p/status$"), first)
    return Kubelet(Client(interceptor, clock=cluster.clock), cluster.clock, cluster.namespace)


async def test_a_status_is_of_the_pod_as_it_is(cluster):
    """A gate that is fulfilled between a kubelet's look and its write counts: it does not take back what it missed."""
    gated = pod()
    gated["spec"]["readinessGates"] = [{"conditionType": "x/y"}]
    await cluster.create(POD, gated)

    async def fulfilled():
        conditions = [{"type": "x/y", "status": "True"}]
        await cluster.patch(POD, "p", {"status": {"conditions": conditions}}, subresource="status")
        await cluster.kubelet.ready("p")

    kubelet = await between_a_look_and_its_status(cluster, fulfilled)
    async with cluster.observe(POD) as observer:
        await kubelet.ready("p")
        await cluster.settled(POD)
    seen = [is_true(change.obj, "Ready") for change in observer.changes]
    assert seen == sorted(seen)
    assert seen[-1]


async def test_a_pod_that_was_replaced_is_left_alone(cluster):
    await cluster.create(POD, pod())

    async def replaced():
        await cluster.delete(POD, "p")
        await cluster.eventually(lambda: cluster.gone(POD, "p"))
        await cluster.create(POD, pod())

    kubelet = await between_a_look_and_its_status(cluster, replaced)
    with pytest.raises(Conflict):
        await kubelet.ready("p")
    assert not is_true(await cluster.get(POD, "p"), "Ready")


async def test_all_pods_are_made_ready(cluster):
    for name in ("a", "b"):
        await cluster.create(POD, pod(name))
    await cluster.create(POD, pod("gated", schedulingGates=[{"name": "x/y"}]))
    asyncio.get_running_loop().call_later(
        0.5, lambda: late.append(asyncio.ensure_future(cluster.create(POD, pod("c"))))
    )
    late = []
    await cluster.kubelet.make_ready()
    phases = {p["metadata"]["name"]: p["status"]["phase"] for p in await cluster.list(POD)}
    assert phases == {"a": "Running", "b": "Running", "c": "Running", "gated": "Pending"}


async def test_a_playing_kubelet_follows_workloads(cluster):
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod()["spec"]}
    spec = {"replicas": 2, "serviceName": "x", "selector": {"matchLabels": {"app": "x"}}, "template": template}
    async with cluster.kubelet.playing():
        await cluster.create(STATEFUL_SET, {"metadata": {"name": "s"}, "spec": spec})

        async def ready():
            assert (await cluster.get(STATEFUL_SET, "s"))["status"]["readyReplicas"] == 2

        await cluster.eventually(ready)
        before = await cluster.uids(POD)
        async with cluster.observe(POD) as observer:
            await cluster.delete(POD, "s-1")
            await cluster.settled(POD, STATEFUL_SET)
    assert observer.born == {"s-1": 1}
    assert (await cluster.uids(POD))["s-0"] == before["s-0"]


async def test_gone(cluster):
    await config_map(cluster, "a")
    assert not await cluster.gone(CONFIG_MAP, "a")
    await cluster.delete(CONFIG_MAP, "a")
    assert await cluster.gone(CONFIG_MAP, "a")


async def test_the_report_shows_objects_events_and_requests(cluster):
    await cluster.create(POD, pod())
    (widget,) = kinds_of([WIDGETS])
    await cluster.create(widget, {"metadata": {"name": "w"}})
    meta, spec = {"labels": {"a": "b"}}, {"containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": meta, "spec": spec}
    web = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    await cluster.create(DEPLOYMENT, web)
    text = await describe(cluster)
    assert "Widget w " in text
    assert "Deployment web " in text
    assert text.count("Pod p ") == 1
    assert "phase=Pending" in text
    assert "last requests of program" in text
    assert "200" in text


def test_runs_repeat_themselves():
    async def main():
        async with provide("embedded", ClusterOptions(), [], []) as cluster, cluster.kubelet.playing():
            await cluster.create(POD, pod())
            await cluster.settled(POD)
            return await cluster.get(POD, "p")

    first = run(main())
    assert first["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert run(main()) == first
