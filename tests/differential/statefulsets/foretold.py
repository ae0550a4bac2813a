"""Holds lwskit's forecast of the StatefulSet controller against what a cluster then does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from lwskit.embedded.controllers.statefulset_pods import has_storage
from lwskit.groups.forecast import Leader, Workload, next_round, settle_revision
from lwskit.runtime.kinds import CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, Selector, controller_of, is_deleting, is_true, labels_of, uid_of
from tests.differential.side_by_side.mirror import Place
from tests.differential.statefulsets.writes import SET, Write

REVISION = "controller-revision-hash"
NEW = "a new one"
"""The name of a revision that does not exist yet when the forecast is made."""
_ROUNDS = 100


class Foretold:
    """What is there before a move and, with its requests, when the controller begins to act."""

    def __init__(self, place: Place) -> None:
        self.pods = dict(place.of(POD))
        self.revisions = dict(place.of(CONTROLLER_REVISION))
        self.set: Obj | None = place.of(STATEFUL_SET).get(SET)
        self._claims = list(place.of(PERSISTENT_VOLUME_CLAIM).values())
        self._deaths: Counter[str] = Counter()
        self._odd = False
        self.judged = False
        """Whether the forecast was compared: it is for sets as lwskit makes them for leaders."""

    def wrote(self, write: Write, said: str, obj: Obj | None) -> None:
        """A request of the move was answered."""
        if said != "ok" or obj is None:
            return
        name = write["name"]
        match write["kind"], write["verb"]:
            case "statefulsets", "delete":
                self.set = None
            case "statefulsets", _:
                # The answer may already have the controller's status.
                status = (self.set or {}).get("status") or {}
                self.set = {**obj, "status": status}
            case "pods", "delete":
                if obj.get("kind") == "Pod" and _stays(obj):
                    self.pods[name] = obj
                elif self.pods.pop(name, None) is not None:
                    self._deaths[name] += 1
            case "pods", "create" if write["sub"]:
                pod = self.pods[name]
                self.pods[name] = {**pod, "spec": {**pod["spec"], "nodeName": "somewhere"}}
            case "pods", _:
                if is_deleting(obj) and not _stays(obj):
                    self.pods.pop(name, None)
                    self._deaths[name] += 1
                else:
                    self.pods[name] = obj
            case _:
                self._odd = True

    def wrong(self, place: Place) -> list[str]:
        """Compare with what came of it: the lines that tell what is otherwise. Nothing for sets of another kind."""
        stateful_set = self.set
        if stateful_set is None or not self._is_plain(stateful_set):
            return []
        self.judged = True
        workload, templates = self._workload(stateful_set)
        leaders = {_ordinal(n): _leader(p) for n, p in self.pods.items()}
        held = {_ordinal(n) for n, p in self.pods.items() if _lingers(p)}
        births: Counter[int] = Counter()
        deaths: Counter[int] = Counter({_ordinal(n): c for n, c in self._deaths.items()})
        for _ in range(_ROUNDS):
            found = next_round(workload, leaders)
            workload = settle_revision(workload, leaders)
            if not found:
                break
            for o in found.deleted:
                if o in held:
                    old = leaders[o]
                    leaders[o] = Leader(old.revision, ready=old.ready, terminating=True, ended=old.ended)
                else:
                    del leaders[o]
                    deaths[o] += 1
            for o, revision in found.create.items():
                leaders[o] = Leader(revision)
                births[o] += 1
                if (templates[revision].get("metadata") or {}).get("finalizers"):
                    held.add(o)
        return self._compare(place, workload, leaders, births, deaths)

    def _is_plain(self, stateful_set: Obj) -> bool:
        spec, meta = stateful_set["spec"], stateful_set["metadata"]
        rolling = spec["updateStrategy"].get("rollingUpdate")
        if spec["podManagementPolicy"] != "Parallel" or rolling is None or spec.get("minReadySeconds"):
            return False
        if not isinstance(rolling.get("maxUnavailable", 1), int) or is_deleting(stateful_set) or self._odd:
            return False
        selector = Selector.from_object(spec["selector"])
        for name, pod in self.pods.items():
            owner = controller_of(pod)
            ours = owner is not None and owner["uid"] == meta["uid"] and selector.matches(labels_of(pod))
            if not ours or name != f"{SET}-{_ordinal(name)}" or not has_storage(stateful_set, pod):
                return False
        status = stateful_set.get("status") or {}
        known = {status[k] for k in ("currentRevision", "updateRevision") if k in status} <= self.revisions.keys()
        return known and not any(is_deleting(c) or _owned_by_pod(c) for c in self._claims)

    def _workload(self, stateful_set: Obj) -> tuple[Workload, dict[str, Obj]]:
        spec, status = stateful_set["spec"], stateful_set.get("status") or {}
        mine = (uid_of(stateful_set), None)
        ours = [r for r in self.revisions.values() if (controller_of(r) or {}).get("uid") in mine]
        templates = {r["metadata"]["name"]: _template(r) for r in sorted(ours, key=lambda r: r["revision"])}
        same = [name for name, template in templates.items() if template == spec["template"]]
        update = same[-1] if same else NEW
        templates[NEW] = spec["template"]
        rolling = spec["updateStrategy"]["rollingUpdate"]
        workload = Workload(
            spec["replicas"],
            rolling.get("partition", 0),
            rolling.get("maxUnavailable", 1),
            status.get("currentRevision") or update,
            update,
            (spec.get("ordinals") or {}).get("start", 0),
        )
        return workload, templates

    def _compare(
        self,
        place: Place,
        workload: Workload,
        leaders: Mapping[int, Leader],
        births: Counter[int],
        deaths: Counter[int],
    ) -> list[str]:
        known = {"", *self.revisions, *(labels_of(p).get(REVISION, "") for p in self.pods.values())}

        def name(revision: str) -> str:
            return revision if revision in known else NEW

        now = place.of(STATEFUL_SET)[SET].get("status") or {}
        pairs: list[tuple[str, Any, Any]] = [
            ("made", _counted(births), _of_pods(place.births)),
            ("gone", _counted(deaths), _of_pods(place.deaths)),
            (
                "pods",
                {o: (leader.revision, leader.terminating) for o, leader in leaders.items()},
                {_ordinal(n): (name(labels_of(p).get(REVISION, "")), is_deleting(p)) for n, p in place.of(POD).items()},
            ),
            ("current", workload.current, name(now.get("currentRevision", ""))),
            ("update", workload.update, name(now.get("updateRevision", ""))),
        ]
        return [f"{what}: foretold {said}, seen {seen}" for what, said, seen in pairs if said != seen]


def _leader(pod: Obj) -> Leader:
    phase = (pod.get("status") or {}).get("phase")
    return Leader(
        labels_of(pod).get(REVISION, ""),
        ready=phase == "Running" and is_true(pod, "Ready"),
        terminating=is_deleting(pod),
        ended=phase in ("Failed", "Succeeded"),
    )


def _lingers(pod: Obj) -> bool:
    """Whether the pod stays for a while when it is deleted: something holds it, or a node has to end it."""
    phase = (pod.get("status") or {}).get("phase")
    return bool(pod["metadata"].get("finalizers")) or (
        bool(pod["spec"].get("nodeName")) and phase not in ("Failed", "Succeeded")
    )


def _stays(pod: Obj) -> bool:
    """Whether a pod that is being deleted is still there."""
    return bool(pod["metadata"].get("finalizers") or pod["metadata"].get("deletionGracePeriodSeconds"))


def _owned_by_pod(claim: Obj) -> bool:
    return any(r["kind"] == "Pod" for r in claim["metadata"].get("ownerReferences") or ())


def _template(revision: Obj) -> Obj:
    return {k: v for k, v in revision["data"]["spec"]["template"].items() if k != "$patch"}


def _ordinal(name: str) -> int:
    tail = name.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else -1


def _counted(counter: Counter[int]) -> dict[int, int]:
    return {o: n for o, n in sorted(counter.items()) if n}


def _of_pods(counter: Counter[str]) -> dict[int, int]:
    return {_ordinal(path): n for path, n in sorted(counter.items()) if path.startswith("pods/")}
