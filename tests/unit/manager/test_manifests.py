"""Generated manifests: the checked-in copies are current, and the roles allow what the manager does, no less."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from lwskit.api import crds, disaggregated_names, names
from lwskit.backends.registry import Backends
from lwskit.backends.statefulset import StatefulSetLeaders, StatefulSetWorkers
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.ports import PolicyRule
from lwskit.manager import inprocess, manifests
from lwskit.manager.options import DEFAULT_NAMESPACE, Options
from lwskit.manager.program import Program
from lwskit.runtime.client.client import Client
from lwskit.runtime.kinds import NAMESPACE, POD
from lwskit.runtime.objects import Obj, is_true
from lwskit.testing.cluster import ClusterOptions, TestCluster
from lwskit.testing.interceptors import Interceptor
from tests.dsobjects import ds, external, role, sub, subroles

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "config"


def test_what_is_checked_in_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert manifests.main(["--check", str(CONFIG)]) == 0, capsys.readouterr().err
    assert crds.main(["--check", str(CONFIG / "crd")]) == 0, capsys.readouterr().err


def test_a_file_that_is_not_current_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert manifests.main(["--write", str(tmp_path)]) == 0
    assert manifests.main(["--check", str(tmp_path)]) == 0
    file = tmp_path / "rbac" / "role.yaml"
    file.write_text(file.read_text() + "\n")
    (tmp_path / "webhook" / "manifests.yaml").unlink()
    assert manifests.main(["--check", str(tmp_path)]) == 1
    told = capsys.readouterr().err.splitlines()
    assert [line.split(" is not current: run python -m ")[0] for line in told] == [
        str(tmp_path / "webhook" / "manifests.yaml"),
        str(file),
    ]


@pytest.mark.parametrize("sample", sorted((ROOT / "src/lwskit/cli/samples").iterdir()), ids=lambda file: file.name)
def test_the_sample_of_the_package_is_the_sample(sample: Path) -> None:
    assert sample.read_bytes() == (CONFIG / "samples" / sample.name).read_bytes()


def test_the_service_of_an_installation_is_asked() -> None:
    documents = list(yaml.safe_load_all((CONFIG / "webhook" / "manifests.yaml").read_text()))
    assert documents == manifests.webhook_manifests()
    asked = {webhook["name"]: webhook["clientConfig"] for d in documents for webhook in d["webhooks"]}
    assert asked == {
        name: {"service": {"name": "lws-webhook-service", "namespace": "lws-system", "path": path}}
        for name, path in (
            ("mleaderworkerset.kb.io", "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset"),
            ("mpod.kb.io", "/mutate--v1-pod"),
            ("vleaderworkerset.kb.io", "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset"),
            ("vpod.kb.io", "/validate--v1-pod"),
            ("vdisaggregatedset.kb.io", "/validate-disaggregatedset-x-k8s-io-v1-disaggregatedset"),
        )
    }


def test_another_namespace_follows_through() -> None:
    for document in manifests.webhook_manifests("mine"):
        assert {w["clientConfig"]["service"]["namespace"] for w in document["webhooks"]} == {"mine"}
    assert manifests.roles(namespace="mine")[1]["metadata"]["namespace"] == "mine"


class Deployed(StatefulSetLeaders):
    rbac = (PolicyRule("apps", ("deployments",), ("watch", "get")),)


def test_a_backend_brings_its_rules() -> None:
    role, *_ = manifests.roles(Backends(Deployed(), StatefulSetWorkers()))
    assert {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "watch"]} in role["rules"]
    assert sum("statefulsets" in rule["resources"] for rule in role["rules"]) == 1
    only = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "watch"]}
    assert only not in manifests.roles()[0]["rules"]


def test_reading_metrics_has_roles_of_its_own() -> None:
    asking, reading = manifests.roles()[2:]
    assert [role["metadata"]["name"] for role in (asking, reading)] == ["lws-proxy-role", "lws-metrics-reader"]
    assert allowed(asking) == {
        ("authentication.k8s.io", "tokenreviews", "create"),
        ("authorization.k8s.io", "subjectaccessreviews", "create"),
    }
    assert reading["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


def test_users_of_disaggregated_sets_have_roles_that_nobody_is_given() -> None:
    group, kind, status = "disaggregatedset.x-k8s.io", "disaggregatedsets", "disaggregatedsets/status"
    admin, editor, viewer = manifests.user_roles()
    assert [role["metadata"]["name"] for role in (admin, editor, viewer)] == [
        "lws-disaggregatedset-admin-role",
        "lws-disaggregatedset-editor-role",
        "lws-disaggregatedset-viewer-role",
    ]
    assert allowed(admin) == {(group, kind, "*"), (group, status, "get")}
    reading = {(group, kind, verb) for verb in ("get", "list", "watch")} | {(group, status, "get")}
    assert allowed(viewer) == reading
    writing = {(group, kind, verb) for verb in ("create", "delete", "patch", "update")}
    assert allowed(editor) == reading | writing
    assert all("aggregationRule" not in role and "labels" not in role["metadata"] for role in (admin, editor, viewer))
    assert list(yaml.safe_load_all((CONFIG / "rbac" / "user_roles.yaml").read_text())) == [admin, editor, viewer]


def test_the_manager_may_do_all_that_a_disaggregated_set_needs() -> None:
    everywhere = allowed(manifests.roles()[0])
    group = "disaggregatedset.x-k8s.io"
    verbs = {"create", "delete", "get", "list", "patch", "update", "watch"}
    for resource in ("disaggregatedsets", "disaggregatedsetrolescalers"):
        assert {(group, resource, verb) for verb in verbs} <= everywhere
        assert {(group, f"{resource}/status", verb) for verb in ("get", "patch", "update")} <= everywhere
    assert (group, "disaggregatedsets/finalizers", "update") in everywhere
    assert {(names.GROUP, names.PLURAL, verb) for verb in verbs} <= everywhere


# What the manager really does -----------------------------------------------------------------------------------------


def allowed(role: Obj) -> set[tuple[str, str, str]]:
    """Group, resource and verb of everything that a role allows."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def done(interceptor: Interceptor) -> set[tuple[str, str, str, str]]:
    """Group, resource, verb and namespace of everything that was asked of a server."""
    found = set()
    for recorded in interceptor.requests:
        parts = recorded.request.path.strip("/").split("/")
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        resource = "/".join([rest[0], *rest[2:]])
        found.add((group, resource, recorded.verb, namespace))
    return found


