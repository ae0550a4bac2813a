"""DisaggregatedSets in files: refusals in the webhook's words, warnings, roles as LeaderWorkerSets (50 §19)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from lwskit.lint.check import Source, lint
from lwskit.lint.findings import Severity
from lwskit.lint.output import summary
from lwskit.runtime.objects import Obj
from tests.dsobjects import ds, external, role, rolling, sub, subroles
from tests.unit.lint.support import NAME, codes, disaggregated, findings, lws, only, report, server

SAMPLES = sorted((Path(__file__).parents[3] / "config" / "samples").glob("*.yaml"))
SCALER = """
apiVersion: disaggregatedset.x-k8s.io/v1
kind: DisaggregatedSetRoleScaler
metadata: {name: chat-decode}
spec: {replicas: 3}
"""


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda file: file.name)
def test_the_samples_are_fine(sample: Path) -> None:
    assert codes(sample.read_text()) == []


def test_the_webhook_refuses_in_its_words() -> None:
    text = disaggregated(external(replicas=1), role("d" * 60), slices=2)
    found = [(f.fault.path, f.fault.message) for f in findings(text) if f.severity is Severity.ERROR]
    assert sorted(path for path, _ in found) == ["spec.roles[1].name", "spec.slices"]
    assert codes(text) == ["LWS003", "LWS003"]
    (slices,) = (message for path, message in found if path == "spec.slices")
    assert slices.startswith("Forbidden: spec.slices > 1 is not supported while any role has scaling.mode: External")


def test_a_refusal_has_its_place() -> None:
    text = disaggregated(role(replicas=2), role("decode", replicas=2, **rolling(partition=1)))
    (found,) = findings(text)
    (line,) = (i for i, each in enumerate(text.splitlines(), 1) if "partition: 1" in each)
    assert (found.place.file, found.place.line, found.name, found.namespace) == (NAME, line, "chat", "default")


def test_the_schema_refuses_in_its_words() -> None:
    eleven = [f.fault for f in findings(disaggregated(*(role(f"r{i}") for i in range(11))))]
    assert ("spec.roles", "Too many: 11: must have at most 10 items") in [(f.path, f.message) for f in eleven]
    twice = [f.fault for f in findings(disaggregated(role(), role()))]
    assert ("spec.roles[1]", 'Duplicate value: {"name":"prefill"}') in [(f.path, f.message) for f in twice]
    paused = only("LWS002", disaggregated(role(replicas=0), role("decode", replicas=1))).fault
    assert paused.path == "spec"
    assert paused.message.startswith("Invalid value: replicas must be zero for all non-External unpartitioned roles")
    assert codes(disaggregated(slices=0)) == ["LWS002"]


def test_warnings_of_the_webhook() -> None:
    found = only("LWS012", disaggregated(external(replicas=3)))
    assert found.fault.path == "spec.roles[0].spec.replicas"
    assert "spec.replicas is ignored" in found.fault.message
    assert only("LWS012", disaggregated(subroles(sub("a"), replicas=2))).fault.path == "spec.roles[0].spec.replicas"
    assert only("LWS012", disaggregated(name="1chat")).fault.path == "metadata.name"


def test_a_field_that_does_not_exist() -> None:
    found = only("LWS010", disaggregated(slicing=2)).fault
    assert (found.path, found.message) == ("spec.slicing", "the DisaggregatedSet has no such field; it is dropped")


# Roles as sets of their own -------------------------------------------------------------------------------------------

AT = "spec.roles[1].spec.leaderWorkerTemplate"


@pytest.mark.parametrize(
    ("decode", "path", "words"),
    [
        (
            role("decode", {"size": 5, "subGroupPolicy": {"subGroupSize": 3}}),
            f"{AT}.subGroupPolicy.subGroupSize",
            "size or size - 1 must be divisible by subGroupSize",
        ),
        (role("decode", {"size": 0}), f"{AT}.size", "size must be equal or greater than 1"),
        (role("decode", metadata={"labels": {"a b": "c"}}), "spec.roles[1].metadata.labels", "name part must consist"),
        (role("decode", scheduling={}), "spec.roles[1].spec.scheduling", "WorkloadAwareScheduling feature gate"),
    ],
)
def test_a_role_whose_sets_are_refused(decode: Obj, path: str, words: str) -> None:
    found = [f.fault for f in findings(disaggregated(role(), decode)) if f.fault.code.code == "LWS701"]
    assert [fault.path for fault in found if words in fault.message] == [path]
    assert all(fault.message.startswith("the LeaderWorkerSets of the role will be refused: ") for fault in found)


def test_a_set_that_no_set_can_be_named_after() -> None:
    assert {f.fault.path for f in findings(disaggregated(name="1chat")) if f.fault.code.code == "LWS701"} == {
        "spec.roles[0].name",
        "spec.roles[1].name",
    }


def test_limits_of_a_role_that_never_rolls_by_itself() -> None:
    """What comes to nothing is refused of a LeaderWorkerSet, but not of one that a set scales (50 §7.2)."""
    idle = rolling(maxSurge=0, maxUnavailable=0)
    assert codes(disaggregated(external(replicas=0, **idle), role("decode"))) == []


def test_what_the_author_of_a_set_would_regret() -> None:
    template = {"workerTemplate": {"spec": {"hostname": "h", "containers": [{"name": "w", "image": "i"}]}}}
    found = only("LWS432", disaggregated(role(), role("decode", template)))
    assert found.fault.path == f"{AT}.workerTemplate.spec.hostname"
    own = {"labels": {"leaderworkerset.sigs.k8s.io/mine": "x"}}
    assert only("LWS403", disaggregated(role(metadata=own))).fault.path == (
        "spec.roles[0].metadata.labels[leaderworkerset.sigs.k8s.io/mine]"
    )


def test_what_rolls_is_the_set_and_not_its_roles() -> None:
    # Of one group none goes down while another role has a group left, and children have no rolling update.
    assert codes(disaggregated(role(replicas=1), role("decode", replicas=2))) == []
    assert codes(disaggregated(role(replicas=2, **rolling(maxSurge=5)))) == []
    assert codes(disaggregated(role(replicas=12, template={"size": 2}), name="c" * 29)) == []
    found = only("LWS201", disaggregated(role(replicas=5, **rolling(maxUnavailable="10%", maxSurge=1))))
    assert found.fault.path == "spec.roles[0].spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable"
    assert codes(disaggregated(role(replicas=2, **rolling(maxUnavailable=2)))) == ["LWS203"]


def test_counts_that_somebody_else_says_are_not_looked_at() -> None:
    pace = rolling(maxUnavailable=1, maxSurge=1)
    assert codes(disaggregated(role(replicas=1, **pace))) == []
    three = rolling(maxUnavailable=3, maxSurge=1)
    assert codes(disaggregated(role(replicas=3, **three))) == ["LWS203"]
    # Only that the count is not read.
    assert codes(disaggregated(external(replicas=3, **three))) == ["LWS012"]
    assert codes(disaggregated(subroles(sub("a", 2), sub("b", 1), replicas=3, **three))) == ["LWS012"]


# Files ----------------------------------------------------------------------------------------------------------------


def test_a_scaler_does_not_belong_in_a_file() -> None:
    (found,) = findings(SCALER)
    assert (found.fault.code.code, found.severity) == ("LWS702", Severity.WARNING)
    assert found.fault.message.startswith("scalers are made by the manager")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"apiVersion": "disaggregatedset.x-k8s.io/v1alpha1"}, "there is no DisaggregatedSet in version"),
        ({"apiVersion": None}, "apiVersion is missing; write apiVersion: disaggregatedset.x-k8s.io/v1"),
        ({"kind": "Disaggregated"}, "there is no kind 'Disaggregated' in disaggregatedset.x-k8s.io; the only one is"),
        ({"kind": None}, "kind is missing; write kind: DisaggregatedSet"),
        ({"apiVersion": "leaderworkerset.x-k8s.io/v1"}, "there is no DisaggregatedSet in version"),
        ({"apiVersion": "apps/v1"}, "there is no DisaggregatedSet in version"),
        ({"apiVersion": "v1"}, "there is no DisaggregatedSet in version"),
    ],
)
def test_a_kind_that_is_not_served(change: Obj, text: str) -> None:
    document = {key: value for key, value in {**ds(), **change}.items() if value is not None}
    found = report(yaml.safe_dump(document))
    (finding,) = found.findings
    assert (finding.fault.code.code, text in finding.fault.message) == ("LWS004", True)
    assert summary(found) == "1 DisaggregatedSet in 1 file: 1 error, 0 warnings"


def test_a_kind_of_that_name_that_is_somebody_elses() -> None:
    found = report(yaml.safe_dump({**ds(), "apiVersion": "example.com/v1"}))
    assert (found.findings, found.disaggregated, found.others) == ([], 0, 1)


def test_kinds_are_counted() -> None:
    both = f"{lws()}---\n{disaggregated()}---\nkind: ConfigMap\napiVersion: v1\n"
    found = report(both)
    assert (found.sets, found.disaggregated, found.others) == (1, 1, 1)
    assert summary(found).startswith(
        "1 LeaderWorkerSet and 1 DisaggregatedSet in 1 file: 0 errors, 0 warnings; 1 other"
    )
    assert summary(report(disaggregated())).startswith("1 DisaggregatedSet in 1 file: ")
    assert summary(report("a: 1")).startswith("0 LeaderWorkerSets in 1 file: ")


def test_sets_of_both_kinds_may_share_a_name() -> None:
    both = f"{lws('chat')}---\n{disaggregated()}"
    assert codes(both) == []
    assert codes(f"{disaggregated()}---\n{disaggregated()}") == ["LWS013"]


def test_a_change_is_checked_as_one() -> None:
    bad = disaggregated(name="d" * 60)
    assert codes(bad, bad) == ["LWS003", "LWS003"]
    found = lint([Source(NAME, disaggregated())], server(), {}, "prod").findings
    assert found == []


# Changes --------------------------------------------------------------------------------------------------------------

OTHER = {"workerTemplate": {"spec": {"containers": [{"name": "w", "image": "other"}]}}}
BEFORE = disaggregated(slices=3)


def changed(*roles: Obj, slices: int = 3, **spec: Any) -> list[tuple[str, str]]:
    """Codes and paths of what is found of a change of a set of two roles of two groups, in three slices."""
    found = findings(disaggregated(*roles, slices=slices, **spec), BEFORE)
    return [(f.fault.code.code, f.fault.path) for f in found]


def test_a_change_of_one_role_rolls_all() -> None:
    text = disaggregated(role(replicas=2), role("decode", OTHER, replicas=2), slices=3)
    fault = only("LWS501", text, BEFORE).fault
    at = "spec.roles[1].spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].image"
    assert fault.path == at
    assert fault.message == (
        "the set gets a new revision, for which every group of every role will be made anew, whether its role has "
        f"changed or not: role decode has changed in {at}"
    )


def test_what_each_role_adds_to_a_new_revision() -> None:
    other = role("prefill", {**OTHER, "size": 2}, replicas=2)
    fault = only("LWS501", disaggregated(other, role("encode"), slices=3), BEFORE).fault
    at = "spec.roles[0].spec.leaderWorkerTemplate"
    assert fault.message.partition("or not: ")[2] == (
        f"role prefill has changed in {at}.workerTemplate.spec.containers[0].image, {at}.size; "
        "role encode is new, spec.roles[1]; role decode is gone"
    )
    assert fault.path == f"{at}.workerTemplate.spec.containers[0].image"


@pytest.mark.parametrize(
    ("roles", "path"),
    [
        ([role(replicas=2), role("decode", replicas=2, groupIdentity="Hash")], "spec.roles[1].spec.groupIdentity"),
        ([role(replicas=2, metadata={"labels": {"a": "b"}}), role("decode", replicas=2)], "spec.roles[0].metadata"),
        ([role(replicas=2), role("decode", replicas=2), role("encode")], "spec.roles[2]"),
        ([role(replicas=2), role("other", replicas=2)], "spec.roles[1]"),
        ([role(replicas=2)], "spec.roles"),
    ],
)
def test_what_makes_a_new_revision(roles: list[Obj], path: str) -> None:
    ((code, found),) = changed(*roles)
    assert (code, found.startswith(path)) == ("LWS501", True)


def test_what_makes_none() -> None:
    assert changed() == []
    assert changed(role("decode", replicas=2), role(replicas=2)) == []
    assert changed(role(replicas=3, **rolling(maxSurge=1)), role("decode", replicas=2)) == []
    assert changed(slices=4, scalingPolicy={"duringRollout": "AdvanceRollout"}) == []
    assert changed(role(replicas=2, groupReplacementPolicy="PostTermination"), role("decode", replicas=2)) == []


def test_groups_that_go() -> None:
    assert changed(role("decode", replicas=2), role(replicas=1)) == [("LWS504", "spec.roles[1].spec.replicas")]
    assert changed(slices=1) == [("LWS504", "spec.slices")]
    fault = only("LWS504", disaggregated(slices=2), BEFORE).fault
    assert fault.message == "1 slice is removed at once with all groups: slices goes from 3 to 2"
    fewer = disaggregated(role(replicas=0), role("decode", replicas=0), slices=3)
    told = [f.fault.message for f in findings(fewer, BEFORE)]
    assert [text.partition(":")[0] for text in told] == [
        f"2 groups are removed of role {name} in each slice" for name in ("prefill", "decode")
    ]


def test_shares_that_go() -> None:
    before = disaggregated(subroles(sub("a", 3), sub("b", 2), sub("c", mode="External"), replicas=1))
    after = subroles(sub("c", mode="External"), sub("b", 1), sub("a", 4), replicas=1)
    (found,) = findings(disaggregated(after), before)
    assert found.fault.path == "spec.roles[0].subRoles[1].replicas"
    assert found.fault.message.startswith("1 group is removed of sub-role b of role prefill in each slice")
    # Who counts has changed, not how many there are.
    assert codes(disaggregated(external(replicas=1)), disaggregated(role(replicas=3))) == []
