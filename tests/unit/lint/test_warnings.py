"""Each warning where it belongs, and not where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.api import names
from lwskit.lint.check import Source, lint
from lwskit.lint.findings import CODES, Severity
from tests.unit.lint.support import NAME, codes, gated, lws, of_kind, only

P = names.PREFIX
ROLLING = "spec.rolloutStrategy.rollingUpdateConfiguration"
TEMPLATE = "spec.leaderWorkerTemplate"
WORKER = f"{TEMPLATE}.workerTemplate"
LEADER = f"{TEMPLATE}.leaderTemplate"
RACK = {f"{P}exclusive-topology": "rack"}
TPU = {"resources": {"limits": {"google.com/tpu": 4}}}
SUB_2 = {"subGroupSize": 2}
GATED: dict[str, Any] = {"schedulingGates": [{"name": f"{P}group-replacement"}]}
OTHER_GATE: dict[str, Any] = {"schedulingGates": [{"name": "example.com/gate"}]}
READY: dict[str, Any] = {"readinessGates": [{"conditionType": f"{P}group-ready"}]}
TWO_WITH_TPUS: list[dict[str, Any]] = [{"name": name, "image": "img:v1", **TPU} for name in "ab"]


def claim(**more: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **more}
    return {"metadata": {"name": "data"}, "spec": spec}


def env(*entries: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"env": [{"name": name, "value": value} for name, value in entries], **more}


def terms(key: str) -> dict[str, Any]:
    one = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key, "labelSelector": {}}]}
    return {"affinity": {"podAffinity": one, "podAntiAffinity": one}}


CASES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    # code, path, what makes it be found, what is so near that it must not
    ("LWS010", f"{TEMPLATE}.sise", {"template": {"sise": 3}}, {"template": {"size": 3}}),
    (
        "LWS010",
        f"{WORKER}.spec.containers[0].imagePullPolice",
        {"container": {"imagePullPolice": "Always"}},
        {"container": {"imagePullPolicy": "Always"}},
    ),
    ("LWS012", "metadata.finalizers", {"meta": {"finalizers": ["mine"]}}, {"meta": {"finalizers": ["a.b/mine"]}}),
    ("LWS101", "metadata.name", {"name": "a" * 53}, {"name": "a" * 50}),
    (
        "LWS101",
        "metadata.name",
        {"name": "a" * 53, "template": {"size": 1}},
        {"name": "a" * 52, "template": {"size": 1}},
    ),
    ("LWS102", "metadata.name", {"name": "a" * 51}, {"name": "a" * 50}),
    ("LWS102", "metadata.name", {"name": "a" * 50, "replicas": 11}, {"name": "a" * 50, "replicas": 10}),
    (
        "LWS102",
        "metadata.name",
        {"name": "a" * 50, "replicas": 10, "rolling": {"maxSurge": 1}},
        {"name": "a" * 50, "replicas": 9, "rolling": {"maxSurge": 1}},
    ),
    ("LWS102", "metadata.name", {"name": "a" * 52}, {"name": "a" * 52, "template": {"size": 1}}),
    (
        "LWS103",
        f"{WORKER}.spec.setHostnameAsFQDN",
        {"name": "a" * 20, "worker": {"setHostnameAsFQDN": True}},
        {"name": "a", "worker": {"setHostnameAsFQDN": True}},
    ),
    (
        "LWS201",
        f"{ROLLING}.maxUnavailable",
        {"replicas": 5, "rolling": {"maxUnavailable": "10%", "maxSurge": 1}},
        {"replicas": 10, "rolling": {"maxUnavailable": "10%", "maxSurge": 1}},
    ),
    (
        "LWS201",
        f"{ROLLING}.maxUnavailable",
        {"rolling": {"maxUnavailable": "49%", "maxSurge": 1}},
        {"rolling": {"maxUnavailable": "0%", "maxSurge": 1}},
    ),
    ("LWS202", "spec.replicas", {"replicas": 1}, {"replicas": 1, "rolling": {"maxUnavailable": 0, "maxSurge": 1}}),
    ("LWS202", "spec.replicas", {"replicas": 1}, {"replicas": 1, "rolling": {"maxUnavailable": 1, "maxSurge": 1}}),
    ("LWS203", f"{ROLLING}.maxUnavailable", {"rolling": {"maxUnavailable": 2}}, {"rolling": {"maxUnavailable": 1}}),
    (
        "LWS203",
        f"{ROLLING}.maxUnavailable",
        {"rolling": {"maxUnavailable": "100%"}},
        {"rolling": {"maxUnavailable": "50%", "maxSurge": 1}},
    ),
    ("LWS204", f"{ROLLING}.partition", {"rolling": {"partition": 2}}, {"rolling": {"partition": 1}}),
    (
        "LWS205",
        f"{ROLLING}.partition",
        {"rolling": {"partition": 1, "maxSurge": 1}},
        {"rolling": {"partition": 0, "maxSurge": 1}},
    ),
    ("LWS206", f"{ROLLING}.maxSurge", {"rolling": {"maxSurge": 3}}, {"rolling": {"maxSurge": 2}}),
    (
        "LWS207",
        f"{ROLLING}.maxUnavailable",
        {"replicas": 4, "rolling": {"maxUnavailable": "50%"}},
        {"replicas": 4, "rolling": {"maxUnavailable": "100%"}},
    ),
    (
        "LWS207",
        f"{ROLLING}.maxUnavailable",
        {"replicas": 0, "rolling": {"maxUnavailable": 0, "maxSurge": 0}},
        {"replicas": 0, "rolling": {"maxUnavailable": 0, "maxSurge": 1}},
    ),
    (
        "LWS301",
        f"{TEMPLATE}.subGroupPolicy",
        {"template": {"size": 1, "subGroupPolicy": {"subGroupSize": 1}}},
        {"template": {"size": 2, "subGroupPolicy": {"subGroupSize": 1}}},
    ),
    (
        "LWS302",
        "spec.startupPolicy",
        {"template": {"size": 1}, "startupPolicy": "LeaderReady"},
        {"startupPolicy": "LeaderReady"},
    ),
    (
        "LWS303",
        f"{TEMPLATE}.subGroupPolicy.subGroupSize",
        {"template": {"size": 7, "subGroupPolicy": {"subGroupSize": 3}}},
        {"template": {"size": 6, "subGroupPolicy": {"subGroupSize": 3}}},
    ),
    (
        "LWS303",
        f"{TEMPLATE}.subGroupPolicy.subGroupSize",
        {"template": {"size": 3, "subGroupPolicy": SUB_2}},
        {"template": {"size": 3, "subGroupPolicy": {**SUB_2, "subGroupPolicyType": "LeaderExcluded"}}},
    ),
    (
        "LWS311",
        f"{TEMPLATE}.restartPolicy",
        {"template": {"restartPolicy": "Default"}},
        {"template": {"restartPolicy": "None"}},
    ),
    (
        "LWS312",
        f"metadata.annotations[{P}experimental-recreate-group-after-start]",
        {"meta": {"annotations": {f"{P}experimental-recreate-group-after-start": "true"}}},
        {"template": {"restartPolicy": "RecreateGroupAfterStart"}},
    ),
    (
        "LWS313",
        f"{TEMPLATE}.maxGroupRestarts",
        {"template": {"maxGroupRestarts": 0}},
        {"template": {"maxGroupRestarts": 1}},
    ),
    (
        "LWS401",
        f"metadata.labels[{P}name]",
        {"meta": {"labels": {f"{P}name": "x"}}},
        {"meta": {"labels": {"app": "x"}}},
    ),
    (
        "LWS401",
        f"{WORKER}.metadata.labels[{P}worker-index]",
        {"worker_meta": {"labels": {f"{P}worker-index": "7"}}},
        {"worker_meta": {"labels": {"worker-index": "7"}}},
    ),
    (
        "LWS401",
        f"{WORKER}.metadata.labels[{P}subgroup-key]",
        {"worker_meta": {"labels": {f"{P}subgroup-key": "7"}}, "template": {"size": 4, "subGroupPolicy": SUB_2}},
        {"template": {"size": 4, "subGroupPolicy": SUB_2}},
    ),
    (
        "LWS402",
        f"metadata.annotations[{P}replicas]",
        {"meta": {"annotations": {f"{P}replicas": "7"}}},
        {"meta": {"annotations": {"replicas": "7"}}},
    ),
    (
        "LWS402",
        f"{LEADER}.metadata.annotations[{P}size]",
        {"leader_meta": {"annotations": {f"{P}size": "7"}}},
        {"leader_meta": {"annotations": {"size": "7"}}},
    ),
    (
        "LWS402",
        f"{WORKER}.metadata.annotations[{P}exclusive-topology]",
        {"worker_meta": {"annotations": RACK}, "meta": {"annotations": RACK}},
        {"worker_meta": {"annotations": RACK}},
    ),
    (
        "LWS402",
        f"{WORKER}.metadata.annotations[{P}leader-name]",
        {"worker_meta": {"annotations": {f"{P}leader-name": "x"}}, "leader": {}},
        {"leader": {}},
    ),
    (
        "LWS403",
        f"metadata.annotations[{P}recover]",
        {"meta": {"annotations": {f"{P}recover": "true"}}},
        {"meta": {"annotations": {"recover": "true"}}},
    ),
    (
        "LWS403",
        f"{WORKER}.metadata.labels[{P}mine]",
        {"worker_meta": {"labels": {f"{P}mine": "x"}}},
        {"worker_meta": {"labels": {"example.com/mine": "x"}}},
    ),
    (
        "LWS403",
        f"metadata.annotations[{P}exclusive-topologie]",
        {"meta": {"annotations": {f"{P}exclusive-topologie": "rack"}}},
        {"meta": {"annotations": RACK}},
    ),
    (
        "LWS404",
        f"{LEADER}.metadata.annotations[{P}leader-name]",
        {"leader_meta": {"annotations": {f"{P}leader-name": "x"}}},
        {"worker_meta": {"annotations": {f"{P}leader-name": "x"}}, "leader": {}},
    ),
    (
        "LWS404",
        f"{WORKER}.metadata.labels[{P}subgroup-index]",
        {"worker_meta": {"labels": {f"{P}subgroup-index": "0"}}, "template": {"size": 4, "subGroupPolicy": SUB_2}},
        {"worker_meta": {"labels": {f"{P}subgroup-index": "0"}}},
    ),
    (
        "LWS404",
        f"{WORKER}.metadata.annotations[{P}subgroup-size]",
        {"worker_meta": {"annotations": {f"{P}subgroup-size": "2"}}},
        {"worker_meta": {"annotations": {f"{P}subgroup-size": "2"}}, "template": {"size": 4, "subGroupPolicy": SUB_2}},
    ),
    (
        "LWS404",
        f"{WORKER}.metadata.annotations[{P}group-identity]",
        {"worker_meta": {"annotations": {f"{P}group-identity": "Hash"}}},
        {"worker_meta": {"annotations": {f"{P}group-identity": "Hash"}}, "groupIdentity": "Hash"},
    ),
    (
        "LWS402",
        f"{WORKER}.metadata.annotations[{P}group-identity]",
        {"worker_meta": {"annotations": {f"{P}group-identity": "x"}}, "groupIdentity": "Hash"},
        {"groupIdentity": "Hash"},
    ),
    (
        "LWS405",
        f"{WORKER}.metadata.annotations[{P}exclusive-topology]",
        {"worker_meta": {"annotations": RACK}},
        {"meta": {"annotations": RACK}},
    ),
    (
        "LWS406",
        f"metadata.annotations[{P}exclusive-topology]",
        {"meta": {"annotations": {f"{P}exclusive-topology": ""}}},
        {"meta": {"annotations": RACK}},
    ),
    (
        "LWS407",
        f"metadata.annotations[{P}subgroup-exclusive-topology]",
        {
            "meta": {"annotations": {**RACK, f"{P}subgroup-exclusive-topology": "rack"}},
            "template": {"size": 4, "subGroupPolicy": SUB_2},
        },
        {
            "meta": {"annotations": {**RACK, f"{P}subgroup-exclusive-topology": "host"}},
            "template": {"size": 4, "subGroupPolicy": SUB_2},
        },
    ),
    (
        "LWS408",
        f"{WORKER}.spec.affinity",
        {"meta": {"annotations": RACK}, "worker": terms("rack")},
        {"meta": {"annotations": RACK}, "worker": terms("host")},
    ),
    (
        "LWS408",
        f"{WORKER}.spec.nodeSelector[rack]",
        {"meta": {"annotations": RACK}, "worker": {"nodeSelector": {"rack": "r1"}}},
        {"meta": {"annotations": RACK}, "worker": {"nodeSelector": {"pool": "p1"}}},
    ),
    (
        "LWS411",
        f"{WORKER}.spec.containers[0].env[1]",
        {"container": env(("A", "1"), ("LWS_GROUP_SIZE", "9"))},
        {"container": env(("A", "1"), ("SIZE", "$(LWS_GROUP_SIZE)"))},
    ),
    (
        "LWS411",
        f"{WORKER}.spec.containers[0].env[0]",
        {"container": env(("TPU_NAME", "x"), **TPU)},
        {"container": env(("TPU_NAME", "x"))},
    ),
    (
        "LWS412",
        f"{WORKER}.spec.containers[0].env[0]",
        {"container": env(("TPU_WORKER_ID", "0"), **TPU)},
        {"container": env(("TPU_PROCESS_PORT", "9000"), **TPU)},
    ),
    (
        "LWS413",
        f"{WORKER}.spec.containers[1].resources",
        {"worker": {"containers": TWO_WITH_TPUS}, "template": {"size": 4, "subGroupPolicy": SUB_2}},
        {"worker": {"containers": TWO_WITH_TPUS}, "template": {"size": 4}},
    ),
    (
        "LWS413",
        f"{LEADER}.spec.initContainers[0].resources",
        {
            "leader": {"containers": TWO_WITH_TPUS[:1], "initContainers": TWO_WITH_TPUS[1:]},
            "template": {"size": 4, "subGroupPolicy": SUB_2},
        },
        {
            "leader": {"containers": TWO_WITH_TPUS[:1], "initContainers": [{"name": "b", "image": "i"}]},
            "template": {"size": 4, "subGroupPolicy": SUB_2},
        },
    ),
    (
        "LWS421",
        f"{TEMPLATE}.volumeClaimTemplates[0].spec.dataSource",
        {"template": {"volumeClaimTemplates": [claim(dataSource={"kind": "VolumeSnapshot", "name": "s"})]}},
        {"template": {"volumeClaimTemplates": [claim(storageClassName="fast", volumeMode="Block")]}},
    ),
    (
        "LWS431",
        f"{WORKER}.spec.restartPolicy",
        {"worker": {"restartPolicy": "OnFailure"}},
        {"worker": {"restartPolicy": "Always"}},
    ),
    (
        "LWS431",
        f"{TEMPLATE}.volumeClaimTemplates[0].metadata.name",
        {"template": {"volumeClaimTemplates": [{"spec": claim()["spec"]}]}},
        {"template": {"volumeClaimTemplates": [claim()]}},
    ),
    (
        "LWS431",
        f"{TEMPLATE}.volumeClaimTemplates[0].metadata.name",
        {"template": {"volumeClaimTemplates": [{"metadata": {"name": ""}, "spec": claim()["spec"]}]}},
        {"template": {"volumeClaimTemplates": [claim()]}},
    ),
    (
        "LWS431",
        f"{LEADER}.spec.activeDeadlineSeconds",
        {"leader": {"activeDeadlineSeconds": 5}},
        {"leader": {"terminationGracePeriodSeconds": 5}},
    ),
    (
        "LWS431",
        f"{TEMPLATE}.persistentVolumeClaimRetentionPolicy.whenDeleted",
        {"template": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Never"}}},
        {"template": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}},
    ),
    (
        "LWS432",
        f"{WORKER}.spec.hostname",
        {"worker": {"hostname": "x"}},
        {"worker": {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["x"]}]}},
    ),
    (
        "LWS431",
        f"{WORKER}.spec.restartPolicy",
        {"groupIdentity": "Hash", "worker": {"restartPolicy": "Never"}},
        {"groupIdentity": "Hash", "worker": {"restartPolicy": "Always"}},
    ),
    (
        "LWS431",
        f"{LEADER}.spec.restartPolicy",
        {"groupIdentity": "Hash", "leader": {"restartPolicy": "Never"}},
        {"groupIdentity": "Hash", "leader": {}},
    ),
    (
        "LWS441",
        f"{WORKER}.spec.nodeName",
        {"groupIdentity": "Hash", "worker": {"nodeName": "node-1"}},
        {"groupIdentity": "Hash", "worker": {"nodeName": "node-1"}, "leader": {"nodeSelector": {"a": "b"}}},
    ),
    (
        "LWS441",
        f"{LEADER}.spec.nodeName",
        {"groupIdentity": "Hash", "leader": {"nodeName": "node-1"}},
        {"leader": {"nodeName": "node-1"}},
    ),
    ("LWS441", f"{WORKER}.spec.schedulingGates[0]", {"worker": GATED}, {"worker": OTHER_GATE}),
    (
        "LWS441",
        f"{WORKER}.spec.schedulingGates[0]",
        {"groupIdentity": "Hash", "worker": GATED},
        {"groupIdentity": "Hash", "worker": GATED, "template": {"size": 1}},
    ),
    (
        "LWS442",
        f"{WORKER}.spec.readinessGates[0]",
        {"groupIdentity": "Hash", "worker": READY},
        {"groupIdentity": "Hash", "leader": READY},
    ),
    (
        "LWS442",
        f"{WORKER}.spec.readinessGates[0]",
        {"groupIdentity": "Hash", "worker": READY, "template": {"size": 1}},
        {"groupIdentity": "Hash", "template": {"size": 1}},
    ),
    ("LWS442", f"{LEADER}.spec.readinessGates[0]", {"leader": READY}, {"leader": {}}),
    (
        "LWS434",
        WORKER,
        {"groupIdentity": "Hash", "container": TPU, "template": {"size": 300000}},
        {"groupIdentity": "Hash", "container": TPU, "template": {"size": 300}},
    ),
    (
        "LWS409",
        f"metadata.annotations[{P}exclusive-topology]",
        {"meta": {"annotations": {f"{P}exclusive-topology": "not a key!"}}},
        {"meta": {"annotations": {f"{P}exclusive-topology": "example.com/rack"}}},
    ),
    (
        "LWS409",
        f"metadata.annotations[{P}subgroup-exclusive-topology]",
        {
            "meta": {"annotations": {f"{P}subgroup-exclusive-topology": "a/b/c"}},
            "template": {"size": 4, "subGroupPolicy": SUB_2},
        },
        {"meta": {"annotations": {f"{P}subgroup-exclusive-topology": "a/b/c"}}},
    ),
    (
        "LWS409",
        f"{WORKER}.metadata.annotations[{P}exclusive-topology]",
        {"worker_meta": {"annotations": {f"{P}exclusive-topology": "-"}}},
        {"worker_meta": {"annotations": {f"{P}exclusive-topology": "rack"}}},
    ),
    (
        "LWS207",
        f"{ROLLING}.maxUnavailable",
        {"replicas": 4, "rolling": {"maxUnavailable": "50%", "maxSurge": "00%"}},
        {"replicas": 4, "rolling": {"maxUnavailable": "50%", "maxSurge": "01%"}},
    ),
    (
        "LWS201",
        f"{ROLLING}.maxUnavailable",
        {"rolling": {"maxUnavailable": "01%", "maxSurge": 1}},
        {"rolling": {"maxUnavailable": "00%", "maxSurge": 1}},
    ),
    ("LWS434", WORKER, {"container": TPU, "template": {"size": 300000}}, {"container": TPU, "template": {"size": 300}}),
    ("LWS433", f"{WORKER}.metadata.name", {"worker_meta": {"name": "x"}}, {"worker_meta": {"labels": {"name": "x"}}}),
]


@pytest.mark.parametrize(("code", "path", "bad", "good"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_found_where_it_belongs_and_nowhere_else(
    code: str, path: str, bad: dict[str, Any], good: dict[str, Any]
) -> None:
    assert of_kind(code, lws(**bad)) == [path]
    assert code not in codes(lws(**good))


def test_a_plain_set_is_clean() -> None:
    assert codes(lws()) == []


def test_every_warning_has_cases() -> None:
    elsewhere = {
        "LWS011",
        "LWS013",
        "LWS014",
        "LWS015",
        "LWS501",
        "LWS502",
        "LWS503",
        "LWS504",
        "LWS602",
        "LWS701",
        "LWS702",
    }
    wanted = {code for code, found in CODES.items() if found.severity is Severity.WARNING}
    assert {case[0] for case in CASES} | elsewhere == wanted


def test_the_name_that_fits_nine_groups_may_not_fit_more() -> None:
    """F41: the room for a name shrinks with the digits of the highest group."""
    assert codes(lws("a" * 50, replicas=9)) == []
    found = only("LWS102", lws("a" * 50, replicas=12))
    assert "workers of groups 10 to 11 may not be creatable" in found.fault.message
    assert found.fault.hint == "shorten the name of the set by 1 character"
    assert codes(lws("a" * 51, replicas=9)) == codes(lws("a" * 51, replicas=10)) == ["LWS102"]


def test_names_in_hash_mode_are_left_to_admission() -> None:
    assert codes(lws("a" * 44, groupIdentity="Hash")) == ["LWS003"]
    assert codes(lws("a" * 43, groupIdentity="Hash")) == []


def test_scheduling_has_no_effect_where_it_is_accepted() -> None:
    found = lint([Source(NAME, lws(scheduling={}))], gated(), {}, "default").findings
    assert [(f.fault.code.code, f.fault.path) for f in found] == [("LWS602", "spec.scheduling")]
    assert lint([Source(NAME, lws())], gated(), {}, "default").findings == []


def test_sub_groups_are_counted_out() -> None:
    """F59: subGroupSize is how many pods a sub-group has, not how many sub-groups there are."""
    found = only("LWS303", lws(template={"size": 7, "subGroupPolicy": {"subGroupSize": 3}}))
    assert "the first sub-group: they have 4, 3 pods; subGroupSize is how many pods" in found.fault.message


def test_variables_for_tpus_with_sub_groups_are_those_of_the_first_container() -> None:
    second = {"name": "b", "image": "i", **env(("TPU_NAME", "x"), **TPU)}
    first = {"name": "a", "image": "i", **TPU}
    with_policy = {"size": 4, "subGroupPolicy": SUB_2}
    assert "LWS411" in codes(lws(worker={"containers": [first, second]}))
    assert "LWS411" not in codes(lws(worker={"containers": [first, second]}, template=with_policy))


@pytest.mark.parametrize("template", ["{}", "{spec: }", "{metadata: {}}"])
def test_a_template_without_a_pod(template: str) -> None:
    text = lws()
    start, end = text.index("    workerTemplate:"), len(text)
    written = f"{text[:start]}    workerTemplate: {template}\n{text[end:]}"
    assert of_kind("LWS431", written) == [f"{WORKER}.spec.containers"]


def test_a_leader_template_and_a_worker_template_are_both_looked_at() -> None:
    text = lws(leader={"hostname": "a"}, worker={"hostname": "b"})
    assert of_kind("LWS432", text) == [f"{WORKER}.spec.hostname", f"{LEADER}.spec.hostname"]


def test_the_same_fault_of_both_statefulsets_is_told_once() -> None:
    assert codes(lws(worker={"restartPolicy": "Never"})) == ["LWS431"]


@pytest.mark.parametrize("share", range(1, 101))
def test_the_number_of_groups_from_which_on_a_share_is_one(share: int) -> None:
    text = lws(replicas=100, rolling={"maxUnavailable": f"{share}%", "maxSurge": 0})
    zero = [n for n in range(1, 100) if share * n // 100 == 0]
    found = [f.fault.message for f in [only("LWS207", text)]] if zero else []
    assert ("LWS207" in codes(text)) is bool(zero)
    for message in found:
        assert message.startswith(f"scaled to {zero[-1]} groups or fewer" if len(zero) > 1 else "scaled to 1 group")


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ({"container": {"env": [{"name": "A", "value": True}]}}, "boolean"),
        ({"container": {"args": ["--port", 8080]}}, "number"),
        ({"container": {"args": [1.5]}}, "number"),
        ({"worker": {"nodeSelector": {"gpu": True}}}, "boolean"),
        ({"meta": {"annotations": {"a": 1}}}, "number"),
        ({"meta": {"labels": {"a": True}}}, "boolean"),
    ],
)
def test_text_that_was_read_as_something_else_wants_quotes(bad: dict[str, Any], kind: str) -> None:
    found = only("LWS002", lws(**bad))
    assert found.fault.hint == (
        f"text is wanted here, and without quotes the value is read as a {kind}: write it in quotes"
    )


@pytest.mark.parametrize("bad", [{"template": {"size": "3"}}, {"container": {"command": "a"}}, {"startupPolicy": "No"}])
def test_quotes_are_no_hint_where_they_do_not_help(bad: dict[str, Any]) -> None:
    assert only("LWS002", lws(**bad)).fault.hint == ""