@pytest.fixture
def cluster_crds() -> list[Obj]:
    return crds.crds()


@pytest.fixture
def cluster_options() -> ClusterOptions:
    return ClusterOptions(without=frozenset(), nodes=4)


@asynccontextmanager
async def elected(cluster: TestCluster) -> AsyncIterator[Interceptor]:
    """The manager as an installation runs it, with what it asks of the server."""
    interceptor = await cluster.connect("lws-manager")
    program = Program(
        Client(interceptor, clock=cluster.clock), Options(), clock=cluster.clock, rng=cluster.rng, hostname="here"
    )
    await inprocess.register(cluster.server, cluster.client, program.admission)
    running = asyncio.create_task(program.run(), name="manager")
    try:
        yield interceptor
    finally:
        running.cancel()
        await asyncio.wait({running})
    assert running.cancelled() or running.exception() is None


async def lives_disaggregated(cluster: TestCluster) -> None:
    """A DisaggregatedSet with a scaler, sub-roles and Hash mode: made, rolled, shrunk, and with a role less."""
    shares = subroles(sub("a", 2), sub("b", 1), name="decode", groupIdentity="Hash")
    roles = [external(), shares, role("encode", replicas=2)]
    await cluster.create(DISAGGREGATED_SET, ds(*roles) | {"metadata": {"name": "chat"}})

    async def done(count: int) -> None:
        live = await cluster.get(DISAGGREGATED_SET, "chat")
        assert is_true(live, "Available"), live.get("status")
        assert live["status"]["observedGeneration"] == live["metadata"]["generation"]
        assert len(await cluster.list(LEADER_WORKER_SET, f"{disaggregated_names.NAME_LABEL}=chat")) == count

    await cluster.eventually(lambda: done(3))
    for changed in roles:
        changed["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] = "b"
    await cluster.patch(DISAGGREGATED_SET, "chat", {"spec": {"roles": roles}})
    await cluster.eventually(lambda: done(3))
    shares["subRoles"] = [sub("a", 1), sub("b", 1)]
    await cluster.patch(DISAGGREGATED_SET, "chat", {"spec": {"roles": [role(), shares]}})
    await cluster.eventually(lambda: done(2))


@pytest.mark.virtual_only("it looks at the requests of a manager in this process")
async def test_the_roles_allow_all_that_the_manager_does(cluster: TestCluster) -> None:
    await cluster.client.create(NAMESPACE, {"metadata": {"name": DEFAULT_NAMESPACE}})
    template = {"spec": {"containers": [{"name": "c", "image": "a"}]}}
    sets = {
        "rack": {"restartPolicy": names.RESTART_RECREATE_GROUP},
        "own": {"restartPolicy": names.RESTART_RECREATE_GROUP_AFTER_START},
    }

    async def available(name: str) -> None:
        lws = await cluster.get(LEADER_WORKER_SET, name)
        assert is_true(lws, "Available")
        assert lws["status"]["observedGeneration"] == lws["metadata"]["generation"]
        assert lws["status"]["updatedReplicas"] == 2
        assert len(await cluster.list(POD, f"{names.NAME_LABEL}={name}")) == 4

    async with elected(cluster) as interceptor:
        for name, part in sets.items():
            spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template, **part}}
            notes = {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "kubernetes.io/hostname"} if name == "rack" else {}
            if name == "own":
                spec["networkConfig"] = {"subdomainPolicy": names.SUBDOMAIN_UNIQUE_PER_REPLICA}
            await cluster.create(LEADER_WORKER_SET, {"metadata": {"name": name, "annotations": notes}, "spec": spec})
            await cluster.eventually(lambda name=name: available(name))
        await lives_disaggregated(cluster)
        await cluster.delete(POD, "own-0-1")
        changed = {"spec": {"containers": [{"name": "c", "image": "b"}]}}
        await cluster.patch(LEADER_WORKER_SET, "own", {"spec": {"leaderWorkerTemplate": {"workerTemplate": changed}}})
        await cluster.eventually(lambda: available("own"))
        await cluster.settled(POD, LEADER_WORKER_SET)
    role, election, *_ = manifests.roles()
    everywhere, at_home = allowed(role), allowed(election)
    asked = done(interceptor)
    refused = {
        (group, resource, verb, namespace)
        for group, resource, verb, namespace in asked
        if (group, resource, verb) not in everywhere
        and not (namespace == DEFAULT_NAMESPACE and (group, resource, verb) in at_home)
    }
    assert not refused
    assert {
        ("", "nodes", "get", ""),
        ("", "pods", "delete", "test"),
        ("apps", "controllerrevisions", "delete", "test"),
        ("coordination.k8s.io", "leases", "update", DEFAULT_NAMESPACE),
        ("events.k8s.io", "events", "create", "test"),
        (names.GROUP, "leaderworkersets/status", "update", "test"),
        (names.GROUP, "leaderworkersets", "create", "test"),
        (names.GROUP, "leaderworkersets", "delete", "test"),
        (disaggregated_names.GROUP, "disaggregatedsets", "patch", "test"),
        (disaggregated_names.GROUP, "disaggregatedsetrolescalers", "create", "test"),
        (disaggregated_names.GROUP, "disaggregatedsetrolescalers", "delete", "test"),
    } <= asked
