"""Reading manifests with the places of their parts."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lwskit.lint.source import Document, SourceError, documents, locate


def read(text: str) -> list[Document]:
    return [found for found in documents(text) if isinstance(found, Document)]


def one(text: str) -> Document:
    (document,) = documents(text)
    assert isinstance(document, Document)
    return document


def place(text: str, path: str) -> tuple[int, int]:
    part = locate(one(text).root, path)
    return part.line, part.column


NESTED = """\
# a comment
a:
  b: 1
  list:
    - name: x
      value: 2
    -   name: y
  example.com/key.with.dots: z
flow: {c: [1, {d: 2}]}
"""


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("", (2, 1)),
        ("a", (2, 1)),
        ("a.b", (3, 3)),
        (".a.b", (3, 3)),
        ("a.list[0]", (5, 7)),
        ("a.list[0].value", (6, 7)),
        ("a.list[1].name", (7, 9)),
        ("a.example.com/key.with.dots", (8, 3)),
        ("a[example.com/key.with.dots]", (8, 3)),
        ("flow.c[1].d", (9, 16)),
        ("a.missing", (2, 1)),
        ("a.missing.deeper[3]", (2, 1)),
        ("a.list[7]", (4, 3)),
        ("nothing", (2, 1)),
        ("a.bc", (2, 1)),
    ],
)
def test_places(path: str, where: tuple[int, int]) -> None:
    assert place(NESTED, path) == where


def test_places_in_later_documents_count_from_the_beginning_of_the_file() -> None:
    first, second = read("---\na: 1\n---\n# nothing\n---\n\nb:\n  c: 2\n")
    assert (first.root.fields["a"].line, locate(second.root, "b.c").line) == (2, 8)


def test_empty_documents_are_left_out() -> None:
    assert [d.data for d in read("---\n---\n# x\n---\n~\n---\na: 1\n---\n")] == [{"a": 1}]
    assert list(documents("")) == []


def test_line_ends_of_other_systems() -> None:
    assert place("a:\r\n  b: 1\r\n  c: 2\r\n", "a.c") == (3, 3)


def test_json_with_tabs_and_pairs_of_surrogates() -> None:
    text = '{\n\t"a": {\n\t\t"b": "\\ud83d\\ude00",\n\t\t"c": "x\\/y"\n\t}\n}\n'
    assert one(text).data == json.loads(text)
    assert place(text, "a.c") == (4, 3)


def test_values_are_what_json_has() -> None:
    text = (
        "a: {7: one, true: yes, 2.5: x, date: 2026-01-01, off: ~, octal: 010, big: 99999999999999999999, exp: 1e3, "
        "time: 12:30:45}"
    )
    assert one(text).data["a"] == {
        "7": "one",
        "true": True,
        "2.5": "x",
        "date": "2026-01-01",
        "false": None,
        "octal": 8,
        "big": 100000000000000000000,
        "exp": 1000,
        "time": "12:30:45",
    }


def test_doubled_keys_are_told_with_their_places() -> None:
    document = one("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\na: 4\n")
    assert document.data == {"a": 4, "b": {"c": 3, "d": 2}}
    assert document.doubled == (("b.c", 5, 3), ("a", 6, 1))


def test_anchors_stand_where_they_are_used() -> None:
    text = "base: &b\n  image: x\none: *b\ntwo: *b\n"
    assert one(text).data == {"base": {"image": "x"}, "one": {"image": "x"}, "two": {"image": "x"}}
    assert [place(text, p) for p in ("one", "two", "one.image")] == [(3, 1), (4, 1), (2, 3)]


def test_merge_keys_bring_in_what_is_not_there() -> None:
    text = "a: &a {x: 1, w: 1}\nb: &b {w: 2, z: 2}\nc:\n  <<: [*a, *b]\n  x: 3\nd: {<<: *a}\n"
    document = one(text)
    assert document.data["c"] == {"x": 3, "w": 1, "z": 2}
    assert document.data["d"] == {"x": 1, "w": 1}
    assert (place(text, "c.x"), place(text, "c.z")) == ((5, 3), (2, 14))
    assert document.doubled == ()


@pytest.mark.parametrize(
    ("text", "sentence", "line"),
    [
        ("a: [\n", "did not find expected node content", 2),
        ("a: b: c\n", "mapping values are not allowed", 1),
        ("a: 1\n b: 2\n", "mapping values are not allowed", 2),
        ("a: *nobody\n", "found undefined alias", 1),
        ("a:\n\t- b\n", "found character that cannot start any token", 2),
        ("ok: 1\n---\nb: !!int x\n", "'x' cannot be read", 3),
        ("a: .nan\n", ".nan is a number that JSON cannot say", 1),
        ("a: {? [b] : c}\n", "the name of a field must be a text", 1),
        ("&a\nb: *a\n", "an anchor stands within what it names", 2),
        ("a: !!binary x~x\n", "'x~x' cannot be read: it is no base64", 1),
        ("a: {~: 1}\n", "the name of a field must not be null", 1),
        ("a: {18446744073709551615: 1}\n", "the name of a field must not be so large a number", 1),
        ("--- {a: 1}\n", "--- must stand alone on its line", 1),
        ("%YAML 1.1\n---\na: 1\n", "did not find expected <document start>", 2),
        ('a: "\0"\n', "control characters are not allowed", 1),
        ("a: {<<: 1}\n", "<< needs a mapping, or a list of mappings", 1),
    ],
)
def test_what_is_no_yaml(text: str, sentence: str, line: int) -> None:
    with pytest.raises(SourceError) as caught:
        list(documents(text))
    assert str(caught.value).startswith(sentence)
    assert (caught.value.line, caught.value.column > 0) == (line, True)
    assert "\n" not in str(caught.value)


def test_anchors_that_grow_beyond_reason_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(SourceError, match="with its anchors written out it has more than 1000000 parts"):
        list(documents("\n".join(lines)))


def test_nesting_beyond_reason_is_refused() -> None:
    with pytest.raises(SourceError):
        list(documents("[" * 3000 + "]" * 3000))


PIECES = "apiVersion|a|b|: |\n|  |- |{|}|[|]|, |&a |*a|<<: |!!int |---\n|'|\"|~|.inf|1|#|>|%|\t"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES.split("|")), max_size=14).map("".join))
def test_no_text_makes_it_fail_otherwise(text: str) -> None:
    found: list[Document] = []
    sentence = "none"
    try:
        found.extend(d for d in documents(text) if isinstance(d, Document))
    except SourceError as error:
        sentence = str(error)
    assert sentence
    for document in found:
        assert json.dumps(document.data)
        assert document.root.line >= 1


json_data = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def walk(data: Any, part: Any) -> None:
    """Every part of the data has a place."""
    if isinstance(data, dict):
        assert set(data) == set(part.fields)
        for name, value in data.items():
            walk(value, part.fields[name])
    elif isinstance(data, list):
        assert len(data) == len(part.items)
        for value, item in zip(data, part.items, strict=True):
            walk(value, item)
    assert part.line >= 1


def in_floats(data: Any) -> Any:
    """The same with all large numbers as floats: those are no more exact than that to a server."""
    if isinstance(data, dict):
        return {name: in_floats(value) for name, value in data.items()}
    if isinstance(data, list):
        return [in_floats(value) for value in data]
    return float(data) if isinstance(data, int) and abs(data) >= 2**53 else data


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=5), json_data, min_size=1, max_size=3))
def test_what_json_says_is_what_is_read(data: dict[str, Any]) -> None:
    document = one(json.dumps(data, indent=2))
    assert in_floats(document.data) == in_floats(data)
    walk(document.data, document.root)
    written = one(yaml.safe_dump(data, default_style='"'))
    assert in_floats(written.data) == in_floats(data)
