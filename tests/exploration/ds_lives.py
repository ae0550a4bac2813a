"""Lives of DisaggregatedSets to be explored: roles that are scaled, rolled together, taken back, added and removed."""

from __future__ import annotations

from typing import Any

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.objects import Obj, labels_of
from tests.exploration.driver import Driver, Life, template

SET = "d"
QUIET = 240.0
"""Seconds: a child's news, its workload's and their pods' may have to come one after the other."""


def role(name: str, replicas: int = 2, image: str = "img:v1", *, size: int = 1, **fields: Any) -> Obj:
    """A role; `surge` and `unavailable` are its limits, `scaling` its mode, `subroles` its partitions."""
    surge, unavailable = fields.pop("surge", 1), fields.pop("unavailable", 0)
    found: Obj = {
        "name": name,
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {"size": size, "workerTemplate": template(image, **fields.pop("pod", {}))},
            "rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": surge, "maxUnavailable": unavailable}},
            **fields.pop("spec", {}),
        },
    }
    if mode := fields.pop("scaling", None):
        found["scaling"] = {"mode": mode}
    if parts := fields.pop("subroles", None):
        found["subRoles"] = [{"name": part, "replicas": count} for part, count in parts.items()]
    return {**found, **fields}


async def create(d: Driver, *roles: Obj, **spec: Any) -> None:
    """A set that becomes ready in a while."""
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": SET},
        "spec": {"roles": roles, **spec},
    }
    await d.cluster.create(DISAGGREGATED_SET, body)
    await d.a_while()


async def edit(d: Driver, *roles: Obj, **spec: Any) -> None:
    """Other roles, and other fields of the spec."""
    body: Obj = {**spec, "roles": roles} if roles else spec
    await d.cluster.patch(DISAGGREGATED_SET, SET, {"spec": body})


async def children(d: Driver, role_name: str = "", slice_index: int = 0) -> list[Obj]:
    """The LeaderWorkerSets of a slice, or of one role of it, by name."""
    selector = f"{names.NAME_LABEL}={SET},{names.SLICE_LABEL}={slice_index}"
    found = await d.cluster.list(
        LEADER_WORKER_SET, selector + (f",{names.ROLE_LABEL}={role_name}" if role_name else "")
    )
    return sorted(found, key=lambda lws: lws["metadata"]["name"])


async def begun(d: Driver, groups: int = 1) -> None:
    """Wait until a second revision is asked to have groups: a rollout to it has begun."""

    async def check() -> None:
        found: dict[str, int] = {}
        for lws in await children(d):
            revision = labels_of(lws)[names.REVISION_LABEL]
            found[revision] = found.get(revision, 0) + lws["spec"]["replicas"]
        assert len(found) > 1
        assert all(count >= groups for count in found.values())

    await d.cluster.eventually(check)


async def scale(d: Driver, role_name: str, replicas: int) -> None:
    """As an autoscaler does."""
    body = {"spec": {"replicas": replicas}}
    await d.cluster.patch(ROLE_SCALER, f"{SET}-{role_name}", body, subresource="scale")


async def ds_creation(d: Driver) -> None:
    await create(d, role("prefill", 1), role("decode", 2, size=2))


async def ds_creation_in_slices(d: Driver) -> None:
    await create(d, role("prefill", 1), role("decode", 1), slices=2)


async def ds_scaling(d: Driver) -> None:
    await create(d, role("prefill", 1), role("decode", 2))
    for prefill, decode in ((3, 1), (0, 0), (1, 2)):
        await edit(d, role("prefill", prefill), role("decode", decode))
        await d.a_while()


async def ds_rollout(d: Driver) -> None:
    await create(d, role("prefill", 2), role("decode", 1))
    await edit(d, role("prefill", 2, "img:v2"), role("decode", 1, "img:v2"))
    await d.a_while()


async def ds_rollout_without_surge(d: Driver) -> None:
    limits: dict[str, Any] = {"surge": 0, "unavailable": 1}
    await create(d, role("prefill", 2, **limits), role("decode", 1, size=2, **limits))
    await edit(d, role("prefill", 2, "img:v2", **limits), role("decode", 1, "img:v2", size=2, **limits))
    await d.a_while()


