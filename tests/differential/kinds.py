"""What the objects of a differential run are made of: for each kind a whole object, and the fields that steps set."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.differential import widget
from tests.differential.rules import ruled
from tests.differential.steps import NAMESPACE

Path = tuple[Any, ...]
Values = Sequence[Any] | Callable[[random.Random], Any]
Palette = Sequence[tuple[Path, Values]]


@dataclass(frozen=True)
class Tested:
    """One kind: where its objects are, a minimal one, the fields to play with, and its subresources."""

    api_version: str
    kind: str
    collection: str
    minimal: Callable[[], dict[str, Any]]
    palette: Palette
    status: Palette = ()
    scale: bool = False
    custom: bool = False
    bad: Palette = field(default=())

    def path(self, name: str) -> str:
        """The path of one object."""
        return f"{self.collection}/{name}"

    def whole(self, name: str) -> dict[str, Any]:
        """A minimal object that is accepted."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            **self.minimal(),
        }


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "11111111-1111-4111-8111-111111111111"}
OTHER = {"apiVersion": "v1", "kind": "Secret", "name": "other", "uid": "22222222-2222-4222-8222-222222222222"}

META: Palette = (
    (("metadata", "labels", "tier"), ("a", "b")),
    (("metadata", "labels", "app"), ("x", "y", "")),
    (("metadata", "labels"), ({"tier": "a"}, {"tier": "b", "app": "x"}, {})),
    (("metadata", "annotations", "note"), ("one", "two", "")),
    (("metadata", "annotations", "example.com/hint"), ("3", "4")),
    (("metadata", "annotations"), ({"note": "three"}, {})),
    (
        ("metadata", "finalizers"),
        (["example.com/one"], ["example.com/one", "example.com/two"], ["example.com/two"], []),
    ),
    (("metadata", "ownerReferences"), ([OWNER], [OWNER, OTHER], [{**OWNER, "controller": True}], [OTHER], [])),
)
BAD_META: Palette = (
    (("metadata", "labels", "tier"), ("not a label", "-", "x" * 64)),
    (("metadata", "labels", "bad key!"), ("a",)),
    (("metadata", "annotations", "bad key!"), ("a",)),
    (("metadata", "finalizers"), (["unqualified"], ["example.com/a b"], ["foregroundDeletion"], ["orphan"])),
    (("metadata", "ownerReferences"), ([{"apiVersion": "v1", "kind": "Pod"}], [{**OWNER, "uid": ""}])),
    (
        ("metadata", "ownerReferences"),
        ([{**OWNER, "controller": True}, {**OTHER, "controller": True}], [OWNER, OWNER], [{"kind": "Event", **OTHER}]),
    ),
    (("metadata", "name"), ("other",)),
    (("metadata", "namespace"), ("elsewhere",)),
    (("metadata", "uid"), ("$uid", "00000000-0000-4000-8000-00000000000b")),
    (("metadata", "resourceVersion"), ("$stale", "$version", "abc", "999999999", "0")),
    (("metadata", "generation"), (7,)),
    (("metadata", "creationTimestamp"), ("2001-01-01T00:00:00Z",)),
    (("metadata", "deletionTimestamp"), ("2001-01-01T00:00:00Z",)),
    (("metadata", "managedFields"), ([], [{}], [{"manager": "zoe", "operation": "Update"}])),
    (("metadata", "selfLink"), ("/x",)),
    (("metadata", "generateName"), ("gen-",)),
    (("metadata", "labels"), ("x", 1, ["a"])),
    (("metadata",), ("x", [])),
    (("metadata", "unknown"), ("x",)),
    (("apiVersion",), ("v2", "apps/v1", "v1", "")),
    (("kind",), ("Secret", "Nothing", "")),
    (("unknown",), (1, {"a": 1})),
    (("spec", "unknown"), (1, None)),
    (("spec",), ("x", 1, [], None)),
    (("status",), ("x", [], {"unknown": 1})),
)


def pick(rng: random.Random, values: Values) -> Any:
    """One of the values, a fresh copy."""
    return copy(values(rng) if callable(values) else rng.choice(values))


