"""Where a pod fits: resources, selectors, taints, affinity between pods. Pure.

Source: Kubernetes documentation, "Assigning Pods to Nodes", "Taints and Tolerations", "Resource Management".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from lwskit.embedded.controllers.pods import is_terminal
from lwskit.runtime import quantity
from lwskit.runtime.objects import Obj, Requirement, Selector, labels_of

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"

_UNRESOLVABLE = frozenset(
    {
        "node(s) were unschedulable",
        "node(s) had untolerated taint(s)",
        "node(s) didn't match Pod's node affinity/selector",
        "node(s) didn't match pod affinity rules",
    }
)

_Place: TypeAlias = tuple[str, str | None]
"""A topology key with a value."""


@dataclass(slots=True)
class NodeState:
    """A node, the pods on it and the sum of what they request."""

    node: Obj
    pods: dict[str, Obj] = field(default_factory=dict)
    used: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node["metadata"]["name"]

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return labels_of(self.node)

    def capacity(self, resource: str) -> Fraction | None:
        """What is allocatable of a resource, None where the node has none of it."""
        found = (self.node.get("status") or {}).get("allocatable", {}).get(resource)
        return None if found is None else quantity.parse(found)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a pod goes; without a node, `message` says why not in the words of the scheduler."""

    node: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Term:
    """One required term of affinity or anti-affinity between pods, as its owner means it."""

    topology: str
    selector: Selector
    namespaces: frozenset[str] | None
    """None: every namespace."""

    def matches(self, pod: Mapping[str, Any]) -> bool:
        here = pod["metadata"].get("namespace", "")
        return (self.namespaces is None or here in self.namespaces) and self.selector.matches(labels_of(pod))


def requests_of(pod: Mapping[str, Any]) -> Counter[str]:
    """What a pod needs of each resource, as fractions of its unit; one of `pods`.

    The sum over containers and restartable init containers, or what an init container needs more at its turn, and the
    overhead.
    """
    spec = pod["spec"]
    total: Counter[str] = Counter()
    for container in spec.get("containers") or ():
        total.update(_wanted(container))
    sidecars: Counter[str] = Counter()
    peak: dict[str, Any] = {}
    for container in spec.get("initContainers") or ():
        wanted = _wanted(container)
        if container.get("restartPolicy") == "Always":
            sidecars.update(wanted)
            wanted = Counter()
        for name in wanted.keys() | sidecars.keys():
            peak[name] = max(peak.get(name, Fraction(0)), wanted[name] + sidecars[name])
    total.update(sidecars)
    for name, value in peak.items():
        total[name] = max(total[name], value)
    total.update({k: quantity.parse(v) for k, v in (spec.get("overhead") or {}).items()})
    total["pods"] = 1
    return total


def _wanted(container: Mapping[str, Any]) -> Counter[str]:
    resources = container.get("resources") or {}
    wanted = dict(resources.get("limits") or {}) | dict(resources.get("requests") or {})
    return Counter({name: quantity.parse(value) for name, value in wanted.items()})


