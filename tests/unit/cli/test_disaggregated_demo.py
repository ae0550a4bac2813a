"""The parts of `lwskit demo --disaggregated`: what it draws and checks; and all of it on the embedded cluster."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from lwskit.api import disaggregated_names as names
from lwskit.cli import demo, disaggregated_demo
from lwskit.cli.disaggregated_demo import Drawing, View
from lwskit.disaggregated.model import Child
from lwskit.runtime.errors import ConfigurationError, LwskitError
from lwskit.runtime.objects import Obj
from tests.unit.doctor.patients import chat, child, children_of

NEW = "0ewrev00"


def view(ds: Obj, *there: Obj) -> View:
    return View(ds, tuple(Child.of(lws) for lws in there))


def printed(shown: Any) -> str:
    console = Console(width=200, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(shown)
    return capture.get()


def test_children_labels_and_rows() -> None:
    ds = chat()
    ds["status"]["roleStatuses"] = [
        {"name": "prefill", "desiredReplicas": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1},
        {"name": "decode", "desiredReplicas": 2, "replicas": 2},
    ]
    whole = view(ds, *children_of(ds))
    text = printed(disaggregated_demo.children_table(whole))
    assert "ns/chat: 2 children (available)" in text
    assert re.search(r"chat-0-\w+-decode +│ decode +│ 0 +│ \w{8} │ DisaggregatedSet chat +│ 2 +│ 2", text)
    labels = printed(disaggregated_demo.labels_table(whole))
    assert re.search(rf"{names.ROLE_LABEL} +│ prefill +│ decode", labels)
    rows = printed(disaggregated_demo.status_table(whole))
    assert re.search(r"decode +│ 2 +│ 2 +│ 0 +│ 0", rows)


def test_each_change_of_what_is_asked_for_is_a_step() -> None:
    ds = chat()
    drawing = Drawing(view(ds, *children_of(ds)))
    for lws in (
        child(ds, "decode", 0, rev=NEW),
        child(ds, "decode", 1),
        child(ds, "decode", 1, rev=NEW, ready=0),
        child(ds, "decode", 1, rev=NEW, ready=1),
    ):
        drawing.see(lws, gone=False)
    drawing.see({**child(ds, "decode", 5, rev=NEW), "metadata": {"name": "o", "uid": "o", "labels": {}}}, gone=False)
    assert drawing.steps == [((1, 0), (2, 0)), ((1, 0), (1, 0)), ((1, 0), (1, 1))]
    text = printed(drawing.table())
    assert re.search(r"│ 0 +│ ■ 1 +│ 0 +│ ■■ 2 +│ 0 ", text)
    assert re.search(r"│ 2 +│ ■ 1 +│ 0 +│ ■ 1 +│ ■ 1 ", text)
    drawing.see(child(ds, "decode", 1), gone=True)
    assert drawing.steps[-1] == ((1, 0), (0, 1))


def test_groups_that_are_not_ready_are_hollow() -> None:
    ds = chat()
    drawing = Drawing(view(ds, *children_of(ds)))
    drawing.see(child(ds, "decode", 2, rev=NEW, ready=1), gone=False)
    assert "■□ 2" in printed(drawing.table())


def test_another_annotation_is_another_revision() -> None:
    ds = chat()
    once = disaggregated_demo.with_round(ds)
    template = once["spec"]["roles"][0]["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    assert template["metadata"]["annotations"] == {disaggregated_demo.ROUND: "2"}
    twice = disaggregated_demo.with_round(once)
    assert twice["spec"] != once["spec"] != ds["spec"]


def test_other_counts_after_the_rollout() -> None:
    ds = chat()
    rows = [{"name": "prefill", "desiredReplicas": 1, "readyReplicas": 1}]
    before = view({**ds, "status": {"roleStatuses": rows}})
    disaggregated_demo.check(before, before)
    after = view({**ds, "status": {"roleStatuses": [{**rows[0], "readyReplicas": 2}]}})
    with pytest.raises(LwskitError, match="roles have other counts than before the rollout"):
        disaggregated_demo.check(before, after)


def test_what_keeps_a_set() -> None:
    ds = chat(available=False)
    waiting = child(ds, "decode", 2, ready=1)
    assert disaggregated_demo.hindrance(view(ds, waiting)) == (
        f"{waiting['metadata']['name']} has 1 of 2 groups ready; a longer --timeout may be enough"
    )
    ds["status"]["conditions"] = [{"type": "Progressing", "status": "True", "message": "no scaler"}]
    assert disaggregated_demo.hindrance(view(ds)) == "no scaler"


def test_events_are_told_as_they_are() -> None:
    events = [{"reason": "BootstrapSurge", "message": "for roles [prefill]"}] * 2
    text = printed(disaggregated_demo.events_table(events))
    assert text.count("for roles [prefill]") == 1


def test_a_file_without_such_a_set(tmp_path: Any) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}))
    result = CliRunner().invoke(demo.command, ["--disaggregated", "-f", str(file)])
    assert isinstance(result.exception, ConfigurationError)
    assert str(result.exception) == f"{file} holds no DisaggregatedSet; the demo needs one to show"
