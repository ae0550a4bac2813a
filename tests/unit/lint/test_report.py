"""From files to reports: what is skipped, refused and unreadable, and how it is told."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from lwskit.lint.check import Report, Source, lint, stored
from lwskit.lint.findings import CODES, Severity
from lwskit.lint.output import as_json, github, summary, text
from lwskit.lint.source import SourceError
from tests.unit.lint.support import codes, findings, lws, only, report, server

GOLDEN = Path(__file__).parent / "golden"
TANGLED = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: c}
- apiVersion: leaderworkerset.x-k8s.io/v1
  kind: LeaderWorkerSet
  metadata: {name: one, namespace: team}
  spec:
    replicas: 5
    rolloutStrategy:
      type: RollingUpdate
      rollingUpdateConfiguration: {maxUnavailable: 10%, maxSurge: 1}
    leaderWorkerTemplate:
      size: 2
      workerTemplate:
        spec:
          containers:
          - name: main
            image: "a,b:c%d"
            env:
            - name: LWS_GROUP_SIZE
              value: "2"
            imagePullPolicy: Always
            imagePullPolicy: Never
---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: Two
spec:
  replicas: -1
  startupPolicy: Sometime
  leaderWorkerTemplate:
    size: 7
    sizes: 8
    subGroupPolicy:
      subGroupSize: 4
    workerTemplate:
      spec:
        containers: []
---
kind: LeaderWorkerSet
metadata: {name: three}
---
just: a document
---
broken: [
"""


def golden(name: str, found: str) -> None:
    assert (GOLDEN / name).read_text() == found


def tangled() -> Report:
    return lint(
        [Source("deploy/a,b.yaml", TANGLED), Source("gone.yaml", error="cannot read gone.yaml: no")],
        server(),
        {},
        "default",
    )


def test_text() -> None:
    golden("report.txt", "\n".join(text(tangled())) + "\n")


def test_json() -> None:
    (found,) = as_json(tangled())
    golden("report.json", found + "\n")
    document = json.loads(found)
    assert document["summary"]["errors"] == sum(f["severity"] == "error" for f in document["findings"])


def test_github() -> None:
    golden("report.github", "\n".join(github(tangled())) + "\n")


def test_nothing_takes_more_lines_than_it_should() -> None:
    found = lint([Source("a\nb.yaml", lws() + '"line\\r\\nbreak": 1\n')], server(), {}, "default")
    first, last = github(found)
    assert first == (
        "::warning file=a%0Ab.yaml,line=14,col=1,title=LWS010 unknown-field::"
        "line break: the LeaderWorkerSet has no such field; it is dropped"
    )
    assert last == summary(found)
    assert [line for part in text(found) for line in part.splitlines()] == list(text(found))


def test_the_order_is_that_of_the_file() -> None:
    places = [(f.place.line, f.place.column) for f in findings(TANGLED)]
    assert places == sorted(places)


def test_other_kinds_are_counted() -> None:
    found = report("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\na: b\n---\n- 1\n---\ntext\n")
    assert (found.findings, found.sets, found.others, found.files) == ([], 0, 4, 1)
    assert summary(found) == "0 LeaderWorkerSets in 1 file: 0 errors, 0 warnings; 4 other documents skipped"


def test_lists_are_taken_apart_and_places_are_those_of_the_items() -> None:
    item = lws(worker={"hostname": "x"}).replace("\n", "\n    ").rstrip()
    listed = f"apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSetList\nitems:\n  - {item}\n"
    found = only("LWS432", listed)
    assert "hostname: x" in listed.splitlines()[found.place.line - 1]
    assert codes("apiVersion: v1\nkind: List\nitems: []\n") == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kind: LeaderWorkerSet\n", "apiVersion is missing; write apiVersion: leaderworkerset.x-k8s.io/v1"),
        (
            "kind: LeaderWorkerSet\napiVersion: leaderworkerset.x-k8s.io/v2\n",
            "there is no LeaderWorkerSet in version 'leaderworkerset.x-k8s.io/v2'; "
            "the only one is leaderworkerset.x-k8s.io/v1",
        ),
        (
            "kind: LeaderWorkerset\napiVersion: leaderworkerset.x-k8s.io/v1\n",
            "there is no kind 'LeaderWorkerset' in leaderworkerset.x-k8s.io; the only one is LeaderWorkerSet",
        ),
        ("apiVersion: leaderworkerset.x-k8s.io/v1\n", "kind is missing; write kind: LeaderWorkerSet"),
        ("kind: LeaderWorkerSet\napiVersion: 1\n", "there is no LeaderWorkerSet in version 1; the only one is"),
    ],
)
def test_what_no_server_takes_for_a_set(text: str, sentence: str) -> None:
    found = only("LWS004", text)
    assert found.fault.message.startswith(sentence)
    assert found.severity is Severity.ERROR


