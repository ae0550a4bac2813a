import pytest

from lwskit.embedded.controllers.kubelet_behaviour import NEVER, PREFIX, Behaviour, behaviour_of, problems
from lwskit.embedded.controllers.kubelet_pod import BAD_ANNOTATION, PodLife, Step, differs

from .objects import at

QUICK = Behaviour(start_delay=0)


def new_pod(**spec) -> dict:
    return {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"containers": [{"name": "main", "image": "img"}]} | spec,
        "status": {"phase": "Pending"},
    }


class Node:
    """A pod on a node: looks at it and keeps the status that comes out."""

    def __init__(self, pod: dict, behaviour: Behaviour = QUICK) -> None:
        self.pod, self.behaviour = pod, behaviour
        self.life = PodLife(pod, 0.0, at(0), ["1.1.1.1"], ["10.0.0.1"])

    def look(self, now: float) -> Step:
        step = self.life.look(self.pod, self.behaviour, now, at(now))
        if step.status is not None:
            gates = [c for c in self.pod["status"].get("conditions", []) if c["type"].startswith("x/")]
            self.pod = self.pod | {"status": step.status | {"conditions": step.status["conditions"] + gates}}
            assert not differs(self.pod, step.status)
        return step

    @property
    def phase(self) -> str:
        return self.pod["status"]["phase"]

    @property
    def container(self) -> dict:
        return self.pod["status"]["containerStatuses"][0]

    def condition(self, kind: str) -> tuple[str, str | None]:
        found = next(c for c in self.pod["status"]["conditions"] if c["type"] == kind)
        return found["status"], found["reason"]


def test_without_delay_a_pod_is_ready_at_the_first_look():
    node = Node(new_pod())
    step = node.look(0)
    assert (node.phase, node.condition("Ready"), node.condition("ContainersReady")) == (
        "Running",
        ("True", None),
        ("True", None),
    )
    assert (node.container["ready"], node.container["started"], node.container["restartCount"]) == (True, True, 0)
    assert node.pod["status"]["podIP"] == "10.0.0.1"
    assert [n.reason for n in step.notes] == ["Pulled", "Created", "Started"]
    again = node.look(1)
    assert (again.status, again.delete, again.after) == (None, False, None)