async def ds_rollout_and_scaling(d: Driver) -> None:
    await create(d, role("prefill", 2), role("decode", 2))
    await edit(d, role("prefill", 1, "img:v2"), role("decode", 3, "img:v2"))
    await d.a_while()


async def ds_rollout_that_is_taken_back(d: Driver) -> None:
    """It stands still until then, as its pods cannot become ready."""
    await create(d, role("prefill", 2), role("decode", 1))
    nowhere = {"nodeSelector": {"no": "where"}}
    await edit(d, role("prefill", 2, pod=nowhere), role("decode", 1, pod=nowhere))
    await d.a_while()
    await edit(d, role("prefill", 2), role("decode", 1))
    await d.a_while()


async def ds_rollout_that_is_taken_back_midway(d: Driver) -> None:
    await create(d, role("prefill", 3), role("decode", 2))
    await edit(d, role("prefill", 3, "img:v2"), role("decode", 2, "img:v2"))
    await begun(d)
    await edit(d, role("prefill", 3), role("decode", 2))
    await d.a_while()


async def ds_a_broken_revision_in_the_middle(d: Driver) -> None:
    """The first and the last work."""
    await create(d, role("prefill", 2), role("decode", 1))
    nowhere = {"nodeSelector": {"no": "where"}}
    await edit(d, role("prefill", 2, pod=nowhere), role("decode", 1, pod=nowhere))
    await d.a_while()
    await edit(d, role("prefill", 2, "img:v3"), role("decode", 1, "img:v3"))
    await d.a_while()


async def ds_a_rollout_that_is_overtaken(d: Driver) -> None:
    await create(d, role("prefill", 3), role("decode", 2))
    await edit(d, role("prefill", 3, "img:v2"), role("decode", 2, "img:v2"))
    await begun(d)
    await edit(d, role("prefill", 2, "img:v3"), role("decode", 2, "img:v3"))
    await d.a_while()


async def ds_a_role_is_added(d: Driver) -> None:
    await create(d, role("prefill", 2), role("decode", 1))
    await edit(d, role("prefill", 2), role("decode", 1), role("encode", 2))
    await d.a_while()


async def ds_a_role_is_removed(d: Driver) -> None:
    await create(d, role("prefill", 2), role("decode", 1), role("encode", 1))
    await edit(d, role("prefill", 2), role("decode", 1))
    await d.a_while()


async def ds_all_roles_are_renamed(d: Driver) -> None:
    await create(d, role("prefill", 2), role("decode", 1))
    await edit(d, role("p2", 2), role("d2", 1))
    await d.a_while()


async def ds_slices_come_and_go(d: Driver) -> None:
    roles = (role("prefill", 1), role("decode", 1))
    await create(d, *roles, slices=2)
    for slices in (1, 3):
        await edit(d, slices=slices)
        await d.a_while()


async def ds_slices_are_rolled(d: Driver) -> None:
    await create(d, role("prefill", 1), role("decode", 1), slices=2)
    await edit(d, role("prefill", 1, "img:v2"), role("decode", 1, "img:v2"))
    await d.a_while()


async def ds_a_slice_goes_in_a_rollout(d: Driver) -> None:
    await create(d, role("prefill", 2), role("decode", 2), slices=2)
    await edit(d, role("prefill", 2, "img:v2"), role("decode", 2, "img:v2"))
    await begun(d)
    await edit(d, slices=1)
    await d.a_while()


async def ds_a_scaler(d: Driver) -> None:
    await create(d, role("prefill", 1), role("decode", 1, scaling="External"))
    for replicas in (3, 0, 2):
        await scale(d, "decode", replicas)
        await d.a_while()
    await edit(d, role("prefill", 1), role("decode", 1))
    await d.a_while()


async def ds_a_role_gets_a_scaler(d: Driver) -> None:
    await create(d, role("prefill", 1), role("decode", 3))
    await edit(d, role("prefill", 1), role("decode", 1, scaling="External"))
    await d.a_while()
    await d.cluster.delete(ROLE_SCALER, f"{SET}-decode")
    await d.a_while()