class Placement:
    """The nodes of a cluster with their pods, kept current by its owner, and where the next pod goes."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self._homeless: dict[str, dict[str, Obj]] = {}
        self._place: dict[str, tuple[str, Obj]] = {}
        self.repelling: dict[str, tuple[str, Obj]] = {}
        """Placed pods that want none of some others near them, with their nodes, by UID."""

    def put_node(self, node: Obj) -> None:
        """Add a node or take in its new state."""
        name = node["metadata"]["name"]
        state = self.nodes.get(name)
        if state is not None:
            state.node = node
            return
        state = self.nodes[name] = NodeState(node)
        for uid, pod in self._homeless.pop(name, {}).items():
            self._add(state, uid, pod)

    def drop_node(self, name: str) -> None:
        """Take out a node; its pods are kept for when it comes back."""
        state = self.nodes.pop(name, None)
        if state is not None and state.pods:
            self._homeless[name] = state.pods

    def put_pod(self, uid: str, node: str, pod: Obj) -> None:
        """Count a pod on a node, in place of what it was before."""
        self.drop_pod(uid)
        self._place[uid] = (node, pod)
        if (pod["spec"].get("affinity") or {}).get("podAntiAffinity"):
            self.repelling[uid] = (node, pod)
        state = self.nodes.get(node)
        if state is None:
            self._homeless.setdefault(node, {})[uid] = pod
        else:
            self._add(state, uid, pod)

    def drop_pod(self, uid: str) -> bool:
        """Count a pod no more; returns whether it was counted."""
        placed = self._place.pop(uid, None)
        if placed is None:
            return False
        self.repelling.pop(uid, None)
        node, pod = placed
        state = self.nodes.get(node)
        if state is None:
            found = self._homeless.get(node, {})
            found.pop(uid, None)
            if not found:
                self._homeless.pop(node, None)
        else:
            state.pods.pop(uid, None)
            state.used.subtract(requests_of(pod))
        return True

    def clear_pods(self) -> None:
        """Forget all pods."""
        for uid in list(self._place):
            self.drop_pod(uid)

    @staticmethod
    def _add(state: NodeState, uid: str, pod: Obj) -> None:
        state.pods[uid] = pod
        state.used.update(requests_of(pod))

    def choose(self, pod: Obj) -> Outcome:
        """The node for a pod: of those where it fits the least loaded, then the first by name."""
        if not self.nodes:
            return Outcome(message="no nodes available to schedule pods")
        checks = _Checks(self, pod)
        reasons: Counter[str] = Counter()
        helpless = 0
        fitting: list[NodeState] = []
        for state in self.nodes.values():
            found = checks.reasons(state)
            if not found:
                fitting.append(state)
            else:
                reasons.update(found)
                helpless += any(r in _UNRESOLVABLE for r in found) or checks.exceeds(state)
        if not fitting:
            return Outcome(message=_explain(len(self.nodes), reasons, helpless))
        best = min(fitting, key=lambda s: (_load(s, checks.wanted), len(s.pods), s.name))
        return Outcome(best.name)

    def visible(self, namespace: str, term: Mapping[str, Any]) -> frozenset[str] | None:
        """The namespaces that a term of a pod in `namespace` looks into, None for all."""
        names = frozenset(term.get("namespaces") or ())
        selector = term.get("namespaceSelector")
        if selector is None:
            return names or frozenset({namespace})
        wanted = Selector.from_object(selector)
        if not wanted.requirements:
            return None
        return names | {n for n, labels in self.namespaces.items() if wanted.matches(labels)}


class _Checks:
    """Everything about one pod that is the same for all nodes."""

    def __init__(self, placement: Placement, pod: Obj) -> None:
        self.pod = pod
        self.spec = pod["spec"]
        self.wanted = requests_of(pod)
        self.placement = placement
        affinity = self.spec.get("affinity") or {}
        node_affinity = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
        self.node_terms = None if node_affinity is None else node_affinity.get("nodeSelectorTerms") or ()
        self.near = self._terms(pod, "podAffinity")
        self.far = self._terms(pod, "podAntiAffinity")
        self.near_places, self.near_anywhere = self._near()
        self.far_places = self._pairs(self.far)
        self.refused_places = self._refused()

    def reasons(self, state: NodeState) -> list[str]:
        """Why the pod cannot be on a node: those of the first check that fails, nothing when it can."""
        spec, node = self.spec, state.node
        if node.get("spec", {}).get("unschedulable") and not self._tolerates(
            {"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule"}
        ):
            return ["node(s) were unschedulable"]
        for taint in node.get("spec", {}).get("taints") or ():
            if taint["effect"] in ("NoSchedule", "NoExecute") and not self._tolerates(taint):
                return ["node(s) had untolerated taint(s)"]
        if not self._selects(state, spec.get("nodeSelector") or {}):
            return ["node(s) didn't match Pod's node affinity/selector"]
        short = ["Too many pods" if r == "pods" else f"Insufficient {r}" for r in self._short(state)]
        return short or self._between_pods(state)

    def exceeds(self, state: NodeState) -> bool:
        """Whether the pod needs more of something than the node has in all, so that no other pod's end would help."""
        return any(amount > (state.capacity(r) or 0) for r, amount in self.wanted.items() if r != "pods" and amount)

    def _short(self, state: NodeState) -> list[str]:
        found: list[str] = []
        for resource, amount in self.wanted.items():
            if not amount:
                continue
            capacity = state.capacity(resource)
            if capacity is None and resource == "pods":
                continue
            if amount + state.used[resource] > (capacity or 0):
                found.append(resource)
        return found

    def _tolerates(self, taint: Mapping[str, Any]) -> bool:
        return any(tolerates(t, taint) for t in self.spec.get("tolerations") or ())

    def _selects(self, state: NodeState, wanted: Mapping[str, str]) -> bool:
        if any(state.labels.get(k) != v for k, v in wanted.items()):
            return False
        return self.node_terms is None or any(_node_term(t, state) for t in self.node_terms)

    def _between_pods(self, state: NodeState) -> list[str]:
        labels = state.labels
        if self.near and not self.near_anywhere:
            if any((t.topology, labels.get(t.topology)) not in self.near_places for t in self.near):
                return ["node(s) didn't match pod affinity rules"]
        elif any(t.topology not in labels for t in self.near):
            return ["node(s) didn't match pod affinity rules"]
        if any((t.topology, labels.get(t.topology)) in self.far_places for t in self.far):
            return ["node(s) didn't match pod anti-affinity rules"]
        if any((key, value) in self.refused_places for key, value in labels.items()):
            return ["node(s) didn't satisfy existing pods anti-affinity rules"]
        return []

    def _terms(self, pod: Mapping[str, Any], which: str) -> list[_Term]:
        affinity = ((pod["spec"].get("affinity") or {}).get(which)) or {}
        namespace = pod["metadata"].get("namespace", "")
        return [
            # No selector at all selects no pod.
            _Term(
                t["topologyKey"],
                Selector.from_object(t["labelSelector"]) if t.get("labelSelector") is not None else _NOTHING,
                self.placement.visible(namespace, t),
            )
            for t in affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        ]

    def _placed(self) -> Iterable[tuple[NodeState, Obj]]:
        for state in self.placement.nodes.values():
            for pod in state.pods.values():
                if not is_terminal(pod):
                    yield state, pod

    def _near(self) -> tuple[set[_Place], bool]:
        """The places with pods that fulfil all affinity terms; and whether there are none but the pod fulfils them."""
        if not self.near:
            return set(), False
        places: set[_Place] = {
            (t.topology, state.labels[t.topology])
            for state, pod in self._placed()
            if all(t.matches(pod) for t in self.near)
            for t in self.near
            if t.topology in state.labels
        }
        return places, not places and all(t.matches(self.pod) for t in self.near)

    def _pairs(self, terms: Sequence[_Term]) -> set[_Place]:
        if not terms:
            return set()
        return {
            (t.topology, state.labels[t.topology])
            for state, pod in self._placed()
            for t in terms
            if t.topology in state.labels and t.matches(pod)
        }

    def _refused(self) -> set[_Place]:
        """The places where a pod that is there wants none like this one."""
        nodes = self.placement.nodes
        return {
            (t.topology, nodes[name].labels[t.topology])
            for name, pod in self.placement.repelling.values()
            if name in nodes and not is_terminal(pod)
            for t in self._terms(pod, "podAntiAffinity")
            if t.topology in nodes[name].labels and t.matches(self.pod)
        }


