"""Validation of `spec.scheduling`, line by line (specification: 10 §14 lines 52–63, rules in 10 §6.6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.api import names
from lwskit.api.scheduling import active_levels
from lwskit.api.validation import SchedulingSupport, aggregate, validate_create, validate_update
from tests.unit.api.objects import TEMPLATE, lws

KUBERNETES = SchedulingSupport(gate=True, provider="kubernetes")
VOLCANO = SchedulingSupport(gate=True, provider="volcano")
PATH = "spec.scheduling"
GANG, BASIC = {"schedulingPolicy": {"gang": {}}}, {"schedulingPolicy": {"basic": {}}}
RACK = {"schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/rack"}]}}
ALONE, TOGETHER = {"disruptionMode": {"single": {}}}, {"disruptionMode": {"all": {}}}
GROUP_TEMPLATE, PARENT = names.GROUP_TEMPLATE_NAME_ANNOTATION, names.PARENT_COMPOSITE_POD_GROUP_ANNOTATION
OWNER = {"apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet", "name": "d", "uid": "1"}


def scheduled(
    scheduling: Any,
    template: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    owned: bool = False,
    **spec: Any,
) -> dict[str, Any]:
    """A set of groups of four with this under `spec.scheduling`."""
    meta: dict[str, Any] = {"annotations": annotations or {}}
    if owned:
        meta["ownerReferences"] = [OWNER | {"controller": True}]
    return lws({"size": 4, **(template or {})}, meta, scheduling=scheduling, **spec)


def roles(leader: Any = None, worker: Any = None) -> dict[str, Any]:
    """Scheduling of roles by themselves."""
    return {"replica": {k: v for k, v in (("leader", leader), ("worker", worker)) if v is not None}}


def pods(**spec: Any) -> dict[str, Any]:
    """A pod template."""
    return {"spec": {"containers": [{"name": "c"}], **spec}}


def refused(obj: dict[str, Any], old: dict[str, Any] | None = None, support: SchedulingSupport = KUBERNETES) -> str:
    """The text of the refusal; empty for a yes."""
    return aggregate(validate_create(obj, support) if old is None else validate_update(obj, old, support))


OFF = f"{PATH}: Forbidden: requires the WorkloadAwareScheduling feature gate"


@pytest.mark.parametrize("provider", [None, "kubernetes", "volcano", "other"])
def test_52_without_the_gate(provider: str | None) -> None:
    off = SchedulingSupport(provider=provider, has_kind=lambda kind: False)
    obj = scheduled({})
    assert refused(obj, support=off) == OFF
    assert refused(obj, lws({"size": 4}), off) == OFF
    assert refused(scheduled({}, replicas=3), obj, off) == ""
    assert refused(lws(), support=off) == refused(lws(), lws(), off) == ""


def test_52_the_gate_is_off_unless_it_is_switched_on() -> None:
    assert aggregate(validate_create(scheduled({}))) == OFF
    assert validate_update(scheduled({}), scheduled({})) == []


def test_53_no_provider_or_an_unknown_one() -> None:
    required = f"{PATH}: Required value: requires a configured scheduler provider"
    for provider in (None, ""):
        assert refused(scheduled({}), support=SchedulingSupport(gate=True, provider=provider)) == required
    other = refused(scheduled({}), support=SchedulingSupport(gate=True, provider="other"))
    assert other == f'{PATH}: Unsupported value: "other": supported values: "kubernetes", "volcano"'


@pytest.mark.parametrize("provider", [KUBERNETES, VOLCANO])
def test_54_groups_are_gangs_by_default(provider: SchedulingSupport) -> None:
    for scheduling in ({}, {"replica": {}}, {"replica": GANG}):
        assert refused(scheduled(scheduling), support=provider) == ""
        assert refused(scheduled(scheduling), scheduled({}), provider) == ""


def test_54_a_hash_set_too() -> None:
    assert refused(scheduled({}, groupIdentity="Hash")) == ""


def test_54_kinds_that_the_cluster_does_not_serve() -> None:
    version = "scheduling.k8s.io/v1beta1"
    known = SchedulingSupport(gate=True, provider="kubernetes", has_kind={"Workload", "PodGroup"}.__contains__)
    assert refused(scheduled({}), support=known) == ""
    some = SchedulingSupport(gate=True, provider="kubernetes", has_kind={"Workload"}.__contains__)
    text = f'{version} PodGroup API is not available: no matches for kind "PodGroup" in version "{version}"'
    assert refused(scheduled({}), support=some) == f"{PATH}: Forbidden: {text}"
    none = SchedulingSupport(gate=True, provider="kubernetes", has_kind=lambda kind: False)
    assert [e.detail.split()[1] for e in validate_create(scheduled({}), none)] == ["Workload", "PodGroup"]
    assert refused(scheduled({}), support=SchedulingSupport(True, "volcano", lambda kind: False)) == ""


def test_55_scheduling_is_not_added_or_removed() -> None:
    assert refused(scheduled({}), lws()) == f"{PATH}: Forbidden: cannot add scheduling after creation"
    removed = f"{PATH}: Forbidden: cannot remove scheduling after creation"
    for support in (KUBERNETES, VOLCANO, SchedulingSupport()):
        assert refused(lws({"size": 4}), scheduled({}), support) == removed
        assert refused(scheduled(None), scheduled({}), support) == removed


@pytest.mark.parametrize(
    ("scheduling", "levels"),
    [
        ({}, "replica"),
        ({"replica": {}}, "replica"),
        ({"schedulingConstraints": {}}, "lws"),
        (TOGETHER, "lws"),
        ({"replica": RACK}, "replica"),
        (roles(leader={}), "role"),
        (roles(worker=BASIC), "role"),
        ({**GANG, "replica": {}}, "lws replica"),
        ({**BASIC, **roles({}, {})}, "lws role"),
        ({"replica": {**GANG, "leader": {}}}, "replica role"),
        ({**BASIC, "replica": {**RACK, "worker": {}}}, "lws replica role"),
    ],
)
def test_56_one_level_is_selected(scheduling: dict[str, Any], levels: str) -> None:
    assert active_levels(scheduling) == levels.split()
    errors = validate_create(scheduled(scheduling), KUBERNETES)
    if " " not in levels:
        assert errors == []
        return
    (error,) = errors
    assert str(error).startswith(f"{PATH}: Invalid value: {{")
    assert error.detail == f"exactly one active scheduling level is required, got [{levels}]"


def test_56_the_level_stays() -> None:
    text = f"{PATH}: Forbidden: cannot switch the active scheduling level after creation"
    for new, old in ((BASIC, {}), (roles({}), {}), ({}, BASIC), (roles({}), TOGETHER)):
        assert refused(scheduled(new), scheduled(old)) == text


IMMUTABLE = "field is immutable"


@pytest.mark.parametrize(
    ("new", "old", "path"),
    [
        ({"replica": BASIC}, {}, "replica.schedulingPolicy"),
        (GANG, BASIC, "schedulingPolicy"),
        ({**BASIC, **RACK}, BASIC, "schedulingConstraints"),
        ({"replica": TOGETHER}, {"replica": ALONE}, "replica.disruptionMode"),
        (roles(GANG), roles({}), "replica.leader.schedulingPolicy"),
        (roles({}, RACK), roles({}, {}), "replica.worker.schedulingConstraints"),
    ],
)
def test_56_what_a_level_says_stays(new: dict[str, Any], old: dict[str, Any], path: str) -> None:
    (error,) = validate_update(scheduled(new), scheduled(old), KUBERNETES)
    assert (error.path, error.detail) == (f"{PATH}.{path}", IMMUTABLE)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (BASIC | {"schedulingConstraints": {}}, {"schedulingConstraints": {"topology": []}}),
        ({"replica": GANG}, {}),
        (roles({}, {}), roles({})),
        (roles(BASIC), roles({})),
        (roles({"schedulingPolicy": {"gang": {"minCount": 1}}}), roles(GANG)),
    ],
)
def test_56_other_words_for_the_same(new: dict[str, Any], old: dict[str, Any]) -> None:
    assert refused(scheduled(new), scheduled(old)) == ""


TOO_EARLY = (
    f"{PATH}: Forbidden: a gang containing the leader and workers is incompatible with startupPolicy LeaderReady"
)


@pytest.mark.parametrize(
    ("scheduling", "text"),
    [
        ({}, TOO_EARLY),
        ({"replica": RACK}, TOO_EARLY),
        ({"replica": GANG}, TOO_EARLY),
        (GANG, TOO_EARLY),
        ({"replica": BASIC}, ""),
        (BASIC, ""),
        (RACK, ""),
        (roles(GANG, GANG), ""),
    ],
)
def test_57_gangs_of_leader_and_workers_start_together(scheduling: dict[str, Any], text: str) -> None:
    assert refused(scheduled(scheduling, startupPolicy="LeaderReady")) == text
    assert refused(scheduled(scheduling, startupPolicy="LeaderCreated")) == ""


EXCLUSIVE = (
    f"{PATH}: Forbidden: gang scheduling or workload topology constraints cannot be combined with exclusive topology "
    "in alpha"
)


@pytest.mark.parametrize(
    ("scheduling", "text"),
    [
        ({}, EXCLUSIVE),
        (GANG, EXCLUSIVE),
        (RACK, EXCLUSIVE),
        ({"replica": {**BASIC, **RACK}}, EXCLUSIVE),
        (roles({}, GANG), EXCLUSIVE),
        (roles(RACK), EXCLUSIVE),
        (BASIC, ""),
        ({"replica": BASIC}, ""),
        (roles({}, {}), ""),
    ],
)
def test_58_exclusive_placement(scheduling: dict[str, Any], text: str) -> None:
    key = names.EXCLUSIVE_TOPOLOGY_ANNOTATION
    assert refused(scheduled(scheduling, annotations={key: "rack"})) == text
    assert refused(scheduled(scheduling, annotations={key: ""})) == ""
    parts = {"subGroupPolicy": {"subGroupSize": 2}}
    inner = {names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack"}
    assert refused(scheduled(scheduling, parts, inner)) == ""


def test_59_one_priority_class() -> None:
    differ = {"leaderTemplate": pods(priorityClassName="high"), "workerTemplate": pods()}
    text = f"{PATH}: Invalid value: null: all managed pod templates must use the same priorityClassName"
    assert refused(scheduled({}, differ)) == text
    high, low = ({"workerTemplate": pods(priorityClassName=name)} for name in ("high", "low"))
    assert refused(scheduled({}, high)) == ""
    assert refused(scheduled({}, {**high, "leaderTemplate": pods(priorityClassName="high")})) == ""
    changed = "cannot change priorityClassName while workload-aware scheduling is configured"
    assert refused(scheduled({}, low), scheduled({}, high)) == f"{TEMPLATE}: Forbidden: {changed}"
    assert refused(scheduled({}, low), scheduled({})) == f"{TEMPLATE}: Forbidden: {changed}"
    assert refused(scheduled({}, high), scheduled({}, high)) == ""


@pytest.mark.parametrize("place", ["leaderTemplate", "workerTemplate"])
def test_60_templates_without_a_group_of_their_own(place: str) -> None:
    text = f"{PATH}: Forbidden: managed pod templates must not set spec.schedulingGroup"
    assert refused(scheduled({}, {place: pods(schedulingGroup={"podGroupName": "g"})})) == text
    assert refused(scheduled({}, {place: pods(schedulingGroup=None)})) == ""


def test_61_roles_need_workers() -> None:
    text = f"{TEMPLATE}.size: Invalid value: 1: leader/worker scheduling requires size >= 2"
    assert refused(scheduled(roles({}), {"size": 1})) == text
    assert refused(scheduled(roles({}), {"size": None})) == text
    assert refused(scheduled(roles({}), {"size": 1}), scheduled(roles({}))) == text
    assert refused(scheduled(roles({}), {"size": 2})) == ""


def counted(count: int) -> dict[str, Any]:
    """A gang of so many pods."""
    return {"schedulingPolicy": {"gang": {"minCount": count}}}


def test_61_a_gang_of_a_role_is_all_of_it() -> None:
    path = f"{PATH}.replica.{{}}.schedulingPolicy.gang.minCount: Invalid value: {{}}: "
    text = path + "must equal complete leaf membership {}"
    assert refused(scheduled(roles(counted(1), counted(3)))) == ""
    assert refused(scheduled(roles(counted(2)))) == text.format("leader", 2, 1)
    assert refused(scheduled(roles({}, counted(4)))) == text.format("worker", 4, 3)
    least = path.format("worker", 0) + "must be greater than or equal to 1"
    assert refused(scheduled(roles({}, counted(0)))) == f"[{least}, {text.format('worker', 0, 3)}]"


def test_61_groups_of_groups_are_not_counted() -> None:
    gang = {"schedulingPolicy": {"gang": {"minGroupCount": 1}}}
    text = "schedulingPolicy.gang.minGroupCount: Forbidden: minGroupCount is not supported"
    assert refused(scheduled(gang)) == f"{PATH}.{text}"
    assert refused(scheduled({"replica": gang})) == f"{PATH}.replica.{text}"


POLICIES = "one of: `basic`, `gang`"
SOURCES = "one of: `resourceClaimName`, `resourceClaimTemplateName`"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"schedulingPolicy": {}}, f"schedulingPolicy: Invalid value: {{}}: must specify {POLICIES}"),
        (
            {"schedulingPolicy": {"basic": {}, "gang": {}}},
            f'schedulingPolicy: Invalid value: {{"basic":{{}},"gang":{{}}}}: must specify exactly {POLICIES}',
        ),
        ({"disruptionMode": {}}, "disruptionMode: Invalid value: {}: must specify one of: `single`, `all`"),
        (
            {"disruptionMode": {"single": {}, "all": {}}},
            'disruptionMode: Invalid value: {"single":{},"all":{}}: must specify exactly one of: `single`, `all`',
        ),
        (
            {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            "schedulingConstraints.topology: Too many: 2: must have at most 1 item",
        ),
        ({"schedulingConstraints": {"topology": [{}]}}, "schedulingConstraints.topology[0].key: Required value"),
        ({"schedulingPolicy": "gang"}, 'schedulingPolicy: Invalid value: "gang": must be an object'),
        (
            {"schedulingConstraints": {"topology": "rack"}},
            'schedulingConstraints.topology: Invalid value: "rack": must be a list',
        ),
        (
            {"schedulingConstraints": {"topology": ["rack"]}},
            'schedulingConstraints.topology[0]: Invalid value: "rack": must be an object',
        ),
        (
            {"schedulingConstraints": {"topology": [{"key": 1}]}},
            "schedulingConstraints.topology[0].key: Invalid value: 1: must be a string",
        ),
    ],
)
def test_56_what_a_level_may_say(settings: dict[str, Any], text: str) -> None:
    for scheduling, path in (
        (settings, PATH),
        ({"replica": settings}, f"{PATH}.replica"),
        (roles(settings), f"{PATH}.replica.leader"),
    ):
        assert refused(scheduled(scheduling)) == f"{path}.{text}"


def test_56_keys_of_node_labels() -> None:
    (error,) = validate_create(scheduled({"schedulingConstraints": {"topology": [{"key": "-a"}]}}), KUBERNETES)
    assert error.path == f"{PATH}.schedulingConstraints.topology[0].key"
    assert error.detail.startswith("name part must consist of alphanumeric characters")


CLAIM = {"name": "gpu", "resourceClaimTemplateName": "gpus"}
CLAIMS = f"{PATH}.replica.worker.resourceClaims"
UNMATCHED = "must have a matching reference in every member pod template"


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ([CLAIM], ""),
        (
            [{"name": "gpu", "resourceClaimName": "gpus"}],
            f'{CLAIMS}[0]: Invalid value: {{"name":"gpu","resourceClaimName":"gpus"}}: {UNMATCHED}',
        ),
        ([CLAIM, CLAIM], f'{CLAIMS}[1]: Duplicate value: "gpu"'),
        ([CLAIM | {"resourceClaimName": "gpus"}], f"must specify exactly {SOURCES}"),
        ([{"name": "gpu"}], f"must specify {SOURCES}"),
        ([{"resourceClaimName": "a"}], f"{CLAIMS}[0].name: Required value"),
        ([CLAIM | {"name": "G"}], f'{CLAIMS}[0].name: Invalid value: "G": a lowercase RFC 1123 label must consist of'),
        ([CLAIM | {"resourceClaimTemplateName": "G"}], f"{CLAIMS}[0].resourceClaimTemplateName: Invalid value: "),
        ([{**CLAIM, "name": f"c{i}"} for i in range(5)], f"{CLAIMS}: Too many: 5: must have at most 4 items"),
    ],
)
def test_61_claims_of_roles(claims: list[Any], text: str) -> None:
    template = {"leaderTemplate": pods(), "workerTemplate": pods(resourceClaims=[CLAIM])}
    said = refused(scheduled(roles({}, {"resourceClaims": claims}), template))
    assert text in said
    assert bool(said) is bool(text)


def test_61_claims_of_leaders_are_in_the_leaders_template() -> None:
    template = {"leaderTemplate": pods(), "workerTemplate": pods(resourceClaims=[CLAIM])}
    scheduling = roles({"resourceClaims": [CLAIM]})
    assert UNMATCHED in refused(scheduled(scheduling, template))
    assert refused(scheduled(scheduling, {"workerTemplate": pods(resourceClaims=[CLAIM])})) == ""
    changed = refused(scheduled(scheduling, {"workerTemplate": pods(resourceClaims=[CLAIM])}), scheduled(roles({})))
    assert changed.endswith(f"}}]: {IMMUTABLE}")


LEVEL = "Forbidden: the Volcano provider supports the typed API only at replica level"
UNSUPPORTED = f"{PATH}.replica.{{}}: Forbidden: the Volcano provider does not support {{}}"


@pytest.mark.parametrize(
    ("scheduling", "text"),
    [
        (GANG, f"{PATH}: {LEVEL}"),
        (roles({}), f"{PATH}: {LEVEL}"),
        ({"replica": BASIC}, UNSUPPORTED.format("schedulingPolicy", "Basic policy")),
        ({"replica": RACK}, UNSUPPORTED.format("schedulingConstraints", "typed scheduling constraints")),
        (
            {"replica": {"schedulingConstraints": {}}},
            UNSUPPORTED.format("schedulingConstraints", "typed scheduling constraints"),
        ),
        ({"replica": ALONE}, UNSUPPORTED.format("disruptionMode", "typed disruption mode")),
    ],
)
def test_62_what_volcano_cannot_do(scheduling: dict[str, Any], text: str) -> None:
    assert refused(scheduled(scheduling), support=VOLCANO) == text
    assert refused(scheduled(scheduling)) == ""


def test_62_the_other_rules_hold_with_volcano() -> None:
    assert refused(scheduled({}, startupPolicy="LeaderReady"), support=VOLCANO) == TOO_EARLY
    several = refused(scheduled({**BASIC, "replica": {}}), support=VOLCANO)
    assert "got [lws replica]" in several
    assert "Volcano" not in several


@pytest.mark.parametrize(
    ("annotations", "owned", "scheduling", "texts"),
    [
        ({GROUP_TEMPLATE: "t"}, True, {}, []),
        ({GROUP_TEMPLATE: "t", PARENT: "p"}, True, BASIC, []),
        (
            {PARENT: "p"},
            True,
            {},
            [f"metadata.annotations[{PARENT}]: Forbidden: requires the group-template-name delegation annotation"],
        ),
        (
            {GROUP_TEMPLATE: ""},
            True,
            {},
            [f"metadata.annotations[{GROUP_TEMPLATE}]: Required value: must name a parent Workload template"],
        ),
        (
            {GROUP_TEMPLATE: "t"},
            False,
            {},
            [f"metadata.annotations[{GROUP_TEMPLATE}]: Forbidden: delegated scheduling requires a controller owner"],
        ),
        (
            {GROUP_TEMPLATE: "t", PARENT: ""},
            True,
            {},
            [f"metadata.annotations[{PARENT}]: Required value: must name a parent CompositePodGroup"],
        ),
        (
            {GROUP_TEMPLATE: "t"},
            True,
            roles({}),
            [
                f"metadata.annotations[{GROUP_TEMPLATE}]: Forbidden: "
                "delegated scheduling supports only whole-LWS or replica mode"
            ],
        ),
    ],
)
def test_63_scheduling_by_a_parent(
    annotations: dict[str, str], owned: bool, scheduling: dict[str, Any], texts: list[str]
) -> None:
    obj = scheduled(scheduling, annotations=annotations, owned=owned)
    assert refused(obj) == ", ".join(texts)
    assert refused(lws(meta=obj["metadata"])) == ""


@pytest.mark.parametrize("key", [GROUP_TEMPLATE, PARENT])
@pytest.mark.parametrize(("was", "now"), [("a", "b"), ("a", None), (None, "a")])
def test_63_who_schedules_stays(key: str, was: str | None, now: str | None) -> None:
    both = {GROUP_TEMPLATE: "t", PARENT: "p"}
    old, new = (
        scheduled({}, annotations={k: v for k, v in (both | {key: value}).items() if v is not None}, owned=True)
        for value in (was, now)
    )
    text = f"metadata.annotations[{key}]: Forbidden: is immutable once spec.scheduling is set"
    assert text in refused(new, old)
    assert refused(new, old, VOLCANO) == text
    assert text not in refused(new)


def test_63_only_a_controller_counts_as_owner() -> None:
    obj = scheduled({}, annotations={GROUP_TEMPLATE: "t"})
    obj["metadata"]["ownerReferences"] = [OWNER]
    assert "requires a controller owner" in refused(obj)


NAMES = (
    "replica leader worker schedulingPolicy basic gang minCount minGroupCount schedulingConstraints topology key "
    "disruptionMode single all resourceClaims name resourceClaimName"
)
settings = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 5) | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(NAMES.split()),
            inner,
            max_size=4,
        )
    ),
    max_leaves=16,
)


@given(settings, settings, st.sampled_from([KUBERNETES, VOLCANO, SchedulingSupport(), SchedulingSupport(True)]))
def test_anything_can_be_under_scheduling(new: Any, old: Any, support: SchedulingSupport) -> None:
    for errors in (
        validate_create(scheduled(new), support),
        validate_update(scheduled(new), scheduled(old), support),
    ):
        assert all(error.path and str(error) for error in errors)
    if new is not None and not isinstance(new, dict):
        assert f"{PATH}: Invalid value: " in refused(scheduled(new), support=support)