def test_pending_then_running_then_ready():
    node = Node(new_pod(), Behaviour(start_delay=2, ready_delay=3))
    assert node.look(0).after == 2
    assert node.phase == "Pending"
    assert node.container["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert node.look(2).after == 3
    assert (node.phase, node.condition("Ready")) == ("Running", ("False", "ContainersNotReady"))
    node.look(5)
    assert node.condition("Ready") == ("True", None)


def test_never_ready():
    node = Node(new_pod(), Behaviour(start_delay=0, ready_delay=NEVER))
    assert node.look(0).after is None
    assert node.condition("Ready")[0] == "False"


def test_an_image_that_is_not_to_be_had_until_it_is():
    pod = new_pod()
    pod["metadata"]["annotations"] = {PREFIX + "image-pull": "fail"}
    node = Node(pod)
    node.behaviour = behaviour_of(pod, Behaviour(start_delay=2))
    node.look(0)
    assert node.container["state"] == {"waiting": {"reason": "ContainerCreating"}}
    first = node.look(2)
    assert [(n.type, n.reason) for n in first.notes] == [("Normal", "Pulling"), ("Warning", "Failed")]
    assert (node.phase, node.condition("Ready")[0], first.after) == ("Pending", "False", 1)
    assert node.condition("PodReadyToStartContainers")[0] == "True"
    assert node.container["state"]["waiting"]["reason"] == "ErrImagePull"
    later = node.look(3)
    assert (later.notes, later.after) == ([], None)
    assert node.container["state"]["waiting"]["reason"] == "ImagePullBackOff"
    assert 'pulling image "img"' in node.container["state"]["waiting"]["message"]
    assert "containerID" not in node.container
    node.behaviour = QUICK
    node.look(4)
    assert (node.phase, node.condition("Ready")[0], node.container["restartCount"]) == ("Running", "True", 0)


def test_of_init_containers_only_the_first_gets_as_far_as_its_image():
    node = Node(new_pod(initContainers=[{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]))
    node.behaviour = Behaviour(start_delay=0, image_pull_fails=True)
    node.look(0)
    reasons = [c["state"]["waiting"]["reason"] for c in node.pod["status"]["initContainerStatuses"]]
    assert (reasons, node.container["state"]["waiting"]["reason"]) == (
        ["ErrImagePull", "PodInitializing"],
        "PodInitializing",
    )


def test_a_pod_without_its_image_is_deleted_like_any_other():
    node = Node(new_pod(), Behaviour(start_delay=0, image_pull_fails=True, stop_delay=5))
    node.look(0)
    node.pod["metadata"] |= {"deletionTimestamp": at(1), "deletionGracePeriodSeconds": 30}
    assert node.look(1).delete


def test_readiness_gates():
    node = Node(new_pod(readinessGates=[{"conditionType": "x/gate"}]))
    node.look(0)
    assert node.condition("ContainersReady") == ("True", None)
    assert node.condition("Ready") == ("False", "ReadinessGatesNotReady")
    node.pod["status"]["conditions"].append({"type": "x/gate", "status": "True"})
    node.look(1)
    assert node.condition("Ready") == ("True", None)


def test_init_containers_complete_and_sidecars_run():
    init = [{"name": "first", "image": "i"}, {"name": "side", "image": "s", "restartPolicy": "Always"}]
    node = Node(new_pod(initContainers=init), Behaviour(start_delay=1))
    node.look(0)
    assert node.condition("Initialized") == ("False", "ContainersNotInitialized")
    assert node.container["state"]["waiting"]["reason"] == "PodInitializing"
    node.look(1)
    first, side = node.pod["status"]["initContainerStatuses"]
    assert first["state"]["terminated"]["reason"] == "Completed"
    assert ("running" in side["state"], side["ready"]) == (True, True)
    assert node.condition("Initialized") == ("True", None)


def test_a_crash_restarts_the_container_at_once_the_first_time_and_later_the_second():
    node = Node(new_pod())
    node.look(0)
    node.life.crash("", 3)
    node.look(1)
    assert node.container["restartCount"] == 1
    assert node.container["lastState"]["terminated"]["exitCode"] == 3
    assert node.phase == "Running"
    node.life.crash("main", 3)
    assert node.look(2).after == 9
    assert node.container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert (node.container["restartCount"], node.condition("Ready")[0]) == (1, "False")
    node.look(11)
    assert (node.container["restartCount"], node.condition("Ready")[0]) == (2, "True")


def test_after_a_restart_readiness_takes_its_time():
    node = Node(new_pod(), Behaviour(start_delay=0, ready_delay=5))
    node.look(0)
    node.look(5)
    node.life.crash("", 1)
    node.look(6)
    assert (node.container["restartCount"], node.condition("Ready")[0]) == (1, "False")
    node.look(11)
    assert node.condition("Ready")[0] == "True"


def test_crash_by_annotation_counts_restarts():
    node = Node(new_pod())
    node.look(0)
    node.behaviour = Behaviour(start_delay=0, crashes={"": 1})
    node.look(1)
    node.look(2)
    assert node.container["restartCount"] == 1


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [
        ("Never", 0, "Succeeded"),
        ("Never", 2, "Failed"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 2, "Running"),
        ("Always", 0, "Running"),
    ],
)
def test_the_restart_policy_decides_what_an_exit_means(policy, code, phase):
    node = Node(new_pod(restartPolicy=policy), Behaviour(start_delay=0, run_time=4, exit_code=code))
    assert node.look(0).after == 4
    node.look(4)
    assert node.phase == phase
    if phase == "Succeeded":
        assert node.condition("Ready") == ("False", "PodCompleted")


def test_fail():
    node = Node(new_pod())
    node.look(0)
    node.behaviour = Behaviour(fail="Evicted")
    node.look(1)
    assert (node.phase, node.pod["status"]["reason"]) == ("Failed", "Evicted")
    assert node.look(2).status is None


def test_deletion_stops_the_containers_then_deletes():
    node = Node(new_pod(), Behaviour(start_delay=0, stop_delay=4))
    node.look(0)
    node.pod["metadata"] |= {"deletionTimestamp": at(1), "deletionGracePeriodSeconds": 30}
    step = node.look(1)
    assert ([n.reason for n in step.notes], step.delete, step.after) == (["Killing"], False, 4)
    assert node.condition("Ready")[0] == "True"
    step = node.look(5)
    assert step.delete
    assert (node.phase, node.condition("Ready")[0]) == ("Succeeded", "False")


def test_a_pod_that_never_started_is_deleted_without_a_word():
    node = Node(new_pod(), Behaviour(start_delay=9, stop_delay=4))
    node.look(0)
    node.pod["metadata"]["deletionTimestamp"] = at(1)
    step = node.look(1)
    assert (step.delete, step.status, step.notes) == (True, None, [])


def test_what_has_no_grace_left_is_not_deleted_again():
    node = Node(new_pod())
    node.look(0)
    node.pod["metadata"] |= {"deletionTimestamp": at(1), "deletionGracePeriodSeconds": 0, "finalizers": ["x/y"]}
    assert not node.look(1).delete
    assert node.phase == "Succeeded"


def test_another_kubelet_goes_on_where_the_first_stopped():
    first = Node(new_pod(), Behaviour(start_delay=0, ready_delay=5))
    first.look(0)
    first.life.crash("", 1)
    first.look(1)
    first.look(6)
    second = Node(first.pod, first.behaviour)
    step = second.look(0)
    assert (step.status, step.after) == (None, None)
    assert second.container["restartCount"] == 1


def test_annotations():
    pod = new_pod()
    pod["metadata"]["annotations"] = {
        "embedded.k8s.test/start-delay": "4",
        "embedded.k8s.test/ready-delay": "never",
        "embedded.k8s.test/stop-delay": "60",
        "embedded.k8s.test/crash": "main=2, side=always",
        "embedded.k8s.test/exit-code": "oops",
    }
    pod["metadata"]["deletionGracePeriodSeconds"] = 30
    found = behaviour_of(pod, Behaviour(run_time=8), speed=2)
    assert (found.start_delay, found.ready_delay, found.stop_delay, found.run_time) == (2, NEVER, 15, 4)
    assert (found.crashes_of("main"), found.crashes_of("side"), found.crashes_of("other")) == (2, NEVER, 0)
    assert found.exit_code == 0


@pytest.mark.parametrize(
    ("notes", "text"),
    [
        ({"start-dely": "1"}, "start-dely is unknown and counts as absent; after embedded.k8s.test/ may stand crash"),
        ({"start-dely": "1"}, "start-delay, stop-delay, perhaps start-delay"),
        (
            {"ready-delay": "5s"},
            'ready-delay is "5s" and counts as absent; it must be a number of seconds, at least 0, or',
        ),
        ({"run-time": "-1"}, 'run-time is "-1"'),
        ({"stop-delay": "nan"}, 'stop-delay is "nan"'),
        ({"exit-code": "never"}, 'exit-code is "never" and counts as absent; it must be a number from 0 to 255'),
        ({"exit-code": "256"}, 'exit-code is "256"'),
        ({"crash": "main=x"}, 'crash is "main=x", of which "main=x" counts as 0'),
        ({"crash": "two"}, 'crash is "two", of which "two" counts as 0'),
        ({"crash": "side=2"}, 'crash names container "side", which the pod does not have; its containers: main'),
        ({"fail": ""}, "fail is empty"),
        ({"image-pull": "no"}, 'image-pull is "no" and counts as absent; it must be "fail"'),
    ],
)
def test_a_mistake_in_the_annotations_is_told_once(notes, text):
    pod = new_pod()
    pod["metadata"]["annotations"] = {PREFIX + k: v for k, v in notes.items()}
    node = Node(pod)
    found = [n for n in node.look(0).notes if n.reason == BAD_ANNOTATION]
    assert [n.type for n in found] == ["Warning"]
    assert text in found[0].message
    assert node.look(1).notes == []
    assert behaviour_of(pod, QUICK) == QUICK or "crash" in notes


def test_annotations_without_a_mistake_and_those_of_others_are_not_told_of():
    notes = {"start-delay": "0", "ready-delay": "0.5", "stop-delay": "never", "run-time": "1e2", "exit-code": "255"}
    notes |= {"crash": "main=2,always", "fail": "Evicted"}
    found = {PREFIX + k: v for k, v in notes.items()} | {"example.com/start-dely": "x"}
    assert list(problems(found, ["main"])) == []
