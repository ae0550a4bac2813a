"""Record which defaults a real API server fills in: dry-run creates of probes, the difference as a table by type.

Usage: record_defaults.py SERVER TOKEN            writes src/lwskit/embedded/builtin-defaults.json
       record_defaults.py SERVER TOKEN --check    fails when the checked-in table or the embedded server differ

A default that depends on other fields cannot stand in the table: it must be listed in CONDITIONAL here and be coded in
lwskit.embedded.defaults_code (or in the server's own admission); `--check` compares whole objects, so both are covered.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import sys
import urllib.error
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.resources import Registry, Resource
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.typed import TypeRef, TypeTable, load_resource

TARGET = Path(__file__).parent.parent / "src/lwskit/embedded/builtin-defaults.json"
PROBES = Path(__file__).parent / "default_probes.yaml"
CONDITIONAL = {
    ("core.v1.Container", "imagePullPolicy"),
    ("core.v1.EphemeralContainer", "imagePullPolicy"),
    ("core.v1.ContainerPort", "hostPort"),
    ("core.v1.ResourceRequirements", "requests"),
    ("core.v1.PodSpec", "priority"),
    ("core.v1.Volume", "emptyDir"),
    ("core.v1.ImageVolumeSource", "pullPolicy"),
    ("core.v1.NodeSpec", "taints"),
    ("networking.v1.NetworkPolicySpec", "policyTypes"),
    ("core.v1.PodSpec", "preemptionPolicy"),
    ("core.v1.PodSpec", "tolerations"),
    ("core.v1.PodSpec", "serviceAccount"),
    ("core.v1.PodSpec", "serviceAccountName"),
    ("core.v1.ServicePort", "targetPort"),
    ("core.v1.ServicePort", "nodePort"),
    ("core.v1.ServiceSpec", "clusterIP"),
    ("core.v1.ServiceSpec", "clusterIPs"),
    ("core.v1.ServiceSpec", "ipFamilies"),
    ("core.v1.ServiceSpec", "ipFamilyPolicy"),
    ("core.v1.ServiceSpec", "internalTrafficPolicy"),
    ("core.v1.ServiceSpec", "externalTrafficPolicy"),
    ("core.v1.ServiceSpec", "allocateLoadBalancerNodePorts"),
    ("core.v1.ServiceSpec", "sessionAffinityConfig"),
    ("core.v1.NamespaceSpec", "finalizers"),
    ("core.v1.Secret", "data"),
    ("apps.v1.StatefulSetUpdateStrategy", "rollingUpdate"),
    ("apps.v1.RollingUpdateStatefulSetStrategy", "partition"),
    ("apps.v1.RollingUpdateStatefulSetStrategy", "maxUnavailable"),
    ("apps.v1.DeploymentStrategy", "rollingUpdate"),
    ("apps.v1.RollingUpdateDeployment", "maxUnavailable"),
    ("apps.v1.RollingUpdateDeployment", "maxSurge"),
    ("apps.v1.DaemonSetUpdateStrategy", "rollingUpdate"),
    ("apps.v1.RollingUpdateDaemonSet", "maxUnavailable"),
    ("apps.v1.RollingUpdateDaemonSet", "maxSurge"),
    ("core.v1.ReplicationControllerSpec", "selector"),
    ("rbac.v1.Subject", "apiGroup"),
    ("apiextensions.v1.CustomResourceDefinitionNames", "singular"),
    ("apiextensions.v1.CustomResourceDefinitionNames", "listKind"),
    ("apiextensions.v1.CustomResourceDefinitionSpec", "conversion"),
}
SET_BY_SERVER = ("uid", "creationTimestamp", "resourceVersion", "generation", "managedFields")


def post(server: str, token: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "User-Agent": "probe/1"}
    url = f"{server}{path}?dryRun=All&fieldValidation=Strict"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as e:
        raise SystemExit(f"{body['kind']} {body['metadata']['name']}: {json.load(e)['message']}") from e


class Recorder:
    """Collects what was added to structs, by the struct's type and by where the struct stood."""

    def __init__(self, types: TypeTable) -> None:
        self.types = types
        self.seen: dict[tuple[str, str], list[tuple[tuple[str, str], Any]]] = defaultdict(list)

    def struct(self, name: str, given: dict[str, Any], got: dict[str, Any], owner: tuple[str, str]) -> None:
        for field, spec in self.types.fields(name).items():
            if field in ("metadata", "status", "apiVersion", "kind") and not owner[0]:
                continue
            before, after = given.get(field), got.get(field)
            if before in (None, "", [], {}) and not self.contains(spec.type, before):
                self.seen[name, field].append(
                    (owner, after if after not in (None, "", [], {}) or before is None else None)
                )
                if isinstance(after, dict) and spec.type.shape == "struct" and before is None:
                    continue
            if before is not None and after is not None:
                self.value(spec.type, before, after, (name, field))

    def contains(self, ref: TypeRef, value: Any) -> bool:
        return ref.shape == "struct" and value is not None

    def value(self, ref: TypeRef, before: Any, after: Any, owner: tuple[str, str]) -> None:
        if ref.shape == "struct":
            self.struct(ref.name, before, after, owner)
        elif ref.shape == "list" and ref.element is not None and ref.element.shape == "struct":
            for x, y in zip(before, after, strict=False):
                self.struct(ref.element.name, x, y, owner)

    def table(self) -> dict[str, dict[str, Any]]:
        out: dict[str, dict[str, Any]] = defaultdict(dict)
        for (name, field), cases in sorted(self.seen.items()):
            if (name, field) in CONDITIONAL or all(v is None for _, v in cases):
                continue
            values = {json.dumps(v, sort_keys=True) for _, v in cases}
            if len(values) == 1:
                out[name][field] = cases[0][1]
                continue
            by_owner: dict[tuple[str, str], set[str]] = defaultdict(set)
            for owner, v in cases:
                by_owner[owner].add(json.dumps(v, sort_keys=True))
            if any(len(v) > 1 for v in by_owner.values()):
                raise SystemExit(f"{name}.{field} depends on something: {dict(by_owner)}")
            for (parent, place), (text,) in by_owner.items():
                value = json.loads(text)
                if value is not None:
                    out[parent].setdefault(place, {"nested": {}})["nested"][field] = value
        return out