def copy(value: Any) -> Any:
    """A copy down to the leaves."""
    if isinstance(value, dict):
        return {k: copy(v) for k, v in value.items()}
    return [copy(v) for v in value] if isinstance(value, list) else value


def put(obj: dict[str, Any], path: Path, value: Any) -> None:
    """Set a field, making the objects around it."""
    target: Any = obj
    for name in path[:-1]:
        below = target.get(name)
        if not isinstance(below, dict):
            below = target[name] = {}
        target = below
    target[path[-1]] = value


def filled(rng: random.Random, palette: Palette, count: int) -> dict[str, Any]:
    """An object of `count` fields (or fewer, where they overlap)."""
    out: dict[str, Any] = {}
    for path, values in rng.choices(palette, k=count):
        put(out, path, pick(rng, values))
    return out


# -- pods and templates ------------------------------------------------------------------------------------------------

ENV = (
    {"name": "A", "value": "1"},
    {"name": "A", "value": "2"},
    {"name": "B", "value": "1"},
    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
)
PORTS = (
    {"containerPort": 80},
    {"containerPort": 80, "protocol": "UDP"},
    {"containerPort": 81, "name": "web"},
    {"containerPort": 82, "protocol": "TCP", "name": "more"},
)
_CONTAINER: Palette = (
    (("image",), ("i:1", "i:2", "i", "r/i:latest")),
    (("command",), (["a"], ["a", "b"], [])),
    (("args",), (["x"],)),
    (("resources",), ({"limits": {"cpu": "1000m"}}, {"requests": {"memory": "1024Mi", "cpu": 1}}, {})),
    (("imagePullPolicy",), ("Never", "IfNotPresent")),
    (("livenessProbe",), ({"httpGet": {"port": 80}}, {"exec": {"command": ["a"]}, "periodSeconds": 3})),
    (("readinessProbe",), ({"tcpSocket": {"port": "web"}},)),
    (("volumeMounts",), ([{"name": "v", "mountPath": "/v"}], [{"name": "w", "mountPath": "/w", "readOnly": True}])),
    (("securityContext",), ({"privileged": False}, {"runAsUser": 1, "capabilities": {"add": ["A"]}}, {})),
    (("workingDir",), ("/a", "")),
    (("tty",), (True, False)),
)


