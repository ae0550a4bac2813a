"""No webhook fails, whatever JSON an object is made of: it allows, or refuses with a sentence (70 §8.2)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lwskit.admission.pod import admitted
from lwskit.api import disaggregated_names, names
from lwskit.groups.identity import is_leader
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.objects import Obj
from tests.unit.admission.reviews import HANDLERS, ask

TPUS = {names.TPU_RESOURCE: "4"}
SAMPLE = Path(__file__).parents[3] / "config" / "samples" / "leaderworkerset.yaml"
N = names


def _set() -> Obj:
    """A set with every field that a rule looks at."""
    obj = yaml.safe_load(SAMPLE.read_text())
    obj["metadata"] |= {
        "namespace": "ns",
        "labels": {"a": "b"},
        "annotations": {N.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION: "x"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": True}],
        "finalizers": ["a/b"],
    }
    rolling = {"partition": 1, "maxUnavailable": "50%", "maxSurge": 1}
    obj["spec"] |= {
        "groupIdentity": "Hash",
        "groupReplacementPolicy": "Immediate",
        "podTerminationPolicy": "Default",
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling},
        "networkConfig": {"subdomainPolicy": "Shared"},
        "scheduling": {},
    }
    obj["spec"]["leaderWorkerTemplate"] |= {
        "restartPolicy": "None",
        "maxGroupRestarts": 1,
        "restartBackoff": {"baseSeconds": 1, "capSeconds": 2},
        "subGroupPolicy": {"subGroupSize": 1, "subGroupPolicyType": "LeaderExcluded"},
        "volumeClaimTemplates": [{}],
        "leaderTemplate": {"spec": {"hostname": "h", "containers": []}},
    }
    return obj


def _pod(name: str, labels: dict[str, str]) -> Obj:
    """A pod with everything that its admission looks at."""
    term = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}, "topologyKey": "rack"}]}
    notes = {
        N.SIZE_ANNOTATION: "4",
        N.SUBGROUP_SIZE_ANNOTATION: "2",
        N.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack",
        N.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION: "host",
        N.SUBDOMAIN_POLICY_ANNOTATION: N.SUBDOMAIN_UNIQUE_PER_REPLICA,
        N.LEADER_NAME_ANNOTATION: "x-0",
    }
    return {
        "metadata": {"name": name, "labels": {N.NAME_LABEL: "x", **labels}, "annotations": notes},
        "spec": {
            "hostname": "h",
            "subdomain": "s",
            "containers": [{"name": "c", "env": [{"name": "A", "value": "b"}], "resources": {"limits": TPUS}}],
            "initContainers": [{"name": "i", "env": [], "resources": {"requests": TPUS}}],
            "schedulingGates": [{"name": N.GROUP_REPLACEMENT_GATE}],
            "affinity": {"podAffinity": term, "podAntiAffinity": term},
        },
    }


def _disaggregated() -> Obj:
    """A DisaggregatedSet with every field that a rule looks at."""
    external = {"mode": "External"}
    templates = {"workerTemplate": {"metadata": {"labels": {}, "annotations": {}}}, "leaderTemplate": {"metadata": {}}}
    spec = {**SET["spec"], "leaderWorkerTemplate": {**SET["spec"]["leaderWorkerTemplate"], **templates}}
    one = {"name": "a", "metadata": {"labels": {"a": "b"}}, "scaling": external, "spec": spec}
    two = {"name": "b", "subRoles": [{"name": "c", "replicas": 1}, {"name": "d", "scaling": external}], "spec": spec}
    policy = {"type": "ExclusiveSlice", "topology": "rack"}
    spec = {"roles": [one, two], "slices": 2, "placementPolicy": policy, "scalingPolicy": {}}
    return {"metadata": {"name": "chat", "namespace": "ns"}, "spec": spec}


SET = _set()
DISAGGREGATED = _disaggregated()
LEADER = _pod("x-0", {N.WORKER_INDEX_LABEL: N.LEADER_INDEX})
WORKER = _pod("x-0-1", {N.GROUP_INDEX_LABEL: "0"})
HASH_LEADER = _pod("", {N.WORKER_INDEX_LABEL: N.LEADER_INDEX, N.GROUP_KEY_LABEL: "0" * 40})
HASH_LEADER["metadata"]["annotations"][N.GROUP_IDENTITY_ANNOTATION] = N.IDENTITY_HASH
CASES = [
    (N.MUTATE_LWS_PATH, SET),
    (N.VALIDATE_LWS_PATH, SET),
    (N.MUTATE_POD_PATH, LEADER),
    (N.MUTATE_POD_PATH, WORKER),
    (N.MUTATE_POD_PATH, HASH_LEADER),
    (N.VALIDATE_POD_PATH, LEADER),
    (disaggregated_names.VALIDATE_PATH, DISAGGREGATED),
    (disaggregated_names.VALIDATE_PATH, DISAGGREGATED),
]

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, width=16) | st.text()
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
odd = st.sampled_from([None, True, 0, -1, 1.5, 2**40, "", "-5", "9" * 25, [], {}, [None], [{}], [[]], {"name": []}])
changes = st.lists(st.tuples(st.integers(0, 150), odd), min_size=1, max_size=3)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value but the value itself."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*path, key)
        yield from places(inner, (*path, key))


def changed(obj: Obj, changes: list[tuple[int, Any]], remove: bool) -> Obj:
    """The object with other values at some of its places, or without the last of them."""
    obj = copy.deepcopy(obj)
    for number, (chosen, value) in enumerate(changes, 1):
        found = list(places(obj))
        if not found:
            break
        *parents, last = found[chosen % len(found)]
        target: Any = obj
        for key in parents:
            target = target[key]
        if remove and number == len(changes):
            del target[last]
        else:
            target[last] = copy.deepcopy(value)
    return obj


def answered(path: str, obj: Any, old: Any) -> None:
    answer = ask(path, obj, old)
    assert answer.code in ((200,) if answer.allowed else (400, 403)), answer.message
    assert answer.allowed or answer.message


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(CASES), changes, changes, st.booleans(), st.booleans())
def test_objects_that_are_nearly_right(
    case: tuple[str, Obj], first: list[tuple[int, Any]], second: list[tuple[int, Any]], remove: bool, update: bool
) -> None:
    path, obj = case
    answered(path, changed(obj, first, remove), changed(obj, second, remove) if update else None)


@settings(deadline=None, max_examples=150)
@given(st.sampled_from([LEADER, WORKER, HASH_LEADER]), changes, st.booleans())
def test_a_pod_is_never_changed_itself_and_not_changed_again(
    obj: Obj, changes: list[tuple[int, Any]], remove: bool
) -> None:
    obj = changed(obj, changes, remove)
    before = copy.deepcopy(obj)
    try:
        made = admitted(obj, "ns", "b".__mul__)
    except LwskitError:
        assert obj == before
        return
    assert obj == before
    if is_leader(made) == is_leader(obj):  # a pod that only its name makes number 0 is taken for a leader after that
        assert admitted(made, "ns", "c".__mul__) == made


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(sorted(HANDLERS)), anything, anything)
def test_objects_that_are_anything(path: str, obj: Any, old: Any) -> None:
    answered(path, obj, old)
    answered(path, {"metadata": obj, "spec": old}, {"spec": obj} if isinstance(old, dict) else None)
