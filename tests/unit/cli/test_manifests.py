"""Reading manifests: whatever a file holds, it is objects or one sentence; and applying them."""

from __future__ import annotations

import io
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lwskit.api import names
from lwskit.api.crds import crds
from lwskit.cli import manifests
from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.store import Store
from lwskit.embedded.transport import InProcessTransport
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError, Invalid, NotFound
from lwskit.runtime.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, NAMESPACE
from lwskit.runtime.objects import Obj

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "set.yaml"


def read(file: Path, text: str) -> list[Obj]:
    file.write_text(text)
    return manifests.read(str(file))


def named(objects: list[Obj]) -> list[str]:
    return [o["metadata"]["name"] for o in objects]


def test_documents_are_read_in_their_order(file: Path) -> None:
    text = f"---\n{MAP}---\n# nothing\n---\n{MAP.replace('name: a', 'name: b')}---\n"
    assert named(read(file, text)) == ["a", "b"]


def test_json_is_read(file: Path) -> None:
    assert named(read(file, '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}')) == ["a"]


def test_lists_are_taken_apart_however_deep(file: Path) -> None:
    inner = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "NAME"}}'
    listed = '{"apiVersion": "v1", "kind": "List", "items": [A, {"kind": "ConfigMapList", "items": [B]}]}'
    text = listed.replace("A", inner.replace("NAME", "a"), 1)
    assert named(read(file, text.replace("[B]", f"[{inner.replace('NAME', 'b')}]"))) == ["a", "b"]


def test_values_are_what_json_has(file: Path) -> None:
    text = MAP + "data: {7: one, true: yes, 2.5: x, date: 2026-01-01, time: 2026-01-01T00:00:00Z, off: ~}\n"
    assert read(file, text)[0]["data"] == {
        "7": "one",
        "true": True,
        "2.5": "x",
        "date": "2026-01-01",
        "time": "2026-01-01T00:00:00Z",
        "false": None,
    }


