"""The checklist of handlers and predicates (specification: 70 §17, Handlers and predicates)."""

from __future__ import annotations

from typing import Any

from lwskit.runtime.clock import Clock
from lwskit.runtime.controller import predicate
from lwskit.runtime.controller.handler import (
    Create,
    Delete,
    Event,
    Generic,
    Update,
    for_object,
    for_owner,
    from_map,
    priority_of,
)
from lwskit.runtime.controller.source import Dispatcher
from lwskit.runtime.kinds import NODE, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, Selector
from lwskit.runtime.queue import WorkQueue
from lwskit.runtime.request import Request


def obj(name: str = "p", version: str = "1", owners: list[Obj] | None = None, **meta: Any) -> Obj:
    return {
        "metadata": {
            "namespace": "n",
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": version,
            "ownerReferences": owners or [],
            **meta,
        }
    }


def owner(name: str, api_version: str = "apps/v1", kind: str = "StatefulSet", controller: bool = True) -> Obj:
    ref: Obj = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}"}
    return ref | {"controller": True} if controller else ref


def test_an_object_that_changes_its_controller_asks_for_both_owners_once() -> None:
    """70 §17 Handlers and predicates 1: the former and the new controlling owner, each once."""
    event = Update(obj(owners=[owner("a"), owner("b", controller=False)]), obj(owners=[owner("b")]))
    assert list(for_owner(STATEFUL_SET)(event)) == [Request("n", "a", "StatefulSet"), Request("n", "b", "StatefulSet")]
    same = Update(obj(owners=[owner("a")]), obj(owners=[owner("a")], version="2"))
    assert list(for_owner(STATEFUL_SET)(same)) == [Request("n", "a", "StatefulSet")]


def test_of_two_references_only_the_controlling_one_counts() -> None:
    """70 §17 Handlers and predicates 2: of two owners the controlling one."""
    event = Create(obj(owners=[owner("a"), owner("b", controller=False)]))
    assert [r.name for r in for_owner(STATEFUL_SET)(event)] == ["a"]
    assert [r.name for r in for_owner(STATEFUL_SET, only_controller=False)(event)] == ["a", "b"]


def test_an_owner_reference_of_another_version_of_the_group_matches() -> None:
    """70 §17 Handlers and predicates 3: group and kind decide, the version does not."""
    assert [r.name for r in for_owner(STATEFUL_SET)(Create(obj(owners=[owner("a", "apps/v1beta2")])))] == ["a"]
    assert list(for_owner(STATEFUL_SET)(Create(obj(owners=[owner("a", "other/v1")])))) == []
    assert list(for_owner(STATEFUL_SET)(Create(obj(owners=[owner("a", kind="ReplicaSet")])))) == []


def test_an_unreadable_owner_reference_drops_the_rest() -> None:
    event = Create(obj(owners=[owner("a"), owner("x", "a/b/c", controller=False), owner("b")]))
    assert [r.name for r in for_owner(STATEFUL_SET)(event)] == ["a"]


def test_a_request_for_a_cluster_scoped_owner_has_no_namespace() -> None:
    """70 §17 Handlers and predicates 4: an owner without a namespace is asked for without one."""
    event = Create(obj(owners=[owner("node-1", "v1", "Node")]))
    assert list(for_owner(NODE)(event)) == [Request("", "node-1", "Node")]


def test_what_a_map_function_returns_twice_is_asked_for_once() -> None:
    """70 §17 Handlers and predicates 5: one event asks for each thing once."""
    handler = from_map(lambda o: [Request("n", "x"), Request("n", o["metadata"]["name"]), Request("n", "x")])
    assert [r.name for r in handler(Update(obj("old"), obj("new")))] == ["x", "old", "new"]
    assert [r.name for r in handler(Generic(obj("g")))] == ["x", "g"]


