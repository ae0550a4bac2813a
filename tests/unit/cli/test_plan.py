"""`lwskit plan`: files, dumps, options and exit codes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from lwskit.api import names
from lwskit.cli import explain
from lwskit.cli.plan import command
from lwskit.groups.model import DecisionError
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.objects import Obj
from tests.unit.groups.hash_objects import deployment, hash_lws, leader
from tests.unit.groups.small_cluster import SmallCluster
from tests.unit.groups.test_victims import on, replica_set
from tests.unit.simulate.scenes import objects_of, small
from tests.unit.simulate.test_plan_hash import scene
from tests.unit.simulate.test_rollout import edited


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], input=stdin)


def manifest(lws: Obj, **fields: Any) -> Obj:
    """The set as a person writes it."""
    new = edited(copy.deepcopy(lws), **fields)
    return {**new, "metadata": {"name": "x", "namespace": "ns"}}


@pytest.fixture
def cluster() -> SmallCluster:
    return small(3)


@pytest.fixture
def dump(cluster: SmallCluster, tmp_path: Path) -> Path:
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": objects_of(cluster)}))
    return file


@pytest.fixture
def edit(cluster: SmallCluster, tmp_path: Path) -> Path:
    file = tmp_path / "edit.yaml"
    file.write_text(yaml.safe_dump(manifest(cluster.lws, image="B")))
    return file


def test_the_steps_of_a_rollout(edit: Path, dump: Path) -> None:
    result = run("-f", edit, "--against", dump)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "ns/x: makes 3 of 3 groups anew"
    assert lines[1] == "  changed: spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].image"
    assert lines[2].startswith(
        "  assumed: groups that are made become ready one after another, always the highest first;"
    )
    table = [line.split() for line in lines[4:-4]]
    assert table[0] == ["step", "after", "partition", "replicas", "down", "up", "removed", "ready", "groups", "pods"]
    assert table[1] == ["1", "the", "edit", "3", "3", "-", "-", "-", "3", "3", "3"]
    assert table[2] == ["2", "2", "3", "2", "2", "-", "2", "3", "3"]
    assert lines[-3:] == [
        "  fewest ready groups: 2 of 3; replicas − maxUnavailable is 2",
        "  at the peak: 3 groups, 3 pods, as now",
        "  end: all groups are ready and as asked for",
    ]


def test_a_dump_of_a_rollout_that_goes_on(cluster: SmallCluster, tmp_path: Path) -> None:
    """An edit that is none, where groups are made anew all the same."""
    cluster.change(image="B")
    cluster.settle()
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": objects_of(cluster)}))
    result = run("-f", "-", "--against", file, stdin=yaml.safe_dump(manifest(cluster.lws)))
    assert result.exit_code == 0, result.exception
    assert result.stdout.splitlines()[0] == "ns/x: nothing changes; what goes on already:"


def test_ages_in_a_dump_count_up_to_its_latest_time(tmp_path: Path) -> None:
    """Today both groups of a set in Hash mode are months old; when the dump was made, one was much younger."""
    lws, pods = hash_lws(replicas=2), [on("n", leader(1)), on("n", leader(2))]
    for pod, since in zip(pods, ("2026-10-20T10:00:00Z", "2026-10-20T10:02:30Z"), strict=True):
        pod["status"]["conditions"][0]["lastTransitionTime"] = since
    owner = replica_set("rs", 2)
    owner["metadata"] |= {"namespace": "ns", "labels": {names.NAME_LABEL: "x"}}
    items = [
        {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", **lws},
        {"apiVersion": "apps/v1", "kind": "Deployment", **deployment(lws)},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", **owner},
        *({"apiVersion": "v1", "kind": "Pod", **pod} for pod in pods),
    ]
    file = tmp_path / "hash.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    result = run("-f", "-", "--against", file, stdin=yaml.safe_dump(manifest(lws, replicas=1)))
    goes = "scaling 2 → 1 would remove x-rs-2: ready for 0s, shorter than 2m"
    assert f"  note: {goes} [scale-down]" in result.stdout.splitlines()
    explained = CliRunner().invoke(explain.command, ["x", "-n", "ns", "--from", str(file)])
    assert explained.stdout.splitlines()[-1] == f"S{goes[1:]}."


def hash_dump(folder: Path, *without: str) -> Path:
    """A dump of a set in Hash mode, without the objects of some kinds."""
    where = scene(2)
    kinds = [("apps/v1", "Deployment", [where.workload]), ("apps/v1", "ReplicaSet", where.between)]
    kinds += [("v1", "Pod", where.pods), ("apps/v1", "ControllerRevision", where.revisions)]
    items = [
        {"apiVersion": names.API_VERSION, "kind": names.KIND, **(where.lws or {})},
        *({"apiVersion": version, "kind": kind, **obj} for version, kind, found in kinds for obj in found if obj),
    ]
    for item in items:
        item["metadata"]["labels"] = {names.NAME_LABEL: "x", **(item["metadata"].get("labels") or {})}
    kept = [item for item in items if item["kind"] not in without]
    file = folder / "hash.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": kept}))
    return file


def test_a_dump_without_what_made_the_leaders(tmp_path: Path) -> None:
    """It is told of, by plan and by explain: what is not in it may be on the cluster all the same."""
    lws = scene(2).lws
    assert lws is not None
    text = yaml.safe_dump(manifest(lws, image="b"))
    file = hash_dump(tmp_path, "Deployment", "ReplicaSet", "ControllerRevision")
    missing = f"{file} has no Deployments and no ReplicaSets, though leaders of ns/x are in it"
    told = f"  note: {missing}: the plan takes the set for one without them, and its steps are not those of the cluster"
    assert f"{told} [partial-dump]" in run("-f", "-", "--against", file, stdin=text).stdout.splitlines()
    refused = run("--restart", "x-rs-1", "-n", "ns", "--against", file).exception
    assert isinstance(refused, ConfigurationError)
    assert str(refused).startswith(f"{missing}; save them too: `kubectl -n ns get ")
    explained = CliRunner().invoke(explain.command, ["x", "-n", "ns", "--from", str(file)])
    assert explained.exit_code == 1
    assert explained.stdout.startswith(f"blocked (partial-dump)\n{missing}, so there is no telling how it stands.")
    assert "kubectl -n ns get leaderworkersets,statefulsets,deployments,replicasets,pods" in explained.stdout
    some = run("-f", "-", "--against", hash_dump(tmp_path, "ReplicaSet"), stdin=text).stdout
    assert "has no ReplicaSets, though leaders" in some
    assert "partial-dump" not in run("-f", "-", "--against", hash_dump(tmp_path), stdin=text).stdout
    # A set that has no leaders yet lacks nothing.
    none = hash_dump(tmp_path, "Deployment", "ReplicaSet", "Pod")
    assert "partial-dump" not in run("-f", "-", "--against", none, stdin=text).stdout


def test_a_group_that_is_recreated(edit: Path, dump: Path, tmp_path: Path) -> None:
    """By its leader, its host name or its key; only in Hash mode, and instead of a manifest."""
    file = hash_dump(tmp_path)
    for group in ("x-rs-1", "x-00000001", "00000001"):
        result = run("--restart", group, "--against", file, "-n", "ns")
        assert result.exit_code == 0, result.output
        assert result.stdout.splitlines()[0] == "ns/x: recreates x-rs-1, one of 2 groups"
    assert isinstance(run("--restart", "x-rs-7", "--against", file, "-n", "ns").exception, DecisionError)
    refused = run("--restart", "x-1", "--against", dump, "-n", "ns").exception
    assert isinstance(refused, ConfigurationError)
    assert "x-1 leads no group of a set in Hash mode" in str(refused)
    for arguments in ((), ("-f", edit, "--restart", "x-rs-1")):
        result = run(*arguments, "--against", file)
        assert result.exit_code == 2
        assert "give either -f FILE or --restart GROUP" in result.output


def test_json(edit: Path, dump: Path) -> None:
    result = run("-f", edit, "--against", dump, "--output", "json")
    (found,) = json.loads(result.stdout)["plans"]
    assert (found["verdict"], found["outcome"], found["rolledGroups"]) == ("rolls", "done", 3)
    assert (found["lowestReady"], found["floor"]) == (2, 2)
    assert found["peak"] == {"groups": 3, "pods": 3, "extraGroups": 0, "extraPods": 0}
    assert [s["down"] for s in found["steps"]] == [[], [2], [1], [0], []]
    assert found["steps"][1]["why"].startswith("0 groups at the end are done and 1 may be down")


def test_the_order_of_readiness(edit: Path, dump: Path) -> None:
    result = run("-f", edit, "--against", dump, "--ready-order", "never")
    assert result.exit_code == 1
    assert "note: the set waits for group 2, which is not ready [held-updating]" in result.stdout
    bad = run("-f", edit, "--against", dump, "--ready-order", "soon")
    assert bad.exit_code == 2
    assert "'soon' is no order; use highest-first, lowest-first, together, never, or groups such as 5,4,2" in bad.output


def test_a_refused_edit(cluster: SmallCluster, dump: Path, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(yaml.safe_dump(manifest(cluster.lws, maxUnavailable=0, maxSurge=0)))
    result = run("-f", file, "--against", dump)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "ns/x: the API server refuses it"
    assert "maxUnavailable: Invalid value: 0: must not be 0 when `maxSurge` is 0" in result.stdout


def test_a_set_that_is_not_there_is_created(edit: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("{apiVersion: v1, kind: Service, metadata: {name: s}}")
    result = run("-f", edit, "--against", other)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "ns/x: creates the set with 3 groups"


def test_a_stall_has_exit_code_1_and_a_command(cluster: SmallCluster, edit: Path, tmp_path: Path) -> None:
    cluster.make_ready(0, ready=False)
    dump = tmp_path / "down.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects_of(cluster)}))
    result = run("-f", edit, "--against", dump)
    assert result.exit_code == 1
    assert "the rollout is held by group 0, which the update has not reached" in result.stdout
    assert "`kubectl -n ns delete pod x-2`" in result.stdout


def test_standard_input_and_the_namespace(cluster: SmallCluster, dump: Path) -> None:
    lws = manifest(cluster.lws, image="B")
    del lws["metadata"]["namespace"]
    text = yaml.safe_dump(lws)
    assert run("-f", "-", "--against", dump, stdin=text).stdout.startswith("default/x: creates the set")
    assert run("-f", "-", "--against", dump, "-n", "ns", stdin=text).stdout.startswith("ns/x: makes 3 of 3 groups anew")
    both = run("-f", "-", "--against", "-", stdin=text)
    assert both.exit_code == 2
    assert "- can be given once" in both.output


def test_options_of_a_cluster_beside_a_dump(edit: Path, dump: Path) -> None:
    for option in ("--kubeconfig", "--context"):
        result = run("-f", edit, "--against", dump, option, "x")
        assert result.exit_code == 2
        assert f"{option} names a cluster, and --against FILE a file instead of one" in result.output


def test_a_field_that_does_not_exist_is_refused(cluster: SmallCluster, dump: Path) -> None:
    lws = manifest(cluster.lws, image="B")
    lws["spec"]["replicaz"] = 4
    result = run("-f", "-", "--against", dump, stdin=yaml.safe_dump(lws))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "ns/x: the API server refuses it",
        "  refused: spec.replicaz: there is no such field, and kubectl apply refuses it [refused]",
    ]


def test_a_field_that_only_the_stored_set_has_is_left_alone(cluster: SmallCluster, edit: Path, tmp_path: Path) -> None:
    newer = copy.deepcopy(cluster.lws)
    newer["spec"]["ofALaterVersion"] = True
    file = tmp_path / "newer.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [newer, *objects_of(cluster)[1:]]}))
    assert run("-f", edit, "--against", file).exit_code == 0


def test_a_dump_without_the_set(cluster: SmallCluster, dump: Path) -> None:
    lws = manifest(cluster.lws)
    near = run(
        "-f", "-", "--against", dump, stdin=yaml.safe_dump({**lws, "metadata": {"name": "xx", "namespace": "ns"}})
    )
    assert near.exit_code == 0
    assert f"note: {dump} has no LeaderWorkerSet 'xx' in namespace 'ns'; did you mean x? [not-in-dump]" in near.stdout
    other = run("-f", "-", "--against", dump, stdin=yaml.safe_dump({**lws, "metadata": {"name": "x"}}))
    assert "in namespace 'default'; there are none in that namespace [not-in-dump]" in other.stdout
    assert "    namespace ns has one: say with -n where the set is" in other.stdout.splitlines()
    bad = {**manifest(cluster.lws, maxUnavailable=0, maxSurge=0), "metadata": {"name": "x"}}
    lines = run("-f", "-", "--against", dump, stdin=yaml.safe_dump(bad)).stdout.splitlines()
    assert [line.split(":")[0] for line in lines if line.endswith("]")] == ["  note", "  refused"]


@pytest.mark.parametrize(("option", "namespace"), [((), "team"), (("-n", "mine"), "mine")])
def test_the_namespace_is_that_of_the_context(
    option: tuple[str, ...],
    namespace: str,
    cluster: SmallCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "config"
    link = {"name": "c", "context": {"cluster": "k", "namespace": "team"}}
    config = {
        "kind": "Config",
        "current-context": "c",
        "contexts": [link],
        "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1"}}],
    }
    file.write_text(yaml.safe_dump(config))
    asked: list[str] = []

    async def remember(sets: list[Obj], *_: Any) -> None:
        asked.extend(lws["metadata"]["namespace"] for lws in sets)

    monkeypatch.setattr("lwskit.cli.planning.against_cluster", remember)
    lws = manifest(cluster.lws)
    del lws["metadata"]["namespace"]
    result = run("-f", "-", "--kubeconfig", file, *option, stdin=yaml.safe_dump(lws))
    assert (result.exit_code, asked) == (0, [namespace])


def test_bad_input(dump: Path, edit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sentence(*arguments: str | Path) -> str:
        error = run(*arguments).exception
        assert isinstance(error, ConfigurationError), error
        return str(error)

    service = tmp_path / "service.yaml"
    service.write_text("{apiVersion: v1, kind: Service, metadata: {name: s}}")
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    none = tmp_path / "none.yaml"
    assert sentence("-f", none, "--against", dump) == f"cannot read {none}: No such file or directory"
    assert sentence("-f", edit, "--against", none) == f"cannot read {none}: No such file or directory"
    assert "is not valid YAML" in sentence("-f", broken, "--against", dump)
    assert "is not valid YAML" in sentence("-f", edit, "--against", broken)
    assert sentence("-f", service, "--against", dump) == (
        f"{service} holds no LeaderWorkerSet of leaderworkerset.x-k8s.io/v1 and no DisaggregatedSet of "
        "disaggregatedset.x-k8s.io/v1, only Service (v1)"
    )
    assert run("--against", dump).exit_code == 2
    assert sentence("-f", edit, "--against", edit) == (
        f"{edit}: LeaderWorkerSet x has no metadata.uid; a dump is what kubectl get -o yaml prints, no manifest"
    )
    hollow = tmp_path / "hollow.yaml"
    hollow.write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}}")
    assert "Pod p has no spec" in sentence("-f", edit, "--against", hollow)
    hollow.write_text("{apiVersion: a/v1, kind: LeaderWorkerSet, metadata: {name: x}, spec: {}}")
    assert "LeaderWorkerSet x has no spec.leaderWorkerTemplate" in sentence("-f", edit, "--against", hollow)
    monkeypatch.setenv("KUBECONFIG", str(none))
    monkeypatch.setattr("lwskit.cli.logs.setup", lambda *_: None)
    assert str(none) in sentence("-f", edit)