async def _scaled_in_a_rollout(d: Driver, policy: str, replicas: int) -> None:
    fields = {"scalingPolicy": {"duringRollout": policy}}
    await create(d, role("prefill", 2), role("decode", 3, scaling="External"), **fields)
    await scale(d, "decode", 3)
    await d.a_while()
    nowhere = {"nodeSelector": {"no": "where"}}
    await edit(d, role("prefill", 2, pod=nowhere), role("decode", 3, pod=nowhere, scaling="External"))
    await d.a_while()
    await scale(d, "decode", replicas)
    await d.a_while()
    await edit(d, role("prefill", 2, "img:v3"), role("decode", 3, "img:v3", scaling="External"))
    await d.a_while()


async def ds_fewer_groups_in_a_rollout(d: Driver) -> None:
    await _scaled_in_a_rollout(d, names.ROLLOUT_COUPLED, 1)


async def ds_fewer_groups_at_once_in_a_rollout(d: Driver) -> None:
    await _scaled_in_a_rollout(d, names.ADVANCE_ROLLOUT, 1)


async def ds_more_groups_at_once_in_a_rollout(d: Driver) -> None:
    await _scaled_in_a_rollout(d, names.ADVANCE_ROLLOUT, 4)


async def ds_a_child_is_deleted(d: Driver) -> None:
    await create(d, role("prefill", 1), role("decode", 2))
    (child,) = await children(d, "decode")
    await d.cluster.delete(LEADER_WORKER_SET, child["metadata"]["name"])
    await d.a_while()


async def ds_a_child_is_changed_by_hand(d: Driver) -> None:
    """Its count is put back, and so is its measure."""
    await create(d, role("prefill", 1), role("decode", 2))
    name = (await children(d, "decode"))[0]["metadata"]["name"]
    await d.cluster.patch(LEADER_WORKER_SET, name, {"spec": {"replicas": 4}})
    await d.a_while()
    note = {names.INITIAL_REPLICAS_ANNOTATION: None}
    await d.cluster.patch(LEADER_WORKER_SET, name, {"metadata": {"annotations": note}})
    await d.a_while()


async def ds_a_measure_is_lost_in_a_rollout(d: Driver) -> None:
    await create(d, role("prefill", 2), role("decode", 1))
    nowhere = {"nodeSelector": {"no": "where"}}
    await edit(d, role("prefill", 2, pod=nowhere), role("decode", 1, pod=nowhere))
    await d.a_while()
    for child in await children(d):
        note = {names.INITIAL_REPLICAS_ANNOTATION: None}
        await d.cluster.patch(LEADER_WORKER_SET, child["metadata"]["name"], {"metadata": {"annotations": note}})
    await edit(d, role("prefill", 2, "img:v3"), role("decode", 1, "img:v3"))
    await d.a_while()


async def ds_deletion(d: Driver) -> None:
    await create(d, role("prefill", 1), role("decode", 1, scaling="External"))
    await d.cluster.delete(DISAGGREGATED_SET, SET)
    await d.a_while()


async def ds_foreground_deletion(d: Driver) -> None:
    await create(d, role("prefill", 1), role("decode", 1, scaling="External"))
    await d.cluster.delete(DISAGGREGATED_SET, SET, "Foreground")
    await d.a_while()


async def ds_deletion_in_a_rollout(d: Driver) -> None:
    await create(d, role("prefill", 3), role("decode", 2))
    await edit(d, role("prefill", 3, "img:v2"), role("decode", 2, "img:v2"))
    await begun(d)
    await d.cluster.delete(DISAGGREGATED_SET, SET)
    await d.a_while()


async def ds_a_set_of_the_same_name(d: Driver) -> None:
    await create(d, role("prefill", 1), role("decode", 1))
    await d.cluster.delete(DISAGGREGATED_SET, SET)
    await create(d, role("prefill", 2), role("decode", 1))


