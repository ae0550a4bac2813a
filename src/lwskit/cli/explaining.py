"""Explanations of sets of either kind, in a dump or on a cluster."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from lwskit.api import disaggregated_names, names
from lwskit.backends import registry
from lwskit.cli import disaggregated_planning, observed
from lwskit.disaggregated import explain as disaggregated_explain
from lwskit.disaggregated import family as families
from lwskit.disaggregated.explain import SetExplanation
from lwskit.disaggregated.family import Family
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.groups.explain import Explanation, State, explain
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import RealClock
from lwskit.runtime.errors import ConfigurationError, Forbidden, NotFound
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj

_SHORT = {LEADER_WORKER_SET: "lws", DISAGGREGATED_SET: "ds"}
KINDS_SAID = "a name alone, or leaderworkerset/NAME (lws/NAME) or disaggregatedset/NAME (ds/NAME)"
"""How a set may be named."""


class Wanted(NamedTuple):
    """Which set: without a kind of whichever has the name."""

    name: str
    kind: Kind | None = None


def parse(text: str) -> Wanted | None:
    """A set as a person names it; None for a kind that there is not."""
    said, slash, name = text.partition("/")
    if not slash:
        return Wanted(text)
    for kind, short in _SHORT.items():
        singular = kind.kind.lower()
        if said.lower() in (short, singular, kind.plural, f"{singular}.{kind.group}", kind.qualified):
            return Wanted(name, kind)
    return None


def from_dump(path: str, namespace: str, name: str, kind: Kind | None = None) -> Explanation:
    """The explanation of a set in a saved dump. Raises ConfigurationError if it is not there or cannot be read."""
    objects, backends = observed.read_dump(path), registry.find()
    now = observed.time_of(objects) or RealClock().now()
    wanted = Wanted(name, kind)
    known = {one: observed.names_in(objects, namespace, one) for one in _SHORT}
    if _chosen(wanted, namespace, known, path) == DISAGGREGATED_SET:
        blind = observed.blind_in(objects)
        family = families.of(objects, namespace, name, backends.leaders_of, backends.workers, blind)
        return _of_family(family, objects, path, now)
    scene = observed.scene_in_dump(objects, path, namespace, name, backends)
    assert scene.lws is not None
    if scene.partial and scene.workload is None:
        return Explanation(
            namespace=namespace,
            name=name,
            state=State.BLOCKED,
            cause="partial-dump",
            sentences=(f"{scene.partial}, so there is no telling how it stands.",),
            advice=(observed.save_again(namespace),),
        )
    return explain(scene, backends.leaders_of(scene.lws), backends.workers, now)


def _of_family(family: Family, objects: Sequence[Obj], path: str, now: datetime) -> Explanation:
    backends = registry.find()
    partial = ""
    for child in family.own:
        scene = observed.scene_in_dump(objects, path, family.namespace, child.name, backends)
        partial = partial or scene.partial
    if partial:
        return SetExplanation(
            namespace=family.namespace,
            name=family.name,
            state=State.BLOCKED,
            cause="partial-dump",
            sentences=(f"{partial}, so there is no telling how it stands.",),
            advice=(observed.save_again(family.namespace),),
        )
    return disaggregated_explain.explain(family, backends.leaders_of, backends.workers, now)


async def from_cluster(
    namespace: str,
    name: str,
    kubeconfig: str | None,
    context: str | None,
    found: list[Explanation],
    kind: Kind | None = None,
) -> None:
    """Add the explanation of a set on a cluster to `found`. Raises ConfigurationError, ApiError, ConnectionFailed.

    When cancelled, the connection is closed.
    """
    async with observed.connected(kubeconfig, context) as client:
        found.append(await on_cluster(client, namespace, name, client.clock.now(), kind))


async def on_cluster(client: Client, namespace: str, name: str, now: datetime, kind: Kind | None = None) -> Explanation:
    """The explanation of a set on a cluster. Raises ConfigurationError if there is none; ApiError, ConnectionFailed.

    When cancelled, nothing more is read.
    """
    backends, wanted = registry.find(), Wanted(name, kind)
    kind = await _kind_on(client, namespace, wanted)
    if kind == DISAGGREGATED_SET:
        family = await disaggregated_planning.look(client, namespace, name)
        if family.ds is not None:
            return disaggregated_explain.explain(family, backends.leaders_of, backends.workers, now)
    elif kind == LEADER_WORKER_SET:
        scene = await observed.look(client, namespace, name, backends, events=True)
        if scene.lws is not None:
            return explain(scene, backends.leaders_of(scene.lws), backends.workers, now)
    known = {one: await _names_on(client, namespace, one) for one in _SHORT if wanted.kind in (None, one)}
    raise _unknown(wanted, namespace, known, "the cluster")


async def _kind_on(client: Client, namespace: str, wanted: Wanted) -> Kind | None:
    """The kind that has the name. Raises ConfigurationError where both have it."""
    if wanted.kind is not None:
        return wanted.kind
    has = {kind: await _exists(client, namespace, kind, wanted.name) for kind in _SHORT}
    if all(has.values()):
        raise _both(wanted, namespace, "the cluster")
    # Where neither has it, looking for the one says whether it is served at all.
    return DISAGGREGATED_SET if has[DISAGGREGATED_SET] else LEADER_WORKER_SET


async def _exists(client: Client, namespace: str, kind: Kind, name: str) -> bool:
    try:
        await client.get(kind, name, namespace)
    except NotFound:
        return False
    except Forbidden:
        # Who may not read one kind means the other; of LeaderWorkerSets that is said when it is looked at.
        return False
    return True


async def _names_on(client: Client, namespace: str, kind: Kind) -> list[str]:
    try:
        return await observed.names_on(client, namespace, kind)
    except (NotFound, Forbidden):
        return []


def _chosen(wanted: Wanted, namespace: str, known: dict[Kind, list[str]], where: str) -> Kind:
    if wanted.kind is not None:
        known = {wanted.kind: known[wanted.kind]}
    having = [kind for kind, there in known.items() if wanted.name in there]
    if not having:
        raise _unknown(wanted, namespace, known, where)
    if len(having) > 1:
        raise _both(wanted, namespace, where)
    return having[0]


def _both(wanted: Wanted, namespace: str, where: str) -> ConfigurationError:
    choices = " or ".join(f"{short}/{wanted.name}" for short in _SHORT.values())
    return ConfigurationError(
        f"{where} has a {names.KIND} and a {disaggregated_names.KIND} {wanted.name!r} in namespace {namespace!r}; say "
        f"{choices}"
    )


def _unknown(wanted: Wanted, namespace: str, known: dict[Kind, list[str]], where: str) -> ConfigurationError:
    if wanted.kind is not None or not known.get(DISAGGREGATED_SET):
        kind = wanted.kind or LEADER_WORKER_SET
        return observed.unknown(wanted.name, namespace, known.get(kind, []), where, kind.kind)
    there = [f"{_SHORT[kind]}/{name}" for kind, found in known.items() for name in found]
    by_name = {text.partition("/")[2]: text for text in there}
    near = [by_name[name] for name in difflib.get_close_matches(wanted.name, by_name, n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(sorted(there)[:10])}"
    return ConfigurationError(
        f"{where} has no {names.KIND} and no {disaggregated_names.KIND} {wanted.name!r} in namespace {namespace!r}; "
        f"{hint}"
    )


def as_data(found: Explanation) -> dict[str, Any]:
    """What the JSON output has of an explanation."""
    document = {
        "namespace": found.namespace,
        "name": found.name,
        "state": found.state.value,
        "cause": found.cause,
        "paragraph": found.paragraph,
        "group": found.group,
        "pod": found.pod,
        "waitsFor": found.waits_for,
        "advice": list(found.advice),
        "scaleDown": [{"pod": victim.name, "why": victim.why} for victim in found.next_to_go],
    }
    if not isinstance(found, SetExplanation):
        return {"kind": names.KIND, **document}
    of_child = {"slice": found.slice, "role": found.role, "revision": found.revision, "child": found.child}
    return {"kind": disaggregated_names.KIND, **document, **of_child}
