"""Random moves about one Deployment, each a few requests, chosen by what is there."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from lwskit.runtime.kinds import DEPLOYMENT, POD, REPLICA_SET
from lwskit.runtime.objects import Obj, annotations_of, controller_of, is_deleting, is_true, labels_of
from lwskit.runtime.ranking import DELETION_COST
from tests.differential.deployments.view import HASH, NAME, View
from tests.differential.deployments.writes import AGO, HASH_OF, LONG_AGO, NOW, create, delete, patch, spec
from tests.differential.side_by_side.game import Move, Write
from tests.differential.side_by_side.mirror import Place

HELD = "example.com/held"
"""The finalizer that keeps pods in the middle of their deletion."""
LABELS = {"app": NAME}
FAR = 80_000
"""Seconds of readiness that only pods reach which are said to be ready since long before."""
POWERS = range(14, 31)
"""How long ago pods became ready, as powers of two: far from where ages are of another magnitude."""
PATIENT = 1_000_000
"""A deadline of progress that is never reached."""
NODES = ("n1", "n2", "n3")
ANY, SETTLED = "any", "settled"
"""Everything that can happen; and Deployments most of whose pods run, of which some go."""


def template(rng: random.Random) -> Obj:
    """One of a few pod templates."""
    container: Obj = {"name": "c", "image": f"img:{rng.choice('12345')}"}
    if rng.random() < 0.15:
        container["env"] = [{"name": "A", "value": rng.choice(["x", "y"])}]
    if rng.random() < 0.1:
        container["resources"] = {"requests": {"cpu": rng.choice(["1000m", "0.5"])}}
    meta: Obj = {"labels": dict(LABELS)}
    if rng.random() < 0.1:
        meta["labels"]["tier"] = rng.choice("ab")
    if rng.random() < 0.1:
        meta["annotations"] = {"note": rng.choice("ab")}
    return {"metadata": meta, "spec": {"containers": [container], "schedulerName": "nobody"}}


def strategy(rng: random.Random) -> Obj:
    """A strategy."""
    if rng.random() < 0.2:
        return {"type": "Recreate", "rollingUpdate": None}
    limits: list[Any] = [0, 1, 1, 2, 3, "10%", "25%", "50%", "100%"]
    surge, unavailable = rng.choice([*limits, "150%"]), rng.choice(limits)
    if surge == unavailable == 0:
        surge = 1
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def deployment(rng: random.Random) -> Obj:
    """A Deployment."""
    made: Obj = {
        "replicas": rng.choice([0, 1, 2, 3, 4, 5, 6, 8]),
        "selector": {"matchLabels": dict(LABELS)},
        "template": template(rng),
        "strategy": {k: v for k, v in strategy(rng).items() if v is not None},
        "progressDeadlineSeconds": rng.choice([PATIENT, PATIENT, PATIENT, 2**31 - 1, 1]),
    }
    if rng.random() < 0.3:
        made["revisionHistoryLimit"] = rng.choice([0, 1, 2])
    if rng.random() < 0.2 and made["progressDeadlineSeconds"] > FAR:
        made["minReadySeconds"] = rng.choice([1, FAR])
    if rng.random() < 0.1:
        made["paused"] = True
    meta: Obj = {"annotations": {"example.com/cause": "first"}} if rng.random() < 0.3 else {}
    return {"metadata": meta, "spec": made}


class DeploymentMoves:
    """Chooses moves for one Deployment; `place` is what is there at that moment.

    Pods that the order of deletion cannot tell apart are made equal in everything, so that it does not matter which of
    them goes: what is no part of the order, such as a node or a finalizer, comes with a number of restarts of its own.
    """

    def __init__(self, rng: random.Random, profile: str) -> None:
        self._rng = rng
        self._settled = profile == SETTLED
        self._templates: list[Obj] = []
        self._restarts = list(range(1, 500))
        rng.shuffle(self._restarts)
        self._causes = 0

    def next(self, place: Place) -> list[Move]:
        """The next moves, one after the other; after each everything may come to rest."""
        assert isinstance(place, View)
        choices: list[tuple[float, Callable[[View], list[Move]]]]
        if NAME not in place.of(DEPLOYMENT):
            choices = [(6, self._create), (2, self._pod_move)]
        elif self._settled:
            choices = [
                (5, self._all_ready),
                (6, self._bind_all),
                (3, self._readiness),
                (3, self._pod_move),
                (9, self._scale),
                (1.5, self._edit_template),
                (0.5, self._strategy),
            ]
        else:
            choices = [
                (9, self._readiness),
                (4, self._all_ready),
                (6, self._pod_move),
                (4, self._bind_all),
                (5, self._edit_template),
                (6, self._scale),
                (1.5, self._strategy),
                (2.5, self._settings),
                (1.2, self._odd_pods),
                (1.2, self._sets),
                (0.5, self._roll_back),
                (0.7, self._delete),
            ]
        while True:
            pick = self._rng.choices([c for _, c in choices], [w for w, _ in choices])[0]
            if found := pick(place):
                return found

    # The Deployment ---------------------------------------------------------------------------------------------------

    def _create(self, place: View) -> list[Move]:
        made = deployment(self._rng)
        if self._settled:
            made["spec"]["replicas"] = self._rng.randint(4, 9)
        if self._templates and self._rng.random() < 0.5:
            made["spec"]["template"] = self._rng.choice(self._templates[-2:])
        self._templates.append(made["spec"]["template"])
        return [[create("deployments", NAME, made)]]

    def _edit_template(self, place: View) -> list[Move]:
        chosen = template(self._rng)
        if self._templates and self._rng.random() < 0.4:
            chosen = self._rng.choice(self._templates)
        self._templates.append(chosen)
        meta = {"annotations": None, **chosen["metadata"]}
        meta["labels"] = {"tier": None, **meta["labels"]}
        fields: Obj = {"template": {**chosen, "metadata": meta}}
        if self._rng.random() < 0.15:
            fields["replicas"] = self._size()
        return [[spec(**fields)]]

    def _size(self) -> int:
        return self._rng.choice([0, 1, 2, 3, 4, 5, 6, 8, 10])

    def _scale(self, place: View) -> list[Move]:
        size = self._size()
        if self._rng.random() < 0.6:
            size = max(
                0, min(12, place.of(DEPLOYMENT)[NAME]["spec"]["replicas"] + self._rng.choice([-2, -1, -1, 1, 2]))
            )
        if self._rng.random() < 0.5:
            return [[patch("deployments", NAME, {"spec": {"replicas": size}}, "scale")]]
        return [[spec(replicas=size)]]

    def _strategy(self, place: View) -> list[Move]:
        return [[spec(strategy=strategy(self._rng))]]

    def _settings(self, place: View) -> list[Move]:
        live = place.of(DEPLOYMENT)[NAME]["spec"]
        match self._rng.randrange(6):
            case 0 | 1:
                return [[spec(paused=not live.get("paused"))]]
            case 2:
                seconds = self._rng.choice([0, 0, 1, FAR])
                return [[spec(minReadySeconds=seconds)]] if live["progressDeadlineSeconds"] > FAR else []
            case 3:
                return [[spec(revisionHistoryLimit=self._rng.choice([0, 1, 2, 10]))]]
            case 4:
                few = [1] if live.get("minReadySeconds", 0) < 1 else []
                return [[spec(progressDeadlineSeconds=self._rng.choice([PATIENT, 2**31 - 1, *few]))]]
            case _:
                self._causes += 1
                cause = {"example.com/cause": f"change {self._causes}"}
                return [[patch("deployments", NAME, {"metadata": {"annotations": cause}})]]

    def _roll_back(self, place: View) -> list[Move]:
        wanted = {"deprecated.deployment.rollback.to": self._rng.choice(["0", "0", "1", "2", "99"])}
        return [[patch("deployments", NAME, {"metadata": {"annotations": wanted}})]]

    def _delete(self, place: View) -> list[Move]:
        if is_deleting(place.of(DEPLOYMENT)[NAME]):
            return []
        how = self._rng.choice(["Background", "Foreground", "Orphan", "Orphan"])
        return [[delete("deployments", NAME, propagation=how)]]

    # Pods -------------------------------------------------------------------------------------------------------------

    def _status(self, kind: str, phase: str, ready: bool, since: str = LONG_AGO, *, restarts: bool = False) -> Write:
        """What a kubelet says of a pod."""
        condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": since}
        status: Obj = {"phase": phase, "conditions": [condition]}
        if restarts:
            container = {"name": "c", "image": "i", "imageID": "i", "ready": ready}
            status["containerStatuses"] = [container | {"restartCount": self._restarts.pop()}]
        return patch("pods", kind, {"status": status}, "status")

    def _since(self) -> str:
        return f"{AGO}{self._rng.choice(POWERS[-3:] if self._settled else POWERS)}"

    def _readiness(self, place: View) -> list[Move]:
        pods = [(c, p) for c, p in place.pods() if not _ended(p)]
        if not pods:
            return []
        waiting = [c for c, p in pods if not is_true(p, "Ready")]
        if waiting and self._rng.random() < 0.75:
            young = any("ready now" in c for c, _ in pods)
            since = NOW if not young and self._rng.random() < 0.15 else self._since()
            return [[self._status(self._rng.choice(waiting), "Running", True, since)]]
        phase = self._rng.choice(["Running", "Running", "Pending", "Unknown"])
        return [[self._status(self._rng.choice(pods)[0], phase, False)]]

    def _all_ready(self, place: View) -> list[Move]:
        """One after another, each when the others have had their effect."""
        waiting = [c for c, p in place.pods() if not _ended(p) and not is_true(p, "Ready")]
        self._rng.shuffle(waiting)
        moves = [[self._status(c, "Running", True, self._since())] for c in waiting]
        return self._together(moves, place)

    def _together(self, moves: list[Move], place: View) -> list[Move]:
        """As one move, where no rollout goes on that every step might take further."""
        active = [s for s in place.of(REPLICA_SET).values() if s["spec"]["replicas"]]
        return [[w for m in moves for w in m]] if moves and self._settled and len(active) < 2 else moves

    def _bind_all(self, place: View) -> list[Move]:
        """Give pods a node, as a scheduler does, and each a number of restarts of its own."""
        waiting = [(c, p) for c, p in place.pods() if not p["spec"].get("nodeName") and not _ended(p)]
        if not waiting:
            return []
        if not self._settled:
            waiting = self._rng.sample(waiting, self._rng.randint(1, min(4, len(waiting))))
        return self._together([move for c, p in waiting for move in self._bound(c, p)], place)

    def _bound(self, kind: str, pod: Obj) -> list[Move]:
        if not pod["metadata"].get("generateName") or is_deleting(pod):
            return []
        marked = [self._marked(kind, pod)]
        target = {"kind": "Node", "name": self._rng.choice(NODES)}
        number = marked[0]["body"]["status"]["containerStatuses"][0]["restartCount"]
        return [marked, [create("pods", _with_restarts(kind, number), {"target": target}, "binding")]]

    def _marked(self, kind: str, pod: Obj) -> Write:
        """Give a pod that nothing else tells from others a number of restarts of its own; nothing else changes."""
        status = pod.get("status") or {}
        container = {"name": "c", "image": "i", "imageID": "i", "ready": False, "restartCount": self._restarts.pop()}
        body = {"status": {"phase": status.get("phase"), "containerStatuses": [container]}}
        return patch("pods", kind, body, "status")

    def _pod_move(self, place: View) -> list[Move]:
        pods = place.pods()
        if not pods:
            return []
        kind, pod = self._rng.choice(pods)
        held = HELD in (pod["metadata"].get("finalizers") or ())
        if is_deleting(pod):
            if held:
                return [[patch("pods", kind, {"metadata": {"finalizers": None}})]]
            return [[delete("pods", kind, grace_seconds=0)]]
        match self._rng.randrange(8):
            case 0 | 1:
                return [[delete("pods", kind)]]
            case 2:
                phase = self._rng.choice(["Failed", "Succeeded"])
                return [] if _ended(pod) else [[self._status(kind, phase, False)]]
            case 3 | 4 | 5:
                cost = self._rng.choice(["-100", "-1", "5", "10", "x", None])
                if cost is None and DELETION_COST not in annotations_of(pod):
                    return []
                return [[patch("pods", kind, {"metadata": {"annotations": {DELETION_COST: cost}}})]]
            case 6 if not _ended(pod) and pod["spec"].get("nodeName"):
                return [[self._marked(kind, pod)]]
            case 7 if not _ended(pod) and (held or pod["spec"].get("nodeName")):
                finalizers = None if held else [HELD]
                return [[patch("pods", kind, {"metadata": {"finalizers": finalizers}})]]
            case _:
                return []

    def _odd_pods(self, place: View) -> list[Move]:
        pods = [(c, p) for c, p in place.pods() if p["spec"].get("nodeName") and not is_deleting(p)]
        if pods and self._rng.random() < 0.7:
            kind, pod = self._rng.choice(pods)
            if controller_of(pod) is None:
                if "back" in labels_of(pod).get("app", ""):
                    return [[patch("pods", kind, {"metadata": {"labels": {"app": NAME}}})]]
                return [[delete("pods", kind, grace_seconds=0)]]
            changes: list[Obj] = [
                {"labels": {"app": "comes-back"}},
                {"labels": {HASH: None}},
                {"ownerReferences": None},
            ]
            return [[patch("pods", kind, {"metadata": self._rng.choice(changes)})]]
        sets = [place.symbol(s) for s in place.of(REPLICA_SET).values()]
        name = f"foreign-{self._rng.choice('abc')}"
        if not sets or name in place.of(POD):
            return []
        labels = {"app": NAME, HASH: f"{HASH_OF}{self._rng.choice(sorted(sets))}"}
        cost = {DELETION_COST: str(1000 + self._restarts.pop())}
        body = {
            "metadata": {"labels": labels, "annotations": cost},
            "spec": {"containers": [{"name": "c", "image": "x"}]},
        }
        return [[create("pods", name, body)]]

    # ReplicaSets ------------------------------------------------------------------------------------------------------

    def _sets(self, place: View) -> list[Move]:
        sets = sorted(place.symbol(s) for s in place.of(REPLICA_SET).values() if not is_deleting(s))
        if not sets:
            return []
        name = self._rng.choice(sets)
        match self._rng.randrange(6):
            case 0 | 1:
                return [[patch("replicasets", name, {"spec": {"replicas": self._rng.choice([0, 1, 2, 4])}})]]
            case 2:
                return [[delete("replicasets", name, propagation=self._rng.choice(["Background", "Orphan"]))]]
            case 3:
                return [[patch("replicasets", name, {"metadata": {"ownerReferences": None}})]]
            case 4:
                annotation = self._rng.choice(["desired-replicas", "max-replicas"])
                value = self._rng.choice([None, "x", "3"])
                change = {f"deployment.kubernetes.io/{annotation}": value}
                return [[patch("replicasets", name, {"metadata": {"annotations": change}})]]
            case _:
                found = place.set_of(name)
                away = found is not None and labels_of(found).get("app") == NAME
                return [[patch("replicasets", name, {"metadata": {"labels": {"app": "away" if away else NAME}}})]]


def _with_restarts(kind: str, number: int) -> str:
    """The class of an unassigned pod once it has a number of restarts."""
    head, brace, rest = kind.partition("{")
    words = head.split()
    at = next((i for i, w in enumerate(words) if w == "restarts"), None)
    if at is not None:
        words[at + 1] = str(number)
    else:
        before = len(words) - sum("/" in w for w in words)
        words[before:before] = ["restarts", str(number)]
    return f"{' '.join(words)} {brace}{rest}"


def _ended(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")
