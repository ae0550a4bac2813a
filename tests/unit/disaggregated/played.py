"""A slice as objects: children as dictionaries that plans of rollouts are carried out on, with chosen readiness."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import rollout
from lwskit.disaggregated.model import Child, Readiness, Ready, SlicePlan
from lwskit.disaggregated.scene import Scene
from lwskit.runtime.objects import Obj, labels_of, uid_of
from lwskit.runtime.plan import AnyAction, Create, Delete, Emit, Event, Patch
from tests.unit.disaggregated.scenes import REVISION, ds_object, role, scene

Counts = Mapping[str, int]


def limited(name: str, replicas: int | None, surge: int | str, unavailable: int | str, mode: str = "") -> Obj:
    """A role with these limits."""
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = {"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": limits}}
    return role(name, replicas, mode=mode, spec=strategy)


@dataclass
class World:
    """One slice. `ready` says what is ready of a child; by default all of it, at once, unless its revision is one of
    `never_ready`."""

    roles: Sequence[Obj]
    objects: dict[str, Obj] = field(default_factory=dict)
    policy: str = names.ROLLOUT_COUPLED
    revision: str = REVISION
    counts: Counts | None = None
    """The targets, where they are not those of the roles."""
    never_ready: frozenset[str] = frozenset()
    ready: Callable[[Child], Readiness] | None = None
    events: list[Event] = field(default_factory=list)
    deleted: list[Obj] = field(default_factory=list)
    _made: int = 0

    def add(self, *objects: Obj) -> World:
        """Put children in."""
        for obj in objects:
            self.objects[obj["metadata"]["name"]] = obj
        return self

    def seen(self) -> Scene:
        """What a pass sees."""
        ds = ds_object(*self.roles, scalingPolicy={"duringRollout": self.policy})
        objects = list(self.objects.values())
        found = {uid_of(obj): self.readiness(Child.of(obj)) for obj in objects}
        seen = scene(ds, objects, counts=self.counts, revision=self.revision, readiness=found)
        return replace(seen, children=tuple(child for child in seen.children if seen.is_own(child.obj)))

    def readiness(self, child: Child) -> Readiness:
        """What is ready of a child."""
        if self.ready is not None:
            return self.ready(child)
        ready = 0 if child.revision in self.never_ready else child.replicas
        return Readiness(Ready(ready, ready))

    @property
    def has_old(self) -> bool:
        """Whether an old revision is left."""
        return any(labels_of(obj)[names.REVISION_LABEL] != self.revision for obj in self.objects.values())

    def decided(self) -> SlicePlan:
        """What the next pass is to do."""
        return rollout.decide(self.seen())

    def step(self) -> SlicePlan:
        """One pass, decided and carried out."""
        found = self.decided()
        self.carry_out(found.plan.actions)
        return found

    def finish(self, most: int = 200) -> None:
        """Pass after pass until no old revision is left."""
        for _ in range(most):
            if not self.has_old:
                return
            self.step()
        raise AssertionError(f"no end after {most} passes: {self.stand()}")

    def carry_out(self, actions: Sequence[AnyAction]) -> None:
        """Carry out actions in order, and record their events."""
        for action in actions:
            match action:
                case Create():
                    self._create(action.obj)
                case Patch():
                    self._patch(action)
                case Delete():
                    gone = self.objects.pop(action.key.name)
                    assert (uid_of(gone), action.propagation) == (action.uid, "Foreground")
                    self.deleted.append(gone)
                case Emit():
                    self.events.append(action.event)
                case _:
                    raise AssertionError(f"a rollout does not do this: {action}")
            if action.on_success is not None:
                self.events.append(action.on_success)

    def _create(self, obj: Obj) -> None:
        name = obj["metadata"]["name"]
        assert name not in self.objects
        self._made += 1
        own = {"uid": f"{name}-{self._made}", "resourceVersion": "1", "generation": 1}
        made = copy.deepcopy(obj)
        made["metadata"] |= {**own, "creationTimestamp": f"2026-11-30T12:{self._made // 60:02}:{self._made % 60:02}Z"}
        self.objects[name] = made

    def _patch(self, action: Patch) -> None:
        obj = self.objects[action.key.name]
        body = copy.deepcopy(action.body)
        metadata = body.get("metadata", {})
        assert metadata.pop("resourceVersion") == obj["metadata"]["resourceVersion"]
        assert action.uid == uid_of(obj)
        _merge(obj, body)
        obj["metadata"]["resourceVersion"] = str(int(obj["metadata"]["resourceVersion"]) + 1)
        obj["metadata"]["generation"] += "spec" in body

    # Looking ----------------------------------------------------------------------------------------------------------

    def spec(self, revision: str) -> dict[str, int]:
        """The groups that the children of a revision ask for, by role; empty if there are none."""
        return {
            labels_of(obj)[names.ROLE_LABEL]: obj["spec"]["replicas"]
            for obj in self.objects.values()
            if labels_of(obj)[names.REVISION_LABEL] == revision
        }

    def stand(self) -> dict[str, dict[str, int]]:
        """The same of all revisions."""
        return {name: self.spec(name) for name in {labels_of(o)[names.REVISION_LABEL] for o in self.objects.values()}}

    def reasons(self, *but: str) -> list[str]:
        """The reasons of the events so far, without those of `but`."""
        return [event.reason for event in self.events if event.reason not in but]


def _merge(obj: Obj, body: Obj) -> None:
    """A merge patch (RFC 7386)."""
    for key, value in body.items():
        if value is None:
            obj.pop(key, None)
        elif isinstance(value, dict) and isinstance(obj.get(key), dict):
            _merge(obj[key], value)
        else:
            obj[key] = value
