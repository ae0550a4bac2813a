"""A random life of a DisaggregatedSet: edits while it rolls, scalers, children that others touch, pods that fail."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from lwskit.api import disaggregated_names as names
from lwskit.api import names as lws_names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.embedded.controllers.kubelet_behaviour import CRASH, READY_DELAY
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import Conflict, Invalid, NotFound
from lwskit.runtime.kinds import EVENT, POD
from lwskit.runtime.objects import Obj, is_deleting, is_true, labels_of, uid_of, version_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.disaggregated.laws import DsLaws
from tests.scenarios.disaggregated.world import is_ready
from tests.scenarios.nodes import Nodes
from tests.scenarios.sight import Sight, SightedLife
from tests.scenarios.stepped_life import Action
from tests.scenarios.support import Sets, pod_template
from tests.scenarios.world import History, image_of, restarts_of

SET = "d"
MOST_ROLES = 3
ROLE_NAMES = ("prefill", "decode", "encode", "router")
NOWHERE = {"no": "where"}
"""What no node is labelled with."""
COUNTS = ("desiredReplicas", "replicas", "readyReplicas", "updatedReplicas")
KINDS = {
    "images": 30,
    "image": 6,
    "replicas": 20,
    "images and replicas": 10,
    "rollback": 10,
    "role added": 5,
    "role removed": 5,
    "role renamed": 4,
    "slices": 6,
    "pace": 10,
    "policy": 5,
    "scaling": 6,
    "order": 2,
    "pause": 3,
    "replacement": 2,
    "labels": 3,
    "identity": 2,
}
"""What is edited, and how often in proportion."""


class DsLife(SightedLife):
    """A DisaggregatedSet, its nodes, and everything that may happen to them."""

    def __init__(self, cluster: TestCluster, sets: Sets, seed: int, nodes: Nodes, history: History) -> None:
        super().__init__(cluster, sets, seed)
        self.nodes, self.history, self.laws = nodes, history, DsLaws(SET)
        self.counts = self.laws.counts
        self.images = 0
        self.past: list[list[Obj]] = []
        """Roles as they were before, to go back to."""
        self.unready: list[tuple[str, str]] = []
        """Pods that are kept from being ready, by name and UID."""

    @property
    def sight(self) -> Sight:
        return self.laws.sight

    @property
    def spec(self) -> Obj:
        assert self.laws.world.ds is not None
        return self.laws.world.ds["spec"]

    def trail(self) -> Sequence[str]:
        return self.laws.trail

    async def look(self) -> int:
        news = await self.history.news()
        for kind, change in news:
            self.laws.see(kind, change)
        return sum(kind is not EVENT for kind, _ in news)

    # Managers whose writes fail -----------------------------------------------------------------------------------

    def _trouble(self) -> None:
        self.laws.calm.blind(self.cluster.clock.monotonic())

    def _blind(self) -> None:
        super()._blind()
        self._trouble()

    def _sees(self) -> None:
        super()._sees()
        self.laws.calm.sees(self.cluster.clock.monotonic())

    async def breaks(self) -> None:
        self._trouble()
        await super().breaks()

    async def loses_answers(self) -> None:
        self._trouble()
        await super().loses_answers()

    # Edits --------------------------------------------------------------------------------------------------------

    def first(self) -> Obj:
        rng = self.rng
        roles = [self.role(name) for name in ROLE_NAMES[: rng.choice((1, 2, 2, 2, 3))]]
        spec: Obj = {"roles": roles, "slices": rng.choice((1, 1, 1, 2))}
        if self.chance(0.3):
            spec["scalingPolicy"] = {"duringRollout": rng.choice(names.SCALING_POLICIES)}
        if spec["slices"] == 1 and self.chance(0.3):
            rng.choice(roles)["scaling"] = {"mode": names.SCALING_EXTERNAL}
        return {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": SET},
            "spec": spec,
        }

    def role(self, name: str) -> Obj:
        rng = self.rng
        spec: Obj = {
            "replicas": rng.randint(1, 4),
            "leaderWorkerTemplate": {"size": rng.choice((1, 1, 2)), "workerTemplate": self.template("img:v0")},
        }
        if self.chance(0.8):
            spec["rolloutStrategy"] = {"rollingUpdateConfiguration": self.pace()}
        if self.chance(0.2):
            spec["groupIdentity"] = lws_names.IDENTITY_HASH
        return {"name": name, "spec": spec}

    def template(self, image: str) -> Obj:
        return pod_template(image, schedulerName="default-scheduler")

    def image(self) -> str:
        self.images += 1
        return f"img:{'bad' if self.chance(0.2) else 'v'}{self.images}"

    def pace(self) -> Obj:
        surge = self.rng.choice((0, 0, 1, 1, 2, "50%"))
        down = self.rng.choice((1, 1, 2, "50%") if surge == 0 else (0, 0, 1, 2))
        # Half of one group, rounded down, is none: both would be nothing.
        return {"maxSurge": surge, "maxUnavailable": 1 if surge == 0 and down == "50%" else down}

    def edit(self) -> tuple[str, Obj]:
        """Another spec, and what was changed."""
        rng = self.rng
        kind = rng.choices([*KINDS], [*KINDS.values()])[0]
        spec: Obj = {"roles": copy.deepcopy(self.spec["roles"])}
        roles: list[Obj] = spec["roles"]
        inner = [role["spec"] for role in roles]
        if kind in ("images", "images and replicas"):
            image, nowhere = self.image(), self.chance(0.08)
            for one in inner:
                self._give(one, image, nowhere=nowhere)
        if kind == "image":
            self._give(rng.choice(inner), self.image())
        if kind in ("replicas", "images and replicas"):
            rng.choice(inner)["replicas"] = rng.randint(1, 5)
        if kind == "rollback" and self.past:
            roles = spec["roles"] = copy.deepcopy(rng.choice(self.past[-5:]))
        free = [name for name in ROLE_NAMES if name not in {role["name"] for role in roles}]
        if kind == "role added" and len(roles) < MOST_ROLES:
            roles.append(self.role(free[0]))
        if kind == "role removed" and len(roles) > 1:
            roles.remove(rng.choice(roles))
        if kind == "role renamed":
            rng.choice(roles)["name"] = free[0]
        if kind == "pace":
            rng.choice(inner)["rolloutStrategy"] = {"rollingUpdateConfiguration": self.pace()}
        if kind == "policy":
            spec["scalingPolicy"] = {"duringRollout": rng.choice(names.SCALING_POLICIES)}
        if kind == "scaling":
            role = rng.choice(roles)
            if role.pop("scaling", None) is None:
                role["scaling"] = {"mode": names.SCALING_EXTERNAL}
        if kind == "order":
            rng.shuffle(roles)
        if kind == "replacement":
            for one in inner:
                if one.get("groupIdentity") == lws_names.IDENTITY_HASH:
                    one["groupReplacementPolicy"] = rng.choice(lws_names.GROUP_REPLACEMENT_POLICIES)
        if kind == "labels":
            rng.choice(roles)["metadata"] = {"labels": {"queue": str(rng.randint(1, 3))}}
        if kind == "identity":
            one = rng.choice(inner)
            one.pop("groupReplacementPolicy", None)
            one["groupIdentity"] = rng.choice((lws_names.IDENTITY_HASH, lws_names.IDENTITY_ORDINAL))
        self._scaled(spec, paused=kind == "pause")
        if kind == "slices":
            spec["slices"] = rng.randint(1, 3)
        if any("scaling" in role for role in spec["roles"]):
            spec["slices"] = 1
        return kind, {"spec": spec}

    def _give(self, spec: Obj, image: str, *, nowhere: bool = False) -> None:
        """Another image; one that is never ready goes with pods that no node takes now and then."""
        template = self.template(image)
        if nowhere:
            template["spec"]["nodeSelector"] = NOWHERE
        spec["leaderWorkerTemplate"]["workerTemplate"] = template

    def _scaled(self, spec: Obj, *, paused: bool) -> None:
        """Either all roles that no scaler sizes have groups, or none has."""
        for role in spec["roles"]:
            if (role.get("scaling") or {}).get("mode") != names.SCALING_EXTERNAL:
                role.pop("scaling", None)
                role["spec"]["replicas"] = 0 if paused else role["spec"].get("replicas") or self.rng.randint(1, 3)

    async def put(self, kind: str, body: Obj) -> None:
        self.counts[f"edit: {kind}"] += 1
        roles = [_short(role) for role in body["spec"]["roles"]]
        rest = {name: value for name, value in body["spec"].items() if name != "roles"}
        self.log[-1] += f" {kind}: {', '.join(roles)} {rest}"
        self.past.append(copy.deepcopy(self.spec["roles"]))
        await self.cluster.patch(DISAGGREGATED_SET, SET, body)

    async def edits(self) -> None:
        await self.look()
        await self.put(*self.edit())

    async def edits_often(self) -> None:
        for _ in range(self.rng.randint(2, 3)):
            await self.edits()
            await self.cluster.clock.sleep(self.rng.choice((0.0, 0.02, 0.3, 1.5)))

    async def scales(self) -> None:
        """An autoscaler asks for another count."""
        if held := sorted(self.laws.world.scalers):
            name, count = self.rng.choice(held), self.rng.choice((0, 1, 2, 3, 4, 5))
            self.log[-1] += f" {name} to {count}"
            await self.cluster.patch(ROLE_SCALER, name, {"spec": {"replicas": count}}, subresource="scale")
            self.counts["counts of scalers"] += 1

    async def deletes_scaler(self) -> None:
        if held := sorted(self.laws.world.scalers):
            name = self.rng.choice(held)
            self.log[-1] += f" {name}"
            await self.cluster.delete(ROLE_SCALER, name)

    # What others do to children -----------------------------------------------------------------------------------

    def child(self) -> Obj | None:
        world = self.laws.world
        mine = [lws for lws in world.sets.values() if world.is_mine(lws) and not is_deleting(lws)]
        mine.sort(key=lambda lws: lws["metadata"]["name"])
        return self.rng.choice(mine) if mine else None

    async def deletes_child(self) -> None:
        await self.look()
        if child := self.child():
            name, labels = child["metadata"]["name"], labels_of(child)
            self.log[-1] += f" {name}"
            self.laws.removed.add(uid_of(child))
            self.laws.maimed.add((int(labels[names.SLICE_LABEL]), labels[names.REVISION_LABEL]))
            how = self.rng.choice(("Background", "Foreground"))
            await self.cluster.delete(LEADER_WORKER_SET, name, how, uid=uid_of(child))
            self.counts["children deleted"] += 1

    async def tampers(self) -> None:
        """Somebody scales a child, or removes its measure."""
        await self.look()
        if child := self.child():
            count = max(0, child["spec"]["replicas"] + self.rng.choice((-2, -1, 1, 2)))
            note: Obj = {names.INITIAL_REPLICAS_ANNOTATION: self.rng.choice((None, "many"))}
            body = self.rng.choice(({"spec": {"replicas": count}}, {"metadata": {"annotations": note}}))
            name = child["metadata"]["name"]
            self.log[-1] += f" {name} {body}"
            answer = await self.cluster.patch(LEADER_WORKER_SET, name, body)
            self.laws.foreign.add(version_of(answer))
            self.counts["children tampered with"] += 1

    # Pods ---------------------------------------------------------------------------------------------------------

    def pod(self) -> Obj | None:
        pods = [p for p in self.laws.world.pods.values() if not is_deleting(p) and is_ready(p)]
        pods.sort(key=lambda p: p["metadata"]["name"])
        return self.rng.choice(pods) if pods else None

    async def annotate(self, name: str, uid: str, key: str, value: str | None) -> None:
        body = {"metadata": {"uid": uid, "annotations": {key: value}}}
        try:
            await self.cluster.patch(POD, name, body)
        except Invalid as error:
            raise Conflict(error.message) from error

    async def restarts(self) -> None:
        if pod := self.pod():
            name = pod["metadata"]["name"]
            self.log[-1] += f" {name}"
            await self.annotate(name, uid_of(pod), CRASH, str(restarts_of(pod) + 1))

    async def makes_unready(self) -> None:
        if pod := self.pod():
            name = pod["metadata"]["name"]
            self.log[-1] += f" {name}"
            self.unready.append((name, uid_of(pod)))
            await self.annotate(name, uid_of(pod), READY_DELAY, "never")

    async def recovers(self) -> None:
        if self.unready:
            name, uid = self.unready.pop(self.rng.randrange(len(self.unready)))
            await self.annotate(name, uid, READY_DELAY, None)

    async def deletes_pod(self) -> None:
        if pod := self.pod():
            self.log[-1] += f" {pod['metadata']['name']}"
            await self.cluster.delete(POD, pod["metadata"]["name"], uid=uid_of(pod))

    def actions(self) -> dict[Action, int]:
        return {
            self.edits: 34,
            self.edits_often: 10,
            self.rests: 6,
            self.scales: 10,
            self.deletes_scaler: 2,
            self.deletes_child: 3,
            self.tampers: 4,
            self.restarts: 4,
            self.makes_unready: 4,
            self.recovers: 3,
            self.deletes_pod: 4,
            self.begin: 2,
        }

    # Rest ---------------------------------------------------------------------------------------------------------

    async def mends(self) -> None:
        """Everything that passes is over."""
        while self.unready:
            try:
                await self.recovers()
            except (NotFound, Conflict):
                continue

    async def rests(self) -> None:
        """Everything that disturbs ends; nothing repeats for ever, and it ends where it has to."""
        await self.calm()
        await self.mends()
        await self.begin()
        self.counts["rests"] += 1
        await self.settles()
        self.laws.at_rest()
        if self.bad:
            self.counts["rests with a revision that never becomes ready"] += 1
        else:
            self.is_done()

    @property
    def bad(self) -> bool:
        """Whether pods of the newest revision that are to be there cannot become ready."""
        wanted = self.laws.now
        for role in wanted.roles.values():
            (count,) = self.laws.world.asked_of(role, self.cluster.clock.monotonic())
            template = role.spec["leaderWorkerTemplate"]["workerTemplate"]
            if count and ("bad" in image_of(template) or template["spec"].get("nodeSelector") == NOWHERE):
                return True
        return False

    def is_done(self) -> None:
        """All groups that are to be are ready and of the newest revision, and no others are there (50 §6, §16)."""
        world, wanted = self.laws.world, self.laws.now
        assert world.ds is not None
        now = self.cluster.clock.monotonic()
        counts = {name: world.asked_of(role, now) for name, role in wanted.roles.items()}
        names_of = {
            f"{SET}-{i}-{wanted.revision}-{role}": count
            for i in range(wanted.slices)
            for role, (count,) in counts.items()
        }
        held = {lws["metadata"]["name"]: lws["spec"]["replicas"] for lws in world.sets.values()}
        assert held == names_of
        for child in world.children():
            ready, staying = self.laws.ready(child, now)
            assert ready == staying == child.spec == child.noted, (child, ready, staying)
        external = {f"{SET}-{name}" for name, role in wanted.roles.items() if role.replicas is None}
        assert {*world.scalers} == external
        status = world.ds["status"]
        assert status["observedGeneration"] == wanted.generation
        for row, (name, (count,)) in zip(status["roleStatuses"], counts.items(), strict=True):
            total = count * wanted.slices
            found = {
                key: row.get(key, 0) for key in ("desiredReplicas", "replicas", "readyReplicas", "updatedReplicas")
            }
            assert row["name"] == name
            assert {*found.values()} == {total}, (name, found, total)
        assert is_true(world.ds, names.CONDITION_AVAILABLE), status
        assert not is_true(world.ds, names.CONDITION_PROGRESSING), status
        for name, scaler in world.scalers.items():
            assert scaler["status"].get("replicas", 0) == scaler["spec"]["replicas"], name

    async def ends(self) -> None:
        """The set ends at the newest revision; then it is deleted, and nothing is left."""
        self.log.append("ends")
        await self.rests()
        if self.bad:
            roles = copy.deepcopy(self.spec["roles"])
            for role in roles:
                self._give(role["spec"], "img:v-last")
            await self.cluster.patch(DISAGGREGATED_SET, SET, {"spec": {"roles": roles}})
        await self.rests()
        assert not self.bad
        await self.cluster.delete(DISAGGREGATED_SET, SET)
        await self.settles()
        world = self.laws.world
        assert world.ds is None
        assert not world.sets
        assert not world.scalers
        assert not world.pods


def _short(role: Obj) -> str:
    spec = role["spec"]
    pace = (spec.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
    size = "scaler" if role.get("scaling") else str(spec.get("replicas"))
    image = image_of(spec["leaderWorkerTemplate"]["workerTemplate"])
    return f"{role['name']}={size} {image} +{pace.get('maxSurge')} -{pace.get('maxUnavailable')}"