def test_a_typed_deletion_never_equals_a_request_for_a_new_object_of_the_name() -> None:
    handler = for_object(POD, typed_deletions=True)
    (gone,) = handler(Delete(obj()))
    (alive,) = handler(Create(obj()))
    assert gone == Request("n", "p", "Pod", "uid-p", deleted=True)
    assert gone.payload == obj()
    assert gone != alive
    assert list(for_object(POD)(Delete(obj()))) == [Request("n", "p", "Pod")]


def test_initial_list_and_equal_versions_have_low_priority_and_changes_none() -> None:
    """70 §17 Handlers and predicates 6: the first list and repetitions come after real changes."""
    assert priority_of(Create(obj(), initial=True)) == -100
    assert priority_of(Update(obj(), obj())) == -100
    events: list[Event] = [Create(obj()), Update(obj(), obj(version="2")), Delete(obj()), Generic(obj())]
    assert [priority_of(e) for e in events] == [0, 0, 0, 0]


def test_generation_changed_drops_status_updates_and_lets_create_and_delete_pass() -> None:
    """70 §17 Handlers and predicates 7: an update of the status alone is dropped, coming and going is not."""
    changed = predicate.generation_changed
    assert not changed(Update(obj(generation=1), obj(generation=1, version="2")))
    assert changed(Update(obj(generation=1), obj(generation=2)))
    assert changed(Create(obj()))
    assert changed(Delete(obj()))


def test_resource_version_changed_drops_a_resync() -> None:
    """70 §17 Handlers and predicates 8: a repetition of the same version is dropped."""
    assert not predicate.resource_version_changed(Update(obj(), obj()))
    assert predicate.resource_version_changed(Update(obj(), obj(version="2")))
    assert predicate.resource_version_changed(Create(obj()))


def test_label_and_annotation_changes_take_empty_and_absent_for_equal() -> None:
    assert not predicate.labels_changed(Update(obj(), obj(labels={})))
    assert predicate.labels_changed(Update(obj(), obj(labels={"a": "b"})))
    assert not predicate.annotations_changed(Update(obj(annotations=None), obj(annotations={})))
    assert predicate.annotations_changed(Update(obj(), obj(annotations={"a": "b"})))


def test_a_selector_looks_at_the_new_object_only() -> None:
    """70 §17 Handlers and predicates 9: an object that loses its label is dropped."""
    keeps = predicate.matches(Selector.of({"a": "b"}))
    assert not keeps(Update(obj(labels={"a": "b"}), obj()))
    assert keeps(Update(obj(), obj(labels={"a": "b"})))
    assert keeps(Delete(obj(labels={"a": "b"})))


def test_a_predicate_that_says_no_ends_the_asking() -> None:
    """70 §17 Handlers and predicates 10: after a no nobody else is asked."""
    asked: list[str] = []

    def b(event: Event) -> bool:
        asked.append("b")
        return True

    def no(event: Event) -> bool:
        return False

    assert not predicate.all_of(no, b)(Create(obj()))
    assert asked == []
    assert predicate.any_of(no, b)(Create(obj()))
    assert not predicate.negate(b)(Create(obj()))


async def test_a_dispatcher_asks_predicates_in_order_and_tells_an_unknown_last_state(clock: Clock) -> None:
    """70 §17 Handlers and predicates 11: a predicate sees a missed deletion's object, marked as maybe stale."""
    seen: list[Event] = []

    def remember(event: Event) -> bool:
        seen.append(event)
        return not isinstance(event, Delete)

    queue: WorkQueue[Request] = WorkQueue(clock)
    dispatcher = Dispatcher(queue, for_object(POD), [remember])
    dispatcher.on_delete(obj(), True)
    assert seen == [Delete(obj(), unknown=True)]
    assert len(queue) == 0
    dispatcher.on_add(obj(), True)
    assert queue.depth == {-100: 1}
    dispatcher.on_update(obj(), obj(version="2"))
    assert queue.depth == {0: 1}
