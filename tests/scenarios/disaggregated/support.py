"""What the scenarios of DisaggregatedSets share: building one, and reading what became of it, through the cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, condition_of, generation_of, is_deleting, is_true, labels_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.behind import acted_on, rests
from tests.scenarios.support import ALL_KINDS, event_about, events_about, pod_template
from tests.scenarios.written import READS

KINDS = (DISAGGREGATED_SET, ROLE_SCALER, *ALL_KINDS)
"""What a test of a DisaggregatedSet waits for until nothing of it changes any more."""


def role(name: str, replicas: int | None = 1, *, size: int = 1, image: str = "img:v1", **fields: Any) -> Obj:
    """A role; `fields` are fields of the role itself, but `template` is the worker template and `spec` has further
    fields of the set's spec. `mode` is how it is scaled."""
    template = fields.pop("template", None) or pod_template(image)
    inner = {"size": size, "workerTemplate": template, **fields.pop("group", {})}
    spec: Obj = {"leaderWorkerTemplate": inner, **fields.pop("spec", {})}
    if replicas is not None:
        spec["replicas"] = replicas
    if "mode" in fields:
        fields["scaling"] = {"mode": fields.pop("mode")}
    return {"name": name, "spec": spec, **fields}


def two_roles(prefill: int = 1, decode: int = 2, **fields: Any) -> list[Obj]:
    """The roles prefill and decode; `fields` are those of both."""
    return [role("prefill", prefill, **fields), role("decode", decode, **fields)]


def rolling(surge: int | str = 0, unavailable: int | str = 1) -> Obj:
    """The fields of a role's spec that limit its rollouts."""
    config = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": config}}


