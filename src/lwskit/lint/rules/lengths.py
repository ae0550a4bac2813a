"""Names that are made from a set's name and may become too long (specification: 10 §7). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lwskit.api import names
from lwskit.groups import spec
from lwskit.lint.findings import HOST_NAME_TOO_LONG, LEADER_NAME_TOO_LONG, WORKER_NAME_TOO_LONG, Fault
from lwskit.lint.rules.paths import templates
from lwskit.runtime.objects import Obj

WORKLOAD_LIMIT: Final = names.MAX_NAME_LENGTH - names.STATEFUL_SET_HASH_SUFFIX
HOST_LIMIT: Final = 64
"""Characters that Linux has for a host name."""
_LABEL = f"the label controller-revision-hash of its pods may have {names.MAX_NAME_LENGTH} characters"


def check(lws: Obj) -> Iterator[Fault]:
    """Names of StatefulSets that leave no room for the label of their pods' revision; full host names."""
    if spec.identity(lws) != names.IDENTITY_ORDINAL or not spec.replicas(lws):
        return
    name, path = lws["metadata"]["name"], "metadata.name"
    groups = spec.replicas(lws) + spec.max_surge(lws)
    last = f"{name}-{groups - 1}"
    if len(name) > WORKLOAD_LIMIT:
        text = (
            f"the leaders' StatefulSet is named like the set, which has {len(name)} characters, but {_LABEL}, "
            f"of which its hash takes up to {names.STATEFUL_SET_HASH_SUFFIX}: leader pods may not be creatable"
        )
        yield Fault(LEADER_NAME_TOO_LONG, path, text, _shorten(len(name) - WORKLOAD_LIMIT))
    elif spec.size(lws) > 1 and len(last) > WORKLOAD_LIMIT:
        digits = WORKLOAD_LIMIT - len(name) - 1
        first = 10**digits if digits > 0 else 0
        which = f"group {first}" if first == groups - 1 else f"groups {first} to {groups - 1}"
        text = (
            f"the workers' StatefulSet {last} has {len(last)} characters, but {_LABEL}, of which its hash takes up to "
            f"{names.STATEFUL_SET_HASH_SUFFIX}: workers of {which} may not be creatable"
        )
        yield Fault(WORKER_NAME_TOO_LONG, path, text, _shorten(len(last) - WORKLOAD_LIMIT))
    yield from _hosts(lws, last)


def _shorten(excess: int) -> str:
    return f"shorten the name of the set by {excess} character{'' if excess == 1 else 's'}"


def _hosts(lws: Obj, last: str) -> Iterator[Fault]:
    """Pods whose host name is their full name, which the kernel has no room for."""
    workers = spec.size(lws) - 1
    shared = spec.subdomain_policy(lws) == names.SUBDOMAIN_SHARED
    subdomain = lws["metadata"]["name"] if shared else last
    for template in templates(lws):
        if not template.spec.get("setHostnameAsFQDN"):
            continue
        pod = f"{last}-{workers}" if template.of_workers else last
        full = f"{pod}.{subdomain}.{lws['metadata']['namespace']}.svc.cluster.local"
        if len(full) > HOST_LIMIT:
            text = (
                f"pods ask for their full name as host name, but {full} has {len(full)} characters "
                f"and a host name at most {HOST_LIMIT}: such pods stay in ContainerCreating"
            )
            yield Fault(HOST_NAME_TOO_LONG, f"{template.path}.spec.setHostnameAsFQDN", text, "leave the field out")
