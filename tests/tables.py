"""The worked tables of the specification (20 §7) as data: pure decisions and whole clusters are held against them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

FOLLOWS = "→"
"""The event of a row that nothing but the row before it causes."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of §7.1–7.6. `groups` are as in the specification: ordinal, revision letter, a star for not ready."""

    event: str
    replicas: int
    partition: int
    groups: str
    counts: str
    """Ready and updated groups, as `3/1`."""
    conditions: str
    """Available, Progressing, UpdateInProgress by the first letter of their status."""
    notes: tuple[str, ...] = ()
    """Of the events about partition and surge; `x` is the set."""

    @property
    def target(self) -> tuple[int, int]:
        """Replicas and partition of the leader workload."""
        return self.replicas, self.partition


@dataclass(frozen=True, slots=True)
class Rollout:
    """What is rolled out: a name for it and the set's settings."""

    name: str
    settings: dict[str, int]

    @property
    def replicas(self) -> int:
        """`spec.replicas` of the set."""
        return self.settings["replicas"]

    @property
    def rolling(self) -> dict[str, int]:
        """The set's `rollingUpdateConfiguration`."""
        return {name: value for name, value in self.settings.items() if name != "replicas"}


@dataclass(frozen=True, slots=True)
class Table(Rollout):
    """A rollout step by step: the set's settings, how many groups, and the rows that follow its steady state."""

    rows: tuple[Row, ...]


def _table(name: str, settings: dict[str, int], text: str) -> Table:
    rows: list[Row] = []
    for line in text.strip().splitlines():
        event, target, groups, counts, conditions, *notes = (cell.strip() for cell in line.split("|"))
        replicas, partition = map(int, target.split())
        told = tuple(note for note in notes if note)
        rows.append(Row(event, replicas, partition, groups, counts, conditions, told))
    return Table(name, {"maxUnavailable": 1, "maxSurge": 0, "partition": 0} | settings, tuple(rows))


