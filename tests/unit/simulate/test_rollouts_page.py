"""docs/rollouts.md: the cases in which fewer groups are ready than replicas − maxUnavailable, each by its example.

python -m tests.unit.simulate.test_rollouts_page prints the examples as the page has them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lwskit.api import names
from lwskit.runtime.objects import Obj
from lwskit.simulate.output import text
from lwskit.simulate.report import Report
from tests.unit.groups.small_cluster import SmallCluster, make_lws
from tests.unit.simulate.scenes import planned, small
from tests.unit.simulate.test_rollout import edited

PAGE = Path(__file__).parents[3] / "docs" / "rollouts.md"


def rolling(cluster: SmallCluster, *ready: int) -> SmallCluster:
    """In the middle of a rollout to image B, after these groups have become ready one after another."""
    cluster.change(image="B")
    cluster.settle()
    for group in ready:
        cluster.make_ready(group)
        cluster.settle()
    return cluster


def down(cluster: SmallCluster, *groups: int) -> SmallCluster:
    cluster.make_ready(*groups, ready=False)
    return cluster


def annotated(lws: Obj) -> Obj:
    notes = {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack"}
    return {**lws, "metadata": {**lws["metadata"], "annotations": notes}}


def unready_at_start() -> Report:
    cluster = down(small(1, maxUnavailable=0, maxSurge=1), 0)
    return planned(cluster, edited(cluster.lws, image="B"))


def new_template() -> Report:
    cluster = down(rolling(small(3), 2), 2)
    return planned(cluster, edited(cluster.lws, image="C"))


def surge_reclaimed() -> Report:
    cluster = down(rolling(small(2, maxUnavailable=0, maxSurge=2), 3, 2), 2)
    return planned(cluster, edited(cluster.lws), "1,0")


def surge_given_up_by_an_edit() -> Report:
    cluster = rolling(small(2, 2, maxUnavailable=0, maxSurge=1), 2)
    cluster.make_leader_ready(1)
    return planned(cluster, edited(cluster.lws, maxUnavailable=1, maxSurge=0))


def scale_down() -> Report:
    cluster = down(rolling(small(2, maxUnavailable=0, maxSurge=1), 2, 1), 1)
    return planned(cluster, edited(cluster.lws, replicas=1))


def not_a_revision() -> Report:
    cluster = small(2, maxSurge=1)
    return planned(cluster, annotated(cluster.lws))


def size_from_one() -> Report:
    cluster = small(2)
    return planned(cluster, edited(cluster.lws, size=2))


EXAMPLES: dict[str, Callable[[], Report]] = {
    "unready-at-start": unready_at_start,
    "new-template": new_template,
    "surge-reclaimed": surge_reclaimed,
    "surge-reclaimed, by an edit": surge_given_up_by_an_edit,
    "scale-down": scale_down,
    "not-a-revision": not_a_revision,
    "size-from-one": size_from_one,
}


def surge_stays() -> Report:
    cluster = small(3, partition=2, maxSurge=1)
    return planned(cluster, edited(cluster.lws, image="B"))


def surge_without_rollout() -> Report:
    cluster = SmallCluster(make_lws(replicas=3, size=1))
    return planned(cluster, edited(cluster.lws, partition=2, maxSurge=1))


PARTITION: dict[str, Callable[[], Report]] = {
    "surge-stays": surge_stays,
    "surge-without-rollout": surge_without_rollout,
}
"""What a partition does to surge."""


def shown(report: Report) -> str:
    """The table and the notes."""
    lines = [line for line in text(report) if not line.startswith(("  assumed", "  changed"))]
    return "\n".join(line.removeprefix("  ") for line in lines[2:])


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_example_is_as_the_page_has_it(code: str) -> None:
    report = EXAMPLES[code]()
    assert report.floor is not None
    assert report.lowest < report.floor
    code = code.partition(",")[0]
    assert f"floor-{code}" in [n.code for n in report.notices]
    page = PAGE.read_text()
    assert f"### floor-{code}" in page
    assert f"```text\n{shown(report)}\n```" in page, shown(report)


@pytest.mark.parametrize("code", PARTITION)
def test_what_a_partition_does_to_surge_is_as_the_page_has_it(code: str) -> None:
    report = PARTITION[code]()
    assert code in [n.code for n in report.notices]
    assert f"```text\n{shown(report)}\n```" in PAGE.read_text(), shown(report)


def test_of_surge_nothing_is_said_where_a_partition_has_no_part_in_it() -> None:
    rolled = small(3, maxSurge=1)
    made = SmallCluster(make_lws(replicas=3, size=1))
    held = small(3, partition=2)
    for report in (
        planned(rolled, edited(rolled.lws, image="B")),
        planned(made, edited(made.lws, maxSurge=1)),
        planned(held, edited(held.lws, image="B")),
    ):
        assert not [n for n in report.notices if n.code.startswith("surge-")]


if __name__ == "__main__":
    for code, example in (EXAMPLES | PARTITION).items():
        print(f"### floor-{code}\n\n```text\n{shown(example())}\n```\n")