def set_object(*roles: Obj, name: str = "chat", metadata: Obj | None = None, **spec: Any) -> Obj:
    """A DisaggregatedSet with these roles, or with prefill 1 and decode 2; `spec` are further fields of its spec."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"roles": [*roles] or two_roles(), **spec},
    }


@dataclass(frozen=True, slots=True)
class DisaggregatedSets:
    """DisaggregatedSets on the test's cluster. All waiting is `eventually`."""

    cluster: TestCluster

    # Writing -------------------------------------------------------------------------------------------------------

    async def create(self, *roles: Obj, name: str = "chat", **fields: Any) -> Obj:
        """Create a set; arguments as for `set_object`."""
        return await self.cluster.create(DISAGGREGATED_SET, set_object(*roles, name=name, **fields))

    async def running(self, *roles: Obj, name: str = "chat", **fields: Any) -> Obj:
        """Create a set, make its pods ready, and wait until it is available. Returns it."""
        await self.create(*roles, name=name, **fields)
        return await self.ready(name)

    async def ready(self, name: str = "chat") -> Obj:
        """Make all pods ready, once the set as it is now has been acted on, until it is available. Returns it."""

        async def available() -> Obj:
            live = await self.live(name)
            assert (live.get("status") or {}).get("observedGeneration") == generation_of(live)
            assert is_true(live, names.CONDITION_AVAILABLE), live.get("status")
            return live

        await acted_on(self.cluster, DISAGGREGATED_SET, name)
        async with self.cluster.kubelet.playing():
            return await self.cluster.eventually(available)

    async def patch(self, body: Obj, name: str = "chat") -> Obj:
        """A merge patch of the set."""
        return await self.cluster.patch(DISAGGREGATED_SET, name, body)

    async def set_roles(self, *roles: Obj, name: str = "chat") -> Obj:
        """Other roles in place of those that the set has."""
        return await self.patch({"spec": {"roles": [*roles]}}, name)

    async def edit_roles(self, change: Callable[[Obj], None], name: str = "chat") -> Obj:
        """Have `change` edit each role of the set, as it is now, in place."""
        roles = (await self.live(name))["spec"]["roles"]
        for one in roles:
            change(one)
        return await self.set_roles(*roles, name=name)

    async def set_image(self, image: str, *roles: str, name: str = "chat") -> Obj:
        """A new image of the workers of these roles, or of all, which starts a rollout."""

        def change(one: Obj) -> None:
            if not roles or one["name"] in roles:
                (container,) = one["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
                container["image"] = image

        return await self.edit_roles(change, name)

    async def scale_role(self, role: str, replicas: int, name: str = "chat") -> Obj:
        """Another count of a role in the set."""

        def change(one: Obj) -> None:
            if one["name"] == role:
                one["spec"]["replicas"] = replicas

        return await self.edit_roles(change, name)

    async def scale(self, scaler: str, replicas: int) -> None:
        """Through the scale subresource of a scaler, as autoscalers do."""
        await self.cluster.patch(ROLE_SCALER, scaler, {"spec": {"replicas": replicas}}, subresource="scale")

    # Reading -------------------------------------------------------------------------------------------------------

    async def live(self, name: str = "chat") -> Obj:
        """The set as it is."""
        return await self.cluster.get(DISAGGREGATED_SET, name)

    async def all_children(self, name: str = "chat") -> dict[str, Obj]:
        """The LeaderWorkerSets of a set by name, those that are being deleted too."""
        found = await self.cluster.list(LEADER_WORKER_SET, f"{names.NAME_LABEL}={name}")
        return {child["metadata"]["name"]: child for child in found}

    async def children(self, name: str = "chat") -> dict[str, Obj]:
        """The LeaderWorkerSets of a set that are not being deleted, by name."""
        return {n: child for n, child in (await self.all_children(name)).items() if not is_deleting(child)}

    async def child(self, role: str, slice: int = 0, revision: str = "", name: str = "chat") -> Obj:
        """The one child of a role in a slice, of a revision if there are several. Raises AssertionError otherwise."""
        found = [
            child
            for child in (await self.children(name)).values()
            if labels_of(child)[names.ROLE_LABEL] == role
            and labels_of(child)[names.SLICE_LABEL] == str(slice)
            and revision in ("", revision_of(child))
        ]
        assert len(found) == 1, [child["metadata"]["name"] for child in found]
        return found[0]

    async def sizes(self, name: str = "chat") -> dict[tuple[int, str, str], int]:
        """`spec.replicas` of each child that stays by slice, revision and role."""
        return {
            (int(labels_of(c)[names.SLICE_LABEL]), revision_of(c), labels_of(c)[names.ROLE_LABEL]): replicas_of(c)
            for c in (await self.children(name)).values()
        }

    async def has_children(self, *wanted: str, name: str = "chat") -> None:
        """Wait until the set has exactly these children; each is `<slice>/<role>=<replicas>`, of any revision."""

        async def check() -> None:
            found = [f"{slice}/{role}={n}" for (slice, _, role), n in (await self.sizes(name)).items()]
            assert sorted(found) == sorted(wanted)

        await self.cluster.eventually(check)

    async def revisions(self, name: str = "chat") -> set[str]:
        """The revisions that the children are of."""
        return {revision for _, revision, _ in await self.sizes(name)}

    async def pods(self, name: str = "chat") -> list[Obj]:
        """All pods of the set."""
        return await self.cluster.list(POD, f"{names.NAME_LABEL}={name}")

    async def scalers(self, name: str = "chat") -> dict[str, Obj]:
        """The scalers with the set's name in their label, by name."""
        found = await self.cluster.list(ROLE_SCALER, f"{names.NAME_LABEL}={name}")
        return {scaler["metadata"]["name"]: scaler for scaler in found}

    async def scaler(self, name: str) -> Obj:
        """Wait for a scaler; returns it."""
        return await self.cluster.eventually(lambda: self.cluster.get(ROLE_SCALER, name))

    async def rows(self, name: str = "chat") -> dict[str, Obj]:
        """The rows of the status by name, without it."""
        rows = ((await self.live(name)).get("status") or {}).get("roleStatuses") or ()
        return {row["name"]: {k: v for k, v in row.items() if k != "name"} for row in rows}

    async def conditions(self, name: str = "chat") -> dict[str, tuple[str, str]]:
        """Status and reason of each condition by type."""
        found = ((await self.live(name)).get("status") or {}).get("conditions") or ()
        return {c["type"]: (c["status"], c["reason"]) for c in found}

    async def condition(self, kind: str, name: str = "chat") -> Obj:
        """One condition. Raises KeyError when the set does not have it."""
        found = condition_of(await self.live(name), kind)
        if found is None:
            raise KeyError(kind)
        return found

    async def events(self, name: str = "chat") -> list[Obj]:
        """The events regarding the set."""
        return await events_about(self.cluster, names.KIND, name)

    async def reasons(self, name: str = "chat") -> list[str]:
        """The reasons of the set's events, in their order."""
        return [e["reason"] for e in sorted(await self.events(name), key=lambda e: e["eventTime"] or "")]

    async def has_event(self, reason: str, note: str, type: str = "Normal", name: str = "chat") -> Obj:
        """Wait for an event with this reason and note; returns it."""
        return await event_about(self.cluster, names.KIND, name, (type, reason, note))

    async def settled(self) -> None:
        """Wait until nothing changes any more, and no workload's controller is behind."""
        await rests(self.cluster, *KINDS)

    async def eventually(self, check: Callable[[], Awaitable[None]]) -> None:
        """Wait until a check holds, while all pods become ready."""
        async with self.cluster.kubelet.playing():
            await self.cluster.eventually(check)


def replicas_of(child: Obj) -> int:
    """How many groups a child is to have."""
    return child["spec"]["replicas"]


def revision_of(child: Obj) -> str:
    """The set's revision that a child was made from."""
    return labels_of(child)[names.REVISION_LABEL]


def initial_of(child: Obj) -> str | None:
    """What a child's annotation initial-replicas says."""
    return (child["metadata"].get("annotations") or {}).get(names.INITIAL_REPLICAS_ANNOTATION)


def own_labels(role: str, revision: str, slice: int = 0, name: str = "chat") -> Mapping[str, str]:
    """The five labels of a child and its pods."""
    return {
        names.APP_LABEL: f"{name}-{slice}-{role}",
        names.NAME_LABEL: name,
        names.ROLE_LABEL: role,
        names.SLICE_LABEL: str(slice),
        names.REVISION_LABEL: revision,
    }


def written_about(cluster: TestCluster) -> list[str]:
    """What the last manager wrote of DisaggregatedSets, scalers and children, without the children's statuses."""
    found = []
    root = f"/namespaces/{cluster.namespace}/"
    for one in cluster.interceptors[-1].requests:
        plural, _, rest = (path := one.request.path.partition(root)[2]).partition("/")
        own = plural in (names.PLURAL, names.SCALER_PLURAL)
        of_child = plural == LEADER_WORKER_SET.plural and not rest.endswith("/status")
        if one.verb not in READS and (own or of_child):
            found.append(f"{one.verb} {path}")
    return found
