"""In whatever order watch, relist and answers to own writes come: what is told adds up to what is there."""

from __future__ import annotations

import random
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.cache.listwatch import Applied, Bookmark, Deleted, Replace, WatchEvent
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import RealClock
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, version_of
from lwskit.testing.scripted import Script, pod

NAMES = "ab"


class Server:
    """Objects with versions, and the history a watch would bring."""

    def __init__(self) -> None:
        self.version = 8
        self.live: dict[str, Obj] = {}
        self.history: list[tuple[int, WatchEvent]] = []
        self.snapshots: dict[int, list[Obj]] = {8: []}

    def write(self, name: str, delete: bool) -> Obj | None:
        """Create, update or delete; returns the answer a writer gets, if that is an object."""
        self.version += 1
        known = self.live.get(name)
        if delete and known is not None:
            del self.live[name]
            self._log(Deleted(pod(name, self.version, uid=known["metadata"]["uid"])))
            return None
        uid = known["metadata"]["uid"] if known else f"{name}{self.version}"
        self.live[name] = pod(name, self.version, uid=uid)
        self._log(Applied(self.live[name]))
        return self.live[name]

    def _log(self, event: WatchEvent) -> None:
        self.history.append((self.version, event))
        self.snapshots[self.version] = [*self.live.values()]


class Books:
    """A handler and a view that keep books of what they are told, and complain about what cannot be."""

    def __init__(self, informer: Informer) -> None:
        self.informer = informer
        self.told: dict[str, Obj] = {}
        self.derived: dict[str, Obj] = {}
        self.gone: set[str] = set()

    def on_add(self, obj: Obj, initial: bool) -> None:
        uid = obj["metadata"]["uid"]
        assert uid not in self.told
        assert uid not in self.gone, "what is gone came back"
        self.told[uid] = obj

    def on_update(self, old: Obj, new: Obj) -> None:
        uid = new["metadata"]["uid"]
        assert self.told[uid] is old
        assert int(version_of(new)) > int(version_of(old))
        self.told[uid] = new

    def on_delete(self, obj: Obj, unknown: bool) -> None:
        uid = obj["metadata"]["uid"]
        assert uid not in self.gone, "a deletion was told twice"
        self.gone.add(uid)
        self.told.pop(uid, None)

    def apply(self, old: Obj | None, new: Obj | None) -> None:
        if old is not None:
            assert self.derived.pop(old["metadata"]["uid"]) is old
        if new is not None:
            self.derived[new["metadata"]["uid"]] = new

    def replace(self, objects: Iterable[Obj]) -> None:
        self.derived = {o["metadata"]["uid"]: o for o in objects}

    def agree(self) -> None:
        stored = {o["metadata"]["uid"]: o for o in self.informer.store}
        assert self.told == stored
        assert self.derived == stored


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(NAMES), st.booleans()),
        st.tuples(st.just("own"), st.sampled_from(NAMES), st.booleans()),
        st.tuples(st.just("watch"), st.integers(1, 3)),
        st.tuples(st.just("relist"), st.integers(0, 3)),
        st.tuples(st.just("bookmark"), st.just(0)),
        st.tuples(st.just("answer"), st.integers(0, 1)),
    ),
    min_size=12,
    max_size=40,
)


@settings(max_examples=120, deadline=None)
@given(STEPS)
def test_what_is_told_adds_up_to_what_is_there(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    server = Server()
    informer = Informer(POD, Client(Script()), RealClock(), random.Random(1))
    books = Books(informer)
    informer.add_view(books)
    informer.add_handler(books)
    informer.handle(Replace([], "8"))
    position, seen, answers = 0, 8, list[Obj]()

    def watch(count: int) -> None:
        nonlocal position, seen
        for version, event in server.history[position : position + count]:
            informer.handle(event)
            position, seen = position + 1, version
            books.agree()

    for step in steps:
        match step:
            case ("write", name, delete):
                server.write(name, delete)
            case ("own", name, late):
                answer = server.write(name, False)
                assert answer is not None
                if late:
                    answers.append(answer)
                else:
                    informer.ingest(answer)
            case ("watch", count):
                watch(count)
            case ("relist", ahead):
                # A list is never older than what was seen, but need not be the newest.
                seen = min(seen + ahead, server.version)
                informer.handle(Replace([*server.snapshots[seen]], str(seen)))
                position = sum(version <= seen for version, _ in server.history)
            case ("bookmark", _):
                informer.handle(Bookmark(str(seen)))
            case ("answer", n) if n < len(answers):
                informer.ingest(answers.pop(n))
        books.agree()
    watch(len(server.history))
    for answer in answers:
        informer.ingest(answer)
    books.agree()
    assert {version_of(o) for o in informer.store} == {version_of(o) for o in server.live.values()}
    created = {e.obj["metadata"]["uid"] for _, e in server.history if isinstance(e, Applied)}
    assert books.told.keys() <= created - books.gone
