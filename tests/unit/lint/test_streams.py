"""Several documents in one text, as kubectl 1.33 takes them apart."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from lwskit.lint.check import Source, stored
from lwskit.lint.files import read
from lwskit.lint.places import Part, locate
from lwskit.lint.source import Document, Note, SourceError, documents
from tests.unit.lint.support import codes, findings, lws, server

A, B = '{"a": 1}', '{"b": 2}'


def taken(text: str) -> tuple[list[Any], list[tuple[int, int]], tuple[int, int] | None]:
    """The documents of a text, the places of what is odd, and where reading it ends early."""
    found: list[Document | Note] = []
    ended = None
    try:
        found.extend(documents(text))
    except SourceError as error:
        ended = error.line, error.column
    data = [d.data for d in found if isinstance(d, Document)]
    return data, [(n.line, n.column) for n in found if isinstance(n, Note)], ended


@pytest.mark.parametrize(
    ("text", "data", "odd"),
    [
        (f"{A}\n{B}\n", [{"a": 1}, {"b": 2}], []),
        (f"{A}{B}", [{"a": 1}, {"b": 2}], []),
        (f"{A}\nnull\n{B}", [{"a": 1}, {"b": 2}], []),
        (f"\n\n  {A}", [{"a": 1}], []),
        (f"# c\n{A}", [{"a": 1}], []),
        ('{"a": "\\ud83d|\\ude00\\ud83d"}', [{"a": "\ufffd|\ufffd\ufffd"}], []),
        ("a: 1\n---\n\ufeffb: 2\n", [{"a": 1}, {"b": 2}], []),
        ("\ufeffa: 1\n", [{"a": 1}], []),
        (f"\ufeff{A}", [{"a": 1}], []),
        ("a: 1\n--- # c\nb: 2\n", [{"a": 1}, {"b": 2}], []),
        ("a: |\n  x\n---\nb: 2\n", [{"a": "x\n"}, {"b": 2}], []),
        ("a: 1\r\n---\r\nb: 2\r\n", [{"a": 1}, {"b": 2}], []),
        ("a: 1\n...\n---\nb: 2\n", [{"a": 1}, {"b": 2}], []),
        ("a: 1\n...\n", [{"a": 1}], []),
        # What kubectl before 1.33 refuses.
        (f"{A}\n---\n{B}\n", [{"a": 1}, {"b": 2}], [(2, 1)]),
        (f"{A}\n---\n", [{"a": 1}], [(2, 1)]),
        (f"{A}\nb: 2\n", [{"a": 1}, {"b": 2}], [(2, 1)]),
        ('{"a": 1,}', [{"a": 1}], [(1, 9)]),
        (f"{A} # x", [{"a": 1}], [(1, 10)]),
        ("{a: 1}\n---\n{b: 2}\n", [{"a": 1}, {"b": 2}], [(1, 2)]),
        # What no kubectl reads.
        (f"a: 1\n---\n{A}\n{B}\n", [{"a": 1}, {"a": 1}], [(4, 1)]),
        ("a: 1\n...\nb: 2\n", [{"a": 1}], [(3, 1)]),
        ("a: 1\r---\rb: 2\r", [{"a": 1}], [(2, 1)]),
    ],
)
def test_what_is_read(text: str, data: list[Any], odd: list[tuple[int, int]]) -> None:
    assert taken(text) == (data, odd, None)


@pytest.mark.parametrize(
    ("text", "data", "ended"),
    [
        (f"{A}\n{B}\n---\n", [{"a": 1}, {"b": 2}], (3, 1)),
        (f"{A}\n{B}\nc: 1\n", [{"a": 1}, {"b": 2}], (3, 1)),
        (f"{A}\n}}", [{"a": 1}], (2, 1)),
        ('{"a": "\x01"}', [], (1, 7)),
        ('{"a": "\\q"}', [], (1, 7)),
        ('{"a": ["x" "y"]}', [], (1, 12)),
        ('{"a": ', [], (1, 7)),
        (f"a: 1\n--- {A}\n", [{"a": 1}], (2, 1)),
        ("a: 1\n---x\n", [{"a": 1}], (2, 1)),
        ("%YAML 1.2\n---\na: 1\n", [], (2, 1)),
        ("q: &a 1\n---\nb: *a\n", [{"q": 1}], (3, 4)),
    ],
)
def test_where_reading_ends(text: str, data: list[Any], ended: tuple[int, int]) -> None:
    assert taken(text) == (data, [], ended)


def test_sets_in_a_stream_are_found() -> None:
    first, second = (json.dumps(yaml.safe_load(lws(name)), indent=1) for name in ("a", "b"))
    text = f"{first}\n{second}\n"
    assert codes(text) == []
    assert len(stored([Source("f", text)], server(), "default")) == 2
    assert codes(f"{first}\n---\n{second}\n") == ["LWS015"]
    assert len(stored([Source("f", f"{first}\n---\n{second}\n")], server(), "default")) == 2


def test_what_is_odd_in_files_of_others_is_not_told() -> None:
    assert codes('{"compilerOptions": {},} // no set of ours') == []


def test_files_with_a_byte_order_mark_of_16_bits(tmp_path: Any) -> None:
    for encoding, mark in (("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
        file = tmp_path / encoding
        file.write_bytes(mark + "a: é\n".encode(encoding))
        (source,) = read([str(file)], None)  # type: ignore[arg-type]
        assert (source.text, source.error) == ("a: é\n", "")
    file.write_bytes(mark + b"\xd8\x00")
    (source,) = read([str(file)], None)  # type: ignore[arg-type]
    assert source.error.endswith("it is not UTF-16 text")


@pytest.mark.parametrize("odd", ["\x85", "\u2028", "\u2029"])
def test_lines_are_counted_as_editors_count_them(odd: str) -> None:
    text = lws(meta={"annotations": {"a": "QQ"}}, template={"size": 0})
    (expected,) = {f.place for f in findings(text)}
    assert expected.column > 1
    for changed in (text.replace("QQ", f'"x{odd}y"'), f"# x{odd}# y\n{text}"):
        (found,) = {f.place for f in findings(changed)}
        assert (found.line - (changed[0] == "#"), found.column) == (expected.line, expected.column)
    with pytest.raises(SourceError) as caught:
        list(documents(f'a: "x{odd}y"\nb: *c\n'))
    assert (caught.value.line, caught.value.column) == (2, 4)


def slower(work: Callable[[int], Any], size: int) -> float:
    """How many times as long eight times as much takes, the best of three."""

    def seconds(number: int) -> float:
        begun = time.process_time()
        work(number)
        return time.process_time() - begun

    return min(seconds(8 * size) for _ in range(3)) / min(seconds(size) for _ in range(3))


def test_finding_places_of_many_fields_is_not_quadratic() -> None:
    def work(number: int) -> None:
        part = Part(1, 1, {f"bad{i}": Part(i, 1) for i in range(number)})
        for i in range(number):
            assert locate(part, f"bad{i}").line == i

    assert slower(work, 500) < 32


def test_reading_large_texts_is_not_quadratic() -> None:
    one = lws()
    assert slower(lambda number: list(documents(f"---\n{one}" * number)), 5) < 32
    assert slower(lambda number: list(documents('{"a": [1, "x", {"b": null}]}\n' * number)), 100) < 32
