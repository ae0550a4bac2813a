"""A part of what `python -m tests.fuzz.reviews` asks the webhooks, with its checks, and large objects."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lwskit.api import names
from tests.bench.rounds import collector
from tests.fuzz import generate, hostile, reviews
from tests.fuzz.generate import Asked
from tests.unit.admission.pods import admit, leader
from tests.unit.admission.reviews import ask

ANSWERERS = reviews.answerers(1)
LARGE = {name: case for name, case in hostile.cases(400_000).items() if not name.endswith("changed")}
"""A quarter of the size, so that the machine need not be idle, with the same bound, which what is quadratic misses."""


@pytest.mark.parametrize("first", range(0, 1500, 150))
def test_generated_reviews_are_answered(first: int) -> None:
    tally = reviews.Tally()
    for number in range(first, first + 150):
        faults = reviews.ask(tally, ANSWERERS, number, str(number), generate.review(2, number))
        assert not faults, f"python -m tests.fuzz.reviews --seed 2 --only {number}"
    assert {"allowed", "patched", "denied", "bad request"} <= {*tally.outcomes}


def test_a_number_of_a_seed_is_one_review() -> None:
    first = [generate.review(3, number) for number in range(300)]
    assert [generate.review(3, number) for number in range(299, -1, -1)] == first[::-1]
    assert len({generate.review(3, number).body for number in range(50)}) == 50


@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE)
def test_large_objects_are_answered_in_time(make: Callable[[], Asked]) -> None:
    tally = reviews.Tally()
    with collector():
        assert reviews.ask(tally, ANSWERERS, 0, "", make()) == []


def test_what_is_wrong_is_seen() -> None:
    asked = Asked("/x", b'{"request":{"uid":"u","operation":"CREATE","object":{}}}')

    def faults(answer: object) -> list[str]:
        handlers = [{"/x": lambda request: answer}]
        return reviews.ask(reviews.Tally(), handlers, 0, "", asked)  # type: ignore[arg-type]

    assert faults({"allowed": True}) == []
    assert faults({"allowed": False, "status": {"code": 403}}) == ["a no without a reason"]
    assert faults({"allowed": False})[0].startswith("allowed is False with code 200")
    assert faults(None) == ["exception"]
    grown = {"allowed": True, "patch": [{"op": "add", "path": "/a", "value": 1}]}
    assert faults(grown)[0].startswith("patched and asked again, it answers")
    assert faults({"allowed": True, "warnings": ["x" * 3_200_000]})[0].startswith("an answer of")


def test_more_containers_than_a_pod_can_have_are_refused() -> None:
    pod = leader(containers=[{"name": f"c{i}"} for i in range(5001)])
    answer = ask(names.MUTATE_POD_PATH, pod)
    assert (answer.code, answer.message) == (
        400,
        "this is no pod: spec.containers must be a list of at most 5000 containers",
    )
    pod["spec"]["containers"].pop()
    assert len(admit(pod)["spec"]["containers"]) == 5000
