from lwskit.testing.kubelet import pod_status

NOW = "2026-01-01T00:00:00Z"


def pod(**spec):
    return {
        "metadata": {"name": "p", "uid": "1"},
        "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}], **spec},
        "status": {"phase": "Pending"},
    }


def ready(status):
    return {c["type"]: c["status"] for c in status["conditions"]}


def test_a_ready_pod():
    status = pod_status(pod(), "Running", True, NOW)
    assert status["phase"] == "Running"
    assert ready(status) == {"Ready": "True", "ContainersReady": "True"}
    assert [(c["name"], c["image"], c["ready"], c["restartCount"]) for c in status["containerStatuses"]] == [
        ("c", "i", True, 0),
        ("d", "j", True, 0),
    ]
    assert status["containerStatuses"][0]["state"] == {"running": {"startedAt": NOW}}


def test_a_pending_and_a_failed_pod():
    pending = pod_status(pod(), "Pending", False, NOW)
    assert ready(pending) == {"Ready": "False", "ContainersReady": "False"}
    assert pending["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    failed = pod_status(pod(), "Failed", False, NOW)
    assert failed["containerStatuses"][1]["state"]["terminated"]["exitCode"] == 1


def test_restarts_are_counted_on_and_kept():
    one = pod()
    one["status"] = pod_status(one, "Running", True, NOW, "d")
    two = pod_status(one, "Running", True, NOW, "d")
    assert [c["restartCount"] for c in two["containerStatuses"]] == [0, 2]
    one["status"] = two
    kept = pod_status(one, "Running", False, NOW)
    assert [c["restartCount"] for c in kept["containerStatuses"]] == [0, 2]


def test_init_containers_have_statuses_and_can_restart():
    status = pod_status(pod(initContainers=[{"name": "i", "image": "k"}]), "Running", True, NOW, "i")
    assert [(c["name"], c["restartCount"]) for c in status["initContainerStatuses"]] == [("i", 1)]
    assert [c["restartCount"] for c in status["containerStatuses"]] == [0, 0]


def test_readiness_gates_hold_ready_back():
    gated = pod(readinessGates=[{"conditionType": "a/b"}])
    assert ready(pod_status(gated, "Running", True, NOW)) == {"Ready": "False", "ContainersReady": "True"}
    gated["status"]["conditions"] = [{"type": "a/b", "status": "True"}]
    assert ready(pod_status(gated, "Running", True, NOW))["Ready"] == "True"
