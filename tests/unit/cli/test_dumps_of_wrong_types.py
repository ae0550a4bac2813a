"""Dumps with a value of a wrong type somewhere: one sentence with the object and the field, or an answer all the same.

Every place of good dumps gets every wrong value as far as reading goes; a part of them goes on to the commands.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lwskit.api.validation import NO_SCHEDULING, SchedulingSupport
from lwskit.cli import dumped, observed
from lwskit.cli.main import cli
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.lint.server import Server
from lwskit.runtime.errors import ConfigurationError, LwskitError
from lwskit.runtime.kinds import CONTROLLER_REVISION, DEPLOYMENT, POD, REPLICA_SET
from lwskit.runtime.objects import Obj, is_of
from lwskit.runtime.typed import DecodeError, MissingError
from tests.unit.doctor.patients import chat, child
from tests.unit.doctor.test_children import external, scaler
from tests.unit.simulate import test_plan_hash as hashed
from tests.unit.simulate.families import objects as whole
from tests.unit.simulate.families import paced, with_image
from tests.unit.simulate.scenes import objects_of, small, typed
from tests.unit.simulate.test_disaggregated_plan_subroles import divided

WRONG: Sequence[Any] = ("x", -1, 2.5, True, None, [None], {"x": 1})
MORE: Sequence[Any] = (*WRONG, "", 7, False, [], ["x"], [{}], {}, {"x": None})
RUNS = 6
"""Changed dumps that each command reads of each dump: they take most of the time."""
_NAMING = ("apiVersion", "kind")
"""What every manifest needs, and is looked at before."""
Place = tuple[str | int, ...]

EVENT: Obj = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "ns", "creationTimestamp": "2026-10-20T10:00:00Z"},
    "involvedObject": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "namespace": "ns", "uid": "u"},
    "related": {"kind": "Pod", "name": "x-0"},
    "type": "Warning",
    "reason": "FailedCreate",
    "message": "exceeded quota",
    "firstTimestamp": "2026-10-20T09:59:00Z",
    "lastTimestamp": "2026-10-20T10:00:00Z",
    "count": 3,
    "series": {"count": 2, "lastObservedTime": "2026-10-20T10:00:00.000000Z"},
}
NODE: Obj = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n0", "labels": {"rack": "a"}},
    "spec": {"unschedulable": True, "taints": [{"key": "a", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "1"}, "conditions": [{"type": "Ready", "status": "False"}]},
}


def in_order() -> list[Obj]:
    """A set in Ordinal mode, one of whose groups is not ready."""
    cluster = small(2, size=2)
    cluster.make_ready(1, ready=False)
    cluster.settle()
    return [*objects_of(cluster), EVENT, NODE]


def with_keys() -> list[Obj]:
    """A set in Hash mode."""
    found = hashed.scene(2, ready=1, left=(1,))
    assert found.lws is not None
    assert found.workload is not None
    found.workload["metadata"].setdefault("namespace", "ns")
    return [
        typed(LEADER_WORKER_SET, found.lws),
        typed(DEPLOYMENT, found.workload),
        *(typed(REPLICA_SET, one) for one in found.between),
        *(typed(POD, one) for one in found.pods),
        *(typed(CONTROLLER_REVISION, one) for one in found.revisions),
        NODE,
    ]


def of_roles() -> list[Obj]:
    """A set with a divided role and one that others scale."""
    ds = divided(chat(paced("prefill", 2), external("decode")), a=1, b=1)
    children = {"prefill": child(ds, "prefill", 2), "decode": child(ds, "decode", 1)}
    return [*whole(ds, children), scaler(ds, "decode")]


DUMPS = {"ordinal": in_order, "hash": with_keys, "disaggregated": of_roles}


@cache
def _text(name: str) -> str:
    return json.dumps(DUMPS[name]())


def objects(name: str) -> list[Obj]:
    return json.loads(_text(name))


def places(value: Any, begin: Place = ()) -> Iterator[Place]:
    """Every place in a value but the value itself."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*begin, key)
            yield from places(value[key], (*begin, key))


def put(obj: Obj, place: Place, value: Any) -> Obj:
    """A copy with another value in a place."""
    new = copy.deepcopy(obj)
    owner: Any = new
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = copy.deepcopy(value)
    return new


def read(obj: Obj) -> tuple[Obj | None, str]:
    """What is read of an object; of one that is refused the field."""
    try:
        return dumped.conformed(obj), ""
    except DecodeError as error:
        return None, error.path


def _steps(path: str) -> list[str]:
    """A path as a sentence has it, in steps: keys of maps and numbers of items stand in brackets."""
    return [key or name for key, name in re.findall(r"\[([^\]]*)\]|([^.\[]+)", path)]


