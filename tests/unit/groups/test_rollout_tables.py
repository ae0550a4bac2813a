"""The worked tables of the specification (20 §7), replayed."""

from __future__ import annotations

import re

import pytest

from lwskit.groups import ownership
from tests.unit.groups.small_cluster import SmallCluster, make_lws, settled

TABLES = {
    "7.1": ({"replicas": 4, "maxUnavailable": 1, "maxSurge": 0}, """
        template changed   | 4 4 | 0A 1A 2A 3A     | 4/0 | FTT |
        →                  | 4 3 | 0A 1A 2A 3B*    | 3/1 | FTT | Updating replica 3
        ready: 3           | 4 2 | 0A 1A 2B* 3B    | 3/2 | FTT | Updating replica 2
        not ready: 3       | 4 2 | 0A 1A 2B* 3B*   | 2/2 | FTT |
        ready: 3           | 4 2 | 0A 1A 2B* 3B    | 3/2 | FTT |
        ready: 2           | 4 1 | 0A 1B* 2B 3B    | 3/3 | FTT | Updating replica 1
        ready: 1           | 4 0 | 0B* 1B 2B 3B    | 3/4 | FTF | Updating replica 0
        ready: 0           | 4 0 | 0B 1B 2B 3B     | 4/4 | TFF |
    """),
    "7.2": ({"replicas": 4, "maxUnavailable": 0, "maxSurge": 2}, """
        template changed   | 6 4 | 0A 1A 2A 3A 4B* 5B*    | 4/2 | FTT |
        ready: 5           | 6 3 | 0A 1A 2A 3B* 4B* 5B    | 4/3 | FTT | Updating replica 3
        ready: 4           | 6 2 | 0A 1A 2B* 3B* 4B 5B    | 4/4 | FTT | Updating replica 2
        ready: 2           | 6 2 | 0A 1A 2B 3B* 4B 5B     | 5/4 | FTT |
        ready: 3           | 6 0 | 0B* 1B* 2B 3B 4B 5B    | 4/6 | FTF | Updating replicas 0 to 1 (inclusive)
        ready: 1           | 5 0 | 0B* 1B 2B 3B 4B        | 4/5 | FTF | deleting surge replica x-5
        ready: 0           | 4 0 | 0B 1B 2B 3B            | 4/4 | TFF | deleting surge replica x-4
    """),
    "7.2, 4 before 5": ({"replicas": 4, "maxUnavailable": 0, "maxSurge": 2}, """
        template changed   | 6 4 | 0A 1A 2A 3A 4B* 5B*    | 4/2 | FTT |
        ready: 4           | 6 4 | 0A 1A 2A 3A 4B 5B*     | 5/2 | FTT |
        ready: 5           | 6 2 | 0A 1A 2B* 3B* 4B 5B    | 4/4 | FTT | Updating replicas 2 to 3 (inclusive)
        ready: 3           | 6 1 | 0A 1B* 2B* 3B 4B 5B    | 4/5 | FTT | Updating replica 1
        ready: 2           | 6 0 | 0B* 1B* 2B 3B 4B 5B    | 4/6 | FTF | Updating replica 0
    """),
    "7.3": ({"replicas": 6, "maxUnavailable": 2, "maxSurge": 2}, """
        template changed   | 8 6 | 0A 1A 2A 3A 4A 5A 6B* 7B*        | 6/2 | FTT |
        →                  | 8 4 | 0A 1A 2A 3A 4B* 5B* 6B* 7B*      | 4/4 | FTT | Updating replicas 4 to 5 (inclusive)
        ready: 7           | 8 3 | 0A 1A 2A 3B* 4B* 5B* 6B* 7B      | 4/5 | FTT | Updating replica 3
        ready: 6           | 8 2 | 0A 1A 2B* 3B* 4B* 5B* 6B 7B      | 4/6 | FTT | Updating replica 2
        ready: 5           | 8 1 | 0A 1B* 2B* 3B* 4B* 5B 6B 7B      | 4/7 | FTT | Updating replica 1
        ready: 4           | 8 0 | 0B* 1B* 2B* 3B* 4B 5B 6B 7B      | 4/8 | FTF | Updating replica 0
        ready: 3           | 8 0 | 0B* 1B* 2B* 3B 4B 5B 6B 7B       | 5/8 | FTF |
        ready: 2           | 6 0 | 0B* 1B* 2B 3B 4B 5B   | 4/6 | FTF | deleting surge replicas from x-6 to x-7
        ready: 1           | 6 0 | 0B* 1B 2B 3B 4B 5B    | 5/6 | FTF |
        ready: 0           | 6 0 | 0B 1B 2B 3B 4B 5B     | 6/6 | TFF |
    """),
    "7.4": ({"replicas": 6, "maxUnavailable": 1, "maxSurge": 0, "partition": 4}, """
        template changed   | 6 6 | 0A 1A 2A 3A 4A 5A     | 6/0 | FTT |
        →                  | 6 5 | 0A 1A 2A 3A 4A 5B*    | 5/1 | FTT | Updating replica 5
        ready: 5           | 6 4 | 0A 1A 2A 3A 4B* 5B    | 5/2 | FTF | Updating replica 4
        ready: 4           | 6 4 | 0A 1A 2A 3A 4B 5B     | 6/2 | TFF |
        userPartition → 2  | 6 3 | 0A 1A 2A 3B* 4B 5B    | 5/3 | FTT | Updating replica 3
        ready: 3           | 6 2 | 0A 1A 2B* 3B 4B 5B    | 5/4 | FTF | Updating replica 2
        ready: 2           | 6 2 | 0A 1A 2B 3B 4B 5B     | 6/4 | TFF |
        userPartition → 0  | 6 1 | 0A 1B* 2B 3B 4B 5B    | 5/5 | FTT | Updating replica 1
        ready: 1           | 6 0 | 0B* 1B 2B 3B 4B 5B    | 5/6 | FTF | Updating replica 0
        ready: 0           | 6 0 | 0B 1B 2B 3B 4B 5B     | 6/6 | TFF |
    """),
    "7.5": ({"replicas": 3, "maxUnavailable": 1, "maxSurge": 1, "partition": 2}, """
        template changed   | 4 3 | 0A 1A 2A 3B*    | 3/1 | FTT |
        →                  | 4 2 | 0A 1A 2B* 3B*   | 2/2 | FTF | Updating replica 2
        ready: 3,2         | 4 2 | 0A 1A 2B 3B     | 4/2 | TFF |
        userPartition → 0  | 4 0 | 0B* 1B* 2B 3B   | 2/4 | FTF | Updating replicas 0 to 1 (inclusive)
        ready: 1,0         | 3 0 | 0B 1B 2B        | 3/3 | TFF | deleting surge replica x-3
    """),
}  # fmt: skip


