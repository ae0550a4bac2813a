"""What an API server with the webhooks makes of DisaggregatedSets and their scalers.

Specification: 50 §1, §2, §19, §23. Most sets are only tried, as dry runs: the answer is what would be stored.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.runtime.client.requests import warnings
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.errors import ApiError, Forbidden, Invalid, NotFound
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import TestCluster
from tests.dsobjects import NAME, PACE, ds, external, role, rolling, sub, subroles

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
DENIED = 'admission webhook "vdisaggregatedset.kb.io" denied the request: '
INVALID = 'DisaggregatedSet.disaggregatedset.x-k8s.io "{}" is invalid: '
UNCHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
PAUSE = (
    "spec: Invalid value: replicas must be zero for all non-External unpartitioned roles "
    "or non-zero for all non-External unpartitioned roles"
)
RESERVED = "Forbidden: label is reserved for controller-managed sub-role assignment"
EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
SUBGROUP_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
POLICY = {"type": "ExclusiveSlice", "topology": "rack"}


async def tried(cluster: TestCluster, *roles: Obj, **more: object) -> Obj:
    """The spec that would be stored of a set of these roles."""
    obj = ds(*roles, **more)  # type: ignore[arg-type]
    obj["metadata"]["namespace"] = cluster.namespace
    return (await cluster.client.create(DISAGGREGATED_SET, obj, dry_run=True))["spec"]


async def refused(cluster: TestCluster, error: type[ApiError], *roles: Obj, **more: object) -> str:
    """Why a set of these roles is refused."""
    with pytest.raises(error) as caught:
        await tried(cluster, *roles, **more)
    return caught.value.message


async def by_schema(cluster: TestCluster, *roles: Obj, **more: object) -> str:
    """What the schema says of a set of these roles."""
    text = await refused(cluster, Invalid, *roles, **more)
    begin = INVALID.format(more.get("name", "chat"))
    assert text.startswith(begin)
    return text.removeprefix(begin)


async def denied(cluster: TestCluster, *roles: Obj, **more: object) -> str:
    """What the webhook says of a set of these roles."""
    text = await refused(cluster, Forbidden, *roles, **more)
    assert text.startswith(DENIED)
    return text.removeprefix(DENIED)


def listed(texts: Sequence[str]) -> str:
    """Several errors as one text."""
    return f"[{', '.join(texts)}]"


async def send(cluster: TestCluster, method: str, path: str, obj: Obj | None = None, accept: str = "") -> HttpResponse:
    """The bare answer to a request within the test's namespace."""
    headers = {"accept": accept or "application/json", "content-type": "application/json"}
    whole = f"/apis/{names.API_VERSION}/namespaces/{cluster.namespace}/{path}"
    body = None if obj is None else orjson.dumps(obj)
    query = (("dryRun", "All"),) if method == "POST" else ()
    return await cluster.client.transport.send(HttpRequest(method, whole, query, headers, body))


# Roles ----------------------------------------------------------------------------------------------------------------


async def test_how_many_roles(cluster: TestCluster):
    """50 §23 line 1: one to ten."""
    for count in (1, 10):
        stored = await tried(cluster, *(role(f"r{i}") for i in range(count)))
        assert [each["name"] for each in stored["roles"]] == [f"r{i}" for i in range(count)]
    eleven = [role(f"r{i}") for i in range(11)]
    assert await by_schema(cluster, *eleven) == listed(
        ["spec.roles: Too many: 11: must have at most 10 items", UNCHECKED]
    )
    empty = "spec.roles: Invalid value: 0: spec.roles in body should have at least 1 items"
    assert await by_schema(cluster, roles=[]) == empty
    assert "spec.roles: Required value" in await by_schema(cluster, roles=None)