def test_a_mark_at_the_beginning_does_no_harm(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + MAP.encode())
    assert named(manifests.read(str(file))) == ["a"]


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(MAP))
    assert named(manifests.read("-")) == ["a"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, why in (
        (tmp_path / "none", "No such file or directory"),
        (tmp_path, "Is a directory"),
        (binary, "it is not UTF-8 text"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            manifests.read(str(path))
        assert str(caught.value) == f"cannot read {path}: {why}"


NAMELESS = "metadata.name is missing; write the name of the Pod"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", " holds no object; write at least one with apiVersion, kind and metadata.name"),
        ("---\n# only comments\n---\n", " holds no object; "),
        ("{kind: List, items: []}", " holds no object; "),
        ("a: [\n", " is not valid YAML: line 2, column 1: did not find expected node content"),
        ("a: b: c\n", " is not valid YAML: line 1, column 5: mapping values are not allowed"),
        ("a: *nobody\n", " is not valid YAML: line 1, column 4: found undefined alias"),
        (
            "a: !!python/object:os.system {}\n",
            " is not valid YAML: line 1, column 4: could not determine a constructor",
        ),
        ("a: \x07\n", " is not valid YAML: "),
        ("a: !!int x\n", " is not valid YAML: a value in it cannot be read: "),
        ("a: !!bool x\n", " is not valid YAML: a value in it cannot be read: "),
        ("a: !!timestamp x\n", " is not valid YAML: a value in it cannot be read: "),
        ("text\n", ", document 1: this is no Kubernetes object; it needs apiVersion, kind and metadata.name"),
        ("- a\n", ", document 1: this is no Kubernetes object; "),
        ("kind: Pod\n", ", document 1: apiVersion is missing; a manifest starts with apiVersion and kind"),
        ("apiVersion: v1\n", ", document 1: kind is missing; a manifest starts with apiVersion and kind"),
        ("apiVersion: 1\nkind: Pod\n", ", document 1: apiVersion is missing; "),
        ("apiVersion: v1\nkind: [Pod]\n", ", document 1: kind is missing; "),
        ("apiVersion: v1\nkind: Pod\n", f", document 1: {NAMELESS}"),
        ("apiVersion: v1\nkind: Pod\nmetadata: name\n", f", document 1: {NAMELESS}"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 7}\n", f", document 1: {NAMELESS}"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: ''}\n", f", document 1: {NAMELESS}"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n", f", document 1: {NAMELESS}"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a/b}\n", ", document 1: metadata.name 'a/b' cannot be a name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: ..}\n", ", document 1: metadata.name '..' cannot be a name"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: [x]}\n",
            ", document 1: metadata.namespace ['x'] cannot be a namespace",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ../x}\n",
            ", document 1: metadata.namespace '../x' cannot be a namespace",
        ),
        (f"{MAP}---\nkind: x\n", ", document 2: apiVersion is missing; "),
        ("kind: List\nitems: [1]\n", ", document 1: this is no Kubernetes object; "),
        (MAP + "data: {a: .nan}\n", ", document 1: it holds something that JSON cannot say: "),
        (MAP + "data: {a: !!binary aGk=}\n", ", document 1: it holds something that JSON cannot say: "),
        (MAP + "data: !!set {a, b}\n", ", document 1: it holds something that JSON cannot say: "),
        (MAP + "data: {? [a, b] : c}\n", " is not valid YAML: "),
        (MAP + 'data: {a: "\\ud800"}\n', " is not valid YAML: line 4, column 14: found invalid Unicode character"),
        ("&a\nkind: List\nitems: [*a]\n", ", document 1: it holds something that JSON cannot say: "),
    ],
)
def test_bad_input_is_one_sentence(file: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(file, text)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{file}{sentence}")


def test_something_nested_beyond_reason_is_one_sentence(file: Path) -> None:
    with pytest.raises(ConfigurationError):
        read(file, MAP + "data: " + "[" * 3000 + "]" * 3000 + "\n")


PIECES = "apiVersion|kind|metadata|name|v1|List|items|: |\n|- |{|}|[|]|, |&a |*a|!!int |---\n|'|\"|  |~|.inf|1|#|>|%|\t"
pieces = st.sampled_from(PIECES.split("|"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(st.lists(pieces, max_size=14).map("".join))
def test_no_file_makes_it_fail_otherwise(file: Path, text: str) -> None:
    sentence = ""
    try:
        objects = read(file, text)
        assert all(isinstance(o["metadata"]["name"], str) for o in objects)
    except ConfigurationError as error:
        sentence = str(error)
    assert "\n" not in sentence


# Applying -------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def client(clock: Clock) -> Client:
    client = Client(InProcessTransport(ApiServer(Store(), clock, random.Random(1))), clock=clock)
    for crd in crds():
        await client.create(CUSTOM_RESOURCE_DEFINITION, crd)
    return client


def lws(**spec: Any) -> Obj:
    template = {"workerTemplate": {"spec": {"containers": [{"name": "c", "image": "c"}]}}}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": "x"},
        "spec": {"leaderWorkerTemplate": template, **spec},
    }


async def test_objects_of_any_kind_are_applied_in_their_order(client: Client) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "team"}}
    given = [namespace, config, lws()]
    stored = await manifests.apply(client, given)
    assert [(o["kind"], o["metadata"].get("namespace")) for o in stored] == [
        ("Namespace", None),
        ("ConfigMap", "team"),
        ("LeaderWorkerSet", "default"),
    ]
    assert "namespace" not in given[2]["metadata"]
    await client.get(NAMESPACE, "team")
    await client.get(CONFIG_MAP, "c", "team")
    await manifests.apply(client, [lws(replicas=3)])
    assert (await client.get(LEADER_WORKER_SET, "x", "default"))["spec"]["replicas"] == 3


async def test_a_kind_that_is_not_served_is_told(client: Client) -> None:
    for api_version in ("example.com/v1", "leaderworkerset.x-k8s.io/v2"):
        with pytest.raises(ConfigurationError) as caught:
            await manifests.apply(client, [{**lws(), "apiVersion": api_version}])
        assert str(caught.value) == (
            f'the server has no kind "LeaderWorkerSet" in "{api_version}"; is its CustomResourceDefinition installed?'
        )


async def test_what_the_server_refuses_is_told_in_its_words(client: Client) -> None:
    with pytest.raises(Invalid, match=r"spec.startupPolicy: Unsupported value"):
        await manifests.apply(client, [lws(startupPolicy="Sometime")])
    with pytest.raises(NotFound, match='namespaces "none" not found'):
        await manifests.apply(client, [{**lws(), "metadata": {"name": "x", "namespace": "none"}}])
