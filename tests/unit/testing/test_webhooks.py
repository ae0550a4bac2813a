"""Webhooks of a test: on the embedded cluster, and served for one that a kubeconfig leads to."""

import re

import pytest

from lwskit.embedded import kubeconfig
from lwskit.embedded.cluster import Cluster
from lwskit.embedded.http import serve
from lwskit.runtime.clock import RealClock, real_random
from lwskit.runtime.errors import AlreadyExists, ApiError, ConfigurationError, Forbidden, InternalError, Invalid
from lwskit.runtime.kinds import CONFIG_MAP, MUTATING_WEBHOOK_CONFIGURATION, NAMESPACE, Kind
from lwskit.runtime.webhook import AdmissionDenied, allowed, defaulter, validator
from lwskit.testing import fake
from lwskit.testing.cluster import ClusterOptions
from lwskit.testing.provide import provide

WIDGET = Kind("example.com", "v1", "Widget", "widgets")


@pytest.fixture
def cluster_crds():
    return [fake.crd_of(WIDGET)]


def default(widget, request):
    widget["spec"].setdefault("size", 1)
    return widget


def check(widget, warn):
    if widget["spec"].get("size") == 10:
        raise AdmissionDenied("spec.size may be 9 at most")


def widget(name="w", **spec):
    return {"metadata": {"name": name}, "spec": spec}


async def the_webhook_is_asked(cluster):
    hook = await cluster.webhook(WIDGET, mutate=defaulter(default), validate=validator(create=check))
    assert (await cluster.create(WIDGET, widget()))["spec"] == {"size": 1}
    text = r'admission webhook "validate.widgets.example.com" denied the request: spec.size may be 9 at most'
    with pytest.raises(Forbidden, match=re.escape(text)):
        await cluster.create(WIDGET, widget("big", size=10))
    await cluster.patch(WIDGET, "w", {"spec": {"size": 2}})
    assert [r["operation"] for r in hook.requests if r["name"] == "w"] == ["CREATE", "CREATE", "UPDATE", "UPDATE"]
    await cluster.delete(WIDGET, "w")
    assert len(hook.requests) == 6


async def test_the_webhook_is_asked(cluster):
    await the_webhook_is_asked(cluster)


async def test_a_handler_that_fails_is_a_refusal_whatever_the_policy(cluster):
    await cluster.webhook(WIDGET, validate=lambda request: {}["nothing"], failurePolicy="Ignore")
    with pytest.raises(ApiError, match=r"denied the request: panic: 'nothing' \[recovered\]"):
        await cluster.create(WIDGET, widget())


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_a_webhook_that_is_down_leaves_it_to_its_policy(cluster, policy):
    hook = await cluster.webhook(WIDGET, mutate=defaulter(default), failurePolicy=policy)
    with hook.down():
        if policy == "Fail":
            with pytest.raises(InternalError, match=r'failed calling webhook "mutate\.widgets\.example\.com"'):
                await cluster.create(WIDGET, widget())
        else:
            assert (await cluster.create(WIDGET, widget()))["spec"] == {}
    assert (await cluster.create(WIDGET, widget("later")))["spec"] == {"size": 1}


async def test_operations_and_settings(cluster):
    hook = await cluster.webhook(WIDGET, validate=validator(), operations=["DELETE"], timeoutSeconds=3)
    await cluster.create(WIDGET, widget())
    await cluster.delete(WIDGET, "w")
    assert [r["operation"] for r in hook.requests] == ["DELETE"]


async def test_what_cannot_be_registered(cluster):
    with pytest.raises(ConfigurationError, match=r"cluster\.webhook needs a handler"):
        await cluster.webhook(WIDGET)
    with pytest.raises(ConfigurationError, match=r"`mutate` is 5, not a handler"):
        await cluster.webhook(WIDGET, mutate=5)
    with pytest.raises(Invalid, match="timeoutSeconds"):
        await cluster.webhook(WIDGET, mutate=lambda request: allowed(), timeoutSeconds=99)
    await cluster.webhook(WIDGET, validate=lambda request: allowed())
    with pytest.raises(AlreadyExists):
        await cluster.webhook(WIDGET, validate=lambda request: allowed())


async def test_the_core_group_has_webhooks_too(cluster):
    await cluster.webhook(CONFIG_MAP, validate=validator(create=lambda obj, warn: warn("noted")))
    await cluster.create(CONFIG_MAP, {"metadata": {"name": "c"}})


@pytest.fixture
async def existing(tmp_path, monkeypatch):
    """A cluster that a kubeconfig leads to, as a user's would be."""
    clock, rng = RealClock(), real_random()
    async with Cluster(clock, rng, nodes=0) as made, serve(made.server, clock=clock, rng=rng) as served:
        path = tmp_path / "kubeconfig"
        kubeconfig.write(path, server=served.url, token=served.token, ca_pem=served.ca_pem)
        monkeypatch.setenv("LWSKIT_KUBECONFIG", str(path))
        yield made


async def test_on_an_existing_cluster_it_is_served(existing):
    options = ClusterOptions(timeout=5)
    async with provide("existing", options, [fake.crd_of(WIDGET)], ()) as cluster:
        await the_webhook_is_asked(cluster)
        with pytest.raises(ConfigurationError, match="virtual_only"), (await _hook(cluster)).down():
            pass
    assert not (await existing.client.list(MUTATING_WEBHOOK_CONFIGURATION))["items"]
    assert not [
        n for n in (await existing.client.list(NAMESPACE))["items"] if n["metadata"]["name"] == cluster.namespace
    ]


async def _hook(cluster):
    return await cluster.webhook(CONFIG_MAP, validate=validator())
