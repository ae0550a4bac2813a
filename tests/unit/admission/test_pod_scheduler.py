"""The hook for gang schedulers in the admission of pods (specification: 10 §8.8; lines 87–89)."""

from __future__ import annotations

import random

import pytest

from lwskit.admission.webhooks import handlers
from lwskit.api import names
from lwskit.groups.model import DecisionError
from lwskit.groups.ports import Draw, PodScheduler
from lwskit.runtime.objects import Obj, annotations_of, labels_of
from tests.unit.admission import reviews
from tests.unit.admission.pods import L, env_of, hash_leader, leader, worker
from tests.unit.admission.reviews import Answer


class Annotating:
    """Names the group of a pod in an annotation, and remembers what it was shown."""

    def __init__(self) -> None:
        self.shown: list[Obj] = []

    def scheduled(self, pod: Obj, draw: Draw) -> Obj:
        self.shown.append(pod)
        labels = labels_of(pod)
        name = "-".join(labels[L + part] for part in ("name", "group-index", "template-revision-hash"))
        notes = {**annotations_of(pod), names.VOLCANO_GROUP_NAME_ANNOTATION: name}
        return {**pod, "metadata": {**pod["metadata"], "annotations": notes}}


class Drawing:
    """Has leaders draw a new name for their group once, and puts pods into the group that their name says."""

    def scheduled(self, pod: Obj, draw: Draw) -> Obj:
        notes = annotations_of(pod)
        level = notes.get(L + "workload-aware-scheduling")
        if level is None:
            return pod
        if level != "replica":
            raise DecisionError(f'unsupported workload-aware scheduling mode "{level}"')
        base = notes[L + "workload-name"]
        if labels_of(pod)[L + "worker-index"] == "0" and "." not in base:
            base = f"{base}.{draw(5)}"
        metadata = {**pod["metadata"], "annotations": {**notes, L + "workload-name": base}}
        group = {"podGroupName": f"{base}-{labels_of(pod)[L + 'group-index']}"}
        return {**pod, "metadata": metadata, "spec": {**pod["spec"], "schedulingGroup": group}}


def ask(scheduler: PodScheduler | None, obj: Obj) -> Answer:
    path = names.MUTATE_POD_PATH
    return reviews.ask(path, obj, handlers=handlers(random.Random(len(str(obj))), scheduler))


def admit(scheduler: PodScheduler | None, obj: Obj) -> Obj:
    answer = ask(scheduler, obj)
    assert answer.allowed, answer.message
    return answer.obj


def revised(obj: Obj) -> Obj:
    obj["metadata"]["labels"][L + "template-revision-hash"] = "5c5fcdfb44"
    return obj


def test_87_leaders_and_workers_get_what_their_scheduler_reads() -> None:
    for obj, group in ((leader("test-1"), "1"), (worker("test-1-2"), "1")):
        made = admit(Annotating(), revised(obj))
        assert annotations_of(made)[names.VOLCANO_GROUP_NAME_ANNOTATION] == f"test-{group}-5c5fcdfb44"
    made = admit(Annotating(), revised(hash_leader()))
    key = labels_of(made)[L + "group-key"]
    assert annotations_of(made)[names.VOLCANO_GROUP_NAME_ANNOTATION] == f"test-{key}-5c5fcdfb44"


def test_87_the_scheduler_is_asked_after_labels_and_before_variables() -> None:
    scheduler = Annotating()
    obj = revised(leader("test-1", {"subgroup-size": "2"}))
    obj["spec"]["containers"][0]["resources"] = {"limits": {"google.com/tpu": "4"}}
    made = admit(scheduler, obj)
    (shown,) = scheduler.shown
    assert {L + "group-index", L + "group-key", L + "subgroup-key"} <= labels_of(shown).keys()
    assert env_of(shown) == [[]]
    assert [name for name, _ in env_of(made)[0]][2:4] == ["LWS_WORKER_INDEX", "TPU_WORKER_HOSTNAMES"]


def test_87_pods_of_no_set_are_none_of_the_schedulers_business() -> None:
    scheduler = Annotating()
    assert ask(scheduler, {"metadata": {"name": "a-0"}, "spec": {}}).patch == []
    assert scheduler.shown == []


def test_88_a_pod_is_put_into_the_group_that_the_scheduler_says() -> None:
    notes = {"workload-aware-scheduling": "replica", "workload-name": "test-75bbc77f49.x7k2p"}
    made = admit(Drawing(), worker("test-1-2", notes))
    assert made["spec"]["schedulingGroup"] == {"podGroupName": "test-75bbc77f49.x7k2p-1"}


def test_88_what_the_scheduler_refuses_is_denied_with_its_sentence() -> None:
    answer = ask(Drawing(), leader(annotations={"workload-aware-scheduling": "often"}))
    assert (answer.allowed, answer.code) == (False, 403)
    assert answer.message == 'unsupported workload-aware scheduling mode "often"'


@pytest.mark.parametrize("scheduler", [None, Drawing()])
def test_88_without_scheduler_or_level_there_is_no_group(scheduler: PodScheduler | None) -> None:
    made = admit(scheduler, leader(annotations={} if scheduler else {"workload-aware-scheduling": "replica"}))
    assert "schedulingGroup" not in made["spec"]


def test_89_a_leader_draws_once_and_every_leader_anew() -> None:
    found = handlers(random.Random(3), Drawing())
    template = leader("test-1", {"workload-aware-scheduling": "replica", "workload-name": "test-75bbc77f49"})

    def again(obj: Obj) -> Obj:
        return reviews.ask(names.MUTATE_POD_PATH, obj, handlers=found).obj

    first, second = again(template), again(template)
    drawn = [annotations_of(obj)[L + "workload-name"] for obj in (first, second)]
    assert drawn[0] != drawn[1]
    for name in drawn:
        stem, _, incarnation = name.partition(".")
        assert stem == "test-75bbc77f49"
        assert len(incarnation) == 5
        assert set(incarnation) <= set(names.SAFE_ALPHABET)
    assert again(first) == first
