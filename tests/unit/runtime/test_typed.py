"""Typed encoding: the rules of the table, on a small table of its own and on the real ones."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.runtime import typed

TABLE = typed.TypeTable(
    {
        "kinds": {"v1/Thing": "Thing"},
        "types": {
            "Thing": {
                "fields": {
                    "always": {"t": "string", "r": 1},
                    "text": {"t": "string", "e": 1},
                    "flag": {"t": "bool", "e": 1},
                    "maybeFlag": {"t": "*bool", "e": 1},
                    "number": {"t": "int32", "e": 1},
                    "maybeNumber": {"t": "*int64", "e": 1},
                    "part": {"t": "Part", "e": 1},
                    "maybePart": {"t": "*Part", "e": 1},
                    "zeroPart": {"t": "Part", "z": 1},
                    "parts": {"t": "[]Part", "e": 1, "l": "map", "k": ["name"], "s": "merge,retainKeys", "m": "name"},
                    "alwaysParts": {"t": "[]Part"},
                    "labels": {"t": "map:string", "e": 1},
                    "amounts": {"t": "map:quantity", "e": 1},
                    "divisor": {"t": "quantity", "e": 1},
                    "port": {"t": "intorstring"},
                    "made": {"t": "time", "e": 1, "z": 1},
                    "oldMade": {"t": "time"},
                    "fine": {"t": "*microtime", "e": 1},
                    "data": {"t": "map:bytes", "e": 1},
                    "raw": {"t": "any", "e": 1},
                }
            },
            "Part": {"atomic": 1, "fields": {"name": {"t": "string", "e": 1, "d": "x"}, "n": {"t": "float64", "e": 1}}},
        },
    }
)
ALWAYS: dict[str, Any] = {
    "always": "",
    "part": {},
    "alwaysParts": None,
    "divisor": "0",
    "port": 0,
    "oldMade": None,
}


def test_empty_object_has_exactly_the_fields_that_are_always_written() -> None:
    assert TABLE.encode("Thing", {}) == ALWAYS
    assert TABLE.encode("Thing", None) == ALWAYS


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"unknown": 1, "part": {"unknown": 2}}, {}),
        ({"text": "", "flag": False, "number": 0, "parts": [], "labels": {}}, {}),
        ({"text": None, "flag": None, "parts": None, "labels": None, "part": None, "maybePart": None}, {}),
        ({"maybeFlag": False, "maybeNumber": 0}, {"maybeFlag": False, "maybeNumber": 0}),
        ({"maybePart": {}}, {"maybePart": {}}),
        ({"zeroPart": {}}, {}),
        ({"zeroPart": {"name": "a"}}, {"zeroPart": {"name": "a"}}),
        ({"parts": [{}, None, {"name": "a"}]}, {"parts": [{}, {}, {"name": "a"}]}),
        ({"alwaysParts": []}, {"alwaysParts": []}),
        ({"amounts": {"cpu": "1000m", "x": None}}, {"amounts": {"cpu": "1", "x": "0"}}),
        ({"amounts": {"memory": 1024}}, {"amounts": {"memory": "1024"}}),
        ({"divisor": "1024Mi"}, {"divisor": "1Gi"}),
        ({"port": "http"}, {"port": "http"}),
        ({"port": 80.0}, {"port": 80}),
        ({"made": None}, {}),
        ({"made": "2026-01-01T01:00:00.5+01:00"}, {"made": "2026-01-01T00:00:00Z"}),
        ({"fine": "2026-01-01T00:00:00Z"}, {"fine": "2026-01-01T00:00:00.000000Z"}),
        ({"data": {"a": "YQ=="}}, {"data": {"a": "YQ=="}}),
        ({"raw": {"kept": {"as": []}}}, {"raw": {"kept": {"as": []}}}),
    ],
)
def test_rules_of_fields(value: dict[str, Any], written: dict[str, Any]) -> None:
    before = copy.deepcopy(value)
    assert TABLE.encode("Thing", value) == ALWAYS | written
    assert value == before


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"text": 1}, r"spec\.text: must be a string, not 1"),
        ({"flag": "true"}, r'spec\.flag: must be true or false, not "true"'),
        ({"number": "1"}, r'spec\.number: must be an integer, not "1"'),
        ({"number": 1.5}, r"spec\.number: must be an integer, not 1.5"),
        ({"number": True}, r"spec\.number: must be an integer, not true"),
        ({"number": 2**31}, r"spec\.number: 2147483648 is out of range"),
        ({"parts": {}}, r"spec\.parts: must be a list, not \{\}"),
        ({"parts": [{}, "x"]}, r'spec\.parts\[1\]: must be an object, not "x"'),
        ({"labels": {"a": 1}}, r"spec\.labels\[a\]: must be a string, not 1"),
        ({"part": {"n": "x"}}, r'spec\.part\.n: must be a number, not "x"'),
        ({"amounts": {"cpu": "much"}}, r"spec\.amounts\[cpu\]: 'much' is not a quantity"),
        ({"made": "yesterday"}, r"spec\.made: must be a time such as"),
        ({"made": "2026-01-01T00:00:00"}, r"spec\.made: must be a time with its zone"),
        ({"data": {"a": "*"}}, r"spec\.data\[a\]: must be base64"),
        ({"port": []}, r"spec\.port: must be an integer"),
        ([], r"spec: must be an object, not \[\]"),
    ],
)
def test_values_of_a_wrong_type_are_refused_with_their_path(value: Any, message: str) -> None:
    with pytest.raises(typed.DecodeError, match="^" + message) as caught:
        TABLE.encode("Thing", value, "spec")
    assert str(caught.value).startswith(caught.value.path)


def test_unknown_fields_are_named() -> None:
    value = {"x": 1, "part": {"y": 1}, "parts": [{"name": "a"}, {"z": 1}], "labels": {"any": "thing"}, "raw": {"q": 1}}
    assert TABLE.unknown("Thing", value) == ["x", "part.y", "parts[1].z"]
    assert TABLE.unknown("Thing", "no object") == []


def test_facts_of_fields() -> None:
    parts = TABLE.fields("Thing")["parts"]
    assert (parts.list_type, parts.list_keys, parts.merge_key) == ("map", ("name",), "name")
    assert parts.patch_strategy == ("merge", "retainKeys")
    assert parts.type.element is not None
    assert parts.type.element.name == "Part"
    assert TABLE.fields("Thing")["part"].atomic
    assert TABLE.fields("Part")["name"].default == "x"
    assert TABLE.kind_type("v1", "Thing") == "Thing"
    assert TABLE.kind_type("v1", "Other") is None
    assert "Part" in TABLE
    assert sorted(TABLE) == ["Part", "Thing"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "n", "u"]), inner, max_size=2),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*TABLE.fields("Thing"), "unknown"]), json_values, max_size=5))
def test_encoding_is_stable_and_without_unknown_fields(value: dict[str, Any]) -> None:
    try:
        once = TABLE.encode("Thing", value)
    except typed.DecodeError:
        return
    assert TABLE.encode("Thing", once) == once
    assert TABLE.unknown("Thing", once) == []


def test_built_in_kinds() -> None:
    table = typed.load_resource("lwskit.embedded", "builtin-types.json")
    pod = table.kind_type("v1", "Pod")
    assert pod is not None
    assert table.encode(pod, {"spec": {"containers": [{"name": "a"}]}}) == {
        "metadata": {},
        "spec": {"containers": [{"name": "a", "resources": {}}]},
        "status": {},
    }
    fields = table.fields("core.v1.Container")
    assert fields["ports"].list_keys == ("containerPort", "protocol")
    assert fields["ports"].merge_key == "containerPort"
    assert table.fields("core.v1.PodSpec")["nodeSelector"].atomic
    assert table.fields("core.v1.ContainerPort")["protocol"].default == "TCP"


TABLES = [("lwskit.embedded", "builtin-types.json"), ("lwskit.api", "pod-types.json")]


@pytest.mark.parametrize(("package", "name"), TABLES)
def test_every_type_that_a_table_names_is_in_it(package: str, name: str) -> None:
    table = typed.load_resource(package, name)
    for type_name in table:
        table.encode(type_name, {})
        for field in table.fields(type_name).values():
            ref = field.type
            while ref.element is not None:
                ref = ref.element
            assert ref.shape != "struct" or ref.name in table


def test_fields_come_in_the_tables_order_and_the_keys_of_maps_sorted() -> None:
    types = typed.TypeTable(
        {
            "types": {
                "Outer": {"fields": {"z": {"t": "string"}, "labels": {"t": "map:string"}, "a": {"t": "Inner"}}},
                "Inner": {"fields": {"y": {"t": "int32"}, "b": {"t": "map:Inner", "e": 1}}},
            }
        }
    )
    given = {"a": {"b": {"2": {"y": 1}, "1": {"y": 2}}, "y": 3}, "labels": {"d": "1", "c": "2"}, "z": "last"}
    assert json.dumps(types.encode("Outer", given)) == json.dumps(
        {"z": "last", "labels": {"c": "2", "d": "1"}, "a": {"y": 3, "b": {"1": {"y": 2}, "2": {"y": 1}}}}
    )


def test_an_object_that_conforms_stays_as_it_is() -> None:
    given = {
        "text": "",
        "number": 3,
        "parts": [{"name": "", "tomorrow": None}],
        "amounts": {"cpu": "1000m"},
        "made": "2026-10-20T12:00:00+02:00",
        "port": "http",
        "raw": {"x": [None, 1.0]},
        "tomorrow": [None],
    }
    before = copy.deepcopy(given)
    assert TABLE.conform("Thing", given) == given == before


def test_nulls_are_absent_and_whole_numbers_are_whole() -> None:
    given = {
        "text": None,
        "labels": {"a": None, "b": ""},
        "number": 2.0,
        "port": 80.0,
        "part": {"name": None, "n": 1.0},
    }
    found = TABLE.conform("Thing", given)
    assert found == {"labels": {"b": ""}, "number": 2, "port": 80, "part": {"n": 1.0}}
    assert [type(found[name]) for name in ("number", "port")] == [int, int]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"text": 1}, "o.text: must be a string, not 1"),
        ({"flag": "true"}, 'o.flag: must be true or false, not "true"'),
        ({"number": 2.5}, "o.number: must be an integer, not 2.5"),
        ({"part": []}, "o.part: must be an object, not []"),
        ({"parts": {}}, "o.parts: must be a list, not {}"),
        ({"parts": [None]}, "o.parts[0]: must be an object, not null"),
        ({"labels": {"a/b": True}}, "o.labels[a/b]: must be a string, not true"),
        ({"amounts": {"cpu": "much"}}, "o.amounts[cpu]: "),
        ({"made": "today"}, "o.made: must be a time such as"),
        ({"data": {"a": "?"}}, "o.data[a]: must be base64"),
        ([], "o: must be an object, not []"),
        (None, "o: must be an object, not null"),
    ],
)
def test_what_does_not_conform_is_named(given: Any, said: str) -> None:
    with pytest.raises(typed.DecodeError) as refused:
        TABLE.conform("Thing", given, "o")
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("given", [{"part": {"name": "a"}, "parts": [{"name": "b"}, {}]}, {"parts": [{"name": None}]}])
def test_what_is_needed_may_not_be_absent(given: Any) -> None:
    with pytest.raises(typed.MissingError) as refused:
        TABLE.conform("Thing", given, needed={"Part": ("name",)})
    assert refused.value.path == f"parts[{len(given['parts']) - 1}].name"
    assert TABLE.conform("Thing", {}, needed={"Part": ("name",)}) == {}
