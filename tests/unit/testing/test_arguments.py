"""Mistakes in what a test gives to the plugin's cluster, its fake client and its clock: one sentence each."""

import re
from pathlib import Path

import pytest
import yaml

from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import CONFIG_MAP, NAMESPACE, Kind
from lwskit.testing import fake
from lwskit.testing.arguments import read_crds
from lwskit.testing.virtual import VirtualClock, VirtualTimeError

WEBSITE = Kind("web.example", "v1", "Website", "websites")
CRD = fake.crd_of(WEBSITE)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, "the fixture cluster_crds returned None; it must return a list"),
        (CRD, "returned a dict; it must return a list"),
        ("crd.yaml", "returned 'crd.yaml'; it must return a list"),
        (7, "returned 7; it must return a list"),
        ([5], "returned 5 in its list; return a list of CustomResourceDefinitions"),
        ([None], "returned None in its list"),
        ([{"kind": "ConfigMap"}], "returned a ConfigMap in its list"),
        ([{"spec": {}}], "a CRD without metadata.name"),
        ([{"metadata": {"name": "a.b"}, "spec": {}}], "the CRD a.b of the fixture cluster_crds lacks spec.group"),
        (["none.yaml"], "none.yaml, which cannot be read: [Errno 2]"),
        (["bad.yaml"], "bad.yaml, which cannot be read: "),
        (["other.yaml"], "other.yaml, in which there is no CustomResourceDefinition"),
    ],
)
def test_what_cluster_crds_must_not_return(given: object, text: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [")
    (tmp_path / "other.yaml").write_text("kind: ConfigMap")
    with pytest.raises(ConfigurationError, match=re.escape(text)) as caught:
        read_crds(given, tmp_path)
    assert "\n" not in str(caught.value)


def test_cluster_crds_may_name_files(tmp_path: Path) -> None:
    (tmp_path / "crds.yaml").write_text(yaml.safe_dump_all([CRD, {"kind": "ConfigMap"}, None, CRD]))
    assert read_crds(["crds.yaml", tmp_path / "crds.yaml", CRD], tmp_path) == [CRD] * 5


async def test_a_kind_is_not_its_name(cluster) -> None:
    for call in (cluster.get, cluster.delete):
        with pytest.raises(TypeError, match=r"takes a Kind such as .*POD, not 'Website'; for a kind of your own write"):
            await call("Website", "w")
    with pytest.raises(TypeError, match=r"cluster\.create takes a Kind .* not 'Website'"):
        await cluster.create("Website", {"metadata": {"name": "w"}})
    with pytest.raises(TypeError, match=r"cluster\.list takes a Kind .* not a dict"):
        await cluster.list({})
    with pytest.raises(TypeError, match=r"cluster\.patch takes a Kind .* not None"):
        await cluster.patch(None, "w", {})
    with pytest.raises(TypeError, match=r"cluster\.observe takes a Kind"):
        cluster.observe("Website")


@pytest.mark.parametrize("obj", [None, [], {}, {"metadata": None}])
async def test_an_object_has_metadata(cluster, obj) -> None:
    with pytest.raises(TypeError, match=r"cluster\.create takes an object, a dict with metadata, not"):
        await cluster.create(CONFIG_MAP, obj)


async def test_create_does_not_move_an_object_to_another_namespace(cluster) -> None:
    text = r"creates in the test's namespace test, and ConfigMap c names shop; leave metadata\.namespace out"
    with pytest.raises(ConfigurationError, match=text):
        await cluster.create(CONFIG_MAP, {"metadata": {"name": "c", "namespace": "shop"}})
    await cluster.create(CONFIG_MAP, {"metadata": {"name": "c", "namespace": cluster.namespace}})
    assert "namespace" not in (await cluster.create(NAMESPACE, {"metadata": {"name": "shop"}}))["metadata"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"objects": [None]}, "the fake was given None; it takes dicts with apiVersion, kind and metadata"),
        ({"objects": [{"kind": "Pod"}]}, "the fake was given an object without metadata"),
        ({"objects": CRD}, "fake.client takes a list of objects, not dict"),
        ({"crds": CRD}, "fake.client takes a list of crds, not dict"),
        ({"namespaces": "shop"}, "fake.client takes a list of namespaces, not str"),
        ({"kinds": WEBSITE}, "fake.client takes a list of kinds, not Kind"),
    ],
)
def test_what_the_fake_cannot_begin_with(arguments, text) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        fake.client(**arguments)


def test_kinds_of_the_fake_are_kinds() -> None:
    with pytest.raises(TypeError, match=r"fake\.client's `kinds` takes a Kind"):
        fake.client(kinds=["Website"])  # type: ignore[list-item]


def test_virtual_time_needs_a_loop() -> None:
    with pytest.raises(VirtualTimeError, match=r"make the test `async def`, or take lwskit\.testing\.clock\.FakeClock"):
        VirtualClock().now()
