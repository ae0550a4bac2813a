"""Creating, updating, deleting: what the server sets, keeps and refuses."""

from __future__ import annotations

import random

import pytest

from lwskit.embedded.writes import generated_name
from lwskit.runtime.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
)
from lwskit.runtime.kinds import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    LEASE,
    NAMESPACE,
    POD,
    SERVICE,
    STATEFUL_SET,
)

from .serving import WIDGET, ask, client, config_map, pod, server, widget, widget_crd


async def test_a_new_object_gets_identity_and_defaults():
    made = await client(server()).create(POD, pod())
    meta = made["metadata"]
    assert meta["uid"]
    assert meta["creationTimestamp"].endswith("Z")
    assert meta["generation"] == 1
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made["spec"]["restartPolicy"] == "Always"
    assert [t["tolerationSeconds"] for t in made["spec"]["tolerations"]] == [300, 300]


async def test_a_seeded_server_repeats_itself():
    uids = [(await client(server()).create(POD, pod()))["metadata"]["uid"] for _ in range(2)]
    assert uids[0] == uids[1]


async def test_names_are_taken_once():
    c = client(server())
    await c.create(CONFIG_MAP, config_map())
    with pytest.raises(AlreadyExists, match='configmaps "a" already exists'):
        await c.create(CONFIG_MAP, config_map())


def test_generated_names_are_cut():
    name = generated_name("x" * 80, random.Random(1))
    assert len(name) == 63
    assert set(name[58:]) <= set("bcdfghjklmnpqrstvwxz2456789")


async def test_generate_name():
    api = server()
    answer = await ask(
        api, "/api/v1/namespaces/default/configmaps", method="POST", metadata={"generateName": "n-"}, data={}
    )
    assert answer["metadata"]["name"].startswith("n-")
    assert len(answer["metadata"]["name"]) == 7


async def test_a_dry_run_stores_nothing():
    c = client(server())
    made = await c.create(CONFIG_MAP, config_map(), dry_run=True)
    assert made["metadata"]["uid"]
    with pytest.raises(NotFound):
        await c.get(CONFIG_MAP, "a", "default")


async def test_an_update_from_an_old_version_conflicts():
    c = client(server())
    made = await c.create(CONFIG_MAP, config_map(k="1"))
    await c.update(CONFIG_MAP, {**made, "data": {"k": "2"}})
    with pytest.raises(Conflict, match="the object has been modified"):
        await c.update(CONFIG_MAP, {**made, "data": {"k": "3"}})


async def test_an_update_without_change_keeps_the_version():
    c = client(server())
    made = await c.create(CONFIG_MAP, config_map(k="1"))
    assert (await c.update(CONFIG_MAP, made))["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert await c.patch(CONFIG_MAP, "a", {}, "default") == made


async def test_a_lease_needs_a_version_and_is_made_by_an_update():
    c = client(server())
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l", "namespace": "default"},
        "spec": {"holderIdentity": "a"},
    }
    await c.update(LEASE, lease)
    with pytest.raises(Invalid, match="must be specified for an update"):
        await c.update(LEASE, lease)


async def test_status_and_spec_are_written_apart():
    c = client(server())
    await c.create(CUSTOM_RESOURCE_DEFINITION, widget_crd())
    made = await c.create(WIDGET, {**widget(), "status": {"replicas": 3}})
    assert "status" not in made
    await c.patch(WIDGET, "w", {"status": {"replicas": 3}, "spec": {"replicas": 9}}, "default", subresource="status")
    changed = await c.patch(WIDGET, "w", {"spec": {"replicas": 5}, "status": {"replicas": 7}}, "default")
    assert changed["status"] == {"replicas": 3}
    assert changed["spec"]["replicas"] == 5
    assert changed["metadata"]["generation"] == 2


async def test_scale():
    c = client(server())
    await c.create(CUSTOM_RESOURCE_DEFINITION, widget_crd())
    await c.create(WIDGET, widget())
    scale = await c.get(WIDGET, "w", "default", subresource="scale")
    assert scale["spec"] == {"replicas": 1}
    await c.update(WIDGET, {**scale, "spec": {"replicas": 4}}, subresource="scale")
    assert (await c.get(WIDGET, "w", "default"))["spec"]["replicas"] == 4


async def test_custom_objects_are_pruned_defaulted_and_checked():
    c = client(server())
    await c.create(CUSTOM_RESOURCE_DEFINITION, widget_crd())
    made = await c.create(WIDGET, widget(unknown=1, free={"kept": 1}))
    assert made["spec"] == {"color": "red", "replicas": 1, "free": {"kept": 1}}
    with pytest.raises(Invalid) as caught:
        await c.create(WIDGET, widget("v", color="green", replicas=-1))
    assert [c["field"] for c in caught.value.details["causes"]] == ["spec.color", "spec.replicas", ".spec.replicas"]


async def test_a_deleted_crd_takes_its_objects_along():
    c = client(server())
    await c.create(CUSTOM_RESOURCE_DEFINITION, widget_crd())
    await c.create(WIDGET, widget())
    held = {**widget("held"), "metadata": {"name": "held", "namespace": "default", "finalizers": ["example.com/x"]}}
    await c.create(WIDGET, held)
    await c.delete(CUSTOM_RESOURCE_DEFINITION, "widgets.example.com")
    assert [o["metadata"]["name"] for o in (await c.list(WIDGET))["items"]] == ["held"]
    await c.patch(WIDGET, "held", {"metadata": {"finalizers": None}}, "default")
    with pytest.raises(NotFound):
        await c.get(CUSTOM_RESOURCE_DEFINITION, "widgets.example.com")
    with pytest.raises(NotFound):
        await c.list(WIDGET)


