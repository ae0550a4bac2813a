"""Rules for DisaggregatedSets, one by one: paths, reasons and bounds (specification: 50 §19, §23 lines 1 to 10)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.api import disaggregated_names as names
from lwskit.api.validation import validate_create
from lwskit.api.validation.disaggregatedset import validate, warnings
from tests.dsobjects import NAME, PACE, ds, external, role, rolling, sub, subroles
from tests.unit.api.objects import lws

NO_PARTITION = (
    "Forbidden: partition is not supported by DisaggregatedSet; "
    "rolling updates are managed across roles by the DisaggregatedSet controller"
)
RESERVED = "Forbidden: label is reserved for controller-managed sub-role assignment"
STUCK = "Invalid value: {}: must not be 0 when `maxSurge` is 0"
ONE_SLICE = (
    "spec.slices: Forbidden: spec.slices > 1 is not supported while any role has scaling.mode: External "
    "(alpha restriction)"
)
NEGATIVE = "must be greater than or equal to 0"
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
GROUP = "leaderworkerset.sigs.k8s.io/exclusive-topology"
SUBGROUP = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
SUBROLE = "disaggregatedset.x-k8s.io/subrole"


def faults(*roles: dict[str, Any], **more: Any) -> list[str]:
    return [str(error) for error in validate(ds(*roles, **more))]


def labelled(**labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": labels}, "spec": {"containers": []}}


def noted(key: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {key: "rack"}}, "spec": {"containers": []}}


def test_a_plain_set_is_fine() -> None:
    assert faults() == []
    assert warnings(ds()) == []


# How the roles' own sets would roll -----------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [None, {}, {"type": ""}, {"type": "RollingUpdate"}])
def test_the_only_strategy(strategy: dict[str, Any] | None) -> None:
    """50 §23 line 3: RollingUpdate, said or not."""
    assert faults(role(rolloutStrategy=strategy)) == []


def test_another_strategy_and_a_partition_are_both_refused() -> None:
    """50 §23 line 3: one error for each."""
    both = {"type": "Recreate", "rollingUpdateConfiguration": {"partition": 1}}
    assert faults(role(), role("decode", rolloutStrategy=both)) == [
        'spec.roles[1].spec.rolloutStrategy.type: Unsupported value: "Recreate": supported values: "RollingUpdate", ""',
        f"{PACE.format(1)}.partition: {NO_PARTITION}",
    ]
    assert faults(role(**rolling(partition=0))) == []
    assert faults(role(**rolling(partition=-1))) == [f"{PACE.format(0)}.partition: {NO_PARTITION}"]
    # Also where nothing is there to roll.
    assert faults(role(replicas=0, **rolling(partition=1))) == [f"{PACE.format(0)}.partition: {NO_PARTITION}"]


@pytest.mark.parametrize(
    ("config", "texts"),
    [
        (
            {"maxUnavailable": -1, "maxSurge": 1},
            ["maxUnavailable: Invalid value: -1: must be greater than or equal to 0"],
        ),
        ({"maxUnavailable": 1, "maxSurge": -2}, ["maxSurge: Invalid value: -2: must be greater than or equal to 0"]),
        ({"maxUnavailable": "half"}, [f'maxUnavailable: Invalid value: "half": {PERCENT}']),
        ({"maxSurge": "200%"}, ['maxSurge: Invalid value: "200%": must not be greater than 100%']),
        (
            {"maxUnavailable": "101%", "maxSurge": "x"},
            [
                'maxUnavailable: Invalid value: "101%": must not be greater than 100%',
                f'maxSurge: Invalid value: "x": {PERCENT}',
            ],
        ),
        # What would let nothing move is not told of amounts that are faulty themselves.
        ({"maxUnavailable": 0, "maxSurge": -1}, [f"maxSurge: Invalid value: -1: {NEGATIVE}"]),
        ({"maxUnavailable": "100%", "maxSurge": "0%"}, []),
    ],
)
def test_amounts(config: dict[str, Any], texts: list[str]) -> None:
    assert faults(role(**rolling(**config))) == [f"{PACE.format(0)}.{text}" for text in texts]
    for replicas in (0, None):
        assert faults(role(replicas=replicas, **rolling(**config))) == []


@pytest.mark.parametrize(
    ("config", "replicas", "shown"),
    [
        ({"maxSurge": 0, "maxUnavailable": 0}, 2, "0"),
        ({"maxSurge": "0%", "maxUnavailable": "0%"}, 2, '"0%"'),
        ({"maxUnavailable": "9%"}, 10, '"9%"'),
        ({"maxUnavailable": "10%"}, 10, None),
        ({"maxUnavailable": 0, "maxSurge": "1%"}, 10, None),
        ({"maxUnavailable": 0, "maxSurge": 1}, 2, None),
        ({"maxUnavailable": 1, "maxSurge": 0}, 2, None),
        ({"maxUnavailable": 0}, 2, "0"),
        ({"maxSurge": 0}, 2, None),
        ({"maxSurge": 0, "maxUnavailable": 0}, 0, None),
        ({"maxSurge": 0, "maxUnavailable": 0}, None, None),
    ],
)
def test_something_must_be_able_to_move(config: dict[str, Any], replicas: int | None, shown: str | None) -> None:
    """50 §23 line 4: both 0 for the groups that there are."""
    wanted = [] if shown is None else [f"{PACE.format(0)}.maxUnavailable: {STUCK.format(shown)}"]
    assert faults(role(replicas=replicas, **rolling(**config))) == wanted


def test_the_replicas_of_sub_roles_count() -> None:
    pace = rolling(maxSurge=0, maxUnavailable="50%")
    stuck = [f"{PACE.format(0)}.maxUnavailable: {STUCK.format(chr(34) + '50%' + chr(34))}"]
    assert faults(subroles(sub("a", 1), sub("b", 1), replicas=1, **pace)) == []
    assert faults(subroles(sub("a", 1), sub("b", 0), replicas=9, **pace)) == stuck
    # What is not said, and what a scaler says, counts as one.
    assert faults(subroles(sub("a"), sub("b", 0), **pace)) == stuck
    assert faults(subroles(sub("a", mode="External"), sub("b"), **pace)) == []
    assert faults(subroles(sub("a", 9, mode="External"), sub("b", 0), **pace)) == stuck
    assert faults(subroles(sub("a", 0), sub("b", 0), **pace)) == []


# Labels, restarts and identity ----------------------------------------------------------------------------------------


def test_a_reserved_label() -> None:
    """50 §23 line 8: on the role and on both templates."""
    found = faults(
        role(metadata={"labels": {SUBROLE: "a", "b": "c"}}),
        role("decode", {"workerTemplate": labelled(**{SUBROLE: ""}), "leaderTemplate": labelled(**{SUBROLE: "x"})}),
    )
    template = "spec.roles[1].spec.leaderWorkerTemplate"
    assert found == [
        f"spec.roles[0].metadata.labels[{SUBROLE}]: {RESERVED}",
        f"{template}.workerTemplate.metadata.labels[{SUBROLE}]: {RESERVED}",
        f"{template}.leaderTemplate.metadata.labels[{SUBROLE}]: {RESERVED}",
    ]
    assert faults(role(metadata={"annotations": {SUBROLE: "a"}})) == []


@pytest.mark.parametrize(
    ("template", "spec"),
    [
        ({"maxGroupRestarts": 3, "restartPolicy": "None"}, {}),
        ({"restartPolicy": "None", "restartBackoff": {"baseSeconds": 1}}, {}),
        ({"restartBackoff": {"baseSeconds": 5, "capSeconds": 2}}, {}),
        ({"volumeClaimTemplates": [{"metadata": {"name": "v"}}]}, {"groupIdentity": "Hash"}),
        ({"workerTemplate": {"spec": {"hostname": "h", "containers": []}}}, {"groupIdentity": "Hash"}),
        ({}, {"groupReplacementPolicy": "Immediate"}),
        ({"maxGroupRestarts": 3}, {}),
        ({}, {"groupIdentity": "Hash", "groupReplacementPolicy": "Immediate"}),
    ],
)
def test_groups_are_refused_for_what_they_are_refused_for_in_a_set_of_their_own(
    template: dict[str, Any], spec: dict[str, Any]
) -> None:
    alone = [str(error) for error in validate_create(lws(template, **spec))]
    assert faults(role(), role("decode", template, **spec)) == [f"spec.roles[1].{text}" for text in alone]


# Sub-roles and scaling ------------------------------------------------------------------------------------------------


def test_scaling_is_said_of_sub_roles_or_of_their_role() -> None:
    """50 §23 line 8: whatever the scaling says."""
    detail = "Forbidden: parent scaling must be omitted when subRoles is present"
    for scaling in ({"mode": "External"}, {"mode": "Static"}, {}):
        assert faults(subroles(sub("a"), scaling=scaling)) == [f"spec.roles[0].scaling: {detail}"]
    assert faults(role(scaling={"mode": "Static"})) == []


def test_sub_roles_that_ask_for_too_much_together() -> None:
    most = 2**31 - 1
    path, detail = "spec.roles[0].subRoles", "static replica targets exceed the maximum LWS replica count"
    assert path not in " ".join(faults(subroles(sub("a", most - 1), sub("b"))))
    assert f"{path}: Invalid value: {most + 1}: {detail}" in faults(subroles(sub("a", most), sub("b")))
    # What a scaler asks for is not known here.
    assert path not in " ".join(faults(subroles(sub("a", most), sub("b", mode="External"))))


def test_more_slices_than_one_have_no_scaler() -> None:
    """50 §23 line 7: neither for roles nor for sub-roles."""
    assert faults(external(), slices=1) == []
    assert faults(role(), slices=2) == []
    assert faults(role(), external("decode"), slices=2) == [ONE_SLICE]
    assert faults(subroles(sub("a"), sub("b", mode="External")), slices=2) == [ONE_SLICE]
    assert faults(subroles(sub("a"), sub("b", mode="Static")), slices=2) == []


def test_the_name_of_a_scaler_is_too_long() -> None:
    """50 §23 line 7: of 254 characters, where there is a scaler."""
    name = "c" * 246
    scaler = f"{name}-prefill"
    assert len(scaler) == 254
    told = f'{NAME.format(0)}: Invalid value: "prefill": would produce scaler name "{scaler}" exceeding 253 characters'
    assert told in faults(external(), name=name)
    assert "scaler" not in " ".join(faults(external(), name=name[1:]))
    assert "scaler" not in " ".join(faults(role(), name=name))
    path = "spec.roles[0].subRoles[1].name"
    told = f'{path}: Invalid value: "x": would produce scaler name "{scaler}-x" exceeding 253 characters'
    assert told in faults(subroles(sub("a"), sub("x", mode="External")), name=name)


def test_two_scalers_of_one_name() -> None:
    """50 §23 line 8: the later one is told of the earlier."""
    found = faults(external("model-a"), subroles(sub("a", mode="External"), name="model"))
    detail = f"generated scaler name collides with {NAME.format(0)}"
    assert found == [f'spec.roles[1].subRoles[0].name: Invalid value: "a": {detail}']
    other = faults(subroles(sub("b"), sub("a", mode="External"), name="model"), external("model-a"))
    detail = "generated scaler name collides with spec.roles[0].subRoles[1].name"
    assert other == [f'{NAME.format(1)}: Invalid value: "model-a": {detail}']
    third = faults(
        subroles(sub("b-c", mode="External"), name="a"),
        subroles(sub("c", mode="External"), name="a-b"),
        external("a-b-c"),
    )
    detail = "generated scaler name collides with spec.roles[0].subRoles[0].name"
    assert [text.partition(": ")[2] for text in third] == [f'Invalid value: "{n}": {detail}' for n in ("c", "a-b-c")]
    # Only what has a scaler.
    assert faults(role("model-a"), subroles(sub("a", mode="External"), name="model")) == []
    # Roles that share a name are the schema's business.
    assert faults(external(), external()) == []


# Names ----------------------------------------------------------------------------------------------------------------


def too_long(name: str, length: int, limit: int, index: int = 0) -> str:
    return (
        f'{NAME.format(index)}: Invalid value: "{name}": the generated names ({length} chars) would exceed the '
        "DNS-1035 limit of 63 characters (accounting for StatefulSet revision hash labels); reduce the "
        f"DisaggregatedSet name and/or role name (combined limit: {limit} characters)"
    )


@pytest.mark.parametrize(
    ("limit", "spec", "more"),
    [
        (38, {}, {}),
        (38, {}, {"replicas": 10}),
        (38, {}, {"replicas": 0}),
        (38, {}, {"replicas": None}),
        (37, {}, {"replicas": 11}),
        (38, {"slices": 10}, {}),
        (37, {"slices": 11}, {}),
        (36, {"slices": 11}, {"replicas": 11}),
        (32, {"slices": 100}, {"replicas": 1_000_000}),
        (31, {}, {"groupIdentity": "Hash", "template": {"size": 2}}),
        (42, {}, {"groupIdentity": "Hash", "replicas": 1000}),
        (37, {}, {"subRoles": [sub("a", 10), sub("b")]}),
        (38, {}, {"subRoles": [sub("a", 9), sub("b", mode="External")], "replicas": 400}),
        (29, {}, {"subRoles": [sub("a", 2**31 - 1), sub("b", mode="External")]}),
    ],
)
def test_names_that_are_made_of_the_set_and_the_role(limit: int, spec: dict[str, Any], more: dict[str, Any]) -> None:
    """50 §23 line 5: 63 characters are fine and 64 are not."""
    for length in (limit, limit + 1):
        name = "r" * (length - len("chat"))
        found = faults(role(name, **more), role("d"), **spec)
        assert found == ([] if length == limit else [too_long(name, 64, limit)])


def test_more_groups_than_a_set_can_have_have_no_longer_names() -> None:
    """50 §19: the counts of sub-roles are added up to 2147483647 at most."""
    shares = [sub(name, 2**31 - 1) for name in "abcde"]
    limit = 29
    for length in (limit, limit + 1):
        found = faults(subroles(*shares, name="r" * (length - len("chat"))))
        assert [text for text in found if "generated names" in text] == (
            [] if length == limit else [too_long("r" * (length - len("chat")), 64, limit)]
        )


def test_every_role_is_told() -> None:
    """50 §23 line 5: each with its own length."""
    name = "d" * 43
    assert faults(name=name) == [too_long("prefill", 75, 38), too_long("decode", 74, 38, index=1)]


def test_names_that_no_child_can_have() -> None:
    for name in ("1chat", "a.b"):
        assert faults(name=name) == []
        (told,) = warnings(ds(name=name))
        assert told == (
            f'LeaderWorkerSets are named after "{name}", and their names begin with a letter and have only lower case '
            "letters, digits and dashes: none of this set can be created"
        )


# Placement ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ExclusiveSlice", "ExclusiveTopology"])
def test_a_policy_needs_a_topology(kind: str) -> None:
    """50 §23 line 6: both policies that place anything."""
    wanted = ["spec.placementPolicy.topology: Required value: topology is required when type is not None"]
    assert faults(placementPolicy={"type": kind}) == wanted
    assert faults(placementPolicy={"type": kind, "topology": ""}) == wanted
    assert faults(placementPolicy={"type": kind, "topology": "rack"}) == []


@pytest.mark.parametrize("policy", [None, {}, {"type": "None"}, {"type": ""}, {"topology": "rack"}])
def test_no_policy_needs_nothing(policy: dict[str, Any] | None) -> None:
    """50 §23 line 6: the annotation alone is fine."""
    assert faults(role(metadata={"annotations": {GROUP: "rack"}}), placementPolicy=policy) == []


POLICY = {"type": "ExclusiveSlice", "topology": "rack"}


@pytest.mark.parametrize("key", [GROUP, SUBGROUP])
@pytest.mark.parametrize("where", ["metadata", "leaderTemplate", "workerTemplate"])
def test_a_topology_of_the_role_itself(key: str, where: str) -> None:
    """50 §23 line 6: both annotations at each of three places."""
    asking = role(metadata=noted(key)["metadata"]) if where == "metadata" else role(template={where: noted(key)})
    detail = (
        f'Forbidden: the "{key}" annotation must not be combined with a non-None spec.placementPolicy.type '
        "(ExclusiveSlice)"
    )
    assert faults(role("decode"), asking, placementPolicy=POLICY) == [f"spec.roles[1]: {detail}"]
    assert faults(role("decode"), asking) == []


def test_one_error_for_each_role_the_group_first() -> None:
    """50 §23 line 6: the first key that is found."""
    every = {"workerTemplate": noted(GROUP), "leaderTemplate": noted(SUBGROUP)}
    asking = role(template=every, metadata={"annotations": {SUBGROUP: "x"}})
    found = faults(asking, asking, placementPolicy={"type": "ExclusiveTopology", "topology": "rack"})
    assert [text.split(":")[0] for text in found] == ["spec.roles[0]", "spec.roles[1]"]
    assert all(f'"{GROUP}"' in text and "(ExclusiveTopology)" in text for text in found)


# All of them, warnings, and what is no set ----------------------------------------------------------------------------


def test_all_errors_are_collected_in_the_order_of_the_rules() -> None:
    one = external(
        "r" * 40,
        {"maxGroupRestarts": 1, "restartPolicy": "None"},
        metadata={"labels": {SUBROLE: "x"}, "annotations": {GROUP: "x"}},
        rolloutStrategy={"type": "No", "rollingUpdateConfiguration": {"partition": 1, "maxUnavailable": -1}},
    )
    two = subroles(sub("a", mode="External"), sub("b"), scaling={}, name="decode")
    found = faults(one, two, slices=2, placementPolicy={"type": "ExclusiveSlice"})
    at = "spec.roles[0].spec"
    assert [text.split(": ")[0] for text in found] == [
        f"{at}.rolloutStrategy.type",
        f"{PACE.format(0)}.partition",
        f"{PACE.format(0)}.maxUnavailable",
        f"spec.roles[0].metadata.labels[{SUBROLE}]",
        f"{at}.leaderWorkerTemplate.maxGroupRestarts",
        "spec.roles[1].scaling",
        "spec.slices",
        "spec.roles[0].name",
        "spec.placementPolicy.topology",
        "spec.roles[0]",
    ]


def test_warnings() -> None:
    """50 §23 line 7: a count that nobody reads."""
    assert warnings(ds(external(replicas=3), external("decode", replicas=1), role("encode", replicas=5))) == [
        'role "prefill" sets scaling.mode: External and spec.replicas: 3 — spec.replicas is ignored; '
        'drive replicas via DisaggregatedSetRoleScaler "chat-prefill" instead'
    ]
    assert warnings(ds(subroles(sub("a"), replicas=2), subroles(sub("a"), name="decode", replicas=1))) == [
        'role "prefill" defines subRoles: parent spec.replicas is ignored; replicas are the sum of sub-role targets'
    ]


def test_what_has_a_wrong_type_is_told_once_at_its_path() -> None:
    found = faults(
        {"name": 1, "metadata": [], "scaling": "External", "subRoles": {}, "spec": "x"},
        "decode",  # type: ignore[arg-type]
        slices="2",
        placementPolicy=3,
    )
    assert found == [
        'spec.roles[0].spec: Invalid value: "x": must be an object',
        "spec.roles[0].subRoles: Invalid value: {}: must be a list",
        "spec.roles[0].name: Invalid value: 1: must be a string",
        'spec.roles[0].scaling: Invalid value: "External": must be an object',
        "spec.roles[0].metadata: Invalid value: []: must be an object",
        'spec.roles[1]: Invalid value: "decode": must be an object',
        'spec.slices: Invalid value: "2": must be an integer',
        "spec.placementPolicy: Invalid value: 3: must be an object",
    ]
    assert [str(error) for error in validate({"spec": []})] == ["spec: Invalid value: []: must be an object"]
    assert validate({}) == []


def test_the_set_is_not_changed() -> None:
    given = ds(external(replicas=2), subroles(sub("a", 2), name="decode"), slices=2, placementPolicy=POLICY)
    before = copy.deepcopy(given)
    validate(given)
    warnings(given)
    assert given == before


letters = st.text("abc-", min_size=1, max_size=3).filter(lambda text: not text.startswith("-") and text[-1] != "-")


@given(st.lists(st.tuples(letters, st.lists(letters, max_size=3, unique=True), st.booleans()), max_size=4))
def test_scalers_collide_just_when_their_names_are_equal(given_roles: list[tuple[str, list[str], bool]]) -> None:
    distinct = {name: (children, is_external) for name, children, is_external in given_roles}
    roles = [
        subroles(*(sub(child, mode="External") for child in children), name=name)
        if children
        else (external(name) if is_external else role(name))
        for name, (children, is_external) in distinct.items()
    ]
    generated: list[str] = []
    for name, (children, is_external) in distinct.items():
        generated += [names.scaler_name("chat", name, child) for child in children]
        generated += [names.scaler_name("chat", name)] if is_external and not children else []
    found = [text for text in faults(*roles or [role()]) if "collides" in text]
    assert len(found) == len(generated) - len(set(generated))


@given(st.integers(1, 60), st.integers(1, 40), st.integers(1, 100), st.integers(0, 10**6), st.sampled_from([1, 2]))
def test_a_set_is_accepted_just_when_its_longest_name_fits(
    name: int, role_name: int, slices: int, replicas: int, size: int
) -> None:
    for identity in ("Ordinal", "Hash"):
        given = role("r" * role_name, {"size": size}, replicas=replicas, groupIdentity=identity)
        child = f"{'d' * name}-{slices - 1}-{'0' * 8}-{'r' * role_name}"
        if identity == "Ordinal":
            longest = f"{child}-{max(replicas - 1, 0)}-{'h' * 10}"
        else:
            longest = f"{child}-{'k' * 8}" + (f"-{'h' * 10}" if size > 1 else "")
        refused = [text for text in faults(given, name="d" * name, slices=slices) if "generated names" in text]
        assert bool(refused) == (len(longest) > 63)
        assert not refused or f"({len(longest)} chars)" in refused[0]
