from lwskit.embedded.controllers.namespace_content import Content
from lwskit.runtime.kinds import CONFIG_MAP, STATEFUL_SET


def by_type(conditions: list[dict]) -> dict[str, dict]:
    return {c["type"]: c for c in conditions}


def test_all_is_well():
    found = by_type(Content().conditions([], "now"))
    assert {c["status"] for c in found.values()} == {"False"}
    assert found["NamespaceContentRemaining"]["reason"] == "ContentRemoved"
    assert len(found) == 5


def test_what_remains_is_named():
    content = Content()
    content.count(CONFIG_MAP, [{"metadata": {"finalizers": ["a/b"]}}, {"metadata": {}}])
    content.count(STATEFUL_SET, [{"metadata": {}}])
    found = by_type(content.conditions([], "now"))
    assert found["NamespaceContentRemaining"]["message"] == (
        "Some resources are remaining: configmaps. has 2 resource instances, statefulsets.apps has 1 resource instances"
    )
    assert found["NamespaceFinalizersRemaining"]["message"].endswith("a/b in 1 resource instances")


def test_failures_are_told():
    content = Content(failures=["no"])
    condition = by_type(content.conditions([], "now"))["NamespaceDeletionContentFailure"]
    assert (condition["status"], condition["message"]) == (
        "True",
        "Failed to delete all resource types, 1 remaining: no",
    )


def test_the_time_stays_while_the_status_does():
    first = Content().conditions([{"type": "Other"}], "then")
    content = Content()
    content.count(CONFIG_MAP, [{"metadata": {}}])
    second = by_type(content.conditions(first, "now"))
    assert second["NamespaceContentRemaining"]["lastTransitionTime"] == "now"
    assert second["NamespaceDeletionContentFailure"]["lastTransitionTime"] == "then"
    assert "Other" in second
