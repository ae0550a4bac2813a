"""What the planner's steps are made of, each by itself (50 §8.1 to §8.3)."""

from __future__ import annotations

from lwskit.disaggregated.planner import OldRevision, baseline
from lwskit.disaggregated.planner_state import structural, usable


def old(initial: tuple[int, ...], spec: tuple[int, ...]) -> OldRevision:
    return OldRevision(tuple(i > 0 for i in initial), initial, spec, spec, spec)


def test_availability_is_measured_by_all_revisions_that_still_ask_for_groups() -> None:
    drained, left = old((9, 9), (0, 0)), old((2, 6), (0, 1))
    assert baseline(old((4, 2), (1, 1)), (drained, left)) == (4, 6)
    assert baseline(drained, (old((4, 2), (1, 1)),)) == (9, 9)


def test_ready_groups_serve_only_where_all_required_roles_have_some() -> None:
    assert usable((True, True), (3, 1)) == (3, 1)
    assert usable((True, True), (3, 0)) == (0, 0)
    assert usable((True, False), (3, 0)) == (3, 0)
    assert usable((False, False), (3, 1)) == (0, 0)


def test_a_revision_that_asks_for_all_its_roles_has_its_ready_groups_protected() -> None:
    assert structural((True, True), (1, 1), (0, 1)) == (0, 1)
    assert structural((True, True), (1, 0), (1, 1)) == (0, 0)
    assert structural((False, False), (1, 1), (1, 1)) == (0, 0)
