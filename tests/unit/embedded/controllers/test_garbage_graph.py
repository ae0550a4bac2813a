from hypothesis import given
from hypothesis import strategies as st

from lwskit.embedded.controllers import garbage_graph as graphs
from lwskit.embedded.controllers.garbage_graph import Graph
from lwskit.runtime.kinds import CONFIG_MAP, NODE, POD

SET = CONFIG_MAP


def thing(
    uid: str, *owners: str, block: bool = True, deleting: bool = False, finalizers: tuple = (), ns: str = "d"
) -> dict:
    meta = {"name": f"n-{uid}", "namespace": ns, "uid": uid, "finalizers": list(finalizers)}
    meta["ownerReferences"] = [
        {"apiVersion": "v1", "kind": SET.kind, "name": f"n-{o}", "uid": o, "blockOwnerDeletion": block} for o in owners
    ]
    if deleting:
        meta["deletionTimestamp"] = "x"
    return {"metadata": meta}


def test_a_dependent_whose_owner_is_not_known_is_looked_at():
    graph = Graph()
    assert graph.observe(POD, thing("p", "s")) == ["p"]
    assert graph.observe(SET, thing("s")) == []
    assert graph.observe(POD, thing("q", "s")) == []


def test_dependents_of_a_gone_owner_are_looked_at():
    graph = Graph()
    graph.observe(SET, thing("s"))
    graph.observe(POD, thing("p", "s"))
    graph.observe(POD, thing("q", "s"))
    assert graph.remove("s") == ["p", "q"]
    assert graph.remove("s") == []


def test_foreground_looks_at_dependents_then_at_the_owner_when_one_goes():
    graph = Graph()
    graph.observe(SET, thing("s"))
    graph.observe(POD, thing("p", "s"))
    foreground = thing("s", deleting=True, finalizers=(graphs.FOREGROUND,))
    assert graph.observe(SET, foreground) == ["p", "s"]
    assert [n.identity.uid for n in graph.blocking("s")] == ["p"]
    assert graph.remove("p") == ["s"]
    assert graph.blocking("s") == []


def test_a_dependent_that_stops_blocking_frees_its_owner():
    graph = Graph()
    graph.observe(SET, thing("s"))
    graph.observe(POD, thing("p", "s"))
    assert graph.observe(POD, thing("p", "s", block=False)) == ["s"]
    assert graph.observe(POD, thing("p")) == []
    assert graph.dependents_of("s") == []


def test_orphaning_looks_at_the_owner_only():
    graph = Graph()
    graph.observe(SET, thing("s"))
    graph.observe(POD, thing("p", "s"))
    assert graph.observe(SET, thing("s", deleting=True, finalizers=(graphs.ORPHAN,))) == ["s"]


def test_an_owner_in_another_namespace_is_none():
    graph = Graph()
    graph.observe(SET, thing("s", ns="other"))
    assert graph.observe(POD, thing("p", "s")) == ["p"]
    node = graph.nodes["p"]
    assert graph.owner_of(node, node.owners[0]) is None


def test_a_cluster_wide_owner_is_seen_from_everywhere():
    graph = Graph()
    owner = {"metadata": {"name": "n-s", "uid": "s"}}
    graph.observe(NODE, owner)
    child = thing("p", "s")
    child["metadata"]["ownerReferences"][0]["kind"] = "Node"
    assert graph.observe(POD, child) == []


def test_dropping_a_kind_looks_at_dependents():
    graph = Graph()
    graph.observe(SET, thing("s"))
    graph.observe(POD, thing("p", "s"))
    assert graph.drop_kind(SET) == ["p"]


def test_pieces_of_patches():
    refs = thing("p", "s", "t")["metadata"]["ownerReferences"]
    assert [r["uid"] for r in graphs.without_owners(refs, ["s"])] == ["t"]
    assert [r["blockOwnerDeletion"] for r in graphs.unblocked(refs)] == [False, False]
    assert graphs.without_finalizer(["a", "b"], "a") == ["b"]
    assert graphs.without_finalizer(["a"], "b") is None
    assert graphs.propagation_for(thing("p", finalizers=("orphan",))) == "Orphan"
    assert graphs.propagation_for(thing("p")) == "Background"


_edges = st.lists(st.tuples(st.sampled_from("abcde"), st.sets(st.sampled_from("abcde"), max_size=2), st.booleans()))


@given(_edges)
def test_the_edges_are_those_of_the_objects_that_are_there(steps):
    graph = Graph()
    truth: dict[str, set[str]] = {}
    for uid, owners, there in steps:
        if there:
            graph.observe(SET, thing(uid, *sorted(owners)))
            truth[uid] = owners
        else:
            graph.remove(uid)
            truth.pop(uid, None)
    for owner in "abcde":
        expected = {u for u, owners in truth.items() if owner in owners}
        assert {n.identity.uid for n in graph.dependents_of(owner)} == expected
