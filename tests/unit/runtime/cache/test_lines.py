"""Lines come out of chunks whole, wherever the chunks are cut, and objects nobody else has are stripped themselves."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.runtime.cache.lines import LineSplitter
from lwskit.runtime.cache.transform import of_own, strip_managed_fields
from lwskit.runtime.errors import InternalError
from lwskit.runtime.objects import Obj

TEXTS = st.lists(st.sampled_from([b"", b" ", b"\r", b"{}", b' {"a": 1}', b"x" * 50]), max_size=20)
CUTS = st.lists(st.integers(0, 400), max_size=10)


@given(TEXTS, CUTS)
def test_lines_do_not_depend_on_where_chunks_are_cut(texts: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(text + b"\n" for text in texts) + b"rest"
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    splitter = LineSplitter()
    found = [bytes(line) for first, last in pairwise(places) for line in splitter.feed(whole[first:last])]
    assert found == [text for text in texts if text.strip()]
    assert [bytes(line) for line in splitter.feed(b"\n")] == [b"rest"]


@pytest.mark.parametrize("chunks", [[b"12345678901\n"], [b"123456", b"78901"], [b"123456", b"78901\n"]])
def test_a_line_over_the_limit_is_refused(chunks: list[bytes]) -> None:
    splitter = LineSplitter(limit=10)
    for chunk in chunks[:-1]:
        assert splitter.feed(chunk) == []
    with pytest.raises(InternalError, match="more than 10 bytes"):
        splitter.feed(chunks[-1])


ENTRY = {"manager": "me", "operation": "Apply"}


@pytest.mark.parametrize("keep", [None, "me"])
@pytest.mark.parametrize(
    "entries", [None, [], [ENTRY], [ENTRY, {**ENTRY, "subresource": "status"}], [{**ENTRY, "operation": "Update"}]]
)
def test_stripping_in_place_gives_what_stripping_a_copy_gives(keep: str | None, entries: list[Obj] | None) -> None:
    meta = {"name": "a", "labels": {"x": "y"}} | ({} if entries is None else {"managedFields": entries})
    obj = {"kind": "Pod", "metadata": meta}
    before = copy.deepcopy(obj)
    transform = strip_managed_fields(keep)
    stripped = transform(obj)
    assert obj == before
    assert of_own(transform)(copy.deepcopy(obj)) == stripped
    assert of_own(lambda given: {**given, "spec": {}})(obj) == {**before, "spec": {}}
