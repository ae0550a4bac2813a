"""`lwskit plan` and `lwskit explain` of DisaggregatedSets: files, dumps, names of kinds, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from lwskit.api import disaggregated_names as names
from lwskit.cli import explain, plan
from lwskit.lint.server import Server
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.objects import Obj
from tests.unit.groups.small_cluster import make_lws
from tests.unit.simulate.families import objects, pair, with_image


def run(*arguments: str | Path) -> Result:
    first, *rest = map(str, arguments)
    return CliRunner().invoke({"plan": plan, "explain": explain}[first].command, rest)


def written(file: Path, *there: Obj) -> Path:
    file.write_text(yaml.safe_dump_all(there))
    return file


def manifest(ds: Obj) -> Obj:
    """The set as a person writes it."""
    return {k: v for k, v in ds.items() if k != "status"} | {"metadata": {"name": "chat", "namespace": "ns"}}


def stored(ds: Obj) -> Obj:
    """The set with what the API server fills in."""
    answer = Server().create(manifest(ds), "ns")
    assert answer.stored is not None
    return {**ds, "spec": answer.stored["spec"]}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    ds = stored(pair(2, 1))
    return written(tmp_path / "dump.yaml", *objects(ds), {**make_lws("x"), "metadata": {"name": "x", "uid": "x"}})


# plan -----------------------------------------------------------------------------------------------------------------


def test_the_steps_of_a_rollout(dump: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "f.yaml", manifest(with_image(pair(2, 1), "b")))
    result = run("plan", "-f", file, "--against", dump)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("ns/chat: rolls all roles: revision ")
    assert "  lowest: prefill 2 ready of 2 wanted; decode 1 ready of 1 wanted\n" in result.stdout


def test_both_kinds_in_one_file(dump: Path, tmp_path: Path) -> None:
    lws = {**make_lws("y"), "metadata": {"name": "y", "namespace": "ns"}}
    file = written(tmp_path / "f.yaml", lws, manifest(pair(2, 1)))
    result = run("plan", "-f", file, "--against", dump, "-o", "json")
    assert [(p["kind"], p["name"], p["verdict"]) for p in json.loads(result.stdout)["plans"]] == [
        ("LeaderWorkerSet", "y", "creates"),
        ("DisaggregatedSet", "chat", "nothing"),
    ]


def test_a_set_of_another_version_beside_one_that_is_planned(dump: Path, tmp_path: Path) -> None:
    """Nothing is left out without a word: who applies the file would be refused for that one."""
    old = {**manifest(pair(2, 1)), "apiVersion": "disaggregatedset.x-k8s.io/v1alpha1"}
    result = run("plan", "-f", written(tmp_path / "f.yaml", manifest(pair(2, 1)), old), "--against", dump)
    assert result.exit_code == 1
    assert str(result.exception).endswith(
        "DisaggregatedSet chat is of disaggregatedset.x-k8s.io/v1alpha1, which no cluster serves; write "
        "disaggregatedset.x-k8s.io/v1"
    )


def test_a_namespace_that_has_nothing(tmp_path: Path) -> None:
    """`kubectl get` prints a List without items."""
    empty = tmp_path / "dump.yaml"
    empty.write_text("{apiVersion: v1, kind: List, items: []}")
    result = run("plan", "-f", written(tmp_path / "f.yaml", manifest(pair(2, 1))), "--against", empty)
    assert (result.exit_code, result.stdout.splitlines()[0].partition(":")[0]) == (0, "ns/chat")
    assert "creates the set" in result.stdout


def test_never_ready_stalls_and_exits_with_1(dump: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "f.yaml", manifest(with_image(pair(2, 1), "b")))
    result = run("plan", "-f", file, "--against", dump, "--ready-order", "never")
    assert result.exit_code == 1
    assert "  end: it stalls: it waits for groups that do not become ready\n" in result.stdout


def test_what_admission_refuses_of_a_child(dump: Path, tmp_path: Path) -> None:
    ds = pair(2, 1)
    ds["spec"]["roles"][1]["spec"]["leaderWorkerTemplate"] |= {"size": 5, "subGroupPolicy": {"subGroupSize": 3}}
    result = run("plan", "-f", written(tmp_path / "f.yaml", manifest(ds)), "--against", dump)
    assert result.exit_code == 1
    assert result.stdout.startswith("ns/chat: rolls all roles: revision ")
    assert "  end: it stalls: LeaderWorkerSets that the manager wants are refused\n" in result.stdout
    told = (
        "-decode is refused by the API server: "
        "spec.roles[decode].spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: "
        "Invalid value: 3: size or size - 1 must be divisible by subGroupSize [child-refused]\n"
    )
    assert told in result.stdout


def test_labels_of_a_role_that_no_object_can_have(dump: Path, tmp_path: Path) -> None:
    """The schema of the set does not look at them, the API server does at those of the LeaderWorkerSet."""
    ds = manifest(pair(2, 1))
    ds["spec"]["roles"][0]["metadata"] = {"labels": {"a b": "c"}}
    result = run("plan", "-f", written(tmp_path / "f.yaml", ds), "--against", dump)
    assert (result.exit_code, "role prefill: LeaderWorkerSet chat-0-" in result.stdout) == (1, True)
    assert "spec.roles[prefill].metadata.labels: Invalid value" in result.stdout


def test_what_the_server_refuses(dump: Path, tmp_path: Path) -> None:
    ds = manifest(pair(2, 1))
    ds["metadata"]["name"] = "n" * 40
    ds["spec"]["slices"] = 0
    result = run("plan", "-f", written(tmp_path / "f.yaml", ds), "--against", dump)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == f"ns/{'n' * 40}: the API server refuses it"
    assert any("spec.slices" in line and "[refused]" in line for line in lines)
    assert any("would exceed the DNS-1035 limit of 63 characters" in line for line in lines)


def test_a_field_that_there_is_not(dump: Path, tmp_path: Path) -> None:
    ds = manifest(pair(2, 1))
    ds["spec"]["rolls"] = []
    result = run("plan", "-f", written(tmp_path / "f.yaml", ds), "--against", dump)
    assert "refused: spec.rolls: there is no such field, and kubectl apply refuses it [refused]" in result.stdout


def test_a_set_that_is_not_in_the_dump(dump: Path, tmp_path: Path) -> None:
    ds = manifest(pair(2, 1))
    ds["metadata"]["name"] = "chad"
    result = run("plan", "-f", written(tmp_path / "f.yaml", ds), "--against", dump)
    assert f"note: {dump} has no DisaggregatedSet 'chad' in namespace 'ns'; did you mean chat? [not-in-dump]" in (
        result.stdout
    )


def test_an_order_that_such_sets_do_not_have(dump: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "f.yaml", manifest(pair(2, 1)))
    result = run("plan", "-f", file, "--against", dump, "--ready-order", "2,1")
    assert isinstance(result.exception, ConfigurationError)
    assert "'2,1' is no order for a DisaggregatedSet" in str(result.exception)


# explain --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chat", "ds/chat", "disaggregatedset/chat", "disaggregatedsets/chat"])
def test_by_name_and_by_kind(name: str, dump: Path) -> None:
    result = run("explain", name, "-n", "ns", "--from", dump)
    assert result.stdout.splitlines()[0] in ("ok", "progressing (not-written-yet)"), result.output
    assert "ns/chat" in result.stdout


def test_json(dump: Path) -> None:
    document = json.loads(run("explain", "ds/chat", "-n", "ns", "--from", dump, "-o", "json").stdout)
    assert document["kind"] == names.KIND
    assert {"slice", "role", "revision", "child"} <= document.keys()


def test_a_name_that_both_kinds_have(tmp_path: Path) -> None:
    lws = {**make_lws("chat"), "metadata": {"name": "chat", "namespace": "ns", "uid": "c", "generation": 1}}
    dump = written(tmp_path / "d.yaml", *objects(pair(2, 1)), lws)
    result = run("explain", "chat", "-n", "ns", "--from", dump)
    assert str(result.exception) == (
        f"{dump} has a LeaderWorkerSet and a DisaggregatedSet 'chat' in namespace 'ns'; say lws/chat or ds/chat"
    )
    assert json.loads(run("explain", "lws/chat", "-n", "ns", "--from", dump, "-o", "json").stdout)["kind"] == (
        "LeaderWorkerSet"
    )


def test_names_that_there_are_not(dump: Path) -> None:
    near = run("explain", "chad", "-n", "ns", "--from", dump)
    assert str(near.exception) == (
        f"{dump} has no LeaderWorkerSet and no DisaggregatedSet 'chad' in namespace 'ns'; did you mean ds/chat?"
    )
    of_kind = run("explain", "ds/x", "-n", "ns", "--from", dump)
    assert str(of_kind.exception) == f"{dump} has no DisaggregatedSet 'x' in namespace 'ns'; there are: chat"


def test_a_kind_that_there_is_not(dump: Path) -> None:
    result = run("explain", "pod/chat", "--from", dump)
    assert result.exit_code == 2
    assert "'pod/chat' names no kind of sets; a name alone, or leaderworkerset/NAME" in result.output


@pytest.mark.parametrize("name", ["ds/", "lws/", "", "disaggregatedset/chat/status"])
def test_a_name_that_is_none(name: str, dump: Path) -> None:
    result = run("explain", name, "--from", dump)
    assert result.exit_code == 2
    assert f"Invalid value for NAME: {name!r} names no set; a name alone, or leaderworkerset/NAME" in result.output


def test_a_dump_without_workloads(tmp_path: Path) -> None:
    there = [o for o in objects(pair(2, 1)) if o["kind"] != "StatefulSet"]
    result = run("explain", "ds/chat", "-n", "ns", "--from", written(tmp_path / "d.yaml", *there))
    assert (result.exit_code, result.stdout.splitlines()[0]) == (1, "blocked (partial-dump)")
    assert "has no StatefulSets, though leaders of ns/chat-0-" in result.stdout
