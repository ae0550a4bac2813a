"""What of an existing CRD ours would take away, and how CRDs are brought to a cluster."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
import structlog

from lwskit.api import crds, names
from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.store import Store
from lwskit.embedded.transport import InProcessTransport
from lwskit.manager.crds import ESTABLISHED_SECONDS, install, missing_in, require
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError, NotFound
from lwskit.runtime.kinds import CUSTOM_RESOURCE_DEFINITION
from lwskit.runtime.objects import Obj


def version(name: str, schema: Obj | None) -> Obj:
    return {"name": name, **({"schema": {"openAPIV3Schema": schema}} if schema is not None else {})}


def crd(*versions: Obj) -> Obj:
    return {"metadata": {"name": "x"}, "spec": {"versions": list(versions)}}


def thing(**properties: Any) -> Obj:
    return {"type": "object", "properties": properties}


TEXT = {"type": "string"}
OURS = crds.leaderworkerset_crd()


@pytest.mark.parametrize(
    ("existing", "missing"),
    [
        (crd(version("v1", thing(a=TEXT))), set()),
        (crd(version("v1", thing())), set()),
        (crd(version("v1", None)), set()),
        (crd(version("v1", {"x-kubernetes-preserve-unknown-fields": True})), set()),
        (crd(version("v1", thing(a=TEXT, c=TEXT))), {"c"}),
        (crd(version("v1", thing(b=thing(new=TEXT)))), {"b.new"}),
        (crd(version("v1", thing(l={"items": thing(known=TEXT, new=TEXT)}))), {"l[].new"}),
        (crd(version("v1", thing(m={"additionalProperties": thing(new=TEXT)}))), {"m[].new"}),
        (crd(version("v1", thing(new=thing(inner=TEXT)))), {"new", "new.inner"}),
        (crd(version("v1", thing(a=TEXT)), version("v2", thing(a=TEXT))), {"version v2"}),
        (crd(version("v1beta1", thing(z=TEXT))), {"version v1beta1"}),
        (crd(version("v1", thing(l={"items": TEXT}, m={"additionalProperties": True}))), set()),
    ],
)
def test_versions_and_fields_that_ours_lacks(existing: Obj, missing: set[str]) -> None:
    ours = crd(
        version(
            "v1",
            thing(
                a=TEXT,
                b=thing(inner=TEXT),
                l={"type": "array", "items": thing(known=TEXT)},
                m={"additionalProperties": thing(known=TEXT)},
            ),
        )
    )
    before = copy.deepcopy((ours, existing))
    assert missing_in(ours, existing) == missing
    assert (ours, existing) == before


def test_our_crd_lacks_nothing_that_it_has() -> None:
    assert missing_in(OURS, crds.leaderworkerset_crd()) == set()


def test_a_field_deep_in_our_crd_is_found() -> None:
    existing = crds.leaderworkerset_crd()
    spec = existing["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["leaderWorkerTemplate"]["properties"]["resizePolicy"] = TEXT
    assert missing_in(OURS, existing) == {"spec.leaderWorkerTemplate.resizePolicy"}


# On a server ---------------------------------------------------------------------------------------------------------


@pytest.fixture
async def client(clock: Clock) -> Client:
    server = ApiServer(Store(), clock, random.Random(1))
    return Client(InProcessTransport(server), clock=clock)


async def stored(client: Client) -> Obj:
    return await client.get(CUSTOM_RESOURCE_DEFINITION, names.CRD_NAME)


async def test_our_crd_is_brought_once(client: Client, clock: Clock) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await require(client)
    assert str(caught.value).startswith(f"the cluster has no CustomResourceDefinition {names.CRD_NAME}; install it")
    await install(client, clock)
    await require(client)
    first = await stored(client)
    await install(client, clock)
    assert (await stored(client))["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_each_kind_is_required(client: Client, clock: Clock) -> None:
    for crd in crds.crds():
        name = crd["metadata"]["name"]
        with pytest.raises(ConfigurationError, match=f"has no CustomResourceDefinition {name};"):
            await require(client)
        await client.create(CUSTOM_RESOURCE_DEFINITION, crd)
    await require(client)


async def test_an_older_one_is_renewed(client: Client, clock: Clock) -> None:
    older = crds.leaderworkerset_crd()
    spec = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["groupIdentity"]
    await client.create(CUSTOM_RESOURCE_DEFINITION, older)
    await install(client, clock)
    fields = (await stored(client))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert "groupIdentity" in fields["properties"]


@pytest.mark.parametrize("field", ["newer", None])
async def test_one_that_has_more_is_left_alone_with_a_warning(client: Client, clock: Clock, field: str | None) -> None:
    existing = crds.leaderworkerset_crd()
    if field:
        spec = existing["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"][field] = TEXT
    else:
        existing["spec"]["versions"].append({**existing["spec"]["versions"][0], "name": "v2", "storage": False})
    before = await client.create(CUSTOM_RESOURCE_DEFINITION, existing)
    with structlog.testing.capture_logs() as logs:
        await install(client, clock)
    assert (await stored(client))["spec"] == before["spec"]
    (warning,) = logs
    assert (warning["log_level"], warning["name"]) == ("warning", names.CRD_NAME)
    assert warning["lacking"] == ("spec.newer" if field else "version v2")


class NeverEstablished(Client):
    """A server that takes a CRD and does not serve it."""

    def __init__(self, clock: Clock, answer: Callable[[], Obj]) -> None:
        self.answer = answer

    async def get(self, *args: Any, **kwargs: Any) -> Obj:
        return self.answer()

    async def apply(self, *args: Any, **kwargs: Any) -> Obj:
        return {}


async def test_a_crd_that_is_never_served_is_told_in_time(clock: Clock) -> None:
    not_accepted = {**OURS, "status": {"conditions": [{"type": "Established", "status": "False"}]}}
    client = NeverEstablished(clock, lambda: not_accepted)
    with pytest.raises(ConfigurationError, match=r"has not established .* within 30 s; `kubectl describe crd"):
        await install(client, clock)
    assert clock.monotonic() == ESTABLISHED_SECONDS


async def test_a_crd_that_vanishes_while_we_wait_is_told_as_it_is(clock: Clock) -> None:
    answers = iter([OURS])

    def answer() -> Obj:
        try:
            return next(answers)
        except StopIteration:
            raise NotFound("gone") from None

    with pytest.raises(NotFound):
        await install(NeverEstablished(clock, answer), clock)