def make(settings: dict[str, int]) -> dict:
    lws = make_lws(replicas=settings["replicas"], image="A")
    strategy = lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
    strategy.update({name: value for name, value in settings.items() if name != "replicas"})
    return lws


def happen(cluster: SmallCluster, event: str) -> None:
    kind, _, value = event.partition(": ")
    if kind == "ready":
        cluster.make_ready(*map(int, value.split(",")))
    elif kind == "not ready":
        cluster.make_ready(*map(int, value.split(",")), ready=False)
    elif event == "template changed":
        cluster.change(image="B")
    elif match := re.fullmatch(r"userPartition → (\d)", event):
        cluster.change(partition=int(match[1]))
    else:
        assert event == "→", event


def groups(cluster: SmallCluster) -> str:
    letters = {}
    for revision in cluster.revisions:
        image = revision["data"]["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"]
        letters[ownership.revision_key(revision)] = image
    shown = []
    for i, leader in sorted(cluster.leaders.items()):
        ready = leader["status"]["phase"] == "Running"
        shown.append(f"{i}{letters[ownership.revision_key(leader)]}{'' if ready else '*'}")
    return " ".join(shown)


def reconcile(cluster: SmallCluster) -> list[str]:
    return [n for n in cluster.reconcile() if n.startswith(("Updating", "deleting"))]


@pytest.mark.parametrize("name", TABLES)
def test_table(name: str) -> None:
    settings, text = TABLES[name]
    cluster = settled(make(settings))
    rows = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    for event, target, after, counts, conditions, notes in rows:
        happen(cluster, event)
        told = reconcile(cluster)
        cluster.act()
        assert " ".join(map(str, cluster.target)) == target, (event, target)
        final = groups(cluster)
        # The status of what the controller did is written by the reconcile that follows, whose other half is the
        # next row: it is looked at, not carried out.
        ahead = SmallCluster.__new__(SmallCluster)
        ahead.__dict__.update(cluster.__dict__)
        ahead.index = _frozen(cluster)
        reconcile(ahead)
        assert final == after, (event, final)
        assert ahead.counts == counts, (event, ahead.counts)
        shown = "".join(ahead.conditions.get(t, "False")[0] for t in ("Available", "Progressing", "UpdateInProgress"))
        assert shown == conditions, (event, shown)
        assert told == ([notes] if notes else []), (event, told)


