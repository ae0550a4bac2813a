"""Manifests of an installation, generated: `python -m lwskit.manager.manifests --write config` or `--check`.

Specification: 10 §12, 50 §20, 60 §9.4, §10, §11. The CRDs have a generator of their own, `lwskit.api.crds`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lwskit.admission import configurations
from lwskit.api import disaggregated_names as disaggregated
from lwskit.api import names
from lwskit.api.crds import plain_yaml
from lwskit.backends import registry
from lwskit.backends.registry import Backends
from lwskit.groups.ports import PolicyRule
from lwskit.manager.options import DEFAULT_NAMESPACE
from lwskit.runtime.kinds import (
    CONTROLLER_REVISION,
    CORE_EVENT,
    EVENT,
    LEASE,
    NAMESPACE,
    NODE,
    POD,
    SERVICE,
    SUBJECT_ACCESS_REVIEW,
    TOKEN_REVIEW,
)
from lwskit.runtime.metrics_server import PATH as METRICS_PATH
from lwskit.runtime.objects import Obj

WEBHOOK_SERVICE = "lws-webhook-service"
MANAGER_ROLE = "lws-manager-role"
ELECTION_ROLE = "lws-leader-election-role"
ACCESS_ROLE = "lws-proxy-role"
READER_ROLE = "lws-metrics-reader"
USER_ROLE = "lws-disaggregatedset-{}-role"
"""Roles that an administrator may bind to users: admin, editor and viewer."""

_READ = ("get", "list", "watch")
_ALL = (*_READ, "create", "delete", "patch", "update")
_CACHED_AND_MADE = ("create", *_READ)

RULES: tuple[PolicyRule, ...] = (
    # Sets and pods are changed where restarts are counted (20 §12); DisaggregatedSets make, scale and remove sets.
    PolicyRule(names.GROUP, (names.PLURAL,), _ALL),
    PolicyRule(names.GROUP, (f"{names.PLURAL}/status",), ("get", "patch", "update")),
    # Owner references that block the owner's deletion may be set only by those who may change its finalizers.
    PolicyRule(names.GROUP, (f"{names.PLURAL}/finalizers",), ("update",)),
    PolicyRule(POD.group, (POD.plural,), (*_READ, "delete", "patch", "update")),
    PolicyRule(POD.group, (f"{POD.plural}/finalizers",), ("update",)),
    PolicyRule(SERVICE.group, (SERVICE.plural,), _CACHED_AND_MADE),
    PolicyRule(CONTROLLER_REVISION.group, (CONTROLLER_REVISION.plural,), (*_CACHED_AND_MADE, "delete")),
    PolicyRule(NODE.group, (NODE.plural,), ("get",)),
    # A namespace that goes waits for its pods, and those of groups without a restart left wait for the manager.
    PolicyRule(NAMESPACE.group, (NAMESPACE.plural,), _READ),
    PolicyRule(CORE_EVENT.group, (CORE_EVENT.plural,), ("create", "patch")),
    PolicyRule(EVENT.group, (EVENT.plural,), ("create", "patch")),
    PolicyRule(
        disaggregated.GROUP,
        (disaggregated.PLURAL, disaggregated.SCALER_PLURAL),
        _ALL,
    ),
    PolicyRule(
        disaggregated.GROUP,
        (f"{disaggregated.PLURAL}/status", f"{disaggregated.SCALER_PLURAL}/status"),
        ("get", "patch", "update"),
    ),
    PolicyRule(disaggregated.GROUP, (f"{disaggregated.PLURAL}/finalizers",), ("update",)),
)
"""What the manager may do, whatever backends its sets have."""

ELECTION_RULES: tuple[PolicyRule, ...] = (
    PolicyRule(LEASE.group, (LEASE.plural,), ("create", "get", "update")),
    PolicyRule(CORE_EVENT.group, (CORE_EVENT.plural,), ("create", "patch")),
)
"""What it does in its own namespace to be elected."""

ACCESS_RULES: tuple[PolicyRule, ...] = (
    PolicyRule(TOKEN_REVIEW.group, (TOKEN_REVIEW.plural,), ("create",)),
    PolicyRule(SUBJECT_ACCESS_REVIEW.group, (SUBJECT_ACCESS_REVIEW.plural,), ("create",)),
)
"""What it does to know who may read its metrics (specification: 60 §8.1)."""


def webhook_manifests(namespace: str = DEFAULT_NAMESPACE) -> list[Obj]:
    """The webhook configurations of an installation in `namespace`; whoever manages certificates adds `caBundle`."""

    def client_config(path: str) -> dict[str, Any]:
        return {"service": {"name": WEBHOOK_SERVICE, "namespace": namespace, "path": path}}

    return [configurations.mutating(client_config), configurations.validating(client_config)]


def roles(backends: Backends | None = None, namespace: str = DEFAULT_NAMESPACE) -> list[Obj]:
    """The ClusterRole of the manager with these backends, the Role in `namespace` for its election, two for metrics.

    Of the last two one is the manager's, to ask who may read its metrics, the other is for those who read them.
    """
    used = backends or registry.find()
    rules = dict.fromkeys((*RULES, *(r for b in used.leading for r in b.rbac), *used.workers.rbac))
    return [
        _role("ClusterRole", {"name": MANAGER_ROLE}, rules),
        _role("Role", {"name": ELECTION_ROLE, "namespace": namespace}, ELECTION_RULES),
        _role("ClusterRole", {"name": ACCESS_ROLE}, ACCESS_RULES),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": READER_ROLE},
            "rules": [{"nonResourceURLs": [METRICS_PATH], "verbs": ["get"]}],
        },
    ]


def user_roles() -> list[Obj]:
    """ClusterRoles for the people who work with DisaggregatedSets: everything, writing, reading. None is bound.

    Specification: 60 §10.
    """
    read = PolicyRule(disaggregated.GROUP, (disaggregated.PLURAL,), _READ)
    write = PolicyRule(read.group, read.resources, _ALL)
    all_of_it = PolicyRule(read.group, read.resources, ("*",))
    status = PolicyRule(read.group, (f"{disaggregated.PLURAL}/status",), ("get",))
    return [
        _role("ClusterRole", {"name": USER_ROLE.format(who)}, (rule, status))
        for who, rule in (("admin", all_of_it), ("editor", write), ("viewer", read))
    ]


def _role(kind: str, metadata: Mapping[str, str], rules: Iterable[PolicyRule]) -> Obj:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": dict(metadata),
        "rules": [
            {"apiGroups": [rule.group], "resources": list(rule.resources), "verbs": sorted(rule.verbs)}
            for rule in sorted(rules, key=lambda rule: (rule.group, rule.resources))
        ],
    }


def files() -> dict[str, str]:
    """The text of every generated file, by its path under `config`."""
    return {
        "webhook/manifests.yaml": _yaml(webhook_manifests()),
        "rbac/role.yaml": _yaml(roles()),
        "rbac/user_roles.yaml": _yaml(user_roles()),
    }


def _yaml(documents: Iterable[Obj]) -> str:
    header = "# Generated by python -m lwskit.manager.manifests --write config; do not edit.\n"
    return header + "---\n".join(plain_yaml(document) for document in documents)


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or compare with them. Returns the exit status: 1 if a file is not current."""
    parser = argparse.ArgumentParser(
        prog="python -m lwskit.manager.manifests", description="Writes the manifests of an installation."
    )
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", metavar="DIRECTORY", type=Path, help="write the files under this directory")
    choice.add_argument(
        "--check",
        metavar="DIRECTORY",
        type=Path,
        nargs="?",
        const=Path("config"),
        help="compare with the files under this directory (config) and write nothing",
    )
    options = parser.parse_args(arguments)
    status = 0
    for name, text in files().items():
        if options.write is not None:
            path = options.write / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            continue
        path = options.check / name
        if not path.is_file() or path.read_text() != text:
            remedy = f"run python -m lwskit.manager.manifests --write {options.check}"
            print(f"{path} is not current: {remedy}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
