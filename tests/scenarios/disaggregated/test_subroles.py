"""Roles that are divided among sub-roles (specification: 50 §13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.disaggregated.kinds import ROLE_SCALER
from lwskit.groups.identity import is_leader
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import InternalError
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, annotations_of, condition_of, is_deleting, is_true, labels_of, uid_of
from lwskit.runtime.webhook import AdmissionDenied, Warn, validator
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import matching
from lwskit.testing.observer import Change
from tests.scenarios.disaggregated.rollouts import finished
from tests.scenarios.disaggregated.support import DisaggregatedSets, replicas_of, role, rolling
from tests.scenarios.written import nothing_at_rest

HASH = {"groupIdentity": "Hash"}


def divided(name: str = "prefill", /, *external: str, size: int = 1, spec: Obj | None = None, **counts: int) -> Obj:
    """A role with these sub-roles; those of `external` are scaled from outside."""
    subroles: list[Obj] = [{"name": sub, "replicas": count} for sub, count in counts.items()]
    subroles += [{"name": sub, "scaling": {"mode": names.SCALING_EXTERNAL}} for sub in external]
    return role(name, None, size=size, subRoles=subroles, spec=spec or {})


async def resize(sets: DisaggregatedSets, **counts: int) -> None:
    """Other counts of the sub-roles of `prefill`."""

    def change(one: Obj) -> None:
        if one["name"] == "prefill":
            one["subRoles"] = [{"name": sub, "replicas": count} for sub, count in counts.items()]

    await sets.edit_roles(change)


async def labels(sets: DisaggregatedSets) -> dict[str, str]:
    """The sub-role of each group of `prefill`, by ordinal or key; `?` where its pods do not agree, `-` for none."""
    found: dict[str, set[str]] = {}
    for pod in await sets.pods():
        said = labels_of(pod)
        if said[names.ROLE_LABEL] == "prefill" and not is_deleting(pod):
            found.setdefault(said[base.GROUP_INDEX_LABEL], set()).add(said.get(names.SUBROLE_LABEL, "-"))
    return {group: said.pop() if len(said) == 1 else "?" for group, said in sorted(found.items())}


async def assigned(sets: DisaggregatedSets) -> Counter[str]:
    """How many groups each sub-role has."""
    return Counter((await labels(sets)).values())


async def has(sets: DisaggregatedSets, **counts: int) -> None:
    """Wait for each sub-role to have so many groups, while all pods become ready."""

    async def check() -> None:
        assert await assigned(sets) == counts

    await sets.eventually(check)


async def leaders(sets: DisaggregatedSets) -> dict[str, str]:
    """UIDs of the leaders of `prefill` by name."""
    return {pod["metadata"]["name"]: uid_of(pod) for pod in await sets.pods() if is_leader(pod)}


async def test_one_set_has_the_groups_of_all_sub_roles(sets: DisaggregatedSets):
    """50 §23 line 59: given children 5 and 2, one LWS with replicas 7 and labels 5/2 on all pods of its groups."""
    live = await sets.running(divided(a=5, b=2, size=2))
    await sets.has_children("0/prefill=7")
    assert await assigned(sets) == {"a": 5, "b": 2}
    child = await sets.child("prefill")
    assert annotations_of(child)[names.SUBROLE_REPLICAS_ANNOTATION] == '{"a":5,"b":2}'
    assert names.SUBROLE_LABEL not in str(child["spec"]), "nothing of it stands in a template"
    assert await sets.rows() == {
        "prefill": {"desiredReplicas": 7, "replicas": 7, "readyReplicas": 7, "updatedReplicas": 7},
        "prefill/a": {"desiredReplicas": 5, "replicas": 5, "readyReplicas": 5, "updatedReplicas": 5},
        "prefill/b": {"desiredReplicas": 2, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2},
    }
    assert [one["name"] for one in live["status"]["roleStatuses"]] == ["prefill", "prefill/a", "prefill/b"]
    assert (await sets.conditions())[names.CONDITION_SUBROLES_ASSIGNED] == ("True", names.REASON_GROUPS_ASSIGNED)


@pytest.mark.undisturbed("it counts requests")
async def test_nothing_is_written_about_divided_sets_at_rest(cluster: TestCluster, sets: DisaggregatedSets):
    """Neither label nor status is written again."""
    await sets.running(divided(a=2, b=1, size=2))
    await sets.settled()
    await nothing_at_rest(cluster)


async def test_where_the_sum_stays_two_groups_change_their_label_once_all_are_ready(
    cluster: TestCluster, sets: DisaggregatedSets
):
    """50 §23 line 60: given 5/2→3/4, no replica change, and only two groups are relabelled."""
    await sets.running(divided(a=5, b=2, size=2))
    before, said = await leaders(sets), await labels(sets)
    name = (await sets.child("prefill"))["metadata"]["name"]
    await cluster.kubelet.unready(f"{name}-0")

    async def known() -> None:
        assert (await sets.rows())["prefill"]["readyReplicas"] == 6

    await cluster.eventually(known)
    await resize(sets, a=3, b=4)

    async def planned() -> None:
        assert annotations_of(await sets.child("prefill"))[names.SUBROLE_PLAN_ANNOTATION] == '{"a":3,"b":4}'

    await cluster.eventually(planned)

    async def waits() -> None:
        assert await labels(sets) == said

    await cluster.consistently(waits)
    await has(sets, a=3, b=4)
    await sets.ready()
    now = await labels(sets)
    assert sorted(said[group] + now[group] for group in now if said[group] != now[group]) == ["ab", "ab"]
    assert await leaders(sets) == before, "no pod was replaced"
    child = await sets.child("prefill")
    assert (replicas_of(child), child["metadata"]["generation"]) == (7, 1)
    assert annotations_of(child)[names.SUBROLE_REPLICAS_ANNOTATION] == '{"a":3,"b":4}'
    assert names.SUBROLE_PLAN_ANNOTATION not in annotations_of(child)


@pytest.mark.undisturbed("it looks at every change")
async def test_groups_lose_their_label_before_the_set_shrinks(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 61: given 5/2→3/2, high ordinals lose their label before the Spec becomes 5."""
    await sets.running(divided(a=5, b=2))
    async with cluster.observe(POD) as pods, cluster.observe(LEADER_WORKER_SET) as children:
        await resize(sets, a=3, b=2)
        await sets.has_children("0/prefill=5")
        await has(sets, a=3, b=2)
    shrunk = min(int(c.obj["metadata"]["resourceVersion"]) for c in children.changes if replicas_of(c.obj) == 5)
    for high in ("5", "6"):
        cleared = [
            int(c.obj["metadata"]["resourceVersion"])
            for c in pods.changes
            if labels_of(c.obj)[base.GROUP_INDEX_LABEL] == high and names.SUBROLE_LABEL not in labels_of(c.obj)
        ]
        assert min(cleared) < shrunk
    await sets.ready()