TABLES = (
    _table("7.1", {"replicas": 4}, """
        template changed   | 4 4 | 0A 1A 2A 3A     | 4/0 | FTT
        →                  | 4 3 | 0A 1A 2A 3B*    | 3/1 | FTT | Updating replica 3
        ready: 3           | 4 2 | 0A 1A 2B* 3B    | 3/2 | FTT | Updating replica 2
        not ready: 3       | 4 2 | 0A 1A 2B* 3B*   | 2/2 | FTT
        ready: 3           | 4 2 | 0A 1A 2B* 3B    | 3/2 | FTT
        ready: 2           | 4 1 | 0A 1B* 2B 3B    | 3/3 | FTT | Updating replica 1
        ready: 1           | 4 0 | 0B* 1B 2B 3B    | 3/4 | FTF | Updating replica 0
        ready: 0           | 4 0 | 0B 1B 2B 3B     | 4/4 | TFF
    """),
    _table("7.2", {"replicas": 4, "maxUnavailable": 0, "maxSurge": 2}, """
        template changed   | 6 4 | 0A 1A 2A 3A 4B* 5B*    | 4/2 | FTT
        ready: 5           | 6 3 | 0A 1A 2A 3B* 4B* 5B    | 4/3 | FTT | Updating replica 3
        ready: 4           | 6 2 | 0A 1A 2B* 3B* 4B 5B    | 4/4 | FTT | Updating replica 2
        ready: 2           | 6 2 | 0A 1A 2B 3B* 4B 5B     | 5/4 | FTT
        ready: 3           | 6 0 | 0B* 1B* 2B 3B 4B 5B    | 4/6 | FTF | Updating replicas 0 to 1 (inclusive)
        ready: 1           | 5 0 | 0B* 1B 2B 3B 4B        | 4/5 | FTF | deleting surge replica x-5
        ready: 0           | 4 0 | 0B 1B 2B 3B            | 4/4 | TFF | deleting surge replica x-4
    """),
    _table("7.2, 4 before 5", {"replicas": 4, "maxUnavailable": 0, "maxSurge": 2}, """
        template changed   | 6 4 | 0A 1A 2A 3A 4B* 5B*    | 4/2 | FTT
        ready: 4           | 6 4 | 0A 1A 2A 3A 4B 5B*     | 5/2 | FTT
        ready: 5           | 6 2 | 0A 1A 2B* 3B* 4B 5B    | 4/4 | FTT | Updating replicas 2 to 3 (inclusive)
        ready: 3           | 6 1 | 0A 1B* 2B* 3B 4B 5B    | 4/5 | FTT | Updating replica 1
        ready: 2           | 6 0 | 0B* 1B* 2B 3B 4B 5B    | 4/6 | FTF | Updating replica 0
    """),
    _table("7.3", {"replicas": 6, "maxUnavailable": 2, "maxSurge": 2}, """
        template changed   | 8 6 | 0A 1A 2A 3A 4A 5A 6B* 7B*        | 6/2 | FTT
        →                  | 8 4 | 0A 1A 2A 3A 4B* 5B* 6B* 7B*      | 4/4 | FTT | Updating replicas 4 to 5 (inclusive)
        ready: 7           | 8 3 | 0A 1A 2A 3B* 4B* 5B* 6B* 7B      | 4/5 | FTT | Updating replica 3
        ready: 6           | 8 2 | 0A 1A 2B* 3B* 4B* 5B* 6B 7B      | 4/6 | FTT | Updating replica 2
        ready: 5           | 8 1 | 0A 1B* 2B* 3B* 4B* 5B 6B 7B      | 4/7 | FTT | Updating replica 1
        ready: 4           | 8 0 | 0B* 1B* 2B* 3B* 4B 5B 6B 7B      | 4/8 | FTF | Updating replica 0
        ready: 3           | 8 0 | 0B* 1B* 2B* 3B 4B 5B 6B 7B       | 5/8 | FTF
        ready: 2           | 6 0 | 0B* 1B* 2B 3B 4B 5B      | 4/6 | FTF | deleting surge replicas from x-6 to x-7
        ready: 1           | 6 0 | 0B* 1B 2B 3B 4B 5B               | 5/6 | FTF
        ready: 0           | 6 0 | 0B 1B 2B 3B 4B 5B                | 6/6 | TFF
    """),
    _table("7.4", {"replicas": 6, "partition": 4}, """
        template changed   | 6 6 | 0A 1A 2A 3A 4A 5A     | 6/0 | FTT
        →                  | 6 5 | 0A 1A 2A 3A 4A 5B*    | 5/1 | FTT | Updating replica 5
        ready: 5           | 6 4 | 0A 1A 2A 3A 4B* 5B    | 5/2 | FTF | Updating replica 4
        ready: 4           | 6 4 | 0A 1A 2A 3A 4B 5B     | 6/2 | TFF
        userPartition → 2  | 6 3 | 0A 1A 2A 3B* 4B 5B    | 5/3 | FTT | Updating replica 3
        ready: 3           | 6 2 | 0A 1A 2B* 3B 4B 5B    | 5/4 | FTF | Updating replica 2
        ready: 2           | 6 2 | 0A 1A 2B 3B 4B 5B     | 6/4 | TFF
        userPartition → 0  | 6 1 | 0A 1B* 2B 3B 4B 5B    | 5/5 | FTT | Updating replica 1
        ready: 1           | 6 0 | 0B* 1B 2B 3B 4B 5B    | 5/6 | FTF | Updating replica 0
        ready: 0           | 6 0 | 0B 1B 2B 3B 4B 5B     | 6/6 | TFF
    """),
    _table("7.5", {"replicas": 3, "maxSurge": 1, "partition": 2}, """
        template changed   | 4 3 | 0A 1A 2A 3B*    | 3/1 | FTT
        →                  | 4 2 | 0A 1A 2B* 3B*   | 2/2 | FTF | Updating replica 2
        ready: 3,2         | 4 2 | 0A 1A 2B 3B     | 4/2 | TFF
        userPartition → 0  | 4 0 | 0B* 1B* 2B 3B   | 2/4 | FTF | Updating replicas 0 to 1 (inclusive)
        ready: 1,0         | 3 0 | 0B 1B 2B        | 3/3 | TFF | deleting surge replica x-3
    """),
    # §7.6 gives what the start decides; what follows from it by §6.5 is written out.
    _table("7.6, one group broken", {"replicas": 4, "maxUnavailable": 2}, """
        not ready: 1       | 4 0 | 0A 1A* 2A 3A    | 3/4 | FTF
        template changed   | 4 4 | 0A 1A* 2A 3A    | 3/0 | FTT
        →                  | 4 3 | 0A 1A* 2A 3B*   | 2/1 | FTT | Updating replica 3
        ready: 3           | 4 1 | 0A 1B* 2B* 3B   | 2/3 | FTT | Updating replicas 1 to 2 (inclusive)
        ready: 2           | 4 0 | 0B* 1B* 2B 3B   | 2/4 | FTF | Updating replica 0
        ready: 0,1         | 4 0 | 0B 1B 2B 3B     | 4/4 | TFF
    """),
    _table("7.6, all groups broken", {"replicas": 2}, """
        not ready: 0,1     | 2 0 | 0A* 1A*    | 0/2 | FTF
        template changed   | 2 2 | 0A* 1A*    | 0/0 | FTT
        →                  | 2 1 | 0A* 1B*    | 0/1 | FTT | Updating replica 1
        ready: 1           | 2 0 | 0B* 1B     | 1/2 | FTF | Updating replica 0
        ready: 0           | 2 0 | 0B 1B      | 2/2 | TFF
    """),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a sequence of §7.7: what happens, and what is there when everybody has reacted.

    `what` are pairs of a letter and numbers: T and U change the template; N sets replicas, p the partition; r brings
    groups to the current revision and makes them ready, u makes them unready; c makes leaders that are not ready;
    d removes groups.
    """

    what: tuple[tuple[str, tuple[int, ...]], ...]
    replicas: int
    partition: int
    counts: str
    available: bool = False
    """Whether the specification says that the set is available; elsewhere it may be or not."""
    revisions: int = 0
    """How many there must be; 0 where the specification does not say."""

    @property
    def expected(self) -> str:
        """Replicas, partition and counts, as they are compared."""
        return f"{self.replicas},{self.partition},{self.counts}"


@dataclass(frozen=True, slots=True)
class Sequence(Rollout):
    """A sequence of §7.7, for a cluster without StatefulSet controller: values hold with pods that a test relabels."""

    steps: tuple[Step, ...]


def _steps(text: str) -> Iterator[Step]:
    for word in text.split():
        events, _, expected = word.rpartition(":")
        what = tuple(
            (letter, tuple(int(n) for n in numbers.split(",") if n))
            for letter, numbers in re.findall(r"([a-zA-Z])([0-9,]*)", events)
        )
        replicas, partition, counts, *marks = expected.split(",")
        revisions = sum(int(mark[1:]) for mark in marks if mark[0] == "R")
        yield Step(what, int(replicas), int(partition), counts, "A" in marks, revisions)


def _sequence(name: str, settings: dict[str, int], steps: str) -> Sequence:
    defaults = {"replicas": 4, "maxUnavailable": 1, "maxSurge": 0, "partition": 0}
    return Sequence(name, defaults | settings, tuple(_steps(steps)))


SEQUENCES = (
    _sequence("N=4", {}, "T:4,3,4/0 r3:4,2,4/1 r1:4,2,4/2 u3:4,2,3/2 r0,1,2,3:4,0,4/4,A"),
    _sequence("N=4, mu=2", {"maxUnavailable": 2}, "T:4,2,4/0 r3:4,1,4/1 r2:4,0,4/2 r0,1,2,3:4,0,4/4,A"),
    _sequence("N=4, mu=10", {"maxUnavailable": 10}, "T:4,0,4/0 r0,1,2,3:4,0,4/4,A"),
    _sequence("N 4→6 with T", {}, "N6T:6,4,4/0 r0,1,2,3,4,5:6,0,6/6,A"),
    _sequence("N=4 T, then N=6", {}, "T:4,3,4/0 r3:4,2,4/1 r4,5N6:6,2,6/3 r0,1,2,3,4,5:6,0,6/6,A"),
    _sequence("N=6 T, then N=3", {"replicas": 6}, "T:6,5,6/0 d3,4,5N3:3,2,3/0 r0,1,2:3,0,3/3,A"),
    _sequence(
        "mu=0, ms=1",
        {"maxUnavailable": 0, "maxSurge": 1},
        "T:5,4,4/0 r4:5,3,5/1 r3:5,2,5/2 r2:5,1,5/3 r1:5,0,5/4 r0d4:4,0,4/4,A",
    ),
    _sequence("ms=1", {"maxSurge": 1}, "T:5,3,4/0 r4:5,2,5/1 r3:5,1,5/2 r2:5,0,5/3 r1d4:4,0,4/3 r0:4,0,4/4,A"),
    _sequence("mu=2, ms=2", {"maxUnavailable": 2, "maxSurge": 2}, "T:6,2,4/0 r2,3:4,0,4/2 r0,1:4,0,4/4,A"),
    _sequence("N 2→4 with T, ms=2", {"replicas": 2, "maxSurge": 2}, "N4T:6,2,2/0 r0,1,2,3,4,5d4,5:4,0,4/4,A"),
    _sequence("N 6→3 with T, ms=2", {"replicas": 6, "maxSurge": 2}, "d5N3T:5,2,5/0 r0,1,2d3,4:3,0,3/3,A"),
    _sequence("ms capped to N", {"replicas": 2, "maxSurge": 4}, "T:3,1,2/0 r0,1,2d2:2,0,2/2,A"),
    # The specification says that 6 and 7 get ready in the third step; its counts are those of 4 and 5.
    _sequence(
        "N=4, ms=2, N=6, N=2",
        {"maxSurge": 2},
        "T:6,3,4/0 N6c4,5:8,3,4/2 r4,5:8,3,6/2 N2d3,4,5:3,1,3/0 r2:3,0,3/1 r1d2:2,0,2/1 r0:2,0,2/2,A",
    ),
    _sequence(
        "T twice",
        {"maxSurge": 2},
        "T:6,3,4/0,R2 r4,5:6,1,6/2,R2 U:6,3,6/0,R3 r0,1,2,3d4,5:4,0,4/4,A,R1",
    ),
    _sequence(
        "N=6, partition 4",
        {"replicas": 6, "partition": 4},
        "p4:6,4,6/6,A T:6,5,6/0 r5:6,4,6/1 r4:6,4,6/2,A p2:6,3,6/2 r3:6,2,6/3 r2:6,2,6/4,A",
    ),
    _sequence(
        "N=3, ms=1, partition 2",
        {"replicas": 3, "maxSurge": 1, "partition": 2},
        "p2:3,2,3/3,A T:4,2,3/0 r2,3:4,2,4/2,A p0:4,0,4/2 r0,1:3,0,4/4 d3:3,0,3/3,A",
    ),
)
