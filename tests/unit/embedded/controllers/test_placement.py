import pytest

from lwskit.embedded.controllers.placement import Placement, requests_of, tolerates


def node(name: str, *, cpu: str = "4", pods: str = "10", labels: dict | None = None, **spec) -> dict:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | (labels or {})},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": pods}},
    }


def pod(name: str = "p", *, cpu: str = "1", labels: dict | None = None, ns: str = "default", **spec) -> dict:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "metadata": {"name": name, "namespace": ns, "labels": labels or {}},
        "spec": {"containers": containers} | spec,
    }


def cluster(*nodes: dict) -> Placement:
    placement = Placement()
    for one in nodes:
        placement.put_node(one)
    return placement


def between(kind: str, key: str, labels: dict, **more) -> dict:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}} | more
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_no_nodes():
    assert cluster().choose(pod()).message == "no nodes available to schedule pods"


def test_the_least_loaded_then_the_first_by_name():
    placement = cluster(node("b"), node("a"))
    assert placement.choose(pod()).node == "a"
    placement.put_pod("x", "a", pod("x"))
    assert placement.choose(pod()).node == "b"


def test_what_does_not_fit_is_explained():
    placement = cluster(node("a", cpu="1"), node("b", cpu="3", unschedulable=True), node("c", cpu="3"))
    placement.put_pod("x", "c", pod("x", cpu="2"))
    assert placement.choose(pod(cpu="2")).message == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. preemption: 0/3 nodes are "
        "available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    )


def test_load_comes_and_goes():
    placement = cluster(node("a", cpu="1"))
    placement.put_pod("x", "a", pod("x"))
    assert placement.choose(pod()).node == ""
    assert placement.drop_pod("x")
    assert not placement.drop_pod("x")
    assert placement.choose(pod()).node == "a"


def test_a_node_that_comes_back_has_its_pods():
    placement = cluster(node("a", cpu="1"))
    placement.put_pod("x", "a", pod("x"))
    placement.drop_node("a")
    placement.put_node(node("a", cpu="1"))
    assert placement.choose(pod()).node == ""


def test_pod_count_and_extended_resources():
    placement = cluster(node("a", pods="1"))
    placement.put_pod("x", "a", pod("x", cpu="0"))
    assert "1 Too many pods" in placement.choose(pod()).message
    wants = pod()
    wants["spec"]["containers"][0]["resources"] = {"limits": {"google.com/tpu": "4"}}
    assert "1 Insufficient google.com/tpu" in cluster(node("a")).choose(wants).message


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": "zone", "operator": "In", "values": ["z1"]}, True),
        ({"key": "zone", "operator": "NotIn", "values": ["z1"]}, False),
        ({"key": "size", "operator": "Gt", "values": ["3"]}, True),
        ({"key": "size", "operator": "Lt", "values": ["3"]}, False),
        ({"key": "zone", "operator": "Gt", "values": ["3"]}, False),
        ({"key": "other", "operator": "DoesNotExist"}, True),
    ],
)
def test_node_affinity(expression, fits):
    wants = pod(
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [expression]}]
                }
            }
        }
    )
    assert bool(cluster(node("a", labels={"zone": "z1", "size": "5"})).choose(wants).node) is fits


def test_node_selector():
    assert cluster(node("a")).choose(pod(nodeSelector={"zone": "z"})).node == ""
    assert cluster(node("a", labels={"zone": "z"})).choose(pod(nodeSelector={"zone": "z"})).node == "a"


def test_taints():
    tainted = cluster(node("a", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]))
    assert "1 node(s) had untolerated taint(s)" in tainted.choose(pod()).message
    assert tainted.choose(pod(tolerations=[{"key": "gpu", "operator": "Exists"}])).node == "a"
    assert tainted.choose(pod(tolerations=[{"key": "gpu", "value": "no"}])).node == ""


@pytest.mark.parametrize(
    ("toleration", "result"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Equal", "value": "v"}, True),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, False),
        ({"key": "x", "operator": "Exists"}, False),
        ({}, False),
    ],
)
def test_tolerates(toleration, result):
    assert tolerates(toleration, {"key": "k", "value": "v", "effect": "NoSchedule"}) is result


RACKS = (node("a", labels={"rack": "1"}), node("b", labels={"rack": "1"}), node("c", labels={"rack": "2"}))


def test_affinity_draws_to_the_place_of_its_match():
    placement = cluster(*RACKS)
    placement.put_pod("x", "c", pod("x", labels={"app": "db"}))
    assert placement.choose(pod(affinity=between("podAffinity", "rack", {"app": "db"}))).node == "c"


def test_the_first_pod_of_its_own_affinity_goes_anywhere_with_the_key():
    placement = cluster(node("0"), *RACKS)
    wants = pod(labels={"app": "db"}, affinity=between("podAffinity", "rack", {"app": "db"}))
    assert placement.choose(wants).node == "a"
    assert (
        "didn't match pod affinity rules"
        in placement.choose(pod(affinity=between("podAffinity", "rack", {"app": "x"}))).message
    )


def test_anti_affinity_holds_both_ways():
    placement = cluster(*RACKS)
    lonely = pod("x", labels={"app": "db"}, affinity=between("podAntiAffinity", "rack", {"app": "db"}))
    placement.put_pod("x", "a", lonely)
    assert placement.choose(lonely).node == "c"
    placement.put_pod("y", "c", lonely)
    assert "3 node(s) didn't match pod anti-affinity rules" in placement.choose(lonely).message
    assert (
        "3 node(s) didn't satisfy existing pods anti-affinity rules"
        in placement.choose(pod(labels={"app": "db"})).message
    )


def test_affinity_looks_into_the_namespaces_it_names():
    placement = cluster(*RACKS)
    placement.namespaces = {"one": {"team": "t"}, "two": {}}
    placement.put_pod("x", "c", pod("x", labels={"app": "db"}, ns="one"))
    for more, fits in (({}, ""), ({"namespaces": ["one"]}, "c"), ({"namespaceSelector": {}}, "c")):
        assert placement.choose(pod(affinity=between("podAffinity", "rack", {"app": "db"}, **more))).node == fits
    chosen = {"namespaceSelector": {"matchLabels": {"team": "t"}}}
    assert placement.choose(pod(affinity=between("podAffinity", "rack", {"app": "db"}, **chosen))).node == "c"


def test_finished_pods_attract_nobody():
    placement = cluster(*RACKS)
    done = pod("x", labels={"app": "db"}) | {"status": {"phase": "Succeeded"}}
    placement.put_pod("x", "c", done)
    assert placement.choose(pod(affinity=between("podAffinity", "rack", {"app": "db"}))).node == ""


def test_requests():
    spec = {
        "containers": [{"resources": {"requests": {"cpu": "500m"}}}, {"resources": {"limits": {"cpu": "1"}}}],
        "initContainers": [
            {"restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
            {"resources": {"requests": {"cpu": "3"}}},
        ],
        "overhead": {"cpu": "1"},
    }
    # The init container's 3 and the 0.25 beside it are more than the 1.75 of the containers; the overhead is on top.
    assert float(requests_of({"spec": spec})["cpu"]) == 4.25