def path_of(resource: Resource) -> str:
    return resource.as_kind().path("default" if resource.namespaced else None)


def without_identity(obj: dict[str, Any]) -> dict[str, Any]:
    meta = {k: v for k, v in obj["metadata"].items() if k not in SET_BY_SERVER}
    return {**obj, "metadata": meta}


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            d
            for k in sorted(ours.keys() | theirs.keys())
            for d in differences(ours.get(k), theirs.get(k), f"{path}.{k}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [d for i, (x, y) in enumerate(zip(ours, theirs, strict=True)) for d in differences(x, y, f"{path}[{i}]")]
    return [] if ours == theirs else [f"{path}: embedded {json.dumps(ours)}, real {json.dumps(theirs)}"]


async def compare(server: str, token: str, probes: list[dict[str, Any]]) -> int:
    embedded = ApiServer(rng=random.Random(1))
    failures = 0
    for probe in probes:
        group, _, version = probe["apiVersion"].rpartition("/")
        resource = embedded.backend.registry.by_kind(group, version, probe["kind"])
        assert resource is not None
        headers = {"content-type": "application/json", "user-agent": "probe/1"}
        query = (("dryRun", "All"), ("fieldValidation", "Strict"))
        request = HttpRequest("POST", path_of(resource), query, headers, json.dumps(probe).encode())
        ours = json.loads((await embedded.handle(request)).body)
        theirs = post(server, token, path_of(resource), probe)
        for obj in (ours, theirs):
            spec = obj.get("spec") or {}
            if obj["kind"] == "Service" and spec.get("clusterIP", "None") != "None":
                spec["clusterIP"], spec["clusterIPs"] = "x", ["x"]
                for port in spec.get("ports", ()):
                    port.pop("nodePort", None)
        fields = [
            json.dumps(o["metadata"].get("managedFields", [{}])[0].get("fieldsV1"), sort_keys=True)
            for o in (ours, theirs)
        ]
        found = differences(without_identity(ours), without_identity(theirs))
        if fields[0] != fields[1]:
            found.append(f".metadata.managedFields: embedded {fields[0]}\n    real {fields[1]}")
        if found:
            failures += 1
            print(f"{probe['kind']} {probe['metadata']['name']}:", *found, sep="\n  ")
    return failures


def main(server: str, token: str, *flags: str) -> int:
    types = load_resource("lwskit.embedded", "builtin-types.json")
    registry = Registry()
    probes = list(yaml.safe_load_all(PROBES.read_text()))
    recorder = Recorder(types)
    for probe in probes:
        group, _, version = probe["apiVersion"].rpartition("/")
        resource = registry.by_kind(group, version, probe["kind"])
        name = types.kind_type(probe["apiVersion"], probe["kind"])
        if resource is None or name is None:
            raise SystemExit(f"{probe['kind']} is not in the tables")
        got = post(server, token, path_of(resource), probe)
        recorder.struct(name, types.encode(name, probe), got, ("", ""))
    table = recorder.table()
    lines = [f"  {json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in sorted(table.items())]
    text = '{"source": "kube-apiserver v1.37", "types": {\n' + ",\n".join(lines) + "\n}}\n"
    if "--check" not in flags:
        TARGET.write_text(text)
        return 0
    failures = asyncio.run(compare(server, token, probes))
    if text != TARGET.read_text():
        print(f"{TARGET} is not what {server} answers now; run without --check")
        failures += 1
    print(f"{len(probes)} probes, {failures} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
