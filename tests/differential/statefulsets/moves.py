"""Random moves about one StatefulSet, each a few requests, chosen by what is there."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from lwskit.embedded.controllers.statefulset_pods import has_storage
from lwskit.runtime.kinds import CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, controller_of, is_deleting, is_true, uid_of
from tests.differential.side_by_side.mirror import Place
from tests.differential.statefulsets.writes import (
    BOSS,
    LONG_AGO,
    NOW,
    SET,
    Write,
    create,
    delete,
    nudge,
    patch,
    pod_status,
)

HELD = "example.com/held"
"""The finalizer that keeps pods and claims in the middle of their deletion."""
LABELS = {"app": SET}
LEADERS, ANY = "leaders", "any"
"""Sets as lwskit makes them for leaders, and sets of every kind."""
FAR = 80_000
"""Seconds of readiness that nobody waits for."""

Move = list[Write]


def template(rng: random.Random) -> Obj:
    """One of a few pod templates."""
    container: Obj = {"name": "c", "image": f"img:{rng.choice('1234')}"}
    if rng.random() < 0.2:
        container["env"] = [{"name": "A", "value": rng.choice(["x", "y"])}]
    if rng.random() < 0.1:
        container["resources"] = {"requests": {"cpu": rng.choice(["1000m", "0.5"])}}
    meta: Obj = {"labels": dict(LABELS)}
    if rng.random() < 0.1:
        meta["labels"]["tier"] = rng.choice("ab")
    if rng.random() < 0.1:
        meta["annotations"] = {"note": rng.choice("ab")}
    if rng.random() < 0.1:
        meta["finalizers"] = [HELD]
    return {"metadata": meta, "spec": {"containers": [container], "schedulerName": "nobody"}}


def strategy(rng: random.Random, profile: str) -> Obj:
    """An update strategy."""
    if profile == ANY and rng.random() < 0.2:
        return {"type": "OnDelete", "rollingUpdate": None}
    rolling: Obj = {"partition": rng.choice([0, 0, 0, 1, 2, 4, 7])}
    budgets: list[Any] = [1, 1, 2, 3]
    if profile == LEADERS or rng.random() < 0.7:
        rolling["maxUnavailable"] = rng.choice(budgets if profile == LEADERS else [*budgets, "10%", "50%", "100%"])
    return {"type": "RollingUpdate", "rollingUpdate": rolling}


def retention(rng: random.Random) -> Obj:
    """A retention policy of claims."""
    return {"whenDeleted": rng.choice(["Retain", "Delete"]), "whenScaled": rng.choice(["Retain", "Delete"])}


def stateful_set(rng: random.Random, profile: str) -> Obj:
    """A StatefulSet."""
    spec: Obj = {
        "replicas": rng.choice([0, 1, 2, 3, 3, 4, 5]),
        "serviceName": rng.choice(["", SET]),
        "selector": {"matchLabels": dict(LABELS)},
        "podManagementPolicy": "Parallel",
        "template": template(rng),
        "updateStrategy": strategy(rng, profile),
    }
    if profile == ANY:
        spec["podManagementPolicy"] = rng.choice(["Parallel", "OrderedReady", "OrderedReady"])
        if rng.random() < 0.25:
            spec["minReadySeconds"] = rng.choice([1, FAR, FAR])
        if rng.random() < 0.2:
            spec["ordinals"] = {"start": rng.choice([0, 1, 3])}
        if rng.random() < 0.3:
            spec["revisionHistoryLimit"] = rng.choice([0, 1, 2])
        if rng.random() < 0.4:
            names = rng.sample(["data", "logs"], rng.choice([1, 1, 2]))
            spec["volumeClaimTemplates"] = [_claim_template(rng, n) for n in names]
            if rng.random() < 0.8:
                spec["persistentVolumeClaimRetentionPolicy"] = retention(rng)
    spec["updateStrategy"] = {k: v for k, v in spec["updateStrategy"].items() if v is not None}
    return {"metadata": {"name": SET}, "spec": spec}


def _claim_template(rng: random.Random, name: str) -> Obj:
    meta: Obj = {"name": name}
    if rng.random() < 0.3:
        meta["labels"] = {"own": "yes", "app": "other"}
    resources = {"requests": {"storage": rng.choice(["1Gi", "1024Mi"])}}
    return {"metadata": meta, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}


class Moves:
    """Chooses moves for one set; `place` is what is there at that moment."""

    def __init__(self, rng: random.Random, profile: str) -> None:
        self._rng = rng
        self._profile = profile
        self._nudges = 0
        self._templates: list[Obj] = []

    def next(self, place: Place) -> list[Move]:
        """The next moves, one after the other; after each everything may come to rest."""
        found = self._chosen(place)
        stateful_set = place.of(STATEFUL_SET).get(SET)
        if stateful_set is not None and is_deleting(stateful_set):
            # It may be gone before it is touched.
            found = [[move[0]] for move in found]
        if self._blocked(place):
            found = [move if _ends_the_set(move) else [*move, self._nudge()] for move in found]
        return found

    def _nudge(self) -> Write:
        self._nudges += 1
        return nudge(self._nudges)

    def _blocked(self, place: Place) -> bool:
        """Whether the controller fails and tries again later and later."""
        stateful_set = place.of(STATEFUL_SET).get(SET)
        if stateful_set is None or is_deleting(stateful_set):
            return False
        for pod in place.of(POD).values():
            owner = controller_of(pod)
            if owner is None or owner["uid"] != uid_of(stateful_set):
                return True
        going = any(is_deleting(c) for c in place.of(PERSISTENT_VOLUME_CLAIM).values())
        return going or not _all_fit(stateful_set, place)

    def _chosen(self, place: Place) -> list[Move]:
        if SET not in place.of(STATEFUL_SET):
            choices: list[tuple[float, Callable[[Place], list[Move]]]] = [(6, self._create), (2, self._pod_move)]
        else:
            choices = [
                (8, self._readiness),
                (3, self._all_ready),
                (5, self._pod_move),
                (4, self._edit_template),
                (3, self._scale),
                (4, self._roll),
                (1.2, self._odd_pods),
            ]
            if self._profile == ANY:
                choices += [(2, self._settings), (1.2, self._claims), (0.7, self._revisions), (0.8, self._delete_set)]
        while True:
            pick = self._rng.choices([c for _, c in choices], [w for w, _ in choices])[0]
            if found := pick(place):
                return found

    # The set ----------------------------------------------------------------------------------------------------------

    def _create(self, place: Place) -> list[Move]:
        made = stateful_set(self._rng, self._profile)
        if self._templates and self._rng.random() < 0.5:
            made["spec"]["template"] = self._templates[-1]
        self._templates.append(made["spec"]["template"])
        if not _all_fit(made, place):
            # With owners to be set, too, it is left to chance whether a real controller gets past such a pod.
            made["spec"].pop("persistentVolumeClaimRetentionPolicy", None)
        return [[create("statefulsets", made)]]

    def _edit_template(self, place: Place) -> list[Move]:
        chosen = template(self._rng)
        if self._templates and self._rng.random() < 0.4:
            chosen = self._rng.choice(self._templates)
        self._templates.append(chosen)
        meta = {"annotations": None, "finalizers": None, **chosen["metadata"]}
        meta["labels"] = {"tier": None, **meta["labels"]}
        return [[self._spec(template={**chosen, "metadata": meta})]]

    def _scale(self, place: Place) -> list[Move]:
        return [[self._spec(replicas=self._rng.choice([0, 1, 2, 3, 4, 5, 6]))]]

    def _roll(self, place: Place) -> list[Move]:
        if self._rng.random() < 0.5:
            return [[self._spec(updateStrategy=strategy(self._rng, self._profile))]]
        live = place.of(STATEFUL_SET)[SET]["spec"]["updateStrategy"].get("rollingUpdate")
        if live is None:
            return []
        lower = max(0, min(live.get("partition", 0), 6) - 1)
        return [[self._spec(updateStrategy={"rollingUpdate": {"partition": lower}})]]

    def _settings(self, place: Place) -> list[Move]:
        match self._rng.randrange(5):
            case 0:
                return [[self._spec(minReadySeconds=self._rng.choice([0, 0, 1, FAR]))]]
            case 1:
                return [[self._spec(ordinals={"start": self._rng.choice([0, 1, 2, 3])})]]
            case 2 if _all_fit(place.of(STATEFUL_SET)[SET], place):
                return [[self._spec(persistentVolumeClaimRetentionPolicy=retention(self._rng))]]
            case 3:
                return [[self._spec(revisionHistoryLimit=self._rng.choice([0, 1, 2, 10]))]]
            case _:
                return [[self._nudge()]]

    def _delete_set(self, place: Place) -> list[Move]:
        if is_deleting(place.of(STATEFUL_SET)[SET]):
            return []
        how = self._rng.choice(["Background", "Foreground", "Orphan", "Orphan"])
        return [[delete("statefulsets", SET, propagation=how)]]

    def _spec(self, **fields: Any) -> Write:
        return patch("statefulsets", SET, {"spec": fields})

    # Pods -------------------------------------------------------------------------------------------------------------

    def _readiness(self, place: Place) -> list[Move]:
        pods = [n for n, p in sorted(place.of(POD).items()) if not _ended(p)]
        if not pods:
            return []
        waiting = [n for n in pods if not is_true(place.of(POD)[n], "Ready")]
        if waiting and self._rng.random() < 0.8:
            since = LONG_AGO if self._rng.random() < 0.8 else NOW
            return [[pod_status(self._rng.choice(waiting), "Running", True, since)]]
        return [[pod_status(self._rng.choice(pods), self._rng.choice(["Running", "Running", "Pending"]), False)]]

    def _all_ready(self, place: Place) -> list[Move]:
        """One after another, each when the others have had their effect; only those that are there now."""
        pods = place.of(POD)
        waiting = [n for n, p in sorted(pods.items()) if not _ended(p) and not is_true(p, "Ready")]
        if self._rng.random() < 0.5:
            waiting.reverse()
        return [[pod_status(n, "Running", True)] for n in waiting]

    def _pod_move(self, place: Place) -> list[Move]:
        pods = place.of(POD)
        if not pods:
            return []
        name = self._rng.choice(sorted(pods))
        pod = pods[name]
        held = HELD in (pod["metadata"].get("finalizers") or ())
        if is_deleting(pod):
            if held:
                return [[patch("pods", name, {"metadata": {"finalizers": None}})]]
            return [[delete("pods", name, grace_seconds=0)]]
        match self._rng.randrange(7):
            case 0 | 1:
                return [[delete("pods", name)]]
            case 2 | 3:
                return [] if _ended(pod) else [[pod_status(name, self._rng.choice(["Failed", "Succeeded"]), False)]]
            case 4 if not pod["spec"].get("nodeName") and not _ended(pod):
                target = {"kind": "Node", "name": "somewhere"}
                return [[create("pods", {"metadata": {"name": name}, "target": target}, "binding")]]
            case _:
                finalizers = None if held else [HELD]
                return [[patch("pods", name, {"metadata": {"finalizers": finalizers}})]]

    def _odd_pods(self, place: Place) -> list[Move]:
        pods = place.of(POD)
        foreign = [n for n, p in sorted(pods.items()) if controller_of(p) is None]
        if foreign and self._rng.random() < 0.6:
            name = self._rng.choice(foreign)
            if self._rng.random() < 0.5:
                return [[delete("pods", name, grace_seconds=0), self._nudge()]]
            return [[patch("pods", name, {"metadata": {"labels": dict(LABELS)}}), self._nudge()]]
        if pods and self._rng.random() < 0.6:
            name = self._rng.choice(sorted(pods))
            revisions = sorted(place.of(CONTROLLER_REVISION))
            changes: list[Obj] = [
                {"labels": {"app": "else"}},
                {"labels": {"statefulset.kubernetes.io/pod-name": None}},
                {"labels": {"apps.kubernetes.io/pod-index": None}},
                {"ownerReferences": None},
            ]
            if revisions:
                changes.append({"labels": {"controller-revision-hash": self._rng.choice(revisions)}})
            return [[patch("pods", name, {"metadata": self._rng.choice(changes)})]]
        name = f"{SET}-{self._rng.choice([0, 1, 2, 3, 4, 5, 'x'])}"
        if name in pods:
            return []
        labels = self._rng.choice([{"app": "else"}, dict(LABELS)])
        revision = (place.of(STATEFUL_SET)[SET].get("status") or {}).get("updateRevision")
        if revision and self._rng.random() < 0.5:
            labels["controller-revision-hash"] = revision
        spec = {"containers": [{"name": "c", "image": "foreign"}]}
        return [[create("pods", {"metadata": {"name": name, "labels": labels}, "spec": spec})]]

    # Claims and revisions ---------------------------------------------------------------------------------------------

    def _claims(self, place: Place) -> list[Move]:
        claims = place.of(PERSISTENT_VOLUME_CLAIM)
        if not claims:
            return []
        name = self._rng.choice(sorted(claims))
        if is_deleting(claims[name]):
            write = patch("persistentvolumeclaims", name, {"metadata": {"finalizers": None}})
            return [[write, self._nudge(), self._nudge()]]
        match self._rng.randrange(4):
            case 0:
                write = delete("persistentvolumeclaims", name)
            case 1:
                held = {"finalizers": [HELD, "kubernetes.io/pvc-protection"]}
                write = patch("persistentvolumeclaims", name, {"metadata": held})
            case 2:
                boss = {"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "uid": BOSS}
                boss |= self._rng.choice([{"controller": True}, {}])
                write = patch("persistentvolumeclaims", name, {"metadata": {"ownerReferences": [boss]}})
            case _:
                write = patch("persistentvolumeclaims", name, {"metadata": {"ownerReferences": None}})
        # A claim that is made anew may get its owner a round later.
        return [[write, self._nudge(), self._nudge()]]

    def _revisions(self, place: Place) -> list[Move]:
        revisions = place.of(CONTROLLER_REVISION)
        if not revisions:
            return []
        name = self._rng.choice(sorted(revisions))
        match self._rng.randrange(3):
            case 0:
                write = delete("controllerrevisions", name)
            case 1:
                write = patch("controllerrevisions", name, {"metadata": {"ownerReferences": None}})
            case _:
                write = patch("controllerrevisions", name, {"revision": self._rng.choice([1, 5, 9])})
        # Nothing of this wakes the controller, which may be looking just then.
        return [[write, self._nudge()]]


def _all_fit(stateful_set: Obj, place: Place) -> bool:
    """Whether all pods mount the claims that the set gives them."""
    return all(has_storage(stateful_set, pod) for pod in place.of(POD).values())


def _ends_the_set(move: Move) -> bool:
    return any(w["kind"] == "statefulsets" and w["verb"] == "delete" for w in move)


def _ended(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")
