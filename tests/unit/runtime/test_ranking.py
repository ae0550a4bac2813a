"""The order in which a ReplicaSet's pods go (specification: 30 §14)."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.runtime.ranking import DELETION_COST, deletion_cost, is_active, ranked

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE, DAY = 60, 86400


def ago(seconds: float | None) -> str | None:
    return None if seconds is None else (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(
    name: str,
    *,
    node: str = "n1",
    phase: str = "Running",
    ready: bool = True,
    cost: str | None = None,
    since: float | None = DAY,
    restarts: tuple[int, ...] = (),
    sidecars: tuple[int, ...] = (),
    born: float | None = 2 * DAY,
    deleting: bool = False,
) -> dict[str, Any]:
    condition: dict[str, Any] = {"type": "Ready", "status": "True" if ready else "False"}
    if since is not None:
        condition["lastTransitionTime"] = ago(since)
    inits = [{"name": f"i{i}", "restartPolicy": "Always"} for i in range(len(sidecars))]
    meta: dict[str, Any] = {"name": name, "uid": name, "namespace": "t"}
    if born is not None:
        meta["creationTimestamp"] = ago(born)
    if cost is not None:
        meta["annotations"] = {DELETION_COST: cost}
    if deleting:
        meta["deletionTimestamp"] = ago(0)
    return {
        "metadata": meta,
        "spec": {"nodeName": node, "initContainers": [*inits, {"name": "once"}]},
        "status": {
            "phase": phase,
            "conditions": [condition],
            "containerStatuses": [{"name": f"c{i}", "restartCount": n} for i, n in enumerate(restarts)],
            "initContainerStatuses": [
                *({"name": f"i{i}", "restartCount": n} for i, n in enumerate(sidecars)),
                {"name": "once", "restartCount": 99},
            ],
        },
    }


def order(*pods: dict[str, Any], related: list[dict[str, Any]] | None = None) -> list[str]:
    return [r.pod["metadata"]["name"] for r in ranked(pods, pods if related is None else related, NOW)]


def reason(first: dict[str, Any], second: dict[str, Any]) -> str:
    found = ranked([second, first], [], NOW)
    assert [r.pod for r in found] == [first, second]
    assert found[1].why == ""
    return found[0].why


class TestEachCriterionAndItsReason:
    """30 §14: each row, against everything that the rows below it say."""

    def test_1_not_scheduled(self):
        assert reason(pod("b", node="", phase="Running", cost="9"), pod("a", phase="Pending")) == "not scheduled"

    def test_2_phase(self):
        assert reason(pod("b", phase="Pending", ready=True), pod("a", phase="Unknown", ready=False)) == "Pending"
        assert reason(pod("b", phase="Unknown", ready=True), pod("a", phase="Running", ready=False)) == "Unknown"

    def test_3_not_ready(self):
        assert reason(pod("b", ready=False, cost="5"), pod("a", cost="-5")) == "not ready"

    def test_4_deletion_cost(self):
        assert reason(pod("b", cost="-100", since=9 * DAY), pod("a", since=1)) == "deletion cost -100"
        assert reason(pod("b"), pod("a", cost="1", since=1)) == "deletion cost 0"

    def test_5_pods_of_the_deployment_on_the_node(self):
        a, b = pod("a", node="n1", since=1), pod("b", node="n2")
        others = [
            pod("x", node="n2", ready=False),
            pod("gone", node="n1", deleting=True),
            pod("y", node="n1", phase="Failed"),
        ]
        found = ranked([a, b], [a, b, *others], NOW)
        assert [r.pod for r in found] == [b, a]
        assert found[0].why == "2 pods of the Deployment on its node"

    def test_6_ready_for_a_shorter_time(self):
        text = reason(pod("b", since=3 * MINUTE), pod("a", since=9 * MINUTE, restarts=(5,)))
        assert text == "ready for 3m, shorter than 9m"
        assert reason(pod("b", since=None), pod("a", since=1)) == "ready, not said since when"

    def test_6_about_the_same_time_goes_by_uid(self):
        """4 and 5 minutes lie between the same powers of two."""
        text = reason(pod("a", since=5 * MINUTE), pod("b", since=4 * MINUTE + 40, restarts=(9,)))
        assert text == "about as old as the next, and its UID is smaller"

    def test_7_restarts(self):
        assert reason(pod("b", restarts=(0, 2), born=9 * DAY), pod("a", restarts=(1, 1), born=1)) == "restarted 2 times"
        assert reason(pod("b", restarts=(1,), sidecars=(1,)), pod("a", restarts=(1,))) == "restarted 1 time"
        assert reason(pod("b", restarts=(1,)), pod("a", sidecars=(7,))) == "restarted 1 time"

    def test_8_newest(self):
        assert reason(pod("b", born=30), pod("a", born=400)) == "created 30s ago, later than the next"
        assert reason(pod("b", born=None), pod("a", born=1)) == "newest"
        assert "UID" in reason(pod("a", born=300), pod("b", born=280))

    def test_equal_pods_go_by_uid(self):
        assert "UID" in reason(pod("a"), pod("b"))


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("-100", -100),
        ("0", 0),
        ("+5", 0),
        ("08", 0),
        ("1.5", 0),
        ("", 0),
        ("2147483647", 2147483647),
        ("2147483648", 0),
    ],
)
def test_deletion_costs_that_are_none_count_as_0(text, cost):
    assert deletion_cost(pod("a", cost=text)) == cost


def test_which_pods_are_active():
    assert is_active(pod("a", phase="Pending"))
    assert not any(
        is_active(p) for p in (pod("a", phase="Failed"), pod("a", phase="Succeeded"), pod("a", deleting=True))
    )


# A second reading of the table, pair by pair -------------------------------------------------------------------------


def goes_first(a: dict[str, Any], b: dict[str, Any], related: list[dict[str, Any]]) -> bool | None:
    """Row by row of 30 §14; None where no row tells the two apart."""

    def is_ready(p):
        return any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"]["conditions"])

    def magnitude(text):
        nanoseconds = (NOW - datetime.fromisoformat(text.replace("Z", "+00:00"))) / timedelta(microseconds=1) * 1000
        return math.floor(math.log2(nanoseconds)) if nanoseconds > 0 else -1

    def later(one, other):
        if one is None or other is None:
            return one is None
        if magnitude(one) == magnitude(other):
            return a["metadata"]["uid"] < b["metadata"]["uid"]
        return magnitude(one) < magnitude(other)

    nodes = [p["spec"]["nodeName"] for p in (a, b)]
    if (nodes[0] == "") != (nodes[1] == ""):
        return nodes[0] == ""
    phases = [["Pending", "Unknown", "Running"].index(p["status"]["phase"]) for p in (a, b)]
    if phases[0] != phases[1]:
        return phases[0] < phases[1]
    if is_ready(a) != is_ready(b):
        return is_ready(b)
    costs = [int(p["metadata"].get("annotations", {}).get(DELETION_COST, "0")) for p in (a, b)]
    if costs[0] != costs[1]:
        return costs[0] < costs[1]
    active = [
        p
        for p in related
        if "deletionTimestamp" not in p["metadata"] and p["status"]["phase"] not in ("Failed", "Succeeded")
    ]
    crowds = [sum(p["spec"]["nodeName"] == node for p in active) for node in nodes]
    if crowds[0] != crowds[1]:
        return crowds[0] > crowds[1]
    if is_ready(a):
        times = [p["status"]["conditions"][0].get("lastTransitionTime") for p in (a, b)]
        if times[0] != times[1]:
            return later(*times)
    for field, sidecars in (("containerStatuses", False), ("initContainerStatuses", True)):
        most = []
        for p in (a, b):
            names = {c["name"] for c in p["spec"]["initContainers"] if c.get("restartPolicy") == "Always"}
            counts = [s["restartCount"] for s in p["status"][field] if not sidecars or s["name"] in names]
            most.append(max(counts, default=0))
        if most[0] != most[1]:
            return most[0] > most[1]
    births = [p["metadata"].get("creationTimestamp") for p in (a, b)]
    if births[0] != births[1]:
        return later(*births)
    return None


few = st.integers(0, 2)


@st.composite
def pods(draw, times, count):
    """Some pods, and others of their Deployment."""
    made = []
    for uid in draw(st.permutations(range(count))):
        made.append(
            pod(
                f"p{uid:02}",
                node=draw(st.sampled_from(["", "n1", "n1", "n2", "n3"])),
                phase=draw(st.sampled_from(["Pending", "Unknown", "Running", "Running"])),
                ready=draw(st.integers(0, 3)) > 0,
                cost=draw(st.sampled_from([None, None, "0", "-100", "7"])),
                since=draw(times),
                restarts=tuple(draw(st.lists(few, max_size=2))),
                sidecars=tuple(draw(st.lists(few, max_size=1))),
                born=draw(st.one_of(st.none(), st.integers(-5, 5000))),
            )
        )
    others = [
        pod(f"o{i}", node=draw(st.sampled_from(["n1", "n2"])), deleting=draw(st.booleans()))
        for i in range(draw(st.integers(0, 3)))
    ]
    return made, made + others


FAR_APART = st.sampled_from([None, -5, 1, 30, 700, 90_000])
"""Of different magnitudes, so that the table is an order."""


@given(pods(FAR_APART, 5))
def test_the_order_is_total_and_that_of_every_pair(case):
    made, related = case
    found = [r.pod for r in ranked(made, related, NOW)]
    assert sorted(map(id, found)) == sorted(map(id, made))
    for first, second in itertools.combinations(found, 2):
        verdict = goes_first(first, second, related)
        assert verdict is True or (verdict is None and first["metadata"]["uid"] < second["metadata"]["uid"])


@given(pods(st.one_of(st.none(), st.integers(-5, 2000)), 2))
def test_two_pods_with_any_times(case):
    made, related = case
    first, second = (r.pod for r in ranked(made, related, NOW))
    assert goes_first(first, second, related) in (True, None)


@given(pods(st.integers(0, 2000), 6), st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_that_of_the_pods(case, rng):
    made, related = case
    shuffled = rng.sample(made, len(made))
    assert ranked(made, related, NOW) == ranked(shuffled, related, NOW)
    assert all(r.why for r in ranked(made, related, NOW)[:-1])
