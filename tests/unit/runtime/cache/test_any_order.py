"""In whatever order watch, relist and answers to own writes come: what is told adds up to what is there.

A relist is taken in step by step here, and at each step everything may happen that may happen beside it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from unittest import mock

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lwskit.runtime.cache import handlers, relist
from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.cache.listwatch import Applied, Bookmark, Deleted, Replace, WatchEvent
from lwskit.runtime.cache.settings import Scope
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import RealClock
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Key, Obj, key_of, uid_of, version_of
from lwskit.testing.scripted import Script, pod

NAMES = "abc"


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
    """A handler that keeps books of what it is told, and complains about what cannot be."""

    def __init__(self, informer: Informer) -> None:
        self.informer = informer
        self.told: dict[str, Obj] = {}
        self.gone: set[str] = set()
        self.calls = 0

    def _store_is_not_older(self, obj: Obj) -> None:
        self.calls += 1
        stored = self.informer.store.get(key_of(obj))
        if stored is not None and uid_of(stored) == uid_of(obj):
            assert uid_of(obj) not in self.gone
            assert int(version_of(stored)) >= int(version_of(obj))

    def on_add(self, obj: Obj, initial: bool) -> None:
        uid = uid_of(obj)
        self._store_is_not_older(obj)
        assert uid not in self.told
        assert uid not in self.gone, "what is gone came back"
        self.told[uid] = obj

    def on_update(self, old: Obj, new: Obj) -> None:
        uid = uid_of(new)
        self._store_is_not_older(new)
        assert self.told[uid] is old
        assert int(version_of(new)) > int(version_of(old))
        self.told[uid] = new

    def on_delete(self, obj: Obj, unknown: bool) -> None:
        uid = uid_of(obj)
        self._store_is_not_older(obj)
        assert uid not in self.gone, "a deletion was told twice"
        self.gone.add(uid)
        self.told.pop(uid, None)

    def agree(self) -> None:
        assert self.told == by_uid(self.informer.store)


class Mirror:
    """A view that has what it is told."""

    def __init__(self) -> None:
        self.content: dict[str, Obj] = {}

    def apply(self, old: Obj | None, new: Obj | None) -> None:
        if old is not None:
            assert self.content.pop(uid_of(old)) is old
        if new is not None:
            assert uid_of(new) not in self.content
            self.content[uid_of(new)] = new

    def replace(self, objects: Iterable[Obj]) -> None:
        self.content = by_uid(objects)


def by_uid(objects: Iterable[Obj]) -> dict[str, Obj]:
    return {uid_of(obj): obj for obj in objects}


def index(obj: Obj) -> list[str]:
    return [str(int(version_of(obj)) % 2)]


class Play:
    """A server, an informer of its pods (and of those of another namespace, with `alone` off), and who is told."""

    def __init__(self, alone: bool) -> None:
        self.server = Server()
        scopes = [Scope("t")] if alone else [Scope("t"), Scope("u")]
        self.informer = Informer(POD, Client(Script()), RealClock(), random.Random(1), scopes=scopes)
        self.mirror = Mirror()
        self.first = Books(self.informer)
        self.books = [self.first]
        self.left: list[tuple[Books, int]] = []
        self.informer.add_view(self.mirror)
        self.informer.add_index("odd", index)
        self.informer.add_handler(self.first)
        for scope in range(len(scopes)):
            self.informer.handle(Replace([], "8"), scope)
        assert self.informer.synced.is_set()
        self.alone = alone
        self.position, self.seen, self.others = 0, 8, 8
        self.answers: list[Obj | tuple[Key, str]] = []

    def beside(self, step: tuple) -> None:  # type: ignore[type-arg]
        """What may happen at any time, also while a list is being taken in."""
        match step:
            case ("write", name, delete):
                self.server.write(name, delete)
            case ("own", name, delete, late):
                known = self.server.live.get(name)
                answer = self.server.write(name, delete)
                self.answers.append(answer or (Key("t", name), uid_of(known or {"metadata": {}})))
                if not late:
                    self.hear(len(self.answers) - 1)
            case ("answer", n) if n < len(self.answers):
                self.hear(n)
            case ("join",):
                self.books.append(Books(self.informer))
                self.informer.add_handler(self.books[-1])
            case ("leave", n) if n < len(self.books) - 1:
                books = self.books.pop(n + 1)
                self.informer.remove_handler(books)
                self.left.append((books, books.calls))
            case ("other", listed) if not self.alone:
                self.others += 1
                obj = pod("z", self.others, namespace="u", uid="z")
                self.informer.handle(Replace([obj], str(self.others)) if listed else Applied(obj), 1)
        self.is_sound()

    def hear(self, n: int) -> None:
        match self.answers.pop(n):
            case (key, uid):
                self.informer.forget(key, uid)
            case dict() as obj:
                self.informer.ingest(obj)

    def is_sound(self) -> None:
        store = self.informer.store
        assert self.mirror.content == by_uid(store)
        assert sorted(map(version_of, [*store.by_index("odd", "0"), *store.by_index("odd", "1")])) == sorted(
            map(version_of, store)
        )
        assert {key_of(obj) for obj in store.list("t")} == {key for key in store.all_keys() if key.namespace == "t"}

    def watch(self, count: int) -> None:
        for version, event in self.server.history[self.position : self.position + count]:
            self.informer.handle(event)
            self.position, self.seen = self.position + 1, version
            self.agree()

    def relist(self, ahead: int, meanwhile: dict[int, tuple]) -> None:  # type: ignore[type-arg]
        # A list is never older than what was seen, but need not be the newest.
        self.seen = min(self.seen + ahead, self.server.version)
        event = Replace([*self.server.snapshots[self.seen]], str(self.seen))
        for n, _ in enumerate(self.informer.replacing(event)):
            if n in meanwhile:
                self.beside(meanwhile[n])
            self.is_sound()
        self.position = sum(version <= self.seen for version, _ in self.server.history)

    def agree(self) -> None:
        self.is_sound()
        for books in self.books:
            books.agree()
        for books, calls in self.left:
            assert books.calls == calls


BESIDE = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("own"), st.sampled_from(NAMES), st.booleans(), st.booleans()),
    st.tuples(st.just("answer"), st.integers(0, 1)),
    st.tuples(st.just("join")),
    st.tuples(st.just("leave"), st.integers(0, 1)),
    st.tuples(st.just("other"), st.booleans()),
)
STEPS = st.lists(
    st.one_of(
        BESIDE,
        st.tuples(st.just("watch"), st.integers(1, 3)),
        st.tuples(st.just("relist"), st.integers(0, 3), st.dictionaries(st.integers(0, 14), BESIDE, max_size=8)),
        st.tuples(st.just("bookmark"), st.just(0)),
    ),
    min_size=12,
    max_size=40,
)


WRITE, OWN, GONE = ("write", "a", False), ("own", "a", False, False), ("own", "a", True, False)
OTHER, OWN_OTHER = ("write", "b", False), ("own", "b", False, False)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.booleans(), st.sampled_from([0, 2, 100]))
@example([WRITE, WRITE, ("write", "a", True), ("watch", 1), OWN, GONE], True, 2)
@example([OWN, GONE, ("relist", 0, {})], True, 2)
@example([WRITE, OTHER, ("relist", 3, {3: OWN_OTHER})], True, 2)
@example([("join",), WRITE, OTHER, ("relist", 3, {3: ("leave", 0)})], True, 2)
@example([WRITE, ("watch", 1), WRITE, ("relist", 3, {1: GONE})], True, 100)
def test_what_is_told_adds_up_to_what_is_there(steps: list[tuple], alone: bool, few: int) -> None:  # type: ignore[type-arg]
    with (
        mock.patch.object(relist, "BATCH", 1),
        mock.patch.object(relist, "FEW", few),
        mock.patch.object(handlers, "BATCH", 1),
    ):
        play = Play(alone)
        for step in steps:
            match step:
                case ("watch", count):
                    play.watch(count)
                case ("relist", ahead, meanwhile):
                    play.relist(ahead, meanwhile)
                case ("bookmark", _):
                    play.informer.handle(Bookmark(str(play.seen)))
                case _:
                    play.beside(step)
            play.agree()
        play.watch(len(play.server.history))
        while play.answers:
            play.hear(0)
        play.agree()
    live = {version_of(obj) for obj in play.server.live.values()}
    assert {version_of(obj) for obj in play.informer.store.list("t")} == live
    created = {uid_of(e.obj) for _, e in play.server.history if isinstance(e, Applied)}
    assert play.first.told.keys() - {"z"} <= created - play.first.gone