_NOTHING = Selector((Requirement("a", "Exists"), Requirement("a", "DoesNotExist")))


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Whether a toleration covers a taint: effect, key and value, each empty one covering all."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def _node_term(term: Mapping[str, Any], state: NodeState) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_expression(e, state.labels) for e in expressions) and all(
        _expression(e, {"metadata.name": state.name}) for e in fields
    )


def _expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator, values = expression["key"], expression["operator"], tuple(expression.get("values") or ())
    if operator in ("Gt", "Lt"):
        try:
            left, right = int(labels[key]), int("".join(values))
        except (KeyError, ValueError):
            return False
        return left > right if operator == "Gt" else left < right
    return Requirement(key, operator, values).matches(labels)


def _load(state: NodeState, wanted: Mapping[str, Any]) -> Fraction:
    """The mean share of processors and memory that would be in use with the pod."""
    shares = []
    for resource in ("cpu", "memory"):
        capacity = state.capacity(resource)
        if capacity:
            shares.append(Fraction(state.used[resource] + wanted.get(resource, 0)) / capacity)
    return sum(shares, Fraction(0)) / len(shares) if shares else Fraction(0)


def _explain(nodes: int, reasons: Mapping[str, int], helpless: int) -> str:
    parts = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    victims = nodes - helpless
    rest = [f"{victims} No preemption victims found for incoming pod"] if victims else []
    rest += [f"{helpless} Preemption is not helpful for scheduling"] if helpless else []
    preemption = f"preemption: 0/{nodes} nodes are available: {', '.join(sorted(rest))}."
    return f"0/{nodes} nodes are available: {parts}. {preemption}"