async def test_names_of_roles(cluster: TestCluster):
    """50 §1.1: a role has a name of its own, which can be part of a name."""
    twice = await by_schema(cluster, role(), role("decode"), role())
    assert twice.startswith('spec.roles[2]: Duplicate value: {"name":"prefill"}') or "spec.roles[2]: Duplicate" in twice
    pattern = "spec.roles[0].name in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'"
    for name in ("Pre", "a_b", "-a", "a-", "a.b"):
        assert await by_schema(cluster, role(name)) == f'spec.roles[0].name: Invalid value: "{name}": {pattern}'
    short = 'spec.roles[0].name: Invalid value: "": spec.roles[0].name in body should be at least 1 chars long'
    assert await by_schema(cluster, role("")) == short
    long = "spec.roles[0].name: Too long: may not be more than 63 bytes"
    for name in ("r" * 64, "R" * 64):
        assert long in await by_schema(cluster, role(name))
        assert pattern not in await by_schema(cluster, role(name))
    assert "spec.roles[0].name: Required value" in await by_schema(cluster, {"spec": role()["spec"]})


async def test_what_a_role_is(cluster: TestCluster):
    """50 §1.1: the spec of a LeaderWorkerSet with its defaults, but no rollout strategy of its own accord."""
    stored = await tried(cluster, role(template={"size": None}, replicas=None), role("decode"))
    first = stored["roles"][0]["spec"]
    assert {key: value for key, value in first.items() if key != "leaderWorkerTemplate"} == {
        "replicas": 1,
        "startupPolicy": "LeaderCreated",
        "groupIdentity": "Ordinal",
        "groupReplacementPolicy": "PostTermination",
        "podTerminationPolicy": "Default",
    }
    group = first["leaderWorkerTemplate"]
    assert (group["size"], group["restartPolicy"]) == (1, "RecreateGroupOnPodRestart")
    assert "spec.roles[0].spec: Required value" in await by_schema(cluster, {"name": "prefill"})
    path = "spec.roles[0].spec.leaderWorkerTemplate"
    assert f"{path}: Required value" in await by_schema(cluster, {"name": "prefill", "spec": {"replicas": 1}})
    meta = {"labels": {"a": "1"}, "annotations": {"b": "2"}, "name": "n", "namespace": "m", "finalizers": ["x/y"]}
    stored = await tried(cluster, role(metadata={**meta, "generateName": "g", "newer": 1}))
    assert stored["roles"][0]["metadata"] == meta


async def test_all_or_nothing(cluster: TestCluster):
    """50 §23 line 2: roles with groups beside roles without have somebody else to say so."""
    assert await by_schema(cluster, role(replicas=2), role("decode", replicas=0)) == PAUSE
    # What is not said is one group.
    assert await by_schema(cluster, role(replicas=None), role("decode", replicas=0)) == PAUSE
    for other in (
        external("decode", replicas=0),
        subroles(sub("a", 0), name="decode", replicas=0),
        role("decode", replicas=1),
        role("decode", replicas=None, scaling={}),
    ):
        await tried(cluster, role(replicas=2), other)
    await tried(cluster, role(replicas=0), role("decode", replicas=0))
    await tried(cluster, external(replicas=0), external("decode", replicas=1))
    text = await by_schema(cluster, role(replicas=-1), role("decode", replicas=2))
    at = "spec.roles[0].spec.replicas"
    assert text == listed([f"{at}: Invalid value: -1: {at} in body should be greater than or equal to 0", PAUSE])


async def test_how_roles_roll(cluster: TestCluster):
    """50 §23 line 3: nothing but the pace of a rolling update."""
    for strategy in (None, {}, {"type": "RollingUpdate"}, rolling(partition=0)["rolloutStrategy"]):
        await tried(cluster, role(rolloutStrategy=strategy))
    stored = (await tried(cluster, role(**rolling(maxSurge="50%"))))["roles"][0]["spec"]["rolloutStrategy"]
    pace = {"partition": 0, "maxUnavailable": 1, "maxSurge": "50%"}
    assert stored == {"type": "RollingUpdate", "rollingUpdateConfiguration": pace}
    stored = (await tried(cluster, role(rolloutStrategy={})))["roles"][0]["spec"]["rolloutStrategy"]
    assert stored == {"type": "RollingUpdate"}
    other = await by_schema(cluster, role(rolloutStrategy={"type": "Recreate"}))
    kind = 'spec.roles[0].spec.rolloutStrategy.type: Unsupported value: "Recreate": supported values: "RollingUpdate"'
    assert other == listed([kind, UNCHECKED])
    assert await denied(cluster, role(), role("decode", **rolling(partition=1))) == (
        f"{PACE.format(1)}.partition: Forbidden: partition is not supported by DisaggregatedSet; "
        "rolling updates are managed across roles by the DisaggregatedSet controller"
    )