async def test_a_recreated_pod_gets_its_label_back(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 62: given a recreated pod, its group is relabelled."""
    await sets.running(divided(a=1, b=2, size=2))
    said = await labels(sets)
    name = (await sets.child("prefill"))["metadata"]["name"]
    for pod in (f"{name}-1-1", f"{name}-2"):
        old = uid_of(await cluster.get(POD, pod))
        await cluster.delete(POD, pod)

        async def labelled(pod: str = pod, old: str = old) -> None:
            assert uid_of(await cluster.get(POD, pod)) != old
            assert await labels(sets) == said

        await sets.eventually(labelled)


async def test_without_sub_roles_labels_and_annotations_vanish(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 63: given subRoles removed, then labels and annotations vanish without a rollout."""
    await sets.running(divided(a=2, b=1))
    before, revisions = await leaders(sets), await sets.revisions()

    def change(one: Obj) -> None:
        del one["subRoles"]
        one["spec"]["replicas"] = 3

    await sets.edit_roles(change)

    async def united() -> None:
        assert {*(await labels(sets)).values()} == {"-"}
        notes = annotations_of(await sets.child("prefill"))
        assert not [key for key in notes if "subrole" in key]

    await sets.eventually(united)
    await sets.ready()
    assert (await leaders(sets), await sets.revisions()) == (before, revisions)
    assert [*await sets.rows()] == ["prefill"]
    assert names.CONDITION_SUBROLES_ASSIGNED not in await sets.conditions()


async def test_a_role_that_runs_is_divided_as_it_is(sets: DisaggregatedSets):
    """50 §13, first use: counts are fitted to the present Spec, then scaled; nothing rolls."""
    await sets.running(role("prefill", 3))
    before, revisions = await leaders(sets), await sets.revisions()
    await resize(sets, a=2, b=2)
    await has(sets, a=2, b=2)
    await sets.ready()
    assert before.items() <= (await leaders(sets)).items()
    assert await sets.revisions() == revisions


async def test_a_sub_role_is_scaled_from_outside(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 64: given an External child, scaler `<ds>-<role>-<sub>` with the four-part selector."""
    await sets.create(divided("prefill", "b", a=2))
    scaler = await sets.scaler("chat-prefill-b")
    assert labels_of(scaler)[names.SUBROLE_LABEL] == "b"
    await sets.ready()
    await sets.scale("chat-prefill-b", 3)
    await has(sets, a=2, b=3)
    await sets.ready()

    async def published() -> None:
        status = (await cluster.get(ROLE_SCALER, "chat-prefill-b"))["status"]
        assert status["replicas"] == 3
        assert status["selector"] == (
            f"{names.NAME_LABEL}=chat,{names.ROLE_LABEL}=prefill,{base.WORKER_INDEX_LABEL}=0,{names.SUBROLE_LABEL}=b"
        )
        assert len(await cluster.list(POD, status["selector"])) == 3

    await cluster.eventually(published)


async def test_an_incoherent_group_counts_nowhere(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 65: given one incoherent group, SubRolesAssigned is False and the group counts nowhere."""
    await sets.running(divided(a=2, b=1, size=2))
    name, said = (await sets.child("prefill"))["metadata"]["name"], await labels(sets)
    other = "b" if said["0"] == "a" else "a"
    cluster.interceptors[0].fail(matching("PATCH", f"/pods/{name}-0-1$"), InternalError("boom"), times=None)
    await cluster.patch(POD, f"{name}-0-1", {"metadata": {"labels": {names.SUBROLE_LABEL: other}}})

    async def incoherent() -> None:
        found = await sets.condition(names.CONDITION_SUBROLES_ASSIGNED)
        assert (found["status"], found["reason"]) == ("False", names.REASON_GROUPS_UNASSIGNED)
        assert found["message"].endswith(f": {name}-0")
        rows = await sets.rows()
        left = Counter(said.values()) - Counter([said["0"]])
        assert rows["prefill"]["replicas"] == 3
        assert {name: rows[f"prefill/{name}"].get("replicas", 0) for name in "ab"} == {n: left[n] for n in "ab"}
        assert (await sets.conditions())[names.CONDITION_AVAILABLE][0] == "False"

    await cluster.eventually(incoherent)
    cluster.interceptors[0].clear()
    await has(sets, a=2, b=1)
    await sets.ready()


async def test_corrupt_counts_keep_the_slice_as_it_is_until_they_are_mended(
    cluster: TestCluster, sets: DisaggregatedSets
):
    """50 §13: sum ≠ Spec is an error and blocks that LWS; other slices go on."""
    await sets.running(divided(a=2, b=1), slices=2)
    name = (await sets.child("prefill"))["metadata"]["name"]
    await cluster.patch(LEADER_WORKER_SET, name, {"spec": {"replicas": 5}})
    await resize(sets, a=3, b=1)
    await sets.has_children("0/prefill=5", "1/prefill=4")
    await cluster.patch(LEADER_WORKER_SET, name, {"spec": {"replicas": 3}})
    await sets.ready()
    await sets.has_children("0/prefill=4", "1/prefill=4")


# Rollouts -------------------------------------------------------------------------------------------------------------


class Watch:
    """The ready groups of one pod of each sub-role, as the changes of pods tell them one after another."""

    def __init__(self, pods: Iterable[Obj]) -> None:
        self.pods = {uid_of(pod): pod for pod in pods}
        self.least = self._ready()

    def put(self, change: Change) -> None:
        """Take in a change."""
        if change.type == "DELETED":
            self.pods.pop(change.uid, None)
        else:
            self.pods[change.uid] = change.obj
        ready = self._ready()
        self.least = Counter({name: min(count, ready[name]) for name, count in self.least.items()})

    def _ready(self) -> Counter[str]:
        return Counter(
            labels_of(pod)[names.SUBROLE_LABEL]
            for pod in self.pods.values()
            if is_true(pod, "Ready") and not is_deleting(pod) and names.SUBROLE_LABEL in labels_of(pod)
        )


@pytest.mark.parametrize("spec", [{}, HASH], ids=["ordinal", "hash"])
@pytest.mark.undisturbed("a pod that is deleted meanwhile is below any floor")
async def test_each_sub_role_keeps_its_floor_in_a_rollout(cluster: TestCluster, sets: DisaggregatedSets, spec: Obj):
    """50 §23 line 66: given a rollout, each child's floor is kept separately."""
    await sets.running(divided(a=3, b=2, spec={**rolling(1, 0), **spec}), role("decode", 2, spec=rolling(1, 0)))
    (old,) = await sets.revisions()
    async with cluster.observe(POD) as pods:
        watch = Watch(await sets.pods())
        assert watch.least == {"a": 3, "b": 2}
        await sets.set_image("img:v2")

        async def rolled() -> None:
            assert len(await sets.children()) == 2
            assert old not in await sets.revisions()

        async with cluster.kubelet.playing():
            await cluster.eventually(rolled, timeout=120)
        await sets.ready()
    for change in pods.changes:
        if labels_of(change.obj).get(names.ROLE_LABEL) == "prefill":
            watch.put(change)
    assert watch.least == {"a": 3, "b": 2}
    assert await assigned(sets) == {"a": 3, "b": 2}
    notes = [e["note"] for e in await sets.events() if e["reason"] == names.EVENT_SCALING_DOWN]
    assert any(f"chat-0-{old}-prefill from 5 to" in note for note in notes), notes


async def test_sub_roles_that_change_in_a_rollout_are_no_further_revision(
    cluster: TestCluster, sets: DisaggregatedSets
):
    """50 §13: neither rolls; the old revision drains with the names that it has."""
    await sets.running(divided(a=2, b=1, spec=rolling(1, 0)))
    (old,) = await sets.revisions()
    await sets.set_image("img:v2")

    async def begun() -> None:
        assert len(await sets.revisions()) == 2

    await cluster.eventually(begun)
    await resize(sets, a=1, c=3)

    async def rolled() -> None:
        found = await sets.revisions()
        assert len(found) == 1
        assert old not in found
        assert await assigned(sets) == {"a": 1, "c": 3}

    async with cluster.kubelet.playing():
        await cluster.eventually(rolled, timeout=120)
    await sets.ready()


# Groups with keys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2])
async def test_with_keys_groups_of_the_right_sub_role_go(sets: DisaggregatedSets, size: int):
    """50 §13, Hash identity: 5/2→5/1→2/1→1/3, and nobody else's pods go."""
    await sets.running(divided(a=5, b=2, size=size, spec=HASH))
    assert await assigned(sets) == {"a": 5, "b": 2}
    before = await labels(sets)
    for counts in ({"a": 5, "b": 1}, {"a": 2, "b": 1}):
        await resize(sets, **counts)
        await sets.has_children(f"0/prefill={sum(counts.values())}")
        await sets.ready()
        left = await labels(sets)
        assert left.items() <= before.items(), "no group was made, none has changed its sub-role"
        assert Counter(left.values()) == counts
        before = left
    await resize(sets, a=1, b=3)
    await sets.has_children("0/prefill=4")
    await sets.ready()
    assert await assigned(sets) == {"a": 1, "b": 3}
    assert before.keys() <= (await labels(sets)).keys()
    assert not [pod for pod in await sets.pods() if names.SUBROLE_VICTIM_ANNOTATION in annotations_of(pod)]


# What cannot be read --------------------------------------------------------------------------------------------------


async def test_a_scaler_whose_seed_cannot_be_read(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §5 item 6, §16: the status says which part has no count, and all goes on once what was broken is mended."""
    parts = [{"name": "a", "replicas": 1}, {"name": "b", "scaling": {"mode": "External"}}]
    await sets.running(role("prefill", None, subRoles=parts), role("decode", 1))
    child = await sets.child("prefill")
    key = names.SUBROLE_REPLICAS_ANNOTATION
    issued = annotations_of(child)[key]
    await cluster.patch(LEADER_WORKER_SET, child["metadata"]["name"], {"metadata": {"annotations": {key: "{"}}})
    # News of children and of scalers reach the manager by different ways.
    await sets.settled()
    await cluster.delete(ROLE_SCALER, "chat-prefill-b")
    await sets.scale_role("decode", 2)

    async def told() -> None:
        ds = await sets.live()
        assert ds["status"]["observedGeneration"] == ds["metadata"]["generation"]
        found = condition_of(ds, names.CONDITION_PROGRESSING) or {}
        message = names.MESSAGE_TARGETS_UNRESOLVED.format(roles="prefill/b")
        assert (found.get("reason"), found.get("message")) == (names.REASON_TARGETS_UNRESOLVED, message)

    await cluster.eventually(told)
    await cluster.patch(LEADER_WORKER_SET, child["metadata"]["name"], {"metadata": {"annotations": {key: issued}}})
    async with cluster.kubelet.playing():
        await sets.has_children("0/prefill=2", "0/decode=2")
    assert await cluster.names(ROLE_SCALER) == ["chat-prefill-b"]


@pytest.mark.parametrize("spec", [{}, HASH])
async def test_a_role_that_is_divided_in_the_middle_of_a_rollout_keeps_what_serves(
    cluster: TestCluster, sets: DisaggregatedSets, spec: Obj
):
    """50 §7.5, §13: groups that are ready count for their sub-roles before the next step is decided."""
    await sets.running(role("prefill", 3, spec={**rolling(1, 0), **spec}))
    await sets.settled()
    before = await leaders(sets)
    await sets.set_image("img:v2")
    await sets.has_children("0/prefill=3", "0/prefill=1")
    await resize(sets, a=2, b=1)
    await sets.settled()
    # Each sub-role has a surge of its own.
    await sets.has_children("0/prefill=3", "0/prefill=2")
    assert before.items() <= (await leaders(sets)).items()
    serving = Counter(labels_of(p).get(names.SUBROLE_LABEL) for p in await sets.pods() if is_true(p, "Ready"))
    assert serving == {"a": 2, "b": 1}
    await has(sets, a=2, b=1)
    await sets.ready()


async def test_counts_that_no_child_may_have_hold_up_nothing(sets: DisaggregatedSets) -> None:
    """They are not begun: the other role is scaled, and so is this one when they are corrected."""
    await sets.running(divided(a=2, b=2), role("decode"))
    await resize(sets, a=1_000_001, b=1)
    await sets.scale_role("decode", 2)

    async def scaled() -> None:
        assert replicas_of(await sets.child("decode")) == 2

    await sets.cluster.eventually(scaled)
    assert names.SUBROLE_PLAN_ANNOTATION not in annotations_of(await sets.child("prefill"))
    await resize(sets, a=2, b=1)
    await has(sets, a=2, b=1)


@pytest.mark.parametrize("identity", [{}, HASH], ids=["Ordinal", "Hash"])
async def test_a_revision_ends_with_its_divided_and_its_other_roles(
    cluster: TestCluster, sets: DisaggregatedSets, identity: Obj
) -> None:
    """50 §8.8: in one pass, though groups of the divided one must lose their labels before."""
    spec = {**rolling(1, 0), **identity}

    def roles(image: str) -> list[Obj]:
        parts = [{"name": sub, "replicas": 1} for sub in "ab"]
        return [role("p", 2, image=image, spec=spec), role("q", None, image=image, subRoles=parts, spec=spec)]

    await sets.running(*roles("img:v1"))
    old = {*await sets.children()}
    async with cluster.observe(LEADER_WORKER_SET) as seen:
        await sets.set_roles(*roles("img:v2"))
        await sets.ready()
        await finished(sets)
    ends = [change for change in seen.changes if change.name in old and change.obj["spec"]["replicas"] == 0]
    first = ends[0]
    assert {change.name for change in ends} == old
    (divided_one,) = (name for name in old if name.endswith("-q"))
    now = next(c for c in reversed(seen.changes[: seen.changes.index(first) + 1]) if c.name == divided_one)
    planned = annotations_of(now.obj).get(names.SUBROLE_PLAN_ANNOTATION)
    assert now is first or planned == '{"a":0,"b":0}', "the other one ended before its groups had lost their labels"
    if cluster.embedded:
        assert next(c.at for c in ends if c.name != first.name) - first.at < names.WAIT_SECONDS


async def test_a_revision_stays_whole_where_groups_cannot_lose_their_labels(
    cluster: TestCluster, sets: DisaggregatedSets
) -> None:
    """50 §8.8: neither role of it ends before both can."""
    spec, parts = rolling(1, 0), [{"name": sub, "replicas": 1} for sub in "ab"]

    def roles(image: str) -> list[Obj]:
        return [role("p", 2, image=image, spec=spec), role("q", None, image=image, subRoles=parts, spec=spec)]

    await sets.running(*roles("img:v1"))
    old = {*await sets.children()}
    (divided_one,) = (name for name in old if name.endswith("-q"))
    refused = 0

    def policy(new: Obj, before: Obj, warn: Warn) -> None:
        nonlocal refused
        if (
            refused >= 0
            and labels_of(before).get(base.NAME_LABEL) == divided_one
            and labels_of(new) != labels_of(before)
        ):
            refused += 1
            raise AdmissionDenied("labels stay")

    await cluster.webhook(POD, validate=validator(update=policy))
    async with cluster.observe(LEADER_WORKER_SET) as seen:
        await sets.set_roles(*roles("img:v2"))

        async def held() -> None:
            assert refused > 3

        await sets.eventually(held)
        await sets.settled()
        refused = -1
        await sets.ready()
        await finished(sets)
    ends = [change for change in seen.changes if change.name in old and change.obj["spec"]["replicas"] == 0]
    assert {change.name for change in ends} == old
    before = seen.changes[: seen.changes.index(ends[0])]
    assert any(annotations_of(c.obj).get(names.SUBROLE_PLAN_ANNOTATION) == '{"a":0,"b":0}' for c in before)
