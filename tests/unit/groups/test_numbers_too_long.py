"""Annotations that others have written with more digits than any number of pods or groups has."""

from __future__ import annotations

import pytest

from lwskit.api import names
from lwskit.backends import statefulset
from lwskit.groups import restarts, rollout, spec
from lwskit.groups.model import DecisionError, LeaderState

LONG = "9" * 5000


def test_a_size_of_too_many_digits_says_nothing() -> None:
    metadata = {"name": "a", "annotations": {names.SIZE_ANNOTATION: LONG}}
    assert restarts.size_told({"metadata": metadata}, {"spec": {"leaderWorkerTemplate": {"size": 3}}}) == 3
    workers = {
        "metadata": {"name": "a"},
        "spec": {"replicas": 2, "template": {"metadata": metadata}},
        "status": {"availableReplicas": 2},
    }
    assert statefulset.StatefulSetWorkers().observe(workers).ready


def test_recorded_replicas_of_too_many_digits_are_none() -> None:
    now = LeaderState(
        uid="u",
        replicas=1,
        status_replicas=1,
        partition=0,
        revision="r",
        recorded=LONG,
        generation=1,
        observed_generation=1,
        deleting=False,
    )
    with pytest.raises(rollout.UnrecordedReplicas, match="annotation is '99999999999999999999'; it must be the number"):
        rollout.recorded_replicas(now)


def test_a_percentage_of_too_many_digits_is_none() -> None:
    with pytest.raises(
        DecisionError, match=r"maxSurge is '99999999.*'…; it must be an integer or a percentage"
    ) as refused:
        spec.scaled(f"{LONG}%", 4, up=True, field="maxSurge")
    assert len(str(refused.value)) < 200
    assert spec.scaled("4000000000%", 4, up=True, field="maxSurge") == 160000000
