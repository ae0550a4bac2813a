"""Faults of pods, templates, claims and metadata, one by one: what people get wrong, and values at the edge of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.differential.kinds import ALL, Palette, Path, Tested, Values, copy
from tests.differential.steps import Step

Fragment = dict[str, Any]

_GET: Fragment = {"path": "/", "port": 80}
_HOOK: Fragment = {"exec": {"command": ["a"]}}


def _probes(*values: Fragment) -> list[Fragment]:
    return [{kind: value} for value in values for kind in ("livenessProbe", "readinessProbe", "startupProbe")]


def _amounts(limits: Fragment | None = None, requests: Fragment | None = None, **more: Any) -> Fragment:
    found = {"limits": limits, "requests": requests, **more}
    return {"resources": {k: v for k, v in found.items() if v is not None}}


def _source(**source: Any) -> Fragment:
    return {"env": [{"name": "A", "valueFrom": source}]}


def _mounted(**mount: Any) -> Fragment:
    return {"volumeMounts": [{"name": "v", "mountPath": "/v", **mount}]}


CONTAINER_FAULTS: tuple[Fragment, ...] = (
    # resources
    _amounts({"google.com/tpu": "0.5"}),
    _amounts({"google.com/tpu": 4}, {"google.com/tpu": 2}),
    _amounts({"google.com/tpu": 4}, {"google.com/tpu": 8}),
    _amounts({"google.com/tpu": 4}, {"google.com/tpu": 4}),
    _amounts(None, {"google.com/tpu": 4}),
    _amounts({"google.com/tpu": -1}),
    _amounts({"google.com/tpu": "500m"}, {"google.com/tpu": "250m"}),
    _amounts({"cpu": "-1"}),
    _amounts({"cpu": 1}, {"cpu": 2}),
    _amounts({"memory": "1Gi"}, {"memory": "2Gi"}),
    _amounts({"ephemeral-storage": "1Gi"}, {"ephemeral-storage": "2Gi"}),
    _amounts({"gpu": 1}),
    _amounts({"storage": 1}),
    _amounts({"pods": 1}),
    _amounts({"requests.cpu": 1}),
    _amounts({"requests.example.com/x": 1}),
    _amounts({"kubernetes.io/x": 1}),
    _amounts({"example.com/a/b": 1}),
    _amounts({"example.com/": 1}),
    _amounts({"hugepages-2Mi": "4Mi"}),
    _amounts({"hugepages-2Mi": "4Mi", "memory": "1Gi"}),
    _amounts({"hugepages-2Mi": "4Mi", "cpu": "1"}, {"hugepages-2Mi": "2Mi"}),
    _amounts({"hugepages-2Mi": "3Mi", "cpu": "1"}),
    _amounts(None, {"hugepages-2Mi": "2Mi", "cpu": "1"}),
    _amounts({"hugepages-x": "3Mi", "cpu": "1"}),
    _amounts(claims=[{"name": "a"}]),
    _amounts(claims=[{"name": ""}]),
    {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "Sometimes"}]},
    {"resizePolicy": [{"resourceName": "gpu", "restartPolicy": "NotRequired"}]},
    {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2},
    {"resizePolicy": [{"restartPolicy": "NotRequired"}]},
    # probes and hooks
    *_probes(
        {},
        {**_HOOK, "httpGet": _GET},
        {"exec": {}},
        {"exec": {"command": []}},
        {"httpGet": {"port": 80}},
        {"httpGet": {**_GET, "port": 0}},
        {"httpGet": {**_GET, "port": 65536}},
        {"httpGet": {**_GET, "port": "80"}},
        {"httpGet": {**_GET, "port": "Web"}},
        {"httpGet": {**_GET, "port": ""}},
        {"httpGet": {**_GET, "port": "a" * 16}},
        {"httpGet": {**_GET, "port": "a--b"}},
        {"httpGet": {**_GET, "scheme": "http"}},
        {"httpGet": {**_GET, "scheme": "FTP"}},
        {"httpGet": {**_GET, "httpHeaders": [{"name": "a b", "value": "c"}, {"name": "", "value": "c"}]}},
        {"tcpSocket": {"port": 0}},
        {"tcpSocket": {"port": "_"}},
        {"grpc": {"port": 0}},
        {"grpc": {"port": 70000}},
        {"grpc": {"port": 80}, "tcpSocket": {"port": 80}},
        {**_HOOK, "successThreshold": 2},
        {**_HOOK, "successThreshold": -1},
        {**_HOOK, "periodSeconds": -1, "timeoutSeconds": -2, "failureThreshold": -3, "initialDelaySeconds": -4},
        {**_HOOK, "terminationGracePeriodSeconds": 0},
        {**_HOOK, "terminationGracePeriodSeconds": 5},
    ),
    {"lifecycle": {"postStart": {}}},
    {"lifecycle": {"preStop": {}}},
    {"lifecycle": {"preStop": {**_HOOK, "tcpSocket": {"port": 80}}}},
    {"lifecycle": {"preStop": {"exec": {}}}},
    {"lifecycle": {"preStop": {"httpGet": {"port": 80}}}},
    {"lifecycle": {"preStop": {"httpGet": {"port": 0, "scheme": "x"}}}},
    {"lifecycle": {"preStop": {"tcpSocket": {"port": "80"}}}},
    {"lifecycle": {"preStop": {"sleep": {"seconds": -1}}}},
    {"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}},
    {"lifecycle": {"preStop": {"sleep": {"seconds": 5}}, "postStart": {"sleep": {"seconds": 100}}}},
    # environment
    {"envFrom": [{}]},
    {"envFrom": [{"prefix": "A"}]},
    {"envFrom": [{"prefix": "A=", "configMapRef": {"name": "c"}}]},
    {"envFrom": [{"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}}]},
    {"envFrom": [{"configMapRef": {}}, {"secretRef": {}}]},
    {"envFrom": [{"configMapRef": {"name": "Bad_"}}, {"secretRef": {"name": "Bad_"}}]},
    _source(),
    _source(configMapKeyRef={"name": "c"}),
    _source(configMapKeyRef={"key": "c"}),
    _source(configMapKeyRef={"name": "Bad_", "key": "a/b"}),
    _source(secretKeyRef={"name": "c"}),
    _source(secretKeyRef={"key": "c"}),
    _source(secretKeyRef={"name": "Bad_", "key": ".."}),
    _source(secretKeyRef={"name": "c", "key": "k"}, configMapKeyRef={"name": "c", "key": "k"}),
    _source(fieldRef={}),
    _source(fieldRef={"fieldPath": ""}),
    _source(fieldRef={"fieldPath": "metadata.labels"}),
    _source(fieldRef={"fieldPath": "metadata.annotations"}),
    _source(fieldRef={"fieldPath": "metadata.labels['a b']"}),
    _source(fieldRef={"fieldPath": "metadata.labels['']"}),
    _source(fieldRef={"fieldPath": "metadata.annotations['A/b']"}),
    _source(fieldRef={"fieldPath": "metadata.name['a']"}),
    _source(fieldRef={"fieldPath": "status.phase"}),
    _source(fieldRef={"fieldPath": "spec.restartPolicy"}),
    _source(fieldRef={"fieldPath": "metadata.name", "apiVersion": "v2"}),
    _source(resourceFieldRef={}),
    _source(resourceFieldRef={"resource": "cpu"}),
    _source(resourceFieldRef={"resource": "limits.cpu"}),
    _source(resourceFieldRef={"resource": "limits.cpu", "divisor": "2"}),
    _source(resourceFieldRef={"resource": "limits.cpu", "divisor": "1m"}),
    _source(resourceFieldRef={"resource": "requests.memory", "divisor": "1m"}),
    _source(resourceFieldRef={"resource": "requests.memory", "divisor": "1Mi"}),
    _source(resourceFieldRef={"resource": "requests.ephemeral-storage", "divisor": "2"}),
    _source(resourceFieldRef={"resource": "limits.hugepages-2Mi", "divisor": "2"}),
    _source(resourceFieldRef={"resource": "limits.hugepages-2Mi", "containerName": "x"}),
    {"env": [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
    {"env": [{"name": "A", "value": "1", "valueFrom": {}}]},
    {"env": [{"name": ""}, {"name": "a=b"}, {"name": "é"}, {"name": "1 2"}]},
    # ports
    {"ports": [{"containerPort": 80, "hostPort": -1}]},
    {"ports": [{"containerPort": 80, "hostPort": 70000}]},
    {"ports": [{"containerPort": 80, "hostIP": "x"}]},
    {"ports": [{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]},
    {"ports": [{"containerPort": 80, "name": "A"}, {"containerPort": 81, "name": "80"}]},
    {"ports": [{"containerPort": 70000}, {"containerPort": -1}]},
    {"ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]},
    {"ports": [{"containerPort": 80, "protocol": "tcp"}]},
    # mounts and devices
    _mounted(subPath=".."),
    _mounted(subPath="/a"),
    _mounted(subPath="a/../b"),
    _mounted(subPath="..a"),
    _mounted(subPathExpr="$(A)", subPath="a"),
    _mounted(subPathExpr="/a"),
    _mounted(mountPropagation="Bidirectional"),
    _mounted(mountPropagation="Other"),
    _mounted(recursiveReadOnly="Enabled"),
    _mounted(recursiveReadOnly="Enabled", readOnly=True, mountPropagation="HostToContainer"),
    _mounted(recursiveReadOnly="Other", readOnly=True),
    _mounted(mountPath=""),
    _mounted(mountPath="a:b"),
    _mounted(name=""),
    {"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v"}]},
    {"volumeDevices": [{"name": "v", "devicePath": "/d"}]},
    {"volumeDevices": [{"name": "missing", "devicePath": "/d"}]},
    {"volumeDevices": [{"name": "p", "devicePath": "/d"}]},
    {"volumeDevices": [{"name": "p", "devicePath": ""}]},
    {"volumeDevices": [{"name": "", "devicePath": "/d"}]},
    {"volumeDevices": [{"name": "p", "devicePath": "/../d"}]},
    {"volumeDevices": [{"name": "p", "devicePath": "/d"}, {"name": "p", "devicePath": "/d"}]},
    {"volumeDevices": [{"name": "p", "devicePath": "/d"}], "volumeMounts": [{"name": "p", "mountPath": "/d"}]},
    # security
    {"securityContext": {"runAsUser": -1, "runAsGroup": -2}},
    {"securityContext": {"runAsUser": 2**31, "runAsGroup": 2**31 - 1}},
    {"securityContext": {"capabilities": {"add": ["CAP_SYS_ADMIN"]}, "allowPrivilegeEscalation": False}},
    {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}, "allowPrivilegeEscalation": False}},
    {"securityContext": {"procMount": "Other"}},
    {"securityContext": {"procMount": "Unmasked"}},
    {"securityContext": {"procMount": "Default"}},
    {"securityContext": {"seccompProfile": {}}},
    {"securityContext": {"seccompProfile": {"type": "Other"}}},
    {"securityContext": {"seccompProfile": {"type": "Localhost"}}},
    {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "/a"}}},
    {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "../a"}}},
    {"securityContext": {"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "a"}}},
    {"securityContext": {"appArmorProfile": {}}},
    {"securityContext": {"appArmorProfile": {"type": "Other"}}},
    {"securityContext": {"appArmorProfile": {"type": "Localhost"}}},
    {"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": " a"}}},
    {"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": ""}}},
    {"securityContext": {"appArmorProfile": {"type": "Unconfined", "localhostProfile": "a"}}},
    # the rest
    {"image": ""},
    {"image": " i"},
    {"imagePullPolicy": "Sometimes"},
    {"terminationMessagePolicy": "Sometimes"},
    {"restartPolicy": "Always"},
    {"restartPolicy": "Never"},
    {"restartPolicy": "Sometimes"},
    {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]},
    {"name": "A"},
)
"""Fields of a container next to which there is a pod with the volumes `v` (of the memory) and `p` (a claim)."""


def _volume(**source: Any) -> Fragment:
    return {"volumes": [{"name": "v", **source}]}


def _projected(**source: Any) -> Fragment:
    return _volume(projected={"sources": [source]})


def _ephemeral(spec: Any, **metadata: Any) -> Fragment:
    return _volume(ephemeral={"volumeClaimTemplate": {"metadata": metadata, "spec": spec}})


_CLAIM: Fragment = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CLAIM_FAULTS: tuple[Fragment, ...] = (
    {},
    {"accessModes": []},
    {"accessModes": ["Sometimes"]},
    {"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]},
    {"accessModes": ["ReadWriteOncePod", "Sometimes"]},
    {"accessModes": ["ReadWriteOncePod"]},
    {"resources": {}},
    {"resources": {"requests": {"storage": 0}}},
    {"resources": {"requests": {"storage": -1}}},
    {"resources": {"requests": {"storage": "1.5"}}},
    {"resources": {"requests": {"storage": "500m"}}},
    {"resources": {"requests": {"cpu": 1}}},
    {"resources": {"requests": {"storage": "2Gi"}, "limits": {"storage": "1Gi"}}},
    {"volumeMode": "Tape"},
    {"volumeMode": "Block"},
    {"storageClassName": "Bad_"},
    {"storageClassName": ""},
    {"volumeAttributesClassName": "Bad_"},
    {"selector": {"matchLabels": {"bad key!": "a"}}},
    {"selector": {"matchLabels": {"a": "bad value!"}}},
    {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
    {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
    {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
    {"dataSource": {"kind": "", "name": ""}},
    {"dataSource": {"kind": "Pod", "name": "x"}},
    {"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}},
    {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "x", "namespace": "Bad_"}},
)
"""Fields of a claim's spec that is right otherwise; the first is right."""


