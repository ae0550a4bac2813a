"""The demo's parts that need no cluster: what it deletes, what it expects, what it shows."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from lwskit.api import names
from lwskit.cli import demo
from lwskit.cli.demo import View
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.kinds import CORE_EVENT, Kind
from lwskit.runtime.objects import Obj


def pod(group: int, index: int, uid: str = "", **more: Any) -> Obj:
    name = f"x-{group}" if index == 0 else f"x-{group}-{index}"
    labels = {names.GROUP_INDEX_LABEL: str(group), names.WORKER_INDEX_LABEL: str(index)}
    meta = {"name": name, "namespace": "ns", "uid": uid or f"uid-{group}-{index}", "labels": labels, **more}
    ready = {"type": "Ready", "status": "True"}
    return {"metadata": meta, "spec": {"nodeName": "node-0"}, "status": {"phase": "Running", "conditions": [ready]}}


def lws(replicas: int = 2, *, ready: int = 2, generation: int = 1, observed: int = 1, policy: str = "") -> Obj:
    return {
        "metadata": {"name": "x", "namespace": "ns", "generation": generation},
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {"size": 3, "restartPolicy": policy or names.RESTART_RECREATE_GROUP},
        },
        "status": {
            "readyReplicas": ready,
            "observedGeneration": observed,
            "conditions": [{"type": "Available", "status": "True"}],
        },
    }


def view(*pods: Obj, of: Obj | None = None) -> View:
    return View(of or lws(), {p["metadata"]["name"]: p for p in sorted(pods, key=demo._order)})


WHOLE = [pod(group, index) for group in (0, 1) for index in (0, 1, 2)]
RENEWED = [pod(0, index, f"new-{index}") for index in (0, 1, 2)]


def printed(thing: Any) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(thing)
    return console.file.getvalue()  # type: ignore[attr-defined]


def row(text: str, name: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if f" {name} " in line]
    return [cell.strip() for cell in line.strip("│").split("│")]


@pytest.mark.parametrize(
    ("obj", "available"),
    [
        (lws(), True),
        (lws(ready=1), False),
        (lws(generation=2, observed=1), False),
        (lws(replicas=0, ready=0), True),
        ({**lws(), "status": {}}, False),
        ({k: v for k, v in lws().items() if k != "status"}, False),
    ],
)
def test_available_is_what_the_set_says_of_its_present_generation(obj: Obj, available: bool) -> None:
    assert View(obj, {}).available is available


def test_pods_are_shown_by_group_and_place() -> None:
    shuffled = [pod(10, 0), pod(2, 10), pod(2, 0), pod(2, 9), pod(1, 1)]
    assert list(view(*shuffled).pods) == ["x-1-1", "x-2", "x-2-9", "x-2-10", "x-10"]


def test_the_victim_is_the_first_worker() -> None:
    assert demo._victim(view(*WHOLE)) == ("x-0-1", "0")


def test_where_there_are_no_workers_it_is_a_leader() -> None:
    assert demo._victim(view(pod(1, 0), pod(0, 0))) == ("x-0", "0")


def test_by_default_the_whole_group_is_lost_with_it() -> None:
    assert set(demo._lost(view(*WHOLE), "x-0-1", "0")) == {"x-0", "x-0-1", "x-0-2"}
    assert "whole group" in demo._expectation(view(*WHOLE))


def test_under_policy_none_it_is_lost_alone() -> None:
    alone = view(*WHOLE, of=lws(policy=names.RESTART_NONE))
    assert demo._lost(alone, "x-0-1", "0") == {"x-0-1"}
    assert "alone" in demo._expectation(alone)


def test_the_table_says_which_pods_are_new() -> None:
    before, after = view(*WHOLE), view(*WHOLE[3:], *RENEWED)
    text = printed(demo._comparison(before, after, "0"))
    assert row(text, "x-0-1") == ["0", "x-0-1", "uid-0-1", "new-1", "new"]
    assert row(text, "x-1-1") == ["1", "x-1-1", "uid-1-1", "uid-1-1", "kept"]
    demo._check(before, after, {"x-0", "x-0-1", "x-0-2"})


def test_pods_that_are_missing_are_shown_too() -> None:
    text = printed(demo._comparison(view(*WHOLE), view(*WHOLE[1:]), "0"))
    assert row(text, "x-0") == ["0", "x-0", "uid-0-0", "–", "gone"]


def test_a_group_that_was_not_meant_is_an_error() -> None:
    after = view(*RENEWED, pod(1, 0), pod(1, 1, "another"), pod(1, 2))
    with pytest.raises(LwskitError, match="other pods were replaced too, which must not happen: x-1-1"):
        demo._check(view(*WHOLE), after, {"x-0", "x-0-1", "x-0-2"})
    with pytest.raises(LwskitError, match="x-1-2"):
        demo._check(view(*WHOLE), view(*RENEWED, pod(1, 0), pod(1, 1)), {"x-0", "x-0-1", "x-0-2"})


def hashed(group: str, index: int, uid: str, **more: Any) -> Obj:
    """A pod of a group with a key."""
    found = pod(0, index, uid, name=f"x-{group[:8]}-{index}", **more)
    found["metadata"]["labels"][names.GROUP_INDEX_LABEL] = group
    return found


def keyed(*pods: Obj, policy: str = "") -> View:
    """A set in Hash mode."""
    of = lws(policy=policy)
    of["spec"]["groupIdentity"] = names.IDENTITY_HASH
    return view(*pods, of=of)


OLD, KEPT, NEW = "0" * 40, "5" * 40, "e" * 40


def test_in_hash_mode_others_come_for_the_lost() -> None:
    kept = [hashed(KEPT, index, f"kept-{index}") for index in (0, 1)]
    before = keyed(*(hashed(OLD, index, f"old-{index}") for index in (0, 1)), *kept)
    lost = demo._lost(before, *demo._victim(before))
    assert set(lost) == {"x-00000000-0", "x-00000000-1"}
    assert "another key" in demo._expectation(before)
    new = [hashed(NEW, index, f"new-{index}") for index in (0, 1)]
    after = keyed(*new, *kept)
    assert demo._is_replaced(before, after, lost)
    demo._check(before, after, lost)
    starting = hashed(NEW, 1, "new-1")
    starting["status"] = {}
    going = hashed(OLD, 1, "old-1", deletionTimestamp="2026-01-01T00:00:00Z")
    for meanwhile in (before, keyed(*kept), keyed(*kept, new[0], starting), keyed(*kept, *new, going)):
        assert not demo._is_replaced(before, meanwhile, lost)
    text = printed(demo._comparison(before, after, OLD))
    assert "Before and after the deletion in group 00000000…" in text
    assert row(text, "x-00000000-0") == ["00000000…", "x-00000000-0", "old-0", "–", "gone"]
    assert row(text, "x-eeeeeeee-1") == ["eeeeeeee…", "x-eeeeeeee-1", "–", "new-1", "new"]
    assert row(text, "x-55555555-1")[-1] == "kept"


def test_pods_with_ordinals_come_back_under_their_names() -> None:
    lost = {"x-0", "x-0-1", "x-0-2"}
    assert demo._is_replaced(view(*WHOLE), view(*WHOLE[3:], *RENEWED), lost)
    assert not demo._is_replaced(view(*WHOLE), view(*WHOLE), lost)
    others = [pod(2, index) for index in (0, 1, 2)]
    assert not demo._is_replaced(view(*WHOLE), view(*WHOLE[3:], *others), lost)


def test_in_hash_mode_under_policy_none_it_is_replaced_alone() -> None:
    assert "replaced alone" in demo._expectation(keyed(hashed(OLD, 0, "a"), policy=names.RESTART_NONE))


def test_how_to_go_on_names_no_pod_whose_name_will_be_another() -> None:
    def told(of: View) -> str:
        console = Console(file=io.StringIO(), width=120)
        demo._how_to_go_on(console, "f.yaml", of, "x-0-1")
        return console.file.getvalue()  # type: ignore[attr-defined]

    assert "delete pod x-0-1 &&" in told(view(*WHOLE))
    assert "x-0-1" not in told(keyed())
    assert "deployment,statefulset" in told(keyed())


def test_the_state_of_pods() -> None:
    waiting = pod(0, 2)
    waiting["status"] = {}
    going = pod(0, 1, deletionTimestamp="2026-01-01T00:00:00Z")
    text = printed(demo._state(view(pod(0, 0), going, waiting, of=lws(ready=0)), demo.NARROW))
    assert "ns/x: 0 of 2 groups ready (Available)" in text
    assert row(text, "x-0") == ["0", "x-0", "Ready", "node-0", "uid-0-0"]
    assert row(text, "x-0-1")[2] == "Terminating"
    assert row(text, "x-0-2")[2] == "Pending"


class Events:
    """A client that lists these events."""

    def __init__(self, *events: Obj) -> None:
        self.events = list(events)

    async def list(self, kind: Kind, namespace: str) -> Obj:
        assert (kind, namespace) == (CORE_EVENT, "ns")
        return {"items": self.events}


def event(version: int, message: str, type: str = "Warning") -> Obj:
    about = {"kind": "StatefulSet", "name": "x"}
    meta = {"resourceVersion": str(version)}
    return {"metadata": meta, "type": type, "message": message, "involvedObject": about}


async def test_what_holds_a_set_up_is_told() -> None:
    client: Any = Events()
    unschedulable = pod(0, 0)
    unschedulable["status"] = {
        "conditions": [
            {"type": "Initialized", "status": "False"},
            {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"},
        ]
    }
    assert await demo._hindrance(client, view(unschedulable)) == "pod x-0: 0/3 nodes are available"
    refused: Any = Events(event(9, "too long a name"), event(10, "no image"), event(11, "well", "Normal"))
    assert await demo._hindrance(refused, view()) == "StatefulSet x: no image"
    starting = pod(0, 0)
    starting["status"] = {}
    assert await demo._hindrance(client, view(starting, pod(0, 1))) == (
        "1 of 2 pods are not ready; a longer --timeout may be enough"
    )


def test_the_sample_is_part_of_the_package() -> None:
    assert "kind: LeaderWorkerSet" in demo.sample_path().read_text()