async def ds_without_groups(d: Driver) -> None:
    """Another template while there are none, and then some again."""
    await create(d, role("prefill", 0), role("decode", 0))
    await edit(d, role("prefill", 0, "img:v2"), role("decode", 0, "img:v2"))
    await d.a_while()
    await edit(d, role("prefill", 1, "img:v2"), role("decode", 1, "img:v2"))
    await d.a_while()


async def ds_subroles(d: Driver) -> None:
    await create(d, role("prefill", 1), role("decode", subroles={"long": 2, "short": 1}))
    await edit(d, role("prefill", 1), role("decode", subroles={"long": 1, "short": 2}))
    await d.a_while()
    await edit(d, role("prefill", 1), role("decode", subroles={"long": 1, "short": 1}))
    await d.a_while()
    await edit(d, role("prefill", 1), role("decode", 2))
    await d.a_while()


async def ds_subroles_are_rolled(d: Driver) -> None:
    await create(d, role("prefill", 1), role("decode", subroles={"long": 2, "short": 1}))
    await edit(d, role("prefill", 1, "img:v2"), role("decode", 1, "img:v2", subroles={"long": 2, "short": 1}))
    await d.a_while()


async def ds_subroles_of_keyed_groups(d: Driver) -> None:
    """A ReplicaSet chooses which groups go."""
    fields: dict[str, Any] = {"spec": {"groupIdentity": "Hash"}}
    await create(d, role("prefill", 1), role("decode", subroles={"long": 2, "short": 1}, **fields))
    await edit(d, role("prefill", 1), role("decode", subroles={"long": 1, "short": 1}, **fields))
    await d.a_while()
    image = "img:v2"
    await edit(d, role("prefill", 1, image), role("decode", 1, image, subroles={"long": 1, "short": 1}, **fields))
    await d.a_while()


async def ds_keyed_groups(d: Driver) -> None:
    fields: dict[str, Any] = {"groupIdentity": "Hash"}
    await create(d, role("prefill", 1, spec=fields), role("decode", 2))
    await edit(d, role("prefill", 2, "img:v2", spec=fields), role("decode", 1, "img:v2"))
    await d.a_while()


MIDWAY = (
    ds_rollout_that_is_taken_back_midway,
    ds_a_rollout_that_is_overtaken,
    ds_a_slice_goes_in_a_rollout,
    ds_a_child_is_changed_by_hand,
    ds_deletion_in_a_rollout,
    ds_a_set_of_the_same_name,
)
"""Lives in which something is done while something else goes on: how many pods that takes depends on who is faster."""

KEYED = (ds_keyed_groups, ds_subroles_of_keyed_groups)
"""Lives of groups that are known by keys, which are drawn."""

DS_LIVES = tuple(
    Life(drive, same_pods=drive not in MIDWAY, drawn=drive in KEYED, quiet=QUIET)
    for drive in (
        ds_creation,
        ds_creation_in_slices,
        ds_scaling,
        ds_rollout,
        ds_rollout_without_surge,
        ds_rollout_and_scaling,
        ds_rollout_that_is_taken_back,
        ds_rollout_that_is_taken_back_midway,
        ds_a_broken_revision_in_the_middle,
        ds_a_rollout_that_is_overtaken,
        ds_a_role_is_added,
        ds_a_role_is_removed,
        ds_all_roles_are_renamed,
        ds_slices_come_and_go,
        ds_slices_are_rolled,
        ds_a_slice_goes_in_a_rollout,
        ds_a_scaler,
        ds_a_role_gets_a_scaler,
        ds_fewer_groups_in_a_rollout,
        ds_fewer_groups_at_once_in_a_rollout,
        ds_more_groups_at_once_in_a_rollout,
        ds_a_child_is_deleted,
        ds_a_child_is_changed_by_hand,
        ds_a_measure_is_lost_in_a_rollout,
        ds_deletion,
        ds_foreground_deletion,
        ds_deletion_in_a_rollout,
        ds_a_set_of_the_same_name,
        ds_without_groups,
        ds_subroles,
        ds_subroles_are_rolled,
        ds_subroles_of_keyed_groups,
        ds_keyed_groups,
    )
)