class _frozen:
    """The state of a cluster as it is now, for a decision that must not change it."""

    def __init__(self, cluster: SmallCluster) -> None:
        self._state = cluster.index.state_of("set-uid")

    def state_of(self, uid: str) -> object:
        return self._state

    def apply(self, *change: object) -> None:
        pass


STEPS = [
    ("N=4", {}, "T:4,3,4/0 r3:4,2,4/1 r1:4,2,4/2 u3:4,2,3/2 r0,1,2,3:4,0,4/4"),
    ("N=4, mu=2", {"maxUnavailable": 2}, "T:4,2,4/0 r3:4,1,4/1 r2:4,0,4/2 r0,1,2,3:4,0,4/4"),
    ("N=4, mu=10", {"maxUnavailable": 10}, "T:4,0,4/0 r0,1,2,3:4,0,4/4"),
    ("N 4→6 with T", {}, "N6T:6,4,4/0 r0,1,2,3,4,5:6,0,6/6"),
    ("N=4 T, then N=6", {}, "T:4,3,4/0 r3:4,2,4/1 r4,5N6:6,2,6/3 r0,1,2,3,4,5:6,0,6/6"),
    ("N=6 T, then N=3", {"replicas": 6}, "T:6,5,6/0 d3,4,5N3:3,2,3/0 r0,1,2:3,0,3/3"),
    (
        "mu=0, ms=1",
        {"maxUnavailable": 0, "maxSurge": 1},
        "T:5,4,4/0 r4:5,3,5/1 r3:5,2,5/2 r2:5,1,5/3 r1:5,0,5/4 r0d4:4,0,4/4",
    ),
    ("ms=1", {"maxSurge": 1}, "T:5,3,4/0 r4:5,2,5/1 r3:5,1,5/2 r2:5,0,5/3 r1d4:4,0,4/3 r0:4,0,4/4"),
    ("mu=2, ms=2", {"maxUnavailable": 2, "maxSurge": 2}, "T:6,2,4/0 r2,3:4,0,4/2 r0,1:4,0,4/4"),
    ("N 2→4 with T, ms=2", {"replicas": 2, "maxSurge": 2}, "N4T:6,2,2/0 r0,1,2,3,4,5d4,5:4,0,4/4"),
    ("N 6→3 with T, ms=2", {"replicas": 6, "maxSurge": 2}, "d5N3T:5,2,5/0 r0,1,2d3,4:3,0,3/3"),
    ("ms capped to N", {"replicas": 2, "maxSurge": 4}, "T:3,1,2/0 r0,1,2d2:2,0,2/2"),
    (
        "N=4, ms=2, N=6, N=2",
        {"maxSurge": 2},
        "T:6,3,4/0 N6:8,3,4/0 r4,5:8,3,6/2 r6,7:8,1,8/4",
    ),
    ("T twice", {"maxSurge": 2}, "T:6,3,4/0 r4,5:6,1,6/2 U:6,3,6/0 r0,1,2,3d4,5:4,0,4/4"),
    (
        "N=6, partition 4",
        {"replicas": 6, "partition": 4},
        "T:6,5,6/0 r5:6,4,6/1 r4:6,4,6/2 p2:6,3,6/2 r3:6,2,6/3 r2:6,2,6/4",
    ),
    (
        "N=3, ms=1, partition 2",
        {"replicas": 3, "maxSurge": 1, "partition": 2},
        "T:4,2,3/0 r2,3:4,2,4/2 p0:4,0,4/2 r0,1:3,0,4/4 d3:3,0,3/3",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "steps"), [s[1:] for s in STEPS], ids=[s[0] for s in STEPS])
def test_27_step_values_of_the_integration_tests(settings: dict[str, int], steps: str) -> None:
    settings = {"replicas": 4, "maxUnavailable": 1, "maxSurge": 0} | settings
    cluster = SmallCluster(make(settings), passive=True)
    cluster.settle()
    cluster.make_ready(*range(settings["replicas"]))
    cluster.settle()
    for step in steps.split():
        events, _, expected = step.rpartition(":")
        for event in re.findall(r"[a-zA-Z][0-9,]*", events):
            numbers = [int(n) for n in event[1:].split(",") if n]
            match event[0]:
                case "T":
                    cluster.change(image="B")
                case "U":
                    cluster.change(image="C")
                case "N":
                    cluster.change(replicas=numbers[0])
                case "p":
                    cluster.change(partition=numbers[0])
                case "r":
                    cluster.make_ready(*numbers)
                case "u":
                    cluster.make_ready(*numbers, ready=False)
                case "d":
                    for n in numbers:
                        cluster.remove(n)
        cluster.settle()
        assert f"{cluster.target[0]},{cluster.target[1]},{cluster.counts}" == expected, step
    assert len(cluster.revisions) <= 3
