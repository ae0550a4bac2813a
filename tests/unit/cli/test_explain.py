"""`lwskit explain`: dumps, names, options and exit codes."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from lwskit.api import names
from lwskit.cli.explain import command
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.objects import Obj
from tests.unit.groups.small_cluster import SmallCluster
from tests.unit.simulate.scenes import objects_of, small


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], input=stdin)


def dumped(cluster: SmallCluster, folder: Path, *more: Obj) -> Path:
    assert cluster.workload is not None
    status = {"replicas": len(cluster.leaders), "observedGeneration": 1}
    cluster.workload = {**cluster.workload, "status": status}
    cluster.workload["metadata"] = {**cluster.workload["metadata"], "generation": 1}
    file = folder / "dump.yaml"
    items = [*objects_of(cluster), *more]
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    return file


def test_all_is_well(tmp_path: Path) -> None:
    result = run("x", "-n", "ns", "--from", dumped(small(2), tmp_path))
    assert (result.exit_code, result.stdout) == (
        0,
        "ok\nns/x: 2 of 2 groups are ready; 2 are of the newest revision. All is well.\n"
        "Scaling 2 → 1 would remove x-1: a StatefulSet removes the highest ordinal first, here 1.\n",
    )


def test_options_of_a_cluster_beside_a_dump(tmp_path: Path) -> None:
    result = run("x", "--from", dumped(small(2), tmp_path), "--kubeconfig", "a", "--context", "b")
    assert result.exit_code == 2
    assert "--kubeconfig and --context name a cluster, and --from a file instead of one" in result.output


@pytest.mark.parametrize(("option", "namespace"), [((), "team"), (("-n", "mine"), "mine")])
def test_the_namespace_is_that_of_the_context(
    option: tuple[str, ...], namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config"
    config = {
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "namespace": "team"}}],
        "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1"}}],
    }
    file.write_text(yaml.safe_dump(config))

    async def refuse(where: str, name: str, *_: object) -> None:
        raise ConfigurationError(f"looked for {where}/{name}")

    monkeypatch.setattr("lwskit.cli.explaining.from_cluster", refuse)
    assert str(run("x", "--kubeconfig", file, *option).exception) == f"looked for {namespace}/x"


def test_the_state_and_the_cause_stand_first(tmp_path: Path) -> None:
    cluster = small(2)
    cluster.make_ready(1, ready=False)
    cluster.settle()
    result = run("x", "-n", "ns", "--from", dumped(cluster, tmp_path))
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "progressing (not-scheduled)")


def test_a_dump_without_events_says_so(tmp_path: Path) -> None:
    cluster = small(2)
    cluster.make_ready(1, ready=False)
    cluster.settle()
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "another"}}
    assert "There are no events in the dump: " in run("x", "-n", "ns", "--from", dumped(cluster, tmp_path)).stdout
    assert "no events" not in run("x", "-n", "ns", "--from", dumped(cluster, tmp_path, event)).stdout


def test_times_count_from_the_latest_one_in_the_dump(tmp_path: Path) -> None:
    cluster = small(1, size=2)
    cluster.lws["spec"]["leaderWorkerTemplate"]["restartBackoff"] = {"baseSeconds": 300, "capSeconds": 300}
    pod = copy.deepcopy(cluster.leaders[0])
    pod["metadata"]["creationTimestamp"] = "2026-10-20T10:00:30Z"
    pod["metadata"]["annotations"][names.GROUP_RECREATE_PENDING_ANNOTATION] = "x-0-1"
    pod["status"]["conditions"][0]["lastTransitionTime"] = "2026-10-20T10:01:30Z"
    cluster._put_leader(0, pod)
    result = run("x", "-n", "ns", "--from", dumped(cluster, tmp_path))
    assert "for about 240 s more" in result.stdout


def test_json_and_exit_code_1_for_what_is_blocked(tmp_path: Path) -> None:
    cluster = small(3)
    cluster.make_ready(0, ready=False)
    cluster.change(image="B")
    cluster.settle()
    result = run("x", "-n", "ns", "--from", dumped(cluster, tmp_path), "-o", "json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["state"], found["cause"], found["group"]) == ("blocked", "formula-hold", 0)
    assert found["waitsFor"] == "group 0 to become ready"
    assert "`kubectl -n ns delete pod x-2`" in found["advice"][1]
    assert found["paragraph"].startswith(
        "ns/x: 2 of 3 groups are ready; 0 are of the newest revision; the partition is 3. "
    )


@pytest.mark.parametrize("version", ["v1", "events.k8s.io/v1"])
def test_events_of_either_api_group(version: str, tmp_path: Path) -> None:
    cluster = small(2)
    cluster.remove(1)
    meta = {"name": "e", "namespace": "ns"}
    note = "create Pod x-1 in StatefulSet x failed error: exceeded quota"
    about = {"kind": "StatefulSet", "name": "x", "namespace": "ns", "apiVersion": "apps/v1"}
    event: Obj = {"apiVersion": version, "kind": "Event", "metadata": meta, "reason": "FailedCreate", "type": "Warning"}
    if version == "v1":
        event |= {"involvedObject": about, "message": note, "lastTimestamp": "2026-10-20T10:00:00Z"}
    else:
        event |= {"regarding": about, "note": note, "eventTime": "2026-10-20T10:00:00.000000Z"}
    result = run("x", "-n", "ns", "--from", dumped(cluster, tmp_path, event))
    assert result.exit_code == 1
    assert f"Pod x-1 does not exist: {note}." in result.stdout


def test_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sentence(*arguments: str | Path) -> str:
        error = run(*arguments).exception
        assert isinstance(error, ConfigurationError), error
        return str(error)

    dump, none = dumped(small(1), tmp_path), tmp_path / "none.yaml"
    assert sentence("x", "--from", none) == f"cannot read {none}: No such file or directory"
    assert sentence("y", "-n", "ns", "--from", dump) == (
        f"{dump} has no LeaderWorkerSet 'y' in namespace 'ns'; there are: x"
    )
    assert sentence("xx", "-n", "ns", "--from", dump).endswith("did you mean x?")
    assert sentence("x", "--from", dump).endswith("in namespace 'default'; there are none in that namespace")
    assert run().exit_code == 2
    monkeypatch.setenv("KUBECONFIG", str(none))
    assert str(none) in sentence("x")
