from lwskit.embedded.controllers import adoption
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Selector

from .objects import pod, stateful_set

WEB = Selector.of({"app": "web"})


def orphan(ordinal: int, **fields) -> dict:
    found = pod(ordinal, **fields)
    del found["metadata"]["ownerReferences"]
    return found


def stranger(ordinal: int) -> dict:
    found = pod(ordinal)
    found["metadata"]["ownerReferences"][0]["uid"] = "another"
    return found


def test_claim():
    lost = pod(2)
    lost["metadata"]["labels"]["app"] = "other"
    claims = adoption.claim(stateful_set(), WEB, [pod(0), orphan(1), lost, stranger(3), orphan(4, deleting=True)])
    names = [[p["metadata"]["name"] for p in group] for group in (claims.held, claims.adopt, claims.release)]
    assert names == [["web-0"], ["web-1"], ["web-2"]]


def test_a_workload_that_is_deleted_neither_adopts_nor_releases():
    deleted = stateful_set()
    deleted["metadata"]["deletionTimestamp"] = "x"
    claims = adoption.claim(deleted, WEB, [orphan(0), pod(1)], lambda p: False)
    assert (claims.held, claims.adopt, claims.release) == ([], [], [])


def test_patches_hold_for_what_was_seen():
    adopted = adoption.adoption(stateful_set(), STATEFUL_SET, POD, orphan(0))
    assert adopted.uid == "pod-0"
    assert adopted.body["metadata"]["resourceVersion"] == "7"
    assert [r["uid"] for r in adopted.body["metadata"]["ownerReferences"]] == ["set-uid"]
    assert adoption.release(stateful_set(), POD, pod(0)).body["metadata"]["ownerReferences"] == []