def _some(rng: random.Random, values: Sequence[dict[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """Some of the values, no two with the same key, in any order."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in rng.sample(values, k=rng.randint(1, 3)):
        found.setdefault(tuple(one.get(k) for k in keys), one)
    return list(found.values())


def container(rng: random.Random, name: str) -> dict[str, Any]:
    """A container with some fields."""
    out = {"name": name, "image": "i:1", **filled(rng, _CONTAINER, rng.randint(0, 3))}
    if rng.random() < 0.4:
        out["env"] = _some(rng, ENV, ("name",))
    if rng.random() < 0.4:
        out["ports"] = _some(rng, PORTS, ("containerPort", "protocol"))
    return out


def containers(rng: random.Random) -> list[dict[str, Any]]:
    """One or two containers, in any order."""
    return [container(rng, name) for name in rng.sample(("c", "d", "e"), k=rng.choice((1, 1, 2)))]


VOLUMES = (
    {"name": "v", "emptyDir": {}},
    {"name": "w", "configMap": {"name": "c"}},
    {"name": "v", "secret": {"secretName": "s"}},
)
TOLERATIONS = (
    {"key": "k", "operator": "Exists"},
    {"key": "k", "value": "v", "effect": "NoSchedule"},
    {"key": "n", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
)
_TERM = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}
POD_SPEC: Palette = (
    (("containers",), containers),
    (("containers",), containers),
    (("initContainers",), lambda rng: [container(rng, "init")]),
    (("volumes",), lambda rng: _some(rng, VOLUMES, ("name",))),
    (("tolerations",), lambda rng: rng.sample(TOLERATIONS, k=rng.randint(1, 2))),
    (("nodeSelector",), ({"a": "b"}, {"c": "d"}, {})),
    (("nodeSelector", "a"), ("b", "x")),
    (("terminationGracePeriodSeconds",), (0, 5, 30)),
    (("restartPolicy",), ("Always",)),
    (("dnsPolicy",), ("Default",)),
    (("hostNetwork",), (True, False)),
    (("hostname",), ("h",)),
    (("securityContext",), ({"runAsUser": 5}, {"fsGroup": 1, "runAsNonRoot": True}, {})),
    (("affinity",), ({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}}, {})),
    (("topologySpreadConstraints",), ([{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],)),
    (("imagePullSecrets",), ([{"name": "s"}], [{"name": "t"}, {"name": "s"}])),
    (("serviceAccountName",), ("sa",)),
    (("automountServiceAccountToken",), (False,)),
    (("enableServiceLinks",), (False,)),
    (("hostAliases",), ([{"ip": "1.2.3.4", "hostnames": ["a"]}],)),
    (("readinessGates",), ([{"conditionType": "a"}],)),
    (("priorityClassName",), ("system-node-critical",)),
)
BAD_POD_SPEC: Palette = (
    (("containers",), ([], [{"name": "c"}], [{"name": "Bad_", "image": "i"}], [{"image": "i"}], None)),
    (("containers",), ([{"name": "c", "image": "i"}, {"name": "c", "image": "i"}], "x", [1])),
    (("containers",), ([{"name": "c", "image": "i", "ports": [{"containerPort": 0}]}],)),
    (("containers",), ([{"name": "c", "image": "i", "resources": {"limits": {"cpu": "many"}}}],)),
    (("containers",), ([{"name": "c", "image": "i", "unknown": 1}],)),
    (("containers",), ([{"name": "c", "image": "i", "env": [{"name": "A"}, {"name": "A", "value": "2"}]}],)),
    (("restartPolicy",), ("Sometimes", "Never")),
    (("terminationGracePeriodSeconds",), (-1, "5")),
    (("nodeSelector",), ({"bad key!": "a"},)),
    (("tolerations",), ([{"value": "v"}], [{"key": "k", "operator": "Like"}])),
    (("volumes",), ([{"name": "v"}, {"name": "v"}], [{"name": "v", "emptyDir": {}, "secret": {}}])),
    (("priorityClassName",), ("missing",)),
)


def _below(prefix: Path, palette: Palette) -> Palette:
    return tuple(((*prefix, *path), values) for path, values in palette)


POD_STATUS: Palette = (
    (("status", "phase"), ("Pending", "Running", "Succeeded", "Failed")),
    (("status", "reason"), ("Why", "")),
    (("status", "podIP"), ("10.0.0.1",)),
    (("status", "podIPs"), ([{"ip": "10.0.0.1"}],)),
    (
        ("status", "conditions"),
        (
            [{"type": "Ready", "status": "True"}],
            [{"type": "Ready", "status": "False", "reason": "R"}, {"type": "A", "status": "True"}],
            [{"type": "A", "status": "Unknown", "lastTransitionTime": "2020-01-01T00:00:00Z"}],
            [],
        ),
    ),
    (
        ("status", "containerStatuses"),
        ([{"name": "c", "ready": True, "image": "i", "imageID": "", "restartCount": 1, "state": {"running": {}}}],),
    ),
    (("status", "nominatedNodeName"), ("n",)),
)
# -- the kinds ---------------------------------------------------------------------------------------------------------

CONFIG_MAP = Tested(
    "v1",
    "ConfigMap",
    f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    lambda: {"data": {"x": "0"}},
    (
        *META,
        (("data", "x"), ("1", "2", "")),
        (("data", "y"), ("1", "2")),
        (("data", "z"), ("1",)),
        (("data",), ({"x": "9"}, {"y": "1", "z": "2"}, {})),
        (("binaryData", "b"), ("YQ==", "YWI=")),
        (("immutable",), (True, False, False)),
    ),
    bad=(
        *BAD_META,
        (("data",), ({"bad key!": "1"}, {"x": 1}, "x", ["x"], None)),
        (("binaryData",), ({"b": "not base64!"}, {"x": "YQ=="})),
        (("immutable",), ("yes",)),
    ),
)
POD = Tested(
    "v1",
    "Pod",
    f"/api/v1/namespaces/{NAMESPACE}/pods",
    lambda: {"spec": {"containers": [{"name": "c", "image": "i:1"}]}},
    (
        *META,
        *META,
        *_below(("spec",), POD_SPEC),
        (("spec", "activeDeadlineSeconds"), (10, 20, 5)),
        (("spec", "schedulingGates"), ([{"name": "a"}], [{"name": "b"}], [])),
    ),
    POD_STATUS,
    bad=(*BAD_META, *_below(("spec",), BAD_POD_SPEC), (("spec", "nodeName"), ("n", "Bad_"))),
)
SERVICE_PORTS = (
    {"name": "a", "port": 80},
    {"name": "b", "port": 81, "targetPort": "web"},
    {"name": "a", "port": 82, "targetPort": 8080, "protocol": "TCP"},
    {"name": "c", "port": 80, "protocol": "UDP"},
    {"name": "d", "port": 83, "appProtocol": "http"},
)
SERVICE = Tested(
    "v1",
    "Service",
    f"/api/v1/namespaces/{NAMESPACE}/services",
    lambda: {"spec": {"ports": [{"port": 80}]}},
    (
        *META,
        (("spec", "ports"), lambda rng: _some(rng, SERVICE_PORTS, ("name",))),
        (("spec", "ports"), lambda rng: _some(rng, SERVICE_PORTS, ("name",))),
        (("spec", "selector"), ({"a": "b"}, {"c": "d"}, {})),
        (("spec", "selector", "a"), ("b", "x")),
        (("spec", "type"), ("ClusterIP", "NodePort", "LoadBalancer")),
        (("spec", "clusterIP"), ("None",)),
        (("spec", "sessionAffinity"), ("ClientIP", "None")),
        (("spec", "publishNotReadyAddresses"), (True, False)),
        (("spec", "internalTrafficPolicy"), ("Local", "Cluster")),
        (("spec", "externalIPs"), (["1.2.3.4"], [])),
        (("spec", "trafficDistribution"), ("PreferClose",)),
    ),
    (
        (("status", "loadBalancer"), ({"ingress": [{"ip": "1.2.3.4"}]}, {"ingress": [{"hostname": "h"}]}, {})),
        (("status", "conditions"), ([],)),
    ),
    bad=(
        *BAD_META,
        (("spec", "type"), ("Other", "ExternalName")),
        (("spec", "ports"), ([], [{"port": 0}], [{"port": 1}, {"port": 2}], [{"port": 1, "name": "Bad_"}], "x")),
        (("spec", "ports"), ([{"port": 1, "name": "a"}, {"port": 1, "name": "b"}], [{"port": 1, "protocol": "X"}])),
        (("spec", "clusterIP"), ("1.1.1.1", "none", "")),
        (("spec", "sessionAffinity"), ("Maybe",)),
        (("spec", "selector"), ({"bad key!": "a"}, "x")),
    ),
)
STATEFUL_SET = Tested(
    "apps/v1",
    "StatefulSet",
    f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets",
    lambda: {
        "spec": {
            "serviceName": "s",
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i:1"}]},
            },
        }
    },
    (
        *META,
        (("spec", "replicas"), (0, 1, 2, 3)),
        (("spec", "replicas"), (0, 1, 2, 3)),
        (("spec", "minReadySeconds"), (0, 3)),
        (("spec", "revisionHistoryLimit"), (1, 10)),
        (
            ("spec", "updateStrategy"),
            ({"type": "OnDelete"}, {"rollingUpdate": {"partition": 1}}, {"type": "RollingUpdate"}),
        ),
        (("spec", "updateStrategy", "rollingUpdate", "partition"), (0, 2)),
        (("spec", "updateStrategy", "rollingUpdate", "maxUnavailable"), (1, "10%")),
        (("spec", "ordinals"), ({"start": 1}, {})),
        (("spec", "persistentVolumeClaimRetentionPolicy"), ({"whenDeleted": "Delete"}, {"whenScaled": "Delete"})),
        (("spec", "template", "metadata", "labels", "x"), ("1", "2")),
        (("spec", "template", "metadata", "annotations", "x"), ("1", "2")),
        *_below(("spec", "template", "spec"), POD_SPEC),
    ),
    (
        (("status", "replicas"), (0, 1, 2)),
        (("status", "readyReplicas"), (0, 1)),
        (("status", "currentReplicas"), (1,)),
        (("status", "observedGeneration"), (1, 2)),
        (("status", "currentRevision"), ("r1", "r2")),
        (("status", "collisionCount"), (0, 1)),
        (("status", "conditions"), ([{"type": "A", "status": "True"}], [])),
    ),
    scale=True,
    bad=(
        *BAD_META,
        (("spec", "replicas"), (-1, "2", 1.5)),
        (("spec", "serviceName"), ("t",)),
        (("spec", "podManagementPolicy"), ("Parallel", "Serial")),
        (("spec", "selector"), ({"matchLabels": {"a": "c"}}, {}, None)),
        (("spec", "template", "metadata", "labels"), ({"z": "z"},)),
        (("spec", "updateStrategy"), ({"type": "Other"}, {"type": "OnDelete", "rollingUpdate": {"partition": 1}})),
        (("spec", "ordinals"), ({"start": -1},)),
        *_below(("spec", "template", "spec"), BAD_POD_SPEC),
    ),
)
ITEMS = (
    {"name": "a"},
    {"name": "a", "value": "1"},
    {"name": "a", "protocol": "UDP", "weight": 6},
    {"name": "b", "value": "2", "tags": ["x", "y"]},
    {"name": "b", "protocol": "TCP", "tags": ["y"]},
    {"name": "c", "weight": 1},
)
_CONDITIONS = (
    [{"type": "A", "status": "True"}],
    [{"type": "B", "status": "False", "reason": "R"}, {"type": "A", "status": "False"}],
    [],
)
WIDGET = Tested(
    f"{widget.GROUP}/{widget.VERSION}",
    widget.KIND,
    f"/apis/{widget.GROUP}/{widget.VERSION}/namespaces/{NAMESPACE}/{widget.PLURAL}",
    lambda: {"spec": {}},
    (
        *META,
        (("spec", "replicas"), (0, 1, 2, 3)),
        (("spec", "size"), ("small", "large")),
        (("spec", "code"), ("abc", "de")),
        (("spec", "set"), (["a"], ["a", "b"], ["b", "c"], ["c", "a"], [])),
        (("spec", "numbers"), ([1], [2, 1], [3])),
        (("spec", "items"), lambda rng: _some(rng, ITEMS, ("name", "protocol"))),
        (("spec", "items"), lambda rng: _some(rng, ITEMS, ("name", "protocol"))),
        (("spec", "atoms"), ([{"a": 1}], [{"a": 2, "b": "x"}, {}], [])),
        (("spec", "bundle"), ({"a": 1}, {"b": "x"}, {})),
        (("spec", "bundle", "a"), (1, 2)),
        (("spec", "labels", "k"), ("1", "2")),
        (("spec", "labels"), ({"l": "1"}, {})),
        (("spec", "nested"), ({"flag": False}, {"text": "t"}, {"deep": {"a": 1}}, {})),
        (("spec", "nested", "deep", "a"), (1, 2)),
        (("spec", "nested", "text"), ("u", "")),
        (("spec", "maybe"), ("m", None)),
        (("spec", "either"), (1, "1", "10%")),
        (("spec", "free"), ({"any": {"x": 1}}, {"any": [1, {"b": 2}]}, {})),
        (("spec", "free", "any", "y"), (1, "z")),
        (("spec", "ratio"), (1, 1.5, 2.0)),
    ),
    (
        (("status", "replicas"), (0, 1, 2)),
        (("status", "selector"), ("a=b",)),
        (("status", "phase"), ("Old", "New")),
        (("status", "conditions"), _CONDITIONS),
        (("status",), ({}, {"replicas": 3})),
    ),
    scale=True,
    custom=True,
    bad=(
        *BAD_META,
        (("spec", "replicas"), (-1, 10, "2", None)),
        (("spec", "size"), ("medium", 1)),
        (("spec", "code"), ("ABC", "abcdef", "")),
        (("spec", "set"), (["a", "a"], "x", ["a", "b", "c", "d", "e"], [None])),
        (
            ("spec", "items"),
            ([{"name": "a"}, {"name": "a"}], [{"value": "1"}], [{"name": ""}], [{"name": "a", "x": 1}]),
        ),
        (("spec", "atoms"), ([{"a": "x"}], {"a": 1}, [{"c": 1}])),
        (("spec", "labels"), ({"k": 1}, {"k": None})),
        (("spec", "nested"), ({"flag": "no"}, None, [])),
        (("spec", "either"), (1.5, True)),
        (("spec", "ratio"), ("x",)),
        (("status", "phase"), ("Other",)),
    ),
)
RULED_ITEMS = (
    {"name": "a"},
    {"name": "a", "value": 1},
    {"name": "a", "value": 7, "note": "good"},
    {"name": "b", "value": 2, "note": "bad"},
    {"name": "b", "note": "good"},
    {"name": "c", "value": 4, "note": "good"},
    {"name": "forbidden", "note": "good"},
)
RULED = Tested(
    f"{ruled.GROUP}/{ruled.VERSION}",
    ruled.KIND,
    f"/apis/{ruled.GROUP}/{ruled.VERSION}/namespaces/{NAMESPACE}/{ruled.PLURAL}",
    lambda: {"spec": {"least": 0, "name": "open", "odd-name": "a"}},
    (
        *META,
        (("spec", "least"), (0, 1, 2, 3, 4)),
        (("spec", "most"), (1, 2, 3, 5, None)),
        (("spec", "share"), (0, 0.5, 1, 1.0, 2, -0.5)),
        (("spec", "name"), ("open", "shut", "a b", "A", None)),
        (("spec", "soft"), ("first", "second", None)),
        (("spec", "mode"), ("on", "off", None)),
        (("spec", "either"), (1, 70, "50%", "x", None)),
        (("spec", "items"), lambda rng: _some(rng, RULED_ITEMS, ("name",))),
        (("spec", "items"), lambda rng: _some(rng, RULED_ITEMS, ("name",))),
        (("spec", "set"), (["a"], ["a", "b"], ["b", "a"], ["x", "a"], [], None)),
        (("spec", "list"), ([2], [2, 4], [1, 2], [None, 2], [], None)),
        (("spec", "labels", "k"), ("v", "long", "", "k", None)),
        (("spec", "labels"), ({"k": "v", "l": "w"}, {"l": ""}, {}, None)),
        (("spec", "when"), ("2019-01-01T00:00:00Z", "2021-01-01T00:00:00+01:00", "2021-01-01", None)),
        (("spec", "lasts"), ("30m", "2h", "5h1s", "1 day", "x", None)),
        (("spec", "amount"), ("2Gi", "1Gi", "500Mi", "much", "", None)),
        (("spec", "maybe"), ("yes", "no", None)),
        (("spec", "nested"), ({"a": 1}, {"a": 3}, {"a": 3, "b": 4}, {}, None)),
        (("spec", "nested", "a"), (1, 2, 5)),
        (("spec", "free"), ({"x": 1}, {"x": {"y": [1]}}, {}, None)),
        (("spec", "embedded"), tuple({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": n}} for n in ("x", "y"))),
        (("spec", "odd-name"), ("a", "bad", None)),
    ),
    (
        (("status", "ready"), (0, 1, 2, 4, -1)),
        (("status", "ready"), (0, 1, 2, 4, -1)),
        (("status", "phase"), ("Old", "New")),
        (("status",), ({}, {"ready": 3})),
    ),
    custom=True,
    bad=(
        # Defaults, which rules see, are set on a real server by the kind that the object says it is of.
        *(fault for fault in BAD_META if fault[0] not in (("apiVersion",), ("kind",))),
        (("spec", "least"), ("x", 1.5, None)),
        (("spec", "name"), ("much too long", 1)),
        (("spec", "mode"), ("other",)),
        (("spec", "items"), ([{"name": "a"}, {"name": "a"}], [{"value": 1}], [{"name": "a", "value": "x"}], "x")),
        (("spec", "set"), (["a", "a"], ["a", "b", "c", "d", "e"])),
        (("spec", "embedded"), ({}, {"kind": "Pod"}, "x")),
        (("status", "phase"), ("Other",)),
        (("status", "ready"), ("x",)),
    ),
)
ALL: Mapping[str, Tested] = {t.kind: t for t in (CONFIG_MAP, POD, SERVICE, STATEFUL_SET, WIDGET, RULED)}