def test_a_kind_of_another_group_is_not_ours() -> None:
    assert codes("apiVersion: example.com/v1\nkind: LeaderWorkerSet\nspec: nothing\n") == []


def test_doubled_keys_and_a_status_are_told() -> None:
    text = lws() + "status: {replicas: 3}\nkind: LeaderWorkerSet\n"
    assert codes(text) == ["LWS014", "LWS011"]
    assert only("LWS011", text).place.line == len(text.splitlines())


def test_the_same_set_twice_is_told_with_the_first_place() -> None:
    one = lws()
    found = only("LWS013", f"{one}---\n{one}")
    assert found.place.line == 5 + len(one.splitlines())
    assert "the same set is in set.yaml:4;" in found.fault.message
    assert codes(f"{one}---\n{lws(meta={'namespace': 'other'})}") == []
    assert "LWS013" in codes(f"{one}---\n{lws(meta={'namespace': 'default'})}")
    generated = one.replace("name: llm", "generateName: llm-")
    assert codes(f"{generated}---\n{generated}") == []


def test_refusals_cannot_be_ignored() -> None:
    found = report(lws(replicas=-1, worker={"hostname": "x"}) + f"---\n{lws('b', worker={'hostname': 'x'})}")
    kept = found.without({"LWS432", "LWS002"})
    assert {f.fault.code.code for f in found.findings} == {"LWS002", "LWS432"}
    assert {f.fault.code.code for f in kept.findings} == {"LWS002"}


def test_what_stands_before_a_fault_of_yaml_is_checked() -> None:
    found = report(lws(worker={"hostname": "x"}) + "---\na: [\n")
    assert [f.fault.code.code for f in found.findings] == ["LWS432", "LWS001"]
    assert found.unreadable
    assert found.findings[1].fault.message == "this is neither YAML nor JSON: did not find expected node content"


def test_old_sets_that_cannot_be_read_are_one_sentence() -> None:
    with pytest.raises(SourceError, match=r"^old.yaml:1:4: found undefined alias$"):
        stored([Source("old.yaml", "a: *b\n")], server(), "default")
    with pytest.raises(SourceError, match=r"^cannot read x: No such file$"):
        stored([Source("x", error="cannot read x: No such file")], server(), "default")


def test_codes_and_names_are_unique_and_of_one_form() -> None:
    assert len({c.name for c in CODES.values()}) == len(CODES) > 30
    for code, found in CODES.items():
        assert code == found.code
        assert re.fullmatch(r"LWS[0-9]{3}", code)
        assert (code < "LWS010") is (found.severity is Severity.ERROR)


def test_anchors_shared_by_labels_and_templates_stay_what_they_are() -> None:
    text = lws().replace("  name: llm\n", "  name: llm\n  labels: &l {app: x}\n")
    text = text.replace("    workerTemplate:\n", "    workerTemplate:\n      metadata: {labels: *l, annotations: *l}\n")
    assert codes(text) == []


def test_a_hundred_sets_take_less_than_a_second() -> None:
    sources = [Source(f"{i}.yaml", lws(f"llm-{i}", leader={}, rolling={"maxSurge": 1})) for i in range(100)]
    server()
    begin = time.process_time()
    found = lint(sources, server(), {}, "default")
    assert time.process_time() - begin < 1.0
    assert (found.sets, found.findings) == (100, [])


@pytest.mark.parametrize("bad", ["[]", "x", "5"])
def test_metadata_that_is_no_object_is_told_at_its_place(bad: str) -> None:
    text = f"apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {bad}\nspec: {{}}\n"
    (found,) = findings(text)
    assert (found.fault.code.code, found.fault.path, found.place.line) == ("LWS002", "metadata", 3)
