"""The forecast of the StatefulSet controller, held against the one of the embedded cluster."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from lwskit.embedded.controllers import statefulset_plan
from lwskit.embedded.controllers.statefulset_pods import ordinal_of, revision_of
from lwskit.groups.forecast import Leader, Workload, next_round, settle_revision
from lwskit.runtime.objects import Obj
from lwskit.runtime.plan import Create, Delete
from tests.unit.embedded.controllers.objects import NOW, pod, revision, stateful_set

OLD, NEW, OLDER = "web-old", "web-new", "web-older"

leaders = st.dictionaries(
    st.integers(0, 8),
    st.builds(
        Leader,
        st.sampled_from([OLD, NEW, OLDER]),
        ready=st.booleans(),
        terminating=st.booleans(),
        ended=st.sampled_from([False, False, False, True]),
    ),
)
workloads = st.builds(
    Workload,
    st.integers(0, 7),
    st.integers(0, 8),
    st.integers(1, 4),
    st.sampled_from([OLD, NEW]),
    st.just(NEW),
    st.sampled_from([0, 0, 2]),
)


def as_pod(ordinal: int, leader: Leader) -> Obj:
    made = pod(ordinal, leader.revision, ready=leader.ready, deleting=leader.terminating)
    if leader.ended:
        made["status"] = {"phase": "Failed", "conditions": [{"type": "Ready", "status": "False"}]}
    return made


def real(workload: Workload, there: Mapping[int, Leader]) -> statefulset_plan.SetPlan:
    strategy = {
        "type": "RollingUpdate",
        "rollingUpdate": {"partition": workload.partition, "maxUnavailable": workload.max_unavailable},
    }
    asked = stateful_set(workload.replicas, ordinals={"start": workload.start}, updateStrategy=strategy)
    revisions = {OLD: revision(OLD, "a", 1), NEW: revision(NEW, "b", 2)}
    pods = [as_pod(o, leader) for o, leader in there.items()]
    return statefulset_plan.decide(
        statefulset_plan.Snapshot(asked, pods, revisions[workload.current], revisions[NEW], NOW)
    )


@given(workloads, leaders)
def test_it_makes_and_deletes_what_the_embedded_controller_does(workload: Workload, there: dict[int, Leader]) -> None:
    there = {o: Leader(s.revision, s.ready and not s.ended, s.terminating, s.ended) for o, s in there.items()}
    expected = real(workload, there)
    actions = [a for phase in expected.phases for item in phase.items for a in item.actions]
    made = {ordinal_of(a.obj): revision_of(a.obj) for a in actions if isinstance(a, Create)}
    gone = [int(a.key.name.rpartition("-")[2]) for a in actions if isinstance(a, Delete)]
    found = next_round(workload, there)
    assert found.create == made
    assert set(found.deleted) == set(gone)
    assert len(set(found.deleted)) == len(found.deleted)
    assert list(found.condemned + found.replaced) == [o for o in gone if o not in found.ended]
    assert bool(found) == bool(made or gone)
    after = settle_revision(workload, there)
    assert after.current == expected.status["currentRevision"]


def test_a_healthy_leader_is_taken_down_only_within_the_budget() -> None:
    asked = Workload(4, 1, 1, OLD, NEW)
    healthy = {o: Leader(OLD, ready=True) for o in range(4)}
    assert next_round(asked, healthy).replaced == (3,)
    assert next_round(asked, {**healthy, 2: Leader(OLD)}).replaced == (2,)
    assert next_round(asked, {**healthy, 0: Leader(OLD)}).replaced == ()


def test_what_lacks_below_the_partition_is_made_from_the_old_revision() -> None:
    assert next_round(Workload(3, 2, 1, OLD, NEW), {}).create == {0: OLD, 1: OLD, 2: NEW}
