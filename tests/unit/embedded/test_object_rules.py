"""Rules of metadata and of lists in custom resources, with the texts that a real API server gave."""

from __future__ import annotations

import time

import pytest

from lwskit.api.validation.formats import dns_1035_label
from lwskit.api.validation.metadata import validate_metadata
from lwskit.embedded import schema
from lwskit.embedded.schema_errors import SchemaValidator
from lwskit.runtime.errors import ApiError, Invalid
from lwskit.runtime.kinds import CONFIG_MAP, POD

from .serving import client, config_map, pod, server


@pytest.mark.parametrize("version", ["a/b/c", "apps/", "/"])
async def test_the_version_of_an_owner(version: str):
    owner = {"apiVersion": version, "kind": "K", "name": "n", "uid": "u"}
    text = f'metadata.ownerReferences[0].apiVersion: Invalid value: "{version}": must be <group>/<version> or <version>'
    obj = config_map()
    obj["metadata"]["ownerReferences"] = [owner]
    with pytest.raises(Invalid) as found:
        await client(server()).create(CONFIG_MAP, obj)
    assert text in str(found.value)
    meta = {"name": "x", "namespace": "ns", "ownerReferences": [owner]}
    assert [str(e) for e in validate_metadata(meta, dns_1035_label)] == [text]


@pytest.mark.parametrize("version", ["v1", "apps/v1", "/v1"])
def test_versions_of_owners_that_are_fine(version: str):
    owner = {"apiVersion": version, "kind": "K", "name": "n", "uid": "u"}
    assert validate_metadata({"name": "x", "namespace": "ns", "ownerReferences": [owner]}, dns_1035_label) == []


async def test_annotations_are_counted_in_bytes():
    obj = config_map()
    obj["metadata"]["annotations"] = {"a": "é" * (128 * 1024)}
    with pytest.raises(Invalid, match=r"metadata\.annotations: Too long: may not be more than 262144 bytes"):
        await client(server()).create(CONFIG_MAP, obj)
    obj["metadata"]["annotations"] = {"a": "é" * (128 * 1024 - 1)}
    await client(server()).create(CONFIG_MAP, obj)


@pytest.mark.parametrize(("prefix", "good"), [("a-", True), ("A-", True), ("-", False), ("a.", False)])
async def test_what_a_name_begins_with(prefix: str, good: bool):
    obj = config_map()
    obj["metadata"]["generateName"] = prefix
    if good:
        await client(server()).create(CONFIG_MAP, obj)
    else:
        with pytest.raises(Invalid, match=r"metadata\.generateName: Invalid value"):
            await client(server()).create(CONFIG_MAP, obj)


LISTS = {
    "type": "object",
    "properties": {
        "map": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    },
}


def test_entries_of_lists_that_stand_there_twice():
    found = SchemaValidator(LISTS).errors(
        {"map": [{"name": "a"}, {"name": "b"}, {"name": "a"}], "set": ["x", "y", "x"]}
    )
    assert [str(e) for e in found] == ['map[2]: Duplicate value: {"name":"a"}', 'set[2]: Duplicate value: "x"']


def test_long_lists_take_no_longer_than_they_are():
    validator = SchemaValidator(LISTS)
    started = time.process_time()
    assert validator.errors({"map": [{"name": f"A{i}"} for i in range(30_000)]}) == []
    assert time.process_time() - started < 2


NUMBERS = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "format": "int32"},
        "share": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    },
}
NO_32 = '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in size'


def number_errors(**fields: object) -> list[str]:
    schema.whole_numbers(fields)
    return [str(e) for e in SchemaValidator(NUMBERS).errors(fields)]


@pytest.mark.parametrize("size", [2**31, -(2**31) - 1, 2**63 - 1])
def test_numbers_beyond_their_format(size: int):
    assert number_errors(size=size) == [NO_32]


@pytest.mark.parametrize("size", [2**63, 1.5, 1e30])
def test_numbers_that_are_not_whole(size: float):
    text = 'size: Invalid value: "float64": size in body must be of type int32: "float64"'
    assert number_errors(size=size) == [text, NO_32]


@pytest.mark.parametrize(
    ("size", "kind", "wanted"),
    [(True, "", "int32"), ({}, "", "int32"), ("5", "string", "integer"), ([], "array", "integer")],
)
def test_what_is_no_number(size: object, kind: str, wanted: str):
    text = f'size: Invalid value: "{kind}": size in body must be of type {wanted}: "{kind}"'
    assert number_errors(size=size) == [text]


def test_numbers_that_are_fine():
    assert number_errors(size=2**31 - 1, share=2**62) == []
    assert number_errors(size=-(2**31), share="any") == []


@pytest.mark.parametrize(("share", "kind"), [(2**63, "number"), (1.5, "number"), (True, "boolean"), ([], "array")])
def test_numbers_or_texts(share: object, kind: str):
    found = number_errors(share=share)
    assert found[:3] == [
        f'share: Invalid value: "{kind}": share in body must be of type integer,string: "{kind}"',
        '<nil>: Invalid value: "": "share" must validate at least one schema (anyOf)',
        f'share: Invalid value: "{kind}": share in body must be of type integer: "{kind}"',
    ]
    unchecked = '<nil>: Invalid value: "": Checked value must be of type integer (default format) in share'
    assert found[3:] == ([unchecked] if kind == "number" else [])


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        (
            "ports",
            [{"containerPort": 2**31}],
            "number 2147483648 into Go struct field ContainerPort.spec.containers.ports",
        ),
        (
            "livenessProbe",
            {"httpGet": {"port": 1.5}},
            "number 1.5 into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port",
        ),
        (
            "livenessProbe",
            {"periodSeconds": "5"},
            "string into Go struct field Probe.spec.containers.livenessProbe.periodSeconds of type int32",
        ),
    ],
)
async def test_values_of_a_wrong_type(field: str, value: object, text: str):
    obj = pod()
    obj["spec"]["containers"][0][field] = value
    with pytest.raises(ApiError) as found:
        await client(server()).create(POD, obj)
    assert f"json: cannot unmarshal {text}" in str(found.value)


TEXTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]*$"},
        "other": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"},
    },
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ABCDE", "name: Too long: may not be more than 4 bytes"),
        ("A", 'name: Invalid value: "A": name in body should be at least 2 chars long'),
        ("AB", "name: Invalid value: \"AB\": name in body should match '^[a-z]*$'"),
        ("ab", ""),
    ],
)
def test_of_a_text_only_the_first_broken_rule_is_told(name: str, text: str):
    found = [str(e) for e in SchemaValidator(TEXTS).errors({"name": name, "other": ""})]
    other = 'other: Invalid value: "": other in body should be at least 1 chars long'
    assert found == [text, other][not text :]
