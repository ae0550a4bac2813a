"""The planner's vectors of the specification (50 §9) as data: the planner, the choice among several old revisions,
hashes and whole clusters are held against them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lwskit.disaggregated.planner import OldRevision, RolloutState, Step, TargetRevision, Vector

FILE = Path(__file__).with_name("planner-cases.json")


@dataclass(frozen=True, slots=True)
class Rollout:
    """One old revision and a target; `steps` begins with where they stand. All that is asked for is Ready at once."""

    id: str
    title: str
    roles: tuple[str, ...]
    old: Vector
    new: Vector
    max_surge: Vector
    max_unavailable: Vector
    policy: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """One state and its step."""

    id: str
    title: str
    state: RolloutState
    expected: Step | None


@dataclass(frozen=True, slots=True)
class Old:
    """An old revision of a case with several."""

    name: str
    initial: Vector
    spec: Vector
    ready: Vector


@dataclass(frozen=True, slots=True)
class Stand:
    """What all old revisions by name and the target are asked for."""

    old: Mapping[str, Vector]
    target: Vector
    bootstrap_surge: bool


@dataclass(frozen=True, slots=True)
class Several:
    """Several old revisions, the newest first.

    `steps` begins with where they stand, `blocked` says that it ends by waiting. What is asked for is Ready at once,
    but for the revisions `never_ready`. `changes` are the new desired counts, by how many steps were taken before.
    """

    id: str
    title: str
    roles: tuple[str, ...]
    old: tuple[Old, ...]
    target: str
    target_spec: Vector
    desired: Vector
    max_surge: Vector
    max_unavailable: Vector
    policy: str
    never_ready: frozenset[str]
    changes: Mapping[int, Vector]
    steps: tuple[Stand, ...]
    blocked: bool


@dataclass(frozen=True, slots=True)
class Hash:
    """Bytes and the revision they have."""

    algorithm: str
    text: str
    revision: str


@lru_cache(maxsize=1)
def _file() -> dict[str, Any]:
    return json.loads(FILE.read_bytes())


def rollouts() -> list[Rollout]:
    """The cases r01 and on."""
    return [_rollout(case) for case in _file()["rollouts"]]


def decisions() -> list[Decision]:
    """The cases d01 and on."""
    return [_decision(case) for case in _file()["decisions"]]


def several() -> list[Several]:
    """The cases m01 and on."""
    return [_several(case) for case in _file()["multiRevision"]]


def hashes() -> list[Hash]:
    """The vectors of both algorithms."""
    return [Hash(v["algorithm"], v["input"], v["revision"]) for v in _file()["revisionHash"]["vectors"]]


def _rollout(case: dict[str, Any]) -> Rollout:
    return Rollout(
        case["id"],
        case["title"],
        tuple(case["roles"]),
        tuple(case["old"]),
        tuple(case["new"]),
        tuple(case["maxSurge"]),
        tuple(case["maxUnavailable"]),
        case["policy"],
        tuple(map(_step, case["steps"])),
    )


def _step(step: dict[str, Any]) -> Step:
    return Step(tuple(step["old"]), tuple(step["new"]), step["bootstrapSurge"], step["availabilityFallback"])


def _decision(case: dict[str, Any]) -> Decision:
    given = case["input"]
    target = given["target"]
    state = RolloutState(
        _old(given["activeOld"]),
        tuple(map(_old, given["parkedOld"])),
        TargetRevision(
            tuple(target["required"]),
            tuple(target["spec"]),
            tuple(target["rawReady"]),
            tuple(target["committedReady"]),
            tuple(target["desired"]),
            tuple(target["unschedulable"]),
        ),
        tuple(given["availabilityBaseline"]),
        tuple(given["maxSurge"]),
        tuple(given["maxUnavailable"]),
        given["policy"],
    )
    return Decision(case["id"], case["title"], state, case["expected"] and _step(case["expected"]))


def _old(revision: dict[str, Any]) -> OldRevision:
    return OldRevision(
        tuple(revision["required"]),
        # Parked revisions come without: what they were meant to have counts through the given baseline only.
        tuple(revision.get("initial", revision["spec"])),
        tuple(revision["spec"]),
        tuple(revision["rawReady"]),
        tuple(revision["committedReady"]),
    )


def _several(case: dict[str, Any]) -> Several:
    steps = [step for step in case["steps"] if "old" in step]
    return Several(
        case["id"],
        case["title"],
        tuple(case["roles"]),
        tuple(
            Old(old["name"], tuple(old["initialReplicas"]), tuple(old["spec"]), tuple(old["ready"]))
            for old in case["oldRevisionsNewestFirst"]
        ),
        case["targetRevision"],
        tuple(case["targetSpec"]),
        tuple(case["desired"]),
        tuple(case["maxSurge"]),
        tuple(case["maxUnavailable"]),
        case["policy"],
        frozenset(case["neverReady"]),
        {int(before): tuple(desired) for before, desired in case["desiredChangesBeforeStep"].items()},
        tuple(
            Stand({n: tuple(c) for n, c in step["old"].items()}, tuple(step["target"]), step["bootstrapSurge"])
            for step in steps
        ),
        case["steps"][-1] == {"event": "blocked"},
    )