async def test_two_versions_of_a_custom_resource_share_their_objects():
    c = client(server())
    crd = widget_crd()
    old = crd["spec"]["versions"][0]
    crd["spec"]["versions"].append({**old, "name": "v2", "storage": False})
    await c.create(CUSTOM_RESOURCE_DEFINITION, crd)
    await c.create(WIDGET, widget())
    second = type(WIDGET)("example.com", "v2", "Widget", "widgets")
    assert (await c.get(second, "w", "default"))["apiVersion"] == "example.com/v2"
    assert (await c.list(second))["items"][0]["apiVersion"] == "example.com/v2"


async def test_unknown_fields():
    api = server()
    body = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "m", "image": "i", "bar": 1}]}}
    path = "/api/v1/namespaces/default/pods?dryRun=All"
    refused = await ask(api, f"{path}&fieldValidation=Strict", method="POST", **body)
    assert refused["message"].endswith('strict decoding error: unknown field "spec.containers[0].bar"')
    assert "bar" not in (await ask(api, path, method="POST", **body))["spec"]["containers"][0]


async def test_a_value_of_another_type_is_named():
    broken = pod()
    broken["spec"]["containers"][0]["ports"] = [{"containerPort": "x"}]
    with pytest.raises(InvalidRequest, match=r"Go struct field ContainerPort.spec.containers.ports.containerPort"):
        await client(server()).create(POD, broken)


async def test_namespaces_that_are_absent_or_going():
    c = client(server())
    lost = {**config_map(), "metadata": {"name": "a", "namespace": "lost"}}
    with pytest.raises(NotFound, match='namespaces "lost" not found'):
        await c.create(CONFIG_MAP, lost)
    await c.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lost"}})
    going = await c.delete(NAMESPACE, "lost")
    assert going["status"]["phase"] == "Terminating"
    with pytest.raises(Forbidden) as caught:
        await c.create(CONFIG_MAP, lost)
    assert caught.value.details["causes"][0]["reason"] == "NamespaceTerminating"
    await c.update(NAMESPACE, {**going, "spec": {}}, subresource="finalize")
    with pytest.raises(NotFound):
        await c.get(NAMESPACE, "lost")


async def test_preconditions_of_deletions():
    c = client(server())
    await c.create(CONFIG_MAP, config_map())
    with pytest.raises(Conflict, match="UID in the precondition"):
        await c.delete(CONFIG_MAP, "a", "default", uid="other")
    with pytest.raises(Conflict, match="ResourceVersion in the precondition"):
        await c.delete(CONFIG_MAP, "a", "default", resource_version="1")


async def test_a_scheduled_pod_goes_in_two_steps():
    c = client(server())
    await c.create(POD, pod(nodeName="n"))
    going = await c.delete(POD, "a", "default", grace_seconds=20)
    assert going["metadata"]["deletionGracePeriodSeconds"] == 20
    assert (await c.get(POD, "a", "default"))["metadata"]["generation"] == 2
    await c.delete(POD, "a", "default", grace_seconds=0)
    with pytest.raises(NotFound):
        await c.get(POD, "a", "default")


@pytest.mark.parametrize(("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
async def test_propagation_adds_a_finalizer(policy: str, finalizer: str):
    c = client(server())
    await c.create(CONFIG_MAP, config_map())
    lingering = await c.delete(CONFIG_MAP, "a", "default", propagation=policy)
    assert lingering["metadata"]["finalizers"] == [finalizer]
    await c.patch(CONFIG_MAP, "a", {"metadata": {"finalizers": None}}, "default")
    with pytest.raises(NotFound):
        await c.get(CONFIG_MAP, "a", "default")


async def test_services_get_addresses_and_keep_them():
    c = client(server())
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "default"},
        "spec": {"ports": [{"port": 80}]},
    }
    made = await c.create(SERVICE, service)
    assert made["spec"]["clusterIP"].startswith("10.96.")
    again = await c.update(SERVICE, {**service, "spec": {"ports": [{"port": 81}]}})
    assert again["spec"]["clusterIP"] == made["spec"]["clusterIP"]


async def test_what_may_not_change():
    c = client(server())
    spec = {
        "serviceName": "s",
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]},
    }
    meta = {"name": "s", "namespace": "default"}
    await c.create(STATEFUL_SET, {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec})
    with pytest.raises(Invalid, match=r"spec\.serviceName: Invalid value"):
        await c.patch(STATEFUL_SET, "s", {"spec": {"serviceName": "t"}}, "default")
    await c.create(POD, pod())
    with pytest.raises(Invalid, match="pod updates may not change fields other than"):
        await c.patch(POD, "a", {"spec": {"hostname": "h"}}, "default")


async def test_a_collection_is_deleted_in_one_namespace_only():
    c = client(server())
    await c.create(CONFIG_MAP, config_map())
    with pytest.raises(MethodNotAllowed, match="the server does not allow this method on the requested resource"):
        await c.delete_collection(CONFIG_MAP)
    await c.create(CUSTOM_RESOURCE_DEFINITION, widget_crd())
    with pytest.raises(NotFound, match="404 page not found"):
        await c.delete_collection(WIDGET)
    assert len((await c.list(CONFIG_MAP))["items"]) == 1
