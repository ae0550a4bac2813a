"""Groups counted by blocks answer as if each were looked at."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lwskit.groups.row import EXHAUSTED, READY, UPDATED, Groups, Row

BOUNDS = st.integers(0, 450)


@st.composite
def rows(draw: st.DrawFn) -> Groups:
    """A row of long stretches of the same, with single groups changed, and cut or grown at its end."""
    stretches = draw(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 150)), max_size=4))
    row = Row(states := b"".join(bytes([state]) * length for state, length in stretches))
    now = bytearray(states)
    for place, state in draw(st.lists(st.tuples(BOUNDS, st.integers(0, 15)), max_size=6)):
        now += bytes(max(0, place + 1 - len(now)))
        now[place] = state
        now = now.rstrip(b"\0")
        row.put(place, state, len(now))
    groups = row.groups()
    assert groups == Groups(bytes(now))
    return groups.first(draw(BOUNDS)) if draw(st.booleans()) else groups


@given(rows(), st.integers(0, 15), st.sampled_from([0, EXHAUSTED]), BOUNDS, st.none() | BOUNDS)
def test_counting(groups: Groups, bits: int, without: int, start: int, stop: int | None) -> None:
    part = groups.states[start:stop]
    assert groups.count(bits, without, start, stop) == sum(s & bits == bits and not s & without for s in part)


@given(rows())
def test_the_finished_tail(groups: Groups) -> None:
    done = [group.ready and group.updated for group in groups]
    assert groups.finished_tail() == ([*reversed(done), False]).index(False)


@given(rows(), BOUNDS, BOUNDS)
def test_the_last_outdated(groups: Groups, start: int, stop: int) -> None:
    found = [i for i, s in enumerate(groups.states) if start <= i < stop and s & READY and not s & UPDATED]
    assert groups.last_outdated(start, stop) == max(found, default=start - 1)
