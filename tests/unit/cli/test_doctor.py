"""`lwskit doctor`: dumps, options, forms and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from lwskit.cli.doctor import command
from lwskit.runtime.errors import ConnectionFailed
from lwskit.runtime.objects import Obj
from tests.unit.doctor.patients import chat, child, children_of
from tests.unit.simulate.scenes import objects_of, small


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], input=stdin)


def dumped(folder: Path, *objects: Obj) -> Path:
    file = folder / "dump.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return file


def test_nothing_is_found(tmp_path: Path) -> None:
    ds = chat()
    result = run("--from", dumped(tmp_path, ds, *children_of(ds)))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"not looked at: {tmp_path}/dump.yaml has no Pod, no StatefulSet: why a set does not serve cannot be told",
        "1 DisaggregatedSet and 2 LeaderWorkerSets: nothing found",
    ]


def test_of_a_whole_dump_nothing_is_missing(tmp_path: Path) -> None:
    result = run("--from", dumped(tmp_path, *objects_of(small(1, size=2))))
    assert (result.exit_code, result.stdout) == (0, "0 DisaggregatedSets and 1 LeaderWorkerSet: nothing found\n")


def test_a_finding_is_a_line_and_exit_code_1(tmp_path: Path) -> None:
    ds = chat()
    stray = child(ds, "prefill", slice=1)
    result = run("--from", dumped(tmp_path, ds, *children_of(ds), stray))
    first, _, last = result.stdout.splitlines()
    name = stray["metadata"]["name"]
    assert first.startswith(f"LeaderWorkerSet ns/{name} is of slice 1, and DisaggregatedSet chat has 1 slice; the ")
    assert first.endswith(f"delete leaderworkersets.leaderworkerset.x-k8s.io {name}` [child-of-removed-slice]")
    assert (result.exit_code, last) == (1, "1 DisaggregatedSet and 3 LeaderWorkerSets: 1 finding")


def test_json(tmp_path: Path) -> None:
    ds = chat()
    result = run("--from", dumped(tmp_path, ds, *children_of(ds), child(ds, "prefill", slice=1)), "-o", "json")
    document = json.loads(result.stdout)
    assert document["summary"] == {
        "disaggregatedSets": 1,
        "leaderWorkerSets": 3,
        "findings": 1,
        "notLookedAt": [f"{tmp_path}/dump.yaml has no Pod, no StatefulSet: why a set does not serve cannot be told"],
    }
    (finding,) = document["findings"]
    assert (finding["code"], finding["kind"], finding["passes"]) == ("child-of-removed-slice", "LeaderWorkerSet", True)
    assert f"{finding['kind']} {finding['namespace']}/{finding['name']} {finding['message']}".startswith(
        "LeaderWorkerSet ns/chat-1-"
    )


def test_a_namespace_of_a_dump(tmp_path: Path) -> None:
    ds = chat()
    objects = [*children_of(ds), child(ds, "prefill", slice=1)]
    file = dumped(tmp_path, ds, *objects, *objects_of(small(1)))
    assert run("--from", file, "-n", "ns").exit_code == 1
    result = run("--from", file, "-n", "other")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: {file} has nothing that the doctor looks at in namespace 'other', only nothing\n"


def test_a_dump_without_the_owners_does_not_say_that_they_are_gone(tmp_path: Path) -> None:
    ds = chat()
    first = children_of(ds)[0]
    result = run("--from", dumped(tmp_path, first))
    name = first["metadata"]["name"]
    assert result.stdout.splitlines() == [
        f"not looked at: {tmp_path}/dump.yaml has no DisaggregatedSet, though LeaderWorkerSet {name} in it belongs to "
        "one",
        f"not looked at: {tmp_path}/dump.yaml has no Pod, no StatefulSet: why a set does not serve cannot be told",
        "0 DisaggregatedSets and 1 LeaderWorkerSet: nothing found",
    ]


def test_standard_input() -> None:
    ds = chat()
    text = yaml.safe_dump_all([ds, *children_of(ds)])
    assert run("--from", "-", stdin=text).exit_code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "is not valid YAML"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "has nothing that the doctor looks at, only Config"),
        (
            "{apiVersion: disaggregatedset.x-k8s.io/v1, kind: DisaggregatedSet, metadata: {name: a, uid: u}, spec: {}}",
            "DisaggregatedSet a has no spec.roles; a dump is what kubectl get -o yaml prints",
        ),
    ],
)
def test_what_cannot_be_read_is_exit_code_2(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "dump.yaml"
    file.write_text(text)
    result = run("--from", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.startswith("Error: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-n", "a", "-A"], "-n names one namespace, and -A all of them"),
        (["--from", "x", "--kubeconfig", "k"], "--kubeconfig names a cluster, and --from a file instead of one"),
        (["--again", "-1"], "-1"),
    ],
)
def test_wrong_usage(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize(("options", "where"), [(("-n", "mine"), "mine"), (("-A",), "None")])
def test_a_cluster_that_cannot_be_read(options: tuple[str, ...], where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(namespace: str | None, *_: object) -> None:
        raise ConnectionFailed(f"no answer about {namespace}")

    monkeypatch.setattr("lwskit.cli.doctoring.from_cluster", refuse)
    result = run(*options)
    assert (result.exit_code, result.stderr) == (2, f"Error: no answer about {where}\n")