async def test_the_pace(cluster: TestCluster):
    """50 §23 line 4: something must be able to move where there are groups."""
    for config, shown in (
        ({"maxSurge": 0, "maxUnavailable": 0}, "0"),
        ({"maxSurge": "0%", "maxUnavailable": "0%"}, '"0%"'),
        ({"maxUnavailable": 0}, "0"),
    ):
        stuck = f"Invalid value: {shown}: must not be 0 when `maxSurge` is 0"
        assert (
            await denied(cluster, role(replicas=2, **rolling(**config))) == f"{PACE.format(0)}.maxUnavailable: {stuck}"
        )
        await tried(cluster, role(replicas=0, **rolling(**config)))
    for config in ({"maxSurge": 1, "maxUnavailable": 0}, {"maxSurge": 0, "maxUnavailable": 1}):
        await tried(cluster, role(replicas=2, **rolling(**config)))
    faulty = {"maxUnavailable": -1, "maxSurge": "200%"}
    assert await denied(cluster, role(replicas=2, **rolling(**faulty))) == listed(
        [
            f"{PACE.format(0)}.maxUnavailable: Invalid value: -1: must be greater than or equal to 0",
            f'{PACE.format(0)}.maxSurge: Invalid value: "200%": must not be greater than 100%',
        ]
    )
    assert "a valid percent string must be" in await denied(cluster, role(replicas=2, **rolling(maxSurge="many")))