def _near(kind: str, **term: Any) -> Fragment:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z", **term}]}}}


def _nodes(*terms: Fragment) -> Fragment:
    required = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def _expression(**expression: Any) -> Fragment:
    return _nodes({"matchExpressions": [expression]})


def _spread(**constraint: Any) -> Fragment:
    whole = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", **constraint}
    return {"topologySpreadConstraints": [whole]}


POD_FAULTS: tuple[Fragment, ...] = (
    # volumes
    _volume(),
    {"volumes": [{"emptyDir": {}}]},
    {"volumes": [{"name": "A_", "emptyDir": {}}]},
    {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]},
    _volume(emptyDir={"sizeLimit": "-1"}),
    _volume(emptyDir={"sizeLimit": "0"}),
    _volume(emptyDir={"medium": "Tape"}),
    _volume(emptyDir={}, hostPath={"path": "/"}),
    _volume(emptyDir={}, configMap={"name": "c"}, secret={"secretName": "s"}),
    _volume(configMap={}),
    _volume(configMap={"name": ""}),
    _volume(configMap={"name": "c", "defaultMode": 512}),
    _volume(configMap={"name": "c", "defaultMode": 511}),
    _volume(configMap={"name": "c", "defaultMode": -1}),
    _volume(configMap={"name": "c", "items": [{"key": "", "path": ""}]}),
    _volume(configMap={"name": "c", "items": [{"key": "k", "path": "/a"}]}),
    _volume(configMap={"name": "c", "items": [{"key": "k", "path": "a/../b", "mode": 1000}]}),
    _volume(configMap={"name": "c", "items": [{"key": "k", "path": "..a"}]}),
    _volume(secret={}),
    _volume(secret={"secretName": "s", "defaultMode": 4096}),
    _volume(secret={"secretName": "s", "items": [{"key": "k"}]}),
    _volume(hostPath={}),
    _volume(hostPath={"path": ""}),
    _volume(hostPath={"path": "/a/../b"}),
    _volume(hostPath={"path": "/a", "type": "Folder"}),
    _volume(hostPath={"path": "/a", "type": ""}),
    _volume(persistentVolumeClaim={}),
    _volume(nfs={}),
    _volume(nfs={"server": "s", "path": "a"}),
    _volume(csi={}),
    _volume(csi={"driver": "Bad_"}),
    _volume(csi={"driver": "a.b", "nodePublishSecretRef": {}}),
    _volume(image={}),
    _volume(image={"reference": "i", "pullPolicy": "Sometimes"}),
    _volume(downwardAPI={"items": [{"path": "a"}]}),
    _volume(downwardAPI={"items": [{"path": "", "fieldRef": {"fieldPath": "metadata.name"}}]}),
    _volume(downwardAPI={"items": [{"path": "/a", "fieldRef": {"fieldPath": "metadata.name"}}]}),
    _volume(downwardAPI={"items": [{"path": "a", "fieldRef": {"fieldPath": "status.podIP"}}]}),
    _volume(downwardAPI={"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.labels"}}]}),
    _volume(downwardAPI={"items": [{"path": "a", "resourceFieldRef": {"resource": "limits.cpu"}}]}),
    _volume(downwardAPI={"items": [{"path": "a", "resourceFieldRef": {"containerName": "c", "resource": "x"}}]}),
    _volume(
        downwardAPI={
            "items": [
                {
                    "path": "a",
                    "fieldRef": {"fieldPath": "metadata.name"},
                    "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"},
                    "mode": 999,
                }
            ]
        }
    ),
    _volume(downwardAPI={"defaultMode": 999}),
    _volume(projected={}),
    _volume(projected={"sources": [], "defaultMode": 999}),
    _projected(),
    _projected(secret={}),
    _projected(configMap={}),
    _projected(secret={"name": "s"}, configMap={"name": "c"}),
    _projected(secret={"name": "s", "items": [{"key": "k", "path": "a"}, {"key": "l", "path": "a"}]}),
    _projected(configMap={"name": "s", "items": [{"key": "k", "path": "../a"}]}),
    _projected(downwardAPI={"items": [{"path": "a"}]}),
    _projected(serviceAccountToken={}),
    _projected(serviceAccountToken={"path": "a", "expirationSeconds": 1}),
    _projected(serviceAccountToken={"path": "a", "expirationSeconds": 2**33}),
    _projected(serviceAccountToken={"path": "../a"}),
    *(_ephemeral({**_CLAIM, **fault}) for fault in CLAIM_FAULTS),
    _volume(ephemeral={}),
    _ephemeral(_CLAIM, labels={"bad key!": "a"}),
    _ephemeral(_CLAIM, name="x"),
    # DNS, names, host
    {"dnsPolicy": "None"},
    {"dnsPolicy": "None", "dnsConfig": {}},
    {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["x"]}},
    {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]}},
    {"dnsConfig": {"searches": ["Bad_"]}},
    {"dnsConfig": {"searches": ["a."]}},
    {"dnsConfig": {"searches": [f"a{i}" for i in range(33)]}},
    {"dnsConfig": {"options": [{"value": "x"}]}},
    {"dnsPolicy": "Other"},
    {"hostAliases": [{"ip": "x", "hostnames": ["Bad_"]}]},
    {"hostAliases": [{"hostnames": ["a"]}]},
    {"hostAliases": [{"ip": "1.2.3.4"}]},
    {"hostAliases": [{"ip": "01.2.3.4"}]},
    {"hostname": "A.B"},
    {"hostname": "a_b"},
    {"hostname": "a.b"},
    {"subdomain": "A"},
    {"subdomain": "a.b"},
    {"hostname": "a" * 64},
    {"hostnameOverride": "Bad_"},
    {"hostnameOverride": "a.b", "hostNetwork": True},
    {"setHostnameAsFQDN": True, "hostnameOverride": "a"},
    {"nodeName": "Bad_"},
    {"serviceAccountName": "Bad_"},
    {
        "hostNetwork": True,
        "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 81}]}],
    },
    {"hostNetwork": True, "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]},
    {"shareProcessNamespace": True, "hostPID": True},
    {"hostUsers": False, "hostPID": True, "hostIPC": True, "hostNetwork": True},
    {"hostUsers": False},
    {"imagePullSecrets": [{}]},
    {"imagePullSecrets": [{"name": ""}]},
    {"imagePullSecrets": [{"name": "Bad_"}]},
    # placement
    {"nodeSelector": {"a": "bad value!"}},
    {"nodeSelector": {"a/b/c": "a"}},
    _nodes(),
    _nodes({}),
    _expression(key="a", operator="Like"),
    _expression(key="a", operator="In"),
    _expression(key="a", operator="In", values=["bad value!"]),
    _expression(key="a", operator="Exists", values=["b"]),
    _expression(key="a", operator="Gt", values=["1", "2"]),
    _expression(key="a", operator="Gt", values=["x"]),
    _expression(key="", operator="Exists"),
    _expression(key="bad key!", operator="Exists"),
    _expression(operator="", key="a"),
    _nodes({"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["a"]}]}),
    _nodes({"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}),
    _nodes({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}),
    _nodes({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["Bad_"]}]}),
    *(
        {
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": weight, "preference": {"matchExpressions": [{"key": "a", "operator": operator}]}}
                    ]
                }
            }
        }
        for weight, operator in ((0, "Exists"), (101, "Exists"), (1, "Like"), (1, "Exists"))
    ),
    *(_near(kind, topologyKey=key) for kind in ("podAffinity", "podAntiAffinity") for key in ("", "bad key!", "a/b/c")),
    _near("podAffinity", labelSelector={"matchLabels": {"bad key!": "bad value!"}}),
    _near("podAffinity", labelSelector={"matchExpressions": [{"key": "a", "operator": "Like"}]}),
    _near("podAffinity", labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
    _near("podAffinity", labelSelector={"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}),
    _near("podAffinity", namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Like"}]}),
    _near("podAffinity", namespaces=["Bad_"]),
    _near("podAffinity", matchLabelKeys=["a"]),
    _near("podAffinity", matchLabelKeys=["bad key!"], labelSelector={}),
    _near("podAffinity", matchLabelKeys=["a"], mismatchLabelKeys=["a"], labelSelector={}),
    *(
        {
            "affinity": {
                kind: {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": weight, "podAffinityTerm": {"topologyKey": key}}
                    ]
                }
            }
        }
        for kind in ("podAffinity", "podAntiAffinity")
        for weight, key in ((0, "z"), (101, "z"), (1, ""), (1, "z"))
    ),
    _spread(maxSkew=0),
    _spread(topologyKey=""),
    _spread(topologyKey="bad key!"),
    _spread(whenUnsatisfiable="Never"),
    _spread(minDomains=0),
    _spread(minDomains=1, whenUnsatisfiable="ScheduleAnyway"),
    _spread(nodeAffinityPolicy="Sometimes", nodeTaintsPolicy="Sometimes"),
    _spread(labelSelector={"matchLabels": {"bad key!": "a"}}),
    _spread(matchLabelKeys=["a"]),
    _spread(matchLabelKeys=["bad key!"], labelSelector={}),
    {"tolerations": [{"key": "bad key!", "operator": "Exists"}]},
    {"tolerations": [{"key": "a", "operator": "Equal", "value": "bad value!"}]},
    {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
    {"tolerations": [{"key": "a", "operator": "Exists", "effect": "Sometimes"}]},
    {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3}]},
    {"tolerations": [{"key": "a", "operator": "Gt", "value": "3"}]},
    {"tolerations": [{"operator": "Equal"}]},
    {"tolerations": [{"key": "a", "operator": "Like"}]},
    {"readinessGates": [{"conditionType": "bad key!"}]},
    {"schedulingGates": [{"name": "bad key!"}, {"name": "a"}, {"name": "a"}]},
    # classes, system, security
    {"priorityClassName": "Bad_"},
    {"preemptionPolicy": "Sometimes"},
    {"preemptionPolicy": "Never"},
    {"schedulerName": ""},
    {"os": {"name": ""}},
    {"os": {"name": "macos"}},
    {"os": {"name": "linux"}},
    {"os": {"name": "windows"}, "securityContext": {"runAsUser": 1}},
    {"activeDeadlineSeconds": 0},
    {"terminationGracePeriodSeconds": -1},
    {"restartPolicy": "OnFailure"},
    {"restartPolicy": "Never"},
    {"restartPolicy": ""},
    {"securityContext": {"runAsUser": -1, "runAsGroup": -1, "fsGroup": -1, "supplementalGroups": [1, -1]}},
    {"securityContext": {"runAsUser": 2**31, "runAsGroup": 2**31, "fsGroup": 2**31}},
    {"securityContext": {"fsGroupChangePolicy": "Sometimes"}},
    {"securityContext": {"supplementalGroupsPolicy": "Sometimes"}},
    {"securityContext": {"seLinuxChangePolicy": "Sometimes"}},
    {"securityContext": {"seccompProfile": {"type": "Localhost"}}},
    {"securityContext": {"seccompProfile": {"type": "Other"}}},
    {"securityContext": {"appArmorProfile": {"type": "Other"}}},
    {"securityContext": {"sysctls": [{"name": "", "value": ""}]}},
    {"securityContext": {"sysctls": [{"name": "a b", "value": "1"}]}},
    {"securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}] * 2}},
    {"securityContext": {"sysctls": [{"name": "kernel.sem", "value": "1"}]}, "hostIPC": True},
    {"securityContext": {"sysctls": [{"name": "net.a", "value": "1"}]}, "hostNetwork": True},
    {"ephemeralContainers": [{"name": "e", "image": "i"}]},
    {"ephemeralContainers": []},
    # resources of the pod
    {"resources": {"limits": {"cpu": 1}}},
    {"resources": {"limits": {"google.com/tpu": 1}}},
    {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": 1}}},
    {"resources": {"requests": {"cpu": "-1"}}},
    {"resources": {"claims": [{"name": "a"}]}},
    {
        "resources": {"requests": {"cpu": 1}},
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": 2}}}],
    },
    {
        "resources": {"limits": {"cpu": 1}},
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": 2}}}],
    },
    # init containers
    {"initContainers": [{"name": "init", "image": "i", "livenessProbe": _HOOK, "lifecycle": {"preStop": _HOOK}}]},
    {"initContainers": [{"name": "init", "image": "i", "restartPolicy": "Always", "livenessProbe": {}}]},
    {"initContainers": [{"name": "init", "image": "i", "restartPolicy": "Sometimes"}]},
    {"initContainers": [{"name": "c", "image": ""}]},
    {"initContainers": [{"image": "i"}]},
    # several at once, for the order
    {
        "volumes": [{"name": "v", "configMap": {}}],
        "containers": [{"name": "c", "image": "i", **_mounted(subPath="/a"), **_amounts({"a.b/c": "0.5"})}],
        "dnsPolicy": "None",
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
        "hostAliases": [{"ip": "x"}],
        "securityContext": {"runAsUser": -1},
        "priorityClassName": "Bad_",
        "preemptionPolicy": "Sometimes",
    },
    {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "livenessProbe": {**_HOOK, "successThreshold": 3},
                "lifecycle": {"preStop": {}},
                "securityContext": {"runAsUser": -1},
                "resizePolicy": [{"resourceName": "gpu", "restartPolicy": "NotRequired"}],
                "envFrom": [{}],
                "ports": [{"containerPort": 0}],
                "volumeDevices": [{"name": "x", "devicePath": "/x"}],
                "terminationMessagePolicy": "x",
                "imagePullPolicy": "x",
            },
            {"name": "c", "image": "i"},
        ],
    },
)
"""Fields of a pod's spec with one container."""
TEMPLATE_FAULTS: tuple[Fragment, ...] = (
    {"runtimeClassName": "Bad_"},
    {"runtimeClassName": ""},
    {"overhead": {"cpu": "-1"}},
)
"""The same for templates only, as admission of pods looks at these fields before their rules."""

_OWNER: Fragment = {"apiVersion": "v1", "kind": "ConfigMap", "name": "n", "uid": "u"}
META_FAULTS: tuple[Fragment, ...] = (
    *({"ownerReferences": [{**_OWNER, "apiVersion": text}]} for text in ("a/b/c", "apps/", "/", "/v1", "a b", "x")),
    *({"generateName": text} for text in ("a-", "-", "a--", "A-", "a.", "a_", "x" * 60)),
    {"generation": -1},
    {"generation": 2**40},
)
"""Metadata next to a name."""


def _pods() -> Iterator[Fragment]:
    """Specs of pods, each with one fault."""
    base: Fragment = {"containers": [{"name": "c", "image": "i"}]}
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "p"}}]
    for fault in CONTAINER_FAULTS:
        yield {"containers": [{"name": "c", "image": "i", **fault}], "volumes": volumes}
    for fault in POD_FAULTS:
        yield {**base, **fault}


