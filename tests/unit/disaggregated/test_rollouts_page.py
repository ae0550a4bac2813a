"""The tables in docs/disaggregated-rollouts.md are what the planner does."""

from __future__ import annotations

from pathlib import Path

import pytest

from lwskit.disaggregated.planner import Vector
from tests.planner_cases import rollouts, several
from tests.unit.disaggregated.simulator import Revision, World, at_once

PAGE = Path(__file__).parents[3] / "docs" / "disaggregated-rollouts.md"


def text(counts: Vector) -> str:
    return ":".join(map(str, counts))


def played(world: World, changes: dict[int, Vector]) -> str:
    """A row for each step: what it asks of each revision, and what is Ready before anything new is."""
    size = range(len(world.desired))

    def row(step: str, note: str = "") -> list[str]:
        ready = tuple(sum(r.ready[i] for r in (*world.old, world.target)) for i in size)
        return [step, *(text(r.spec) for r in (*world.old, world.target)), text(ready), note]

    rows = [["step", *(r.name for r in (*world.old, world.target)), "ready", ""], row("")]
    taken = 0
    while True:
        note = ""
        if taken in changes and world.desired != changes[taken]:
            world.desired = changes[taken]
            note = f"{text(world.desired)} are wanted from here on"
        if not world.take():
            break
        taken += 1
        rows.append(row(str(taken), "one group too many" if world.log[-1][2].bootstrap_surge else note))
        world.pass_time(at_once)
    if not world.is_finished():
        rows.append(["", *([""] * (len(world.old) + 2)), "waits"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines) + "\n"


def table(id: str) -> str:
    """A case as a table."""
    for case in rollouts():
        if case.id == id:
            none = (0,) * len(case.roles)
            old, new = Revision("old", case.old, case.old, case.old), Revision("new", case.new, none, none)
            return played(World([old], new, case.new, case.max_surge, case.max_unavailable, case.policy), {})
    (many,) = [case for case in several() if case.id == id]
    old = [Revision(o.name, o.initial, o.spec, o.ready, healthy=o.name not in many.never_ready) for o in many.old]
    ready = (0,) * len(many.roles)
    target = Revision(many.target, many.desired, many.target_spec, ready, healthy=many.target not in many.never_ready)
    world = World(old, target, many.desired, many.max_surge, many.max_unavailable, many.policy)
    return played(world, dict(many.changes))


@pytest.mark.parametrize("id", ["r01", "r02", "r08", "r13", "r24", "m01", "m05", "m06", "m07", "m08", "m11"])
def test_a_table_of_the_page_is_what_the_planner_does(id: str) -> None:
    assert f"```text\n{table(id)}```\n" in PAGE.read_text()