async def test_groups_that_no_set_could_have(cluster: TestCluster):
    """50 §19: restarts and identity are looked at as in a LeaderWorkerSet."""
    never = role("decode", {"maxGroupRestarts": 1, "restartPolicy": "None"})
    detail = "Invalid value: 1: maxGroupRestarts is only supported when restartPolicy recreates the group"
    at = "spec.roles[1].spec.leaderWorkerTemplate.maxGroupRestarts"
    assert await denied(cluster, role(), never) == f"{at}: {detail}"
    claims = {"volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]}
    detail = 'Invalid value: "Hash": volumeClaimTemplates are not supported with groupIdentity Hash'
    hashed = role(template=claims, groupIdentity="Hash")
    assert await denied(cluster, hashed) == f"spec.roles[0].spec.groupIdentity: {detail}"


# Names ----------------------------------------------------------------------------------------------------------------


async def test_names_of_children(cluster: TestCluster):
    """50 §23 line 5: what is made of the names of set and role has 63 characters at most."""
    cases: Sequence[tuple[int, Obj, Obj]] = (
        (38, {}, {}),
        (37, {"slices": 11}, {}),
        (38, {}, {"replicas": 10}),
        (37, {}, {"replicas": 11}),
        (31, {}, {"groupIdentity": "Hash", "template": {"size": 2}}),
    )
    for limit, spec, more in cases:
        fits, long = "r" * (limit - len("chat")), "r" * (limit + 1 - len("chat"))
        await tried(cluster, role(fits, **more), **spec)
        assert await denied(cluster, role(long, **more), **spec) == (
            f'{NAME.format(0)}: Invalid value: "{long}": the generated names (64 chars) would exceed the DNS-1035 '
            "limit of 63 characters (accounting for StatefulSet revision hash labels); reduce the DisaggregatedSet "
            f"name and/or role name (combined limit: {limit} characters)"
        )


async def test_names_of_scalers(cluster: TestCluster):
    """50 §23 lines 7, 8: a scaler's name is no longer than a name may be, and no other's."""
    name = "c" * 246
    detail = f'Invalid value: "prefill": would produce scaler name "{name}-prefill" exceeding 253 characters'
    assert f"{NAME.format(0)}: {detail}" in await denied(cluster, external(), name=name)
    assert "scaler" not in await denied(cluster, external(), name=name[1:])
    assert await denied(cluster, external("model-a"), subroles(sub("a", mode="External"), name="model")) == (
        'spec.roles[1].subRoles[0].name: Invalid value: "a": generated scaler name collides with spec.roles[0].name'
    )


# Placement ------------------------------------------------------------------------------------------------------------


async def test_placement(cluster: TestCluster):
    """50 §23 line 6: a topology for what is exclusive, and only one who asks for it."""
    for kind in ("ExclusiveSlice", "ExclusiveTopology"):
        assert await denied(cluster, placementPolicy={"type": kind}) == (
            "spec.placementPolicy.topology: Required value: topology is required when type is not None"
        )
        await tried(cluster, placementPolicy={"type": kind, "topology": "rack"})
    assert (await tried(cluster, placementPolicy={}))["placementPolicy"] == {"type": "None"}
    kinds = '"None", "ExclusiveSlice", "ExclusiveTopology"'
    assert await by_schema(cluster, placementPolicy={"type": "Preferred"}) == listed(
        [f'spec.placementPolicy.type: Unsupported value: "Preferred": supported values: {kinds}', UNCHECKED]
    )


@pytest.mark.parametrize("where", ["metadata", "leaderTemplate", "workerTemplate"])
@pytest.mark.parametrize("key", [EXCLUSIVE, SUBGROUP_EXCLUSIVE])
async def test_two_who_place(cluster: TestCluster, where: str, key: str):
    """50 §23 line 6: on create, and on update in both directions."""
    notes = {"annotations": {key: "rack"}}
    pod = {**role()["spec"]["leaderWorkerTemplate"]["workerTemplate"], "metadata": notes}
    asking = role(metadata=notes) if where == "metadata" else role(template={where: pod})
    told = (
        f'spec.roles[0]: Forbidden: the "{key}" annotation must not be combined with a non-None '
        "spec.placementPolicy.type (ExclusiveSlice)"
    )
    assert await denied(cluster, asking, placementPolicy=POLICY) == told
    await tried(cluster, asking)
    await tried(cluster, asking, placementPolicy={"type": "None", "topology": "rack"})
    for name, first, change in (
        ("noted", ds(asking), {"placementPolicy": POLICY}),
        ("placed", ds(role(), placementPolicy=POLICY), {"roles": [asking]}),
    ):
        first["metadata"] = {"name": name}
        await cluster.create(DISAGGREGATED_SET, first)
        with pytest.raises(Forbidden) as caught:
            await cluster.patch(DISAGGREGATED_SET, name, {"spec": change})
        assert caught.value.message == DENIED + told


# Scaling, sub-roles, slices -------------------------------------------------------------------------------------------


async def test_who_counts(cluster: TestCluster):
    """50 §23 line 7: a warning where a count does nothing, and one slice."""
    assert (await tried(cluster, role(scaling={})))["roles"][0]["scaling"] == {"mode": "Static"}
    answer = await send(cluster, "POST", names.PLURAL, ds(external(replicas=3)) | {"metadata": {"name": "chat"}})
    assert answer.status == 201
    assert warnings(answer.headers) == [
        'role "prefill" sets scaling.mode: External and spec.replicas: 3 — spec.replicas is ignored; '
        'drive replicas via DisaggregatedSetRoleScaler "chat-prefill" instead'
    ]
    several = ds(subroles(sub("a", 1), replicas=2)) | {"metadata": {"name": "chat"}}
    assert warnings((await send(cluster, "POST", names.PLURAL, several)).headers) == [
        'role "prefill" defines subRoles: parent spec.replicas is ignored; replicas are the sum of sub-role targets'
    ]
    answer = await send(cluster, "POST", names.PLURAL, ds(external()) | {"metadata": {"name": "chat"}})
    assert warnings(answer.headers) == []
    one = (
        "spec.slices: Forbidden: spec.slices > 1 is not supported while any role has scaling.mode: External "
        "(alpha restriction)"
    )
    assert await denied(cluster, role(), external("decode"), slices=2) == one
    assert await denied(cluster, subroles(sub("a", mode="External")), slices=2) == one
    assert "Unsupported value" in await by_schema(cluster, role(scaling={"mode": "Auto"}))


async def test_sub_roles(cluster: TestCluster):
    """50 §23 line 8: shares of a role's groups, that nobody else assigns."""
    stored = await tried(cluster, subroles(sub("a", 2), sub("b"), sub("c", mode="External")))
    assert stored["roles"][0]["subRoles"] == [sub("a", 2), sub("b"), sub("c", mode="External")]
    assert await denied(cluster, subroles(sub("a"), scaling={"mode": "Static"})) == (
        "spec.roles[0].scaling: Forbidden: parent scaling must be omitted when subRoles is present"
    )
    key = names.SUBROLE_LABEL
    labelled = {**role()["spec"]["leaderWorkerTemplate"]["workerTemplate"], "metadata": {"labels": {key: "a"}}}
    reserved = role(metadata={"labels": {key: "a"}}, template={"workerTemplate": labelled, "leaderTemplate": labelled})
    at = "spec.roles[0].spec.leaderWorkerTemplate"
    assert await denied(cluster, reserved) == listed(
        [
            f"spec.roles[0].metadata.labels[{key}]: {RESERVED}",
            f"{at}.workerTemplate.metadata.labels[{key}]: {RESERVED}",
            f"{at}.leaderTemplate.metadata.labels[{key}]: {RESERVED}",
        ]
    )
    most = 2**31 - 1
    assert (
        f"spec.roles[0].subRoles: Invalid value: {most + 1}: "
        "static replica targets exceed the maximum LWS replica count"
    ) in await denied(cluster, subroles(sub("a", most), sub("b", 1)))


async def test_what_the_schema_says_of_sub_roles(cluster: TestCluster):
    """50 §23 line 9: one to 32 with different names, and who is counted by another has no count."""
    at = "spec.roles[0].subRoles"
    assert await by_schema(cluster, subroles()) == f"{at}: Invalid value: 0: {at} in body should have at least 1 items"
    many = await by_schema(cluster, subroles(*(sub(f"s{i}", 1) for i in range(33))))
    assert f"{at}: Too many: 33: must have at most 32 items" in many
    assert f"{at}[1]: Duplicate value" in await by_schema(cluster, subroles(sub("a"), sub("a")))
    assert f"{at}[0].name: Required value" in await by_schema(cluster, subroles({"replicas": 1}))
    told = f"{at}[1]: Invalid value: replicas must be omitted when scaling.mode is External"
    assert await by_schema(cluster, subroles(sub("a", 0), sub("b", 0, mode="External"))) == told
    await tried(cluster, subroles(sub("a", 0), sub("b", 0, mode="Static")))


async def test_slices(cluster: TestCluster):
    """50 §23 line 10: one unless something else is said, up to a hundred."""
    assert (await tried(cluster))["slices"] == 1
    for slices in (1, 100):
        assert (await tried(cluster, slices=slices))["slices"] == slices
    for slices, bound in ((0, "greater than or equal to 1"), (101, "less than or equal to 100"), (-1, "greater than")):
        text = f"spec.slices: Invalid value: {slices}: spec.slices in body should be {bound}"
        assert text in await by_schema(cluster, slices=slices)


async def test_policies(cluster: TestCluster):
    """50 §1.1: what is not said stays so, and an empty policy is the first of its kinds."""
    stored = await tried(cluster)
    assert sorted(stored) == ["roles", "slices"]
    assert (await tried(cluster, scalingPolicy={}))["scalingPolicy"] == {"duringRollout": "RolloutCoupled"}
    assert "Unsupported value" in await by_schema(cluster, scalingPolicy={"duringRollout": "Never"})


async def test_all_errors_at_once(cluster: TestCluster):
    """50 §19: errors are collected."""
    text = await denied(cluster, external(**rolling(partition=1)), role("d" * 40), slices=2, placementPolicy=POLICY)
    found = [part.split(": ")[0] for part in text.strip("[]").split(", spec.")]
    assert found == [f"{PACE.format(0)}.partition", "slices", "roles[1].name"]


async def test_nothing_is_immutable(cluster: TestCluster):
    """50 §1.1: roles, slices, identity and placement may change."""
    await cluster.create(DISAGGREGATED_SET, ds() | {"metadata": {"name": "chat"}})
    change = {"roles": [role("other", groupIdentity="Hash", replicas=0)], "slices": 2, "placementPolicy": POLICY}
    changed = await cluster.patch(DISAGGREGATED_SET, "chat", {"spec": change})
    assert [each["name"] for each in changed["spec"]["roles"]] == ["other"]
    assert changed["spec"]["slices"] == 2
    await cluster.delete(DISAGGREGATED_SET, "chat")


# What is served -------------------------------------------------------------------------------------------------------


async def test_columns(cluster: TestCluster):
    """50 §1, §2: what `kubectl get` prints."""
    await cluster.create(DISAGGREGATED_SET, ds(role(replicas=0)) | {"metadata": {"name": "chat"}})
    table = orjson.loads((await send(cluster, "GET", f"{names.PLURAL}/chat", accept=TABLE)).body)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Age"]
    await cluster.create(ROLE_SCALER, {"metadata": {"name": "free"}, "spec": {"replicas": 3}})
    table = orjson.loads((await send(cluster, "GET", f"{names.SCALER_PLURAL}/free", accept=TABLE)).body)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Desired", "Current", "Age"]
    assert [column["type"] for column in table["columnDefinitions"][1:]] == ["integer", "integer", "date"]
    assert table["rows"][0]["cells"][:2] == ["free", 3]


@pytest.mark.parametrize("given", [{}, {"spec": {}}, {"spec": {"replicas": 0}}])
async def test_a_scaler_can_be_scaled_before_anybody_has(cluster: TestCluster, given: Obj):
    """50 §2: the count is there in any case, since a Scale cannot be read without it."""
    stored = await cluster.create(ROLE_SCALER, {"metadata": {"name": "free"}, **given})
    assert stored["spec"] == {"replicas": 0}
    scale = await cluster.client.get(ROLE_SCALER, "free", cluster.namespace, "scale")
    assert (scale["kind"], scale["spec"].get("replicas", 0), scale["status"]) == ("Scale", 0, {"replicas": 0})
    await cluster.patch(ROLE_SCALER, "free", {"spec": {"replicas": 5}}, subresource="scale")
    assert (await cluster.get(ROLE_SCALER, "free"))["spec"] == {"replicas": 5}
    seen = {"status": {"replicas": 4, "selector": "a=b"}}
    await cluster.patch(ROLE_SCALER, "free", seen, subresource="status")
    scale = await cluster.client.get(ROLE_SCALER, "free", cluster.namespace, "scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 5}, seen["status"])
    with pytest.raises(Invalid, match=r"spec\.replicas"):
        await cluster.patch(ROLE_SCALER, "free", {"spec": {"replicas": -1}})
    with pytest.raises(Invalid, match=r"spec\.replicas"):
        await cluster.patch(ROLE_SCALER, "free", {"spec": {"replicas": -1}}, subresource="scale")


async def test_a_set_itself_has_no_scale(cluster: TestCluster):
    """50 §1: its roles have."""
    await cluster.create(DISAGGREGATED_SET, ds(role(replicas=0)) | {"metadata": {"name": "chat"}})
    with pytest.raises(NotFound):
        await cluster.client.get(DISAGGREGATED_SET, "chat", cluster.namespace, "scale")


async def test_short_names(cluster: TestCluster):
    """50 §1, §2: scalers have one, sets have none."""
    answer = await cluster.client.transport.send(HttpRequest("GET", f"/apis/{names.API_VERSION}"))
    found = {each["name"]: each for each in orjson.loads(answer.body)["resources"]}
    assert found[names.SCALER_PLURAL]["shortNames"] == ["dsrs"]
    assert "shortNames" not in found[names.PLURAL]
    assert f"{names.SCALER_PLURAL}/scale" in found
    assert f"{names.PLURAL}/scale" not in found
