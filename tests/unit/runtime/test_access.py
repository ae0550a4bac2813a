"""Who may read the metrics (specification: 70 §10), on virtual time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from lwskit.runtime.access import REMEMBERED, ReviewFilter
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConnectionFailed, Forbidden, InternalError
from lwskit.runtime.kinds import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW, Kind
from lwskit.runtime.objects import Obj

USERS = {"reader": "prometheus", "guest": "nobody"}


class Reviews:
    """Knows two users, of whom one may read; `failures` are raised one after the other."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.asked: list[Obj] = []
        self.failures: list[Exception] = []
        self.slow = 0.0

    def count(self, kind: Kind) -> int:
        return sum(review["kind"] == kind.kind for review in self.asked)

    async def create(self, kind: Kind, obj: Obj) -> Obj:
        self.asked.append(obj)
        await self.clock.sleep(self.slow)
        if self.failures:
            raise self.failures.pop(0)
        spec = obj["spec"]
        if kind == TOKEN_REVIEW:
            name = USERS.get(spec["token"])
            user = {"username": name, "uid": "u1", "groups": ["g"], "extra": {"k": ["v"]}}
            return {**obj, "status": {"authenticated": True, "user": user} if name else {"error": "unknown"}}
        return {**obj, "status": {"allowed": spec["user"] == "prometheus"}}


@pytest.fixture
def reviews(clock: Clock) -> Reviews:
    return Reviews(clock)


@pytest.fixture
def access(reviews: Reviews, clock: Clock) -> ReviewFilter:
    client: Any = reviews
    return ReviewFilter(client, clock, random.Random(1))


@pytest.mark.parametrize(
    ("header", "answer"),
    [
        ("", (401, "Unauthorized")),
        ("Basic cmVhZGVy", (401, "Unauthorized")),
        ("Bearer ", (401, "Unauthorized")),
        ("Bearer wrong", (401, "Unauthorized")),
        ("Bearer guest", (403, "Authorization denied for user nobody")),
        ("bearer reader", None),
    ],
)
async def test_only_those_who_may_pass(access: ReviewFilter, header: str, answer: tuple[int, str] | None) -> None:
    assert await access.check("GET", "/metrics", header) == answer


async def test_access_is_asked_for_by_method_and_path_with_all_that_is_known_of_the_user(
    access: ReviewFilter, reviews: Reviews
) -> None:
    await access.check("GET", "/metrics", "Bearer reader")
    assert [review["spec"] for review in reviews.asked] == [
        {"token": "reader"},
        {
            "user": "prometheus",
            "uid": "u1",
            "groups": ["g"],
            "extra": {"k": ["v"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        },
    ]


async def test_tokens_are_good_for_a_minute_permissions_for_five_and_refusals_for_half_a_minute(
    access: ReviewFilter, reviews: Reviews, clock: Clock
) -> None:
    counts = []
    for token in ("reader", "guest"):
        reviews.asked.clear()
        for _ in range(29):
            await access.check("GET", "/metrics", f"Bearer {token}")
            await clock.sleep(10)
        counts.append((reviews.count(TOKEN_REVIEW), reviews.count(SUBJECT_ACCESS_REVIEW)))
    assert counts == [(5, 1), (5, 10)]


async def test_what_may_pass_is_tried_five_times(access: ReviewFilter, reviews: Reviews, clock: Clock) -> None:
    reviews.failures = [ConnectionFailed("down")] * 4
    assert await access.check("GET", "/metrics", "Bearer reader") is None
    assert reviews.count(TOKEN_REVIEW) == 5
    assert 4.0 <= clock.monotonic() <= 5.0


async def test_when_the_server_cannot_say_nobody_passes_and_nothing_is_remembered(
    access: ReviewFilter, reviews: Reviews, clock: Clock
) -> None:
    reviews.failures = [InternalError("etcd")] * 5
    assert await access.check("GET", "/metrics", "Bearer reader") == (500, "Authentication failed")
    reviews.failures = [Forbidden("no review")]
    assert await access.check("GET", "/metrics", "Bearer reader") == (500, "Authentication failed")
    reviews.slow = 11
    before = clock.monotonic()
    assert await access.check("GET", "/metrics", "Bearer reader") == (500, "Authentication failed")
    assert clock.monotonic() - before == pytest.approx(10)
    reviews.slow = 0
    await access.check("GET", "/other", "Bearer reader")
    reviews.failures = [ConnectionFailed("down")] * 5
    answer = await access.check("GET", "/metrics", "Bearer reader")
    assert answer == (500, "Authorization for user prometheus failed")
    assert await access.check("GET", "/metrics", "Bearer reader") is None


async def test_a_flood_of_wrong_tokens_does_not_fill_the_memory(access: ReviewFilter, reviews: Reviews) -> None:
    for number in range(REMEMBERED + 10):
        await access.check("GET", "/metrics", f"Bearer {number}")
    assert len(access._users._known) == REMEMBERED
    before = reviews.count(TOKEN_REVIEW)
    await access.check("GET", "/metrics", f"Bearer {REMEMBERED}")
    assert reviews.count(TOKEN_REVIEW) == before