def steps() -> Iterator[Step]:
    """A request for each fault and each kind that can have it, all dry runs."""
    pod, workload, config = ALL["Pod"], ALL["StatefulSet"], ALL["ConfigMap"]
    for spec in _pods():
        yield _create(pod, {"spec": spec})
        body = copy(workload.minimal())
        body["spec"]["template"]["spec"] = spec
        yield _create(workload, body)
    for fault in TEMPLATE_FAULTS:
        body = copy(workload.minimal())
        body["spec"]["template"]["spec"].update(fault)
        yield _create(workload, body)
    for fault in CLAIM_FAULTS:
        body = copy(workload.minimal())
        body["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "v"}, "spec": {**_CLAIM, **fault}}]
        yield _create(workload, body)
    for fault in META_FAULTS:
        for tested in (config, pod, ALL["Widget"]):
            yield _create(tested, tested.minimal(), fault)


def _create(tested: Tested, body: Fragment, metadata: Fragment | None = None) -> Step:
    whole = {**tested.whole("a"), **copy(body)}
    whole["metadata"].update(metadata or {})
    return {"method": "POST", "path": tested.collection, "query": {"dryRun": "All"}, "body": whole}


def palette(kind: str) -> Palette:
    """The faults of a kind that has pods, for sequences of steps; none for others."""
    prefix = {"Pod": ("spec",), "StatefulSet": ("spec", "template", "spec")}.get(kind)
    if prefix is None:
        return ()
    containers = [[{"name": "c", "image": "i:1", **f}] for f in CONTAINER_FAULTS if not any("volume" in k for k in f)]
    found: list[tuple[Path, Values]] = [((*prefix, "containers"), containers)] * 3
    fields: dict[str, list[Any]] = {}
    for fault in POD_FAULTS:
        if len(fault) == 1:
            for name, value in fault.items():
                fields.setdefault(name, []).append(value)
    return (*found, *(((*prefix, name), values) for name, values in fields.items()))
