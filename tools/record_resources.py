"""Record from a real API server which built-in resources it serves: names, verbs, short names, subresources.

Usage: record_resources.py SERVER TOKEN > src/lwskit/embedded/builtin-resources.json
"""

from __future__ import annotations

import json
import ssl
import sys
import urllib.request
from collections.abc import Iterable
from typing import Any

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
# What cannot be honoured is better absent: an aggregated server, flow control, policies that nobody would enforce.
LEFT_OUT_GROUPS = frozenset({"apiregistration.k8s.io", "flowcontrol.apiserver.k8s.io"})
LEFT_OUT_VERSIONS = frozenset({("autoscaling", "v1")})
LEFT_OUT_RESOURCES = frozenset(
    {
        "componentstatuses",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    }
)
CORE_GROUPS = frozenset({"", "apps", "autoscaling", "batch", "policy"})
"""Built-in groups without the ending of the others."""
LEFT_OUT_SUBRESOURCES = frozenset({"attach", "exec", "log", "portforward", "proxy", "resize", "ephemeralcontainers"})


def fetch(server: str, token: str, path: str) -> dict[str, Any]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}", "Accept": AGGREGATED}
    request = urllib.request.Request(server + path, headers=headers)
    with urllib.request.urlopen(request, context=context) as answer:
        return json.load(answer)


def short(resource: dict[str, Any], group: str, version: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "group": group,
        "version": version,
        "kind": resource["responseKind"]["kind"],
        "plural": resource["resource"],
        "singular": resource["singularResource"],
        "namespaced": resource["scope"] == "Namespaced",
        "verbs": resource.get("verbs", []),
    }
    for name, field in (("shortNames", "short"), ("categories", "categories")):
        if resource.get(name):
            found[field] = resource[name]
    subresources = {}
    for sub in resource.get("subresources", ()):
        if sub["subresource"] in LEFT_OUT_SUBRESOURCES:
            continue
        kind = sub["responseKind"]
        entry = {"kind": kind["kind"], "verbs": sub["verbs"]}
        if kind["group"] or kind["version"]:
            entry |= {"group": kind["group"], "version": kind["version"]}
        subresources[sub["subresource"]] = entry
    if subresources:
        found["subresources"] = subresources
    return found


def rows(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The table, from the aggregated discovery documents of `/api` and `/apis`."""
    found = []
    for document in documents:
        for group in document["items"]:
            name = group.get("metadata", {}).get("name", "")
            # What a CustomResourceDefinition has brought is not the server's own.
            built_in = name in CORE_GROUPS or name.endswith(".k8s.io")
            if name in LEFT_OUT_GROUPS or not built_in:
                continue
            for version in group["versions"]:
                if (name, version["version"]) in LEFT_OUT_VERSIONS:
                    continue
                for resource in version["resources"]:
                    if resource["resource"] not in LEFT_OUT_RESOURCES:
                        found.append(short(resource, name, version["version"]))
    return found


def main(server: str, token: str) -> None:
    lines = [json.dumps(row) for row in rows(fetch(server, token, path) for path in ("/api", "/apis"))]
    print('{"resources": [\n  ' + ",\n  ".join(lines) + "\n]}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