@pytest.mark.parametrize("name", DUMPS)
def test_what_can_be_read_is_of_its_type_and_what_cannot_is_named(name: str) -> None:
    """Read again, what was read is the same: a place that is refused lies on the way to the wrong value, or in it."""
    refused = 0
    for obj in objects(name):
        for place in places(obj):
            if place[0] in _NAMING:
                continue
            for value in WRONG:
                found, path = read(put(obj, place, value))
                if found is not None:
                    assert dumped.conformed(found) == found
                else:
                    refused += 1
                    assert _steps(path)[: len(place)] == [*map(str, place)][: len(_steps(path))], (place, value, path)
    assert refused > 1000


@pytest.mark.parametrize("name", DUMPS)
def test_a_good_dump_is_read_as_it_is(name: str) -> None:
    for obj in objects(name):
        assert dumped.conformed(obj) == obj


def commands(name: str, folder: Path, wanted: Sequence[Obj]) -> Iterator[list[str]]:
    """What is asked of a dump; lint reads the sets in it as manifests, and as those that are there."""
    manifest, dump, there = folder / "set.yaml", folder / "dump.yaml", folder / "sets.yaml"
    yield ["plan", "-f", str(manifest), "--against", str(dump), "-n", "ns"]
    yield ["explain", wanted[0]["metadata"]["name"], "-n", "ns", "--from", str(dump), "-o", "json"]
    yield ["doctor", "--from", str(dump), "-n", "ns"]
    yield ["lint", "-n", "ns", "--old", str(there), str(manifest), str(there)]
    if name == "hash":
        yield ["plan", "--restart", "x-rs-0", "--against", str(dump), "-n", "ns"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> None:
    """One server for all runs: to make one takes longer than most of what it is asked."""
    for module in ("cli.planning", "cli.disaggregated_planning", "lint.server"):
        monkeypatch.setattr(f"lwskit.{module}.Server", _server)


@cache
def _server(support: SchedulingSupport = NO_SCHEDULING) -> Server:
    return Server(support)


def asked(name: str, folder: Path, changed: Sequence[Obj], which: int) -> Iterator[tuple[list[str], Result]]:
    """What commands say of a dump, and of the object that was changed in it or else the set as manifests."""
    whole = objects(name)
    manifest = with_image(whole[0], "z") if name == "disaggregated" else whole[0]
    manifest = {**manifest, "metadata": {"name": whole[0]["metadata"]["name"], "namespace": "ns"}, "status": None}
    manifest["spec"]["rolloutStrategy"] = None
    lists = {"set": [manifest], "dump": changed, "there": [changed[which], changed[0]]}
    files: dict[str, str] = {}
    for stem, items in lists.items():
        files[stem] = str(folder / f"{stem}.json")
        Path(files[stem]).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    commands = [
        ["plan", "-f", files["set"], "--against", files["dump"], "-n", "ns"],
        ["explain", whole[0]["metadata"]["name"], "-n", "ns", "--from", files["dump"], "-o", "json"],
        ["doctor", "--from", files["dump"], "-n", "ns"],
        ["lint", "-n", "ns", "--old", files["there"], files["set"], files["there"]],
    ]
    if name == "hash":
        commands.append(["plan", "--restart", "x-rs-0", "--against", files["dump"], "-n", "ns"])
    for command in commands:
        yield command, CliRunner().invoke(cli, command)


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("name", DUMPS)
def test_commands_answer_or_say_one_sentence(name: str, tmp_path: Path) -> None:
    """Of dumps that can be read, however wrong; what cannot be read is refused before anything else is done."""
    rng, there = random.Random(name), objects(name)
    every = [(which, place) for which, obj in enumerate(there) for place in places(obj)]
    runs = 0
    while runs < RUNS:
        (which, place), value = rng.choice(every), rng.choice(MORE)
        wrong = put(there[which], place, value)
        if place[0] not in _NAMING and read(wrong)[0] is None:
            continue
        runs += 1
        answered(name, tmp_path, there, which, wrong, (wrong["kind"], place, value))


def answered(name: str, folder: Path, there: Sequence[Obj], which: int, wrong: Obj, told: object) -> None:
    """Every command answers, or says one sentence, where one object of a dump is another."""
    for command, done in asked(name, folder, [*there[:which], wrong, *there[which + 1 :]], which):
        error = done.exception
        assert error is None or isinstance(error, SystemExit | LwskitError), (command[0], told)
        assert "\n" not in str(error or ""), (command[0], told)


_PACE = ("spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition")
ONCE: Sequence[tuple[str, str, Place, Any]] = [
    ("ordinal", "LeaderWorkerSet", _PACE, -1),
    ("ordinal", "LeaderWorkerSet", ("apiVersion",), "x"),
    ("ordinal", "StatefulSet", ("spec",), {}),
    ("ordinal", "Pod", ("metadata", "name"), "x"),
    ("ordinal", "Pod", ("metadata", "name"), "y-0"),
    ("ordinal", "ControllerRevision", ("data", "spec", "networkConfig"), None),
    ("ordinal", "Event", ("apiVersion",), "x/v1"),
    ("hash", "LeaderWorkerSet", ("spec", "leaderWorkerTemplate", "workerTemplate", "spec"), None),
    ("hash", "Deployment", ("spec",), {}),
    ("hash", "ControllerRevision", ("data", "spec", "leaderWorkerTemplate"), None),
    ("disaggregated", "DisaggregatedSet", ("apiVersion",), "x"),
]


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(("name", "kind", "place", "value"), ONCE)
def test_what_ended_in_a_traceback_once(name: str, kind: str, place: Place, value: Any, tmp_path: Path) -> None:
    there = objects(name)
    which = next(number for number, obj in enumerate(there) if obj["kind"] == kind)
    answered(name, tmp_path, there, which, put(there[which], place, value), place)


@pytest.mark.usefixtures("server")
def test_all_that_read_a_dump_say_the_same_of_it(tmp_path: Path) -> None:
    there = objects("hash")
    there[1] = put(there[1], ("status",), {"conditions": "x"})
    said = {command[0]: str(done.exception or "") + done.stderr for command, done in asked("hash", tmp_path, there, 1)}
    text = f'{tmp_path}/dump.json: Deployment x: status.conditions: must be a list, not "x"; a dump is what kubectl get'
    assert [command for command, sentence in said.items() if text in sentence] == ["plan", "explain", "doctor"]


def written(folder: Path, obj: Obj) -> str:
    file = folder / "dump.yaml"
    file.write_text(json.dumps(obj))
    return str(file)


POD_OBJECT: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u"}, "spec": {"containers": []}}
SAID = [
    (("metadata", "labels"), {"a": 5}, ": metadata.labels[a]: must be a string, not 5; a dump is what kubectl get"),
    (("metadata", "labels"), "x", ': metadata.labels: must be an object, not "x"; a dump is what kubectl get'),
    (("spec", "containers"), [None], ": spec.containers[0]: must be an object, not null; "),
    (("spec", "containers"), {}, ": spec.containers: must be a list, not {}; "),
    (("status",), {"conditions": "x"}, ': status.conditions: must be a list, not "x"; '),
    (("status",), {"conditions": [{"type": "Ready"}]}, " has no status.conditions[0].status; a dump is what kubectl"),
    (("metadata", "ownerReferences"), [{"kind": "X"}], " has no metadata.ownerReferences[0].name; "),
    (("metadata", "creationTimestamp"), "today", ": metadata.creationTimestamp: must be a time such as"),
    (("spec",), None, " has no spec; a dump is what kubectl get -o yaml prints"),
]


@pytest.mark.parametrize(("place", "value", "said"), SAID)
def test_the_sentence_has_the_file_the_object_and_the_field(
    place: Place, value: Any, said: str, tmp_path: Path
) -> None:
    file = written(tmp_path, put(POD_OBJECT, place, value))
    with pytest.raises(ConfigurationError) as refused:
        observed.read_dump(file)
    assert str(refused.value).startswith(f"{file}: Pod p{said}")


def test_nulls_are_absent_and_what_is_unknown_stays(tmp_path: Path) -> None:
    pod = copy.deepcopy(POD_OBJECT)
    pod["metadata"] |= {"labels": None, "annotations": {"a": None, "b": "c"}, "generation": 2.0}
    pod["spec"] |= {"tomorrow": [None, {"x": None}], "nodeName": None}
    (read,) = observed.read_dump(written(tmp_path, pod))
    assert read["metadata"] == {
        "name": "p",
        "uid": "u",
        "namespace": "default",
        "annotations": {"b": "c"},
        "generation": 2,
    }
    assert type(read["metadata"]["generation"]) is int
    assert read["spec"] == {"containers": [], "tomorrow": [None, {"x": None}]}


def test_of_other_kinds_only_the_metadata_is_looked_at(tmp_path: Path) -> None:
    service = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": 1},
    }
    (read,) = observed.read_dump(written(tmp_path, service))
    assert read["spec"] == {"ports": 1}
    with pytest.raises(ConfigurationError, match=r"Service s: metadata\.labels: must be an object, not 1"):
        observed.read_dump(written(tmp_path, put(service, ("metadata", "labels"), 1)))


def test_the_data_of_revisions_is_read_and_stays_to_the_last_null() -> None:
    revision = next(o for o in objects("ordinal") if is_of(o, CONTROLLER_REVISION))
    template = revision["data"]["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    template["metadata"] = {"creationTimestamp": None}
    assert dumped.conformed(revision)["data"] == revision["data"]
    template["spec"]["containers"] = None
    with pytest.raises(MissingError, match=r"data\.spec\.leaderWorkerTemplate\.workerTemplate\.spec\.containers"):
        dumped.conformed(revision)
