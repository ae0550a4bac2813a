"""What the scenarios of rollouts share: how the revisions of a set stand, one write after the other, and pods of some
revisions that become ready while others do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson

from lwskit.api import disaggregated_names as names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.errors import Conflict, NotFound
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, generation_of, is_deleting, is_true, labels_of
from lwskit.testing.interceptors import Send, matching
from lwskit.testing.observer import Observer
from tests.scenarios.beside import beside
from tests.scenarios.disaggregated.support import DisaggregatedSets, replicas_of, revision_of
from tests.scenarios.world import image_of

Stand = dict[str, dict[str, int]]
"""The groups that children ask for, by revision and role."""


@asynccontextmanager
async def ready_but(sets: DisaggregatedSets, *revisions: str, ending: str = "", image: str = "") -> AsyncIterator[None]:
    """Inside the block all pods become ready soon after they appear, but those of these revisions or of that image, and
    those whose name has that ending."""

    async def play() -> None:
        while True:
            for pod in await sets.cluster.list(POD):
                name = pod["metadata"]["name"]
                is_spared = labels_of(pod).get(names.REVISION_LABEL) in revisions or image_of(pod) == image
                is_spared = is_spared or (ending and name.endswith(ending))
                if is_spared or is_deleting(pod) or is_true(pod, "Ready") or pod["spec"].get("schedulingGates"):
                    continue
                try:
                    await sets.cluster.kubelet.ready(name)
                except (NotFound, Conflict):
                    continue
            await asyncio.sleep(0.1)

    async with beside(play(), "partial-kubelet"):
        yield


def whole_at_once(sets: DisaggregatedSets, size: int, is_step: Callable[[Stand], bool]) -> None:
    """From now on the manager knows of the groups of all children at once, when all that are asked for are ready
    and no others are left.

    No child has observed what was asked of it before that, and what is ready of such a child is not decided on: so the
    steps of a rollout do not depend on which role is faster. `size` is the number of pods of each group; `is_step`
    tells whether the manager is through with a step, or between two of its writes.
    """
    cluster, told = sets.cluster, dict[str, int]()

    async def meet(request: HttpRequest, send: Send) -> HttpResponse:
        said = orjson.loads(request.body or b"{}")
        name = said["metadata"]["name"]
        told[name] = said["status"].get("readyReplicas", 0)

        async def ready() -> dict[str, Obj]:
            children = await sets.children()
            if name not in children or generation_of(children[name]) != generation_of(said):
                return {}
            assert is_step(_standing(children.values()))
            pods = [pod for pod in await cluster.list(POD) if not is_deleting(pod)]
            assert len(pods) == size * sum(map(replicas_of, children.values()))
            assert all(is_true(pod, "Ready") for pod in pods)
            return children

        children: dict[str, Obj] = await cluster.eventually(ready)
        for other, child in children.items():
            seen = (child.get("status") or {}).get("readyReplicas", 0)
            # Neither fewer nor those that go: a status that tells of one less in the middle of a step ends it.
            if told.get(other, seen) != replicas_of(child):
                raise Conflict(f"the manager has not seen all ready groups of {other}")
        return await send(request)

    (connection,) = cluster.interceptors
    connection.around(matching("PUT", r"/leaderworkersets/[^/]+/status$"), meet)


@dataclass(slots=True)
class Story:
    """All that the children of one slice asked for, write by write; those that are being deleted are gone."""

    stands: list[Stand] = field(default_factory=list)

    @classmethod
    def of(cls, observer: Observer, before: Stand, slice: int = 0) -> Story:
        """What an observer of LeaderWorkerSets has seen since the revisions stood as `before`.

        Fails where a child begins to be deleted while another one of its revision still asks for groups.
        """
        story, now = cls([_copied(before)]), _copied(before)
        for change in observer.changes:
            if labels_of(change.obj).get(names.SLICE_LABEL) != str(slice):
                continue
            revision, role = revision_of(change.obj), labels_of(change.obj)[names.ROLE_LABEL]
            if change.type == "DELETED" or is_deleting(change.obj):
                assert not any(now.get(revision, {}).values()), f"{revision} is deleted at {now[revision]}"
                now.get(revision, {}).pop(role, None)
                if not now.get(revision, True):
                    del now[revision]
            else:
                now.setdefault(revision, {})[role] = replicas_of(change.obj)
            if now != story.stands[-1]:
                story.stands.append(_copied(now))
        return story

    def rows(self, revision: str, roles: Sequence[str]) -> list[tuple[int, ...]]:
        """How one revision stood, role by role, without repetitions in a row; without a child there are no groups."""
        found: list[tuple[int, ...]] = []
        for stand in self.stands:
            row = tuple(stand.get(revision, {}).get(role, 0) for role in roles)
            if not found or found[-1] != row:
                found.append(row)
        return found

    def follows(self, steps: Sequence[Sequence[int]], columns: Sequence[tuple[str, str]]) -> None:
        """Fails unless the children went exactly through these steps.

        A step is a number for each column, a revision and a role. Within a step what shrinks comes first.
        """
        at = 0
        for stand in self.stands:
            row = tuple(stand.get(revision, {}).get(role, 0) for revision, role in columns)
            if row == tuple(steps[at]):
                continue
            assert at + 1 < len(steps), f"{row} comes after the last step"
            if row == tuple(steps[at + 1]):
                at += 1
                continue
            before, after = steps[at], steps[at + 1]
            assert all(n in (b, a) for n, b, a in zip(row, before, after, strict=True)), f"{row}: {before} → {after}"
            drained = all(n == a for n, b, a in zip(row, before, after, strict=True) if a < b)
            grown = any(n == a != b for n, b, a in zip(row, before, after, strict=True) if a > b)
            assert drained or not grown, f"{row}: something grows before all has shrunk in {before} → {after}"
        assert at == len(steps) - 1, f"the story ends at {steps[at]}, not {steps[-1]}"


def _copied(stand: Stand) -> Stand:
    return {revision: dict(counts) for revision, counts in stand.items()}


async def stand_of(sets: DisaggregatedSets, slice: int = 0) -> Stand:
    """How the children of a slice that stay stand now."""
    return _standing((await sets.children()).values(), slice)


def _standing(children: Iterable[Obj], slice: int = 0) -> Stand:
    found: Stand = {}
    for child in children:
        labels = labels_of(child)
        if labels[names.SLICE_LABEL] == str(slice):
            found.setdefault(revision_of(child), {})[labels[names.ROLE_LABEL]] = replicas_of(child)
    return found


async def newest(sets: DisaggregatedSets, *known: str) -> str:
    """Wait for the one revision that is none of those known."""

    async def found() -> str:
        unknown = await sets.revisions() - {*known}
        assert len(unknown) == 1
        return unknown.pop()

    return await sets.cluster.eventually(found)


async def stands(sets: DisaggregatedSets, revision: str, slice: int = 0, **counts: int) -> None:
    """Wait until the children of a revision ask for these groups, by role."""

    async def check() -> None:
        assert (await stand_of(sets, slice)).get(revision) == counts

    await sets.cluster.eventually(check)


async def finished(sets: DisaggregatedSets, revision: str = "") -> None:
    """Wait until children of one revision only are left, of this one if it is told; others may be about to go."""

    async def check() -> None:
        found = await sets.revisions()
        assert len(found) == 1
        assert revision in ("", *found)

    await sets.cluster.eventually(check)


def children_of(observer: Observer, revision: str) -> Iterator[Obj]:
    """The children of a revision each time that one of them changed."""
    for change in observer.changes:
        if change.obj["kind"] == LEADER_WORKER_SET.kind and revision_of(change.obj) == revision:
            yield change.obj
