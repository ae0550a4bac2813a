"""Plans of DisaggregatedSets whose roles are divided among sub-roles (specification: 50 §13)."""

from __future__ import annotations

import copy

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.disaggregated.model import Part
from lwskit.runtime.objects import Obj
from lwskit.simulate.disaggregated_edit import Verdict
from lwskit.simulate.disaggregated_world import Group, World, Write
from lwskit.simulate.report import Outcome
from tests.unit.doctor.patients import chat, child
from tests.unit.doctor.test_children import external, scaler
from tests.unit.groups.small_cluster import NOW
from tests.unit.simulate.families import objects, paced, planned


def divided(ds: Obj, **counts: int) -> Obj:
    """The set with these sub-roles of its first role."""
    new = copy.deepcopy(ds)
    new["metadata"]["generation"] += 1
    one = new["spec"]["roles"][0]
    one["spec"].pop("replicas", None)
    one["subRoles"] = [{"name": name, "replicas": count} for name, count in counts.items()]
    return new


def test_which_sub_role_a_group_is_ready_for() -> None:
    report = planned(divided(chat(paced("prefill", 1)), a=1, b=2), order="lowest-first")
    name = f"chat-0-{report.revision}-prefill"
    assert report.writes == (Write(name, 3, '{"a":1,"b":2}'),)
    assert [step.after for step in report.steps if step.after.endswith("ready")] == [
        f"{name}-0 of sub-role a is ready",
        f"{name}-1 of sub-role b is ready",
        f"{name}-2 of sub-role b is ready",
    ]
    assert report.outcome is Outcome.DONE


def test_it_is_told_of_groups_without_names_as_well() -> None:
    ds = divided(chat(paced("prefill", 1)), a=1, b=1)
    ds["spec"]["roles"][0]["spec"]["groupIdentity"] = base.IDENTITY_HASH
    report = planned(ds, order="lowest-first")
    said = [step.after.partition(" ")[2] for step in report.steps if step.after.endswith("ready")]
    assert sorted(said) == ["of sub-role a is ready", "of sub-role b is ready"]


def test_dividing_a_role_writes_counts_and_no_size() -> None:
    ds = chat(paced("prefill", 3), paced("decode", 1))
    report = planned(divided(ds, a=1, b=2), *objects(ds))
    assert (report.verdict, report.outcome) == (Verdict.SCALES, Outcome.DONE)
    assert report.writes == (Write(f"chat-0-{report.revision}-prefill", 3, '{"a":1,"b":2}'),)
    ready = {place.part: count.ready for place, count in report.steps[-1].counts.items()}
    assert ready == {Part("prefill", "a"): 1, Part("prefill", "b"): 2, Part("decode"): 1}


def test_sub_roles_grow_and_shrink() -> None:
    """One that only grows is given its counts at once; where one shrinks the labels go first."""
    ds = chat(paced("prefill", 3))
    report = planned(divided(ds, a=2, b=3), *objects(ds))
    name = f"chat-0-{report.revision}-prefill"
    assert report.writes == (Write(name, 3, '{"a":2,"b":1}'), Write(name, 5, '{"a":2,"b":3}'))
    report = planned(divided(ds, a=0, b=1), *objects(ds))
    assert report.writes == (Write(name, 3, '{"a":2,"b":1}'), Write(name, 1, '{"a":0,"b":1}'))
    assert report.outcome is Outcome.DONE


def test_groups_with_keys_stand_in_the_order_of_their_names() -> None:
    """So the manager labels them; those that a plan makes come last, in the order of their making."""
    ds = divided(chat(paced("prefill", 1)), a=4)
    notes = {names.SUBROLE_REPLICAS_ANNOTATION: '{"a":4}'}
    lws = child(ds, "prefill", 4, annotations=notes)
    lws["spec"]["groupIdentity"] = base.IDENTITY_HASH
    made = {"x-new-12": 12, "x-b": -2, "x-new-9": 9, "x-a": -1}
    there = [Group(number, 0, {"metadata": {"name": name, "uid": name}}) for name, number in made.items()]
    world = World(
        ds, NOW, lambda new, old: (), children={lws["metadata"]["name"]: lws}, groups={lws["metadata"]["uid"]: there}
    )
    (partition,) = world.snapshot().partitions.values()
    assert [group.name for group in partition.groups] == ["x-a", "x-b", "x-new-9", "x-new-12"]


def test_what_ends_has_none_left_at_its_lowest() -> None:
    """A sub-role that is told of no more, with its role or without it, has no ready group, as a role that ends."""
    whole = {
        names.SUBROLE_REPLICAS_ANNOTATION: '{"a":2,"b":1}',
        names.INITIAL_SUBROLE_REPLICAS_ANNOTATION: '{"a":2,"b":1}',
    }
    ds = divided(chat(paced("prefill", 3), paced("decode", 1), paced("encode", 1)), a=2, b=1)
    children = {
        "prefill": child(ds, "prefill", 3, annotations={**whole, names.INITIAL_REPLICAS_ANNOTATION: "3"}),
        **{name: child(ds, name, 1) for name in ("decode", "encode")},
    }
    there = objects(ds, children)
    for number, pod in enumerate(o for o in there if o["kind"] == "Pod" and "-prefill-" in o["metadata"]["name"]):
        pod["metadata"]["labels"][names.SUBROLE_LABEL] = "a" if number < 2 else "b"
    assert lowest(ds, *there) == {"prefill/a": (2, 2), "prefill/b": (1, 1), "decode": (1, 1), "encode": (1, 1)}
    one = divided(ds, a=3)
    assert lowest(one, *there) == {"prefill/a": (2, 3), "decode": (1, 1), "encode": (1, 1), "prefill/b": (0, 0)}
    none = copy.deepcopy(ds)
    none["spec"]["roles"] = ds["spec"]["roles"][1:2]
    assert lowest(none, *there) == {"decode": (1, 1), "encode": (0, 0), "prefill/a": (0, 0), "prefill/b": (0, 0)}


def lowest(new: Obj, *objects: Obj) -> dict[str, tuple[int, int]]:
    """The fewest ready groups of each part, and how many are wanted."""
    return {str(part): (low.ready, low.wanted) for part, low in planned(new, *objects).lowest.items()}


def test_a_sum_that_no_set_can_have_is_no_matter_of_the_scaler() -> None:
    ds = divided(chat(paced("prefill", 1)), a=2**31 - 1)
    ds["spec"]["roles"][0]["subRoles"].append({"name": "b", "scaling": {"mode": "External"}})
    report = planned(ds)
    assert [(n.code, n.message, n.hints) for n in report.notices] == [
        (
            "unresolved",
            "the sub-roles of role prefill ask for 2147483648 groups, and a LeaderWorkerSet may have 1000000 at most, "
            "so that the manager changes no group of the set",
            ("ask for fewer in role prefill",),
        )
    ]


def test_beside_it_a_scaler_that_cannot_be_had_is_told_of() -> None:
    ds = divided(chat(paced("prefill", 1), external("decode")), a=2**31 - 1, b=1)
    foreign = scaler(ds, "decode")
    foreign["metadata"]["ownerReferences"] = []
    told = [n.message for n in planned(ds, foreign).notices]
    assert [text.partition(" ask")[0] for text in told] == [
        "the sub-roles of role prefill",
        "decode: the scaler cannot be had, so that the manager changes no group of the set",
    ]
