"""The variables that make the TPU hosts of a group, or of a sub-group, one accelerator. Pure.

Specification: 10 §10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lwskit.api import names
from lwskit.groups.identity import (
    group_size,
    has_hash_identity,
    is_leader,
    parse_ordinal,
    pod_name,
    stated_integer,
    subgroup_index,
    subgroup_of,
)
from lwskit.groups.model import DecisionError
from lwskit.runtime import quantity
from lwskit.runtime.objects import Obj, annotations_of, labels_of

_FIELDS = ("containers", "initContainers")
_SKIP = frozenset((names.ENV_TPU_WORKER_HOSTNAMES, names.ENV_TPU_WORKER_ID))
_MOST = 1_500_000
"""Characters that the lists of hosts of a pod may have together: about what an API server stores."""


class _Hosts(NamedTuple):
    """The hosts that work together, by worker index (0 is the leader), and which of them this pod is."""

    leader: str
    indices: Sequence[int]
    place: int


def requests_tpus(pod: Mapping[str, Any]) -> bool:
    """Whether a container or init container of the pod asks for TPUs.

    Raises DecisionError for an amount that is no quantity.
    """
    return next(_askers(pod), None) is not None


def with_tpu_variables(pod: Obj) -> Obj:
    """The pod with the variables of its TPU hosts behind those of the containers that ask for TPUs; a copy.

    Returned as it is: a pod without such containers, and one whose first such container has hosts or an id already.
    With sub-groups only the first such container gets them. Raises DecisionError with the sentence that admission
    denies the pod with.
    """
    chosen = list(_askers(pod))
    if not chosen or any(entry["name"] in _SKIP for entry in _env(pod, chosen[0])):
        return pod
    if names.SUBGROUP_SIZE_ANNOTATION in annotations_of(pod):
        chosen = chosen[:1]
        hosts = _of_subgroup(pod)
    else:
        hosts = _of_group(pod)
    set_ports = [_own_port(_env(pod, place)) for place in chosen]
    ports = [str(names.TPU_PROCESS_PORT_DEFAULT + i) if own is None else own for i, own in enumerate(set_ports)]
    hostnames, addresses = _lists(pod, hosts, ports)
    spec = dict(pod["spec"])
    for i, (field, index) in enumerate(chosen):
        added = [
            (names.ENV_TPU_WORKER_HOSTNAMES, hostnames),
            (names.ENV_TPU_WORKER_ID, str(hosts.place * len(chosen) + i)),
            (names.ENV_TPU_NAME, hosts.leader),
            (names.ENV_TPU_PROCESS_ADDRESSES, addresses),
        ]
        if set_ports[i] is None:
            added.append((names.ENV_TPU_PROCESS_PORT, ports[i]))
        containers = list(spec[field])
        env = [*(containers[index].get("env") or ()), *({"name": name, "value": value} for name, value in added)]
        containers[index] = {**containers[index], "env": env}
        spec[field] = containers
    return {**pod, "spec": spec}


def _askers(pod: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Where the containers that ask for TPUs are: field and place."""
    for field in _FIELDS:
        for index, container in enumerate(pod["spec"].get(field) or ()):
            resources = container.get("resources")
            if resources and (_some(pod, resources.get("limits")) or _some(pod, resources.get("requests"))):
                yield field, index


def _some(pod: Mapping[str, Any], amounts: Mapping[str, Any] | None) -> bool:
    amount = amounts.get(names.TPU_RESOURCE) if amounts else None
    if amount is None:
        return False
    try:
        return quantity.canonical(amount) != "0"
    except ValueError as error:
        raise DecisionError(f"{names.TPU_RESOURCE} of pod {pod_name(pod)} is {amount!r:.40}, not a quantity") from error


def _env(pod: Mapping[str, Any], place: tuple[str, int]) -> Sequence[Obj]:
    field, index = place
    return pod["spec"][field][index].get("env") or ()


def _own_port(env: Sequence[Obj]) -> str | None:
    """The port that the user set, empty where it is not known before the container runs; None if there is none."""
    return next((entry.get("value") or "" for entry in env if entry["name"] == names.ENV_TPU_PROCESS_PORT), None)


def _of_group(pod: Mapping[str, Any]) -> _Hosts:
    size = group_size(pod)
    leader, worker = _leader_of(pod)
    if worker == 0 or _leader_asks(pod):
        return _Hosts(leader, range(max(size, 1)), worker)
    return _Hosts(leader, range(1, size), worker - 1)


def _of_subgroup(pod: Mapping[str, Any]) -> _Hosts:
    """The hosts are those that share the pod's sub-group key, so that an accelerator is never split between two
    exclusive domains; without the leader where it asks for none, and a leader that is excluded has itself alone."""
    notes, labels = annotations_of(pod), labels_of(pod)
    size = group_size(pod)
    subgroup_size = stated_integer(pod, "annotation", names.SUBGROUP_SIZE_ANNOTATION, notes)
    worker = stated_integer(pod, "label", names.WORKER_INDEX_LABEL, labels)
    leader, _ = _leader_of(pod)
    excluded = notes.get(names.SUBGROUP_POLICY_TYPE_ANNOTATION) == names.SUBGROUP_LEADER_EXCLUDED
    if excluded and worker == 0:
        return _Hosts(leader, (0,), 0)
    stated_integer(pod, "label", names.SUBGROUP_INDEX_LABEL, labels)
    members = subgroup_of(size, subgroup_size, worker)
    if subgroup_index(size, subgroup_size, worker) == 0:
        asks = worker == 0 or (_leader_asks(pod) and not excluded)
        members = range(0 if asks else 1, members.stop)
    return _Hosts(leader, members, worker - members.start)


def _leader_of(pod: Mapping[str, Any]) -> tuple[str, int]:
    """The host name of the pod's leader, which the names of all hosts of the group begin with, and its own index."""
    if is_leader(pod):
        return pod["spec"].get("hostname") if has_hash_identity(pod) else pod_name(pod), 0
    parent, worker = parse_ordinal(pod_name(pod))
    if not parent or worker < 0:
        raise DecisionError(f"parsing parent name from pod {pod_name(pod)}")
    return parent, worker


def _leader_asks(pod: Mapping[str, Any]) -> bool:
    return annotations_of(pod).get(names.LEADER_REQUESTS_TPUS_ANNOTATION) == "true"


def _lists(pod: Mapping[str, Any], hosts: _Hosts, ports: Sequence[str]) -> tuple[str, str]:
    """The hosts, each as often as there are ports, and the same with the ports."""
    subdomain = pod["spec"].get("subdomain") or ""
    entry = 2 * (len(hosts.leader) + len(subdomain) + 4) + max(len(port) for port in ports)
    if len(hosts.indices) * len(ports) ** 2 * entry > _MOST:
        raise DecisionError(
            f"the {len(hosts.indices)} TPU hosts of pod {pod_name(pod)} are too many to be listed in variables"
        )
    found = [f"{hosts.leader}-{i}.{subdomain}" if i else f"{hosts.leader}.{subdomain}" for i in hosts.indices]
    return (
        ",".join(host for host in found for _ in ports),
        ",".join(f"{host}:{port}" for host in found for port in ports),
    )
