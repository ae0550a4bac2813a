"""Why a set in Hash mode is not where it should be. Pure.

The Deployment rolls out by itself; what can hold it are groups that do not get ready, leaders at their gate, and what
keeps the Deployment from making pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lwskit.api import names
from lwskit.groups import (
    budget,
    gates,
    grouptrouble,
    hashed,
    ownership,
    podtrouble,
    restarts,
    setparts,
    spec,
    successions,
    turns,
)
from lwskit.groups.explanation import Explanation, State, are, quoted, upper
from lwskit.groups.grouptrouble import GroupTrouble
from lwskit.groups.model import DecisionError
from lwskit.groups.podtrouble import Trouble
from lwskit.groups.pool import facts_of, group_name
from lwskit.groups.scene import is_leader_pod, owner_name
from lwskit.groups.setlook import SetLook
from lwskit.runtime.deployment_sizes import FAILURE, PROGRESSING
from lwskit.runtime.objects import Obj, condition_of, controller_of, generation_of, is_deleting, is_true, uid_of
from lwskit.runtime.plan import Apply, NeedFresh

_SHOWN = 3
"""Pods of groups that go which are named."""


class Explaining(SetLook):
    """Looks at one set in Hash mode."""

    @property
    def kind(self) -> str:
        """The kind of its leader workload."""
        return self.looking.leaders.kind.kind

    def explain(self) -> Explanation:
        """Why it is where it is."""
        for look in (self._deleting, self._manager, self._foreign, self._workload, self._decision):
            found = look()
            if found is not None:
                return found
        return self._groups()

    # The set and its workload -----------------------------------------------------------------------------------------

    def _deleting(self) -> Explanation | None:
        if not is_deleting(self.lws):
            return None
        meta, pods = self.lws["metadata"], len(self.scene.pods)
        text = f"{self._name} is being deleted since {meta['deletionTimestamp']}; pods of it that are left: {pods}."
        finalizers = ", ".join(meta.get("finalizers") or ())
        kept = f"It is kept by finalizer {finalizers}." if finalizers else ""
        return self._said(State.DELETING, "deleting", text, kept, waits="the garbage collector")

    def _manager(self) -> Explanation | None:
        seen, wanted = (self.lws.get("status") or {}).get("observedGeneration", 0), generation_of(self.lws)
        workload = self.scene.workload
        if workload is not None and (seen >= wanted or not self._is_mine(workload)):
            return None
        text = f"{self._name} has no {self._there}"
        if workload is not None:
            text = f"{self._name} is at generation {wanted}, of which the manager has acted on {seen or 'none'}"
        said = self.looking.failure(names.KIND, self.scene.name)
        if said:
            return self._said(State.BLOCKED, "not-written", f"{text}: {said}.")
        more = "if this stays so, the manager does not run or does not see the set"
        return self._said(State.BLOCKED, "no-manager", f"{text}; {more}.", waits="the manager")

    def _is_mine(self, workload: Obj) -> bool:
        owner = controller_of(workload)
        return owner is not None and owner["uid"] == uid_of(self.lws)

    def _foreign(self) -> Explanation | None:
        workload = self.scene.workload
        if workload is None or self._is_mine(workload):
            return None
        text = f"{self._there} belongs to {owner_name(workload)}, not to this set, which needs that name."
        if setparts.is_of_an_earlier_set(workload, self.lws):
            text = f"{self._there} belongs to an earlier set of this name, and is still being removed."
        advice = (f"remove that {self.kind}, or rename the set",)
        return self._said(State.BLOCKED, "foreign-workload", text, advice=advice)

    def _decision(self) -> Explanation | None:
        """Whether the manager can decide, and has done what it decides."""
        workload, leaders = self.scene.workload, self.looking.leaders
        assert workload is not None
        snapshot = self.scene.snapshot(leaders, self.looking.workers, self.looking.now)
        try:
            decision = hashed.decide(snapshot, leaders)
        except DecisionError as error:
            return self._said(State.BLOCKED, "no-decision", f"The manager cannot decide about {self._name}: {error}.")
        if isinstance(decision, NeedFresh):
            return None
        there = leaders.observe(workload)
        for action in decision.actions:
            if not isinstance(action, Apply):
                continue
            wanted = leaders.observe(action.obj)
            if (wanted.replicas, wanted.revision) == (there.replicas, there.revision):
                return None
            text = (
                f"The manager would now set replicas {wanted.replicas} and revision {wanted.revision} on "
                f"{self._there}, which has {there.replicas} and {there.revision}."
            )
            said = self.looking.failure(names.KIND, self.scene.name)
            if said:
                return self._said(State.BLOCKED, "not-written", text, f"It could not: {said}.")
            more = "If this stays so, the manager does not run."
            return self._said(State.PROGRESSING, "not-written-yet", text, more, waits="the manager")
        return None

    # The groups -------------------------------------------------------------------------------------------------------

    def _groups(self) -> Explanation:
        workload = self.scene.workload
        assert workload is not None
        now = self.looking.leaders.observe(workload)
        found = hashed.count(now, self.scene.pool, spec.replicas(self.lws), now.revision)
        counts = self._counts(found)
        about = self._first()
        if about is not None and not about.trouble.passes:
            return self._troubled(about, counts, found)
        if workload["spec"].get("paused") and found.updating:
            target = f"deployment/{self.scene.name} -n {self.scene.namespace}"
            advice = f"let it go on with `kubectl rollout resume {target}`"
            text = f"{self._there} is paused, so it makes no group of another template."
            lost = self._lost(now.revision)
            return self._said(State.BLOCKED, "paused", counts, text, lost, waits="somebody", advice=(advice,))
        said = self._failure(workload)
        if said:
            text = f"{self._there} cannot make what it should: {said}."
            return self._said(State.BLOCKED, "no-leader", counts, text, waits=f"the {self.kind} controller")
        late = self._late(workload)
        if about is not None:
            return self._troubled(about, counts, found, late)
        if late:
            return self._said(State.BLOCKED, "no-progress", counts, late, waits=f"the {self.kind} controller")
        if found.updating:
            text = "The update goes on as groups get ready."
            return self._said(State.PROGRESSING, "rolling", counts, text, waits=f"the {self.kind} controller")
        if not found.available:
            text = "Groups are on their way."
            return self._said(State.PROGRESSING, "not-ready", counts, text, waits="them to become ready")
        besides = self._besides()
        said = (counts, *besides) if besides else (f"{counts} All is well.",)
        return self._said(State.OK, "ok", *said)

    def _counts(self, found: hashed.Counts) -> str:
        ready = f"{found.ready} of {found.wanted} groups {are(found.ready)} ready"
        text = f"{self._name}: {ready}; {found.updated} {are(found.updated)} of the newest revision"
        surge = found.created - found.wanted
        return f"{text}; {surge} more than wanted exist." if surge > 0 else f"{text}."

    def _failure(self, workload: Obj) -> str:
        """What the Deployment's conditions say that keeps pods from being made."""
        condition = condition_of(workload, FAILURE)
        if condition is not None and condition.get("status") == "True":
            return quoted(condition.get("message") or condition.get("reason", ""))
        return ""

    def _late(self, workload: Obj) -> str:
        """That the Deployment has not come on for too long; empty where it has not said so."""
        condition = condition_of(workload, PROGRESSING)
        if condition is None or condition.get("status") != "False":
            return ""
        limit = workload["spec"].get("progressDeadlineSeconds")
        within = f" within {limit} s" if limit is not None else ""
        reason = condition.get("reason", "")
        return f"{self._there} has not come on{within} ({reason}: {quoted(condition.get('message', ''))})."

    def _troubled(self, about: GroupTrouble, counts: str, found: hashed.Counts, late: str = "") -> Explanation:
        what = "the rollout" if found.updating else "the set"
        short, code = f"{str(about.group)[:8]}…", about.trouble.code
        assert self.scene.workload is not None
        lost = self._lost(self.looking.leaders.observe(self.scene.workload).revision)
        pod = f"Pod {about.pod} {about.trouble.text}." if about.pod else f"{upper(about.trouble.text)}."
        pod = f"{upper(about.sentence)}." if about.sentence else pod
        waits = f"group {about.group} to become ready"
        if code == "back-off" and self._is_whole(about):
            sentence = f"Group {short} is ready and will be recreated all the same."
            return self._said(State.PROGRESSING, code, counts, sentence, pod, waits="the back-off", about=about)
        if not about.trouble.passes:
            sentence = f"Group {short} holds {what}."
            return self._said(
                State.BLOCKED, code, counts, sentence, pod, lost, waits=waits, advice=about.advice, about=about
            )
        sentence = f"{upper(what)} waits for group {short}, which is on its way."
        passes = f"It goes on by itself once group {short} is ready."
        if code == _GATE:
            # That this group gets ready is what is waited for, not what ends the wait.
            sentence, passes = f"{upper(what)} waits for group {short}, whose leader is not let in yet.", ""
        state, cause = State.PROGRESSING, code
        if late:
            state, cause, passes = State.BLOCKED, "no-progress", late
        return self._said(
            state, cause, counts, sentence, pod, passes, lost, waits=waits, advice=about.advice, about=about
        )

    def _lost(self, desired: str) -> str:
        """How many groups of a former template were lost during the update; nobody replaces them meanwhile (30 §7)."""
        gated = self.scene.pool.gated
        count = sum(len(row) for revision, row in gated.items() if revision != desired) if desired else 0
        if not count:
            return ""
        groups = "1 group of the former template was" if count == 1 else f"{count} groups of the former template were"
        return f"{groups} lost meanwhile, to be replaced only if you go back to that template or the update goes on."

    def _is_whole(self, about: GroupTrouble) -> bool:
        """Whether the group's leader is ready."""
        pods = (p for p in self.scene.pods if is_leader_pod(p) and group_name(p) == about.group)
        return any(self._is_ready(pod) for pod in pods)

    @staticmethod
    def _counts_for(leader: Obj) -> bool:
        """Whether a leader is there to stay and takes a group's place; one without a restart left does, although it is
        being deleted.
        """
        facts = facts_of(leader)
        return facts.exhausted or not (facts.leaving or _is_let_go(leader))

    def _first(self) -> GroupTrouble | None:
        """What is the matter with a group: first what passes only if somebody does something."""
        leaders = [p for p in self.scene.pods if is_leader_pod(p) and self._counts_for(p)]
        leaders.sort(key=lambda pod: facts_of(pod).place)
        found = [trouble for leader in leaders if (trouble := self.of(leader)) is not None]
        last = (_GATE, "back-off")
        return min(found, key=lambda t: (t.trouble.passes, t.trouble.code in last), default=None)

    def of(self, leader: Obj) -> GroupTrouble | None:
        """Why one group is not ready."""
        found = self._at_present(leader)
        if budget.is_exhausted(leader) or budget.cause_of_pending(leader) or self._is_ready(leader):
            return found
        looking = self.looking
        run = successions.find(looking.scene, looking.succeeded, leader, looking.newest(), looking.now)
        return grouptrouble.looped(looking, group_name(leader), leader, run, found)

    @staticmethod
    def _is_ready(leader: Obj) -> bool:
        return is_true(leader, "Ready") and not is_deleting(leader)

    def _at_present(self, leader: Obj) -> GroupTrouble | None:
        group, name = group_name(leader), leader["metadata"]["name"]
        if budget.is_exhausted(leader):
            return grouptrouble.exhausted(self.looking, group, leader)
        if budget.cause_of_pending(leader):
            return grouptrouble.pending(self.looking, group, leader)
        if gates.is_gated(leader):
            return GroupTrouble(group, name, self._at_its_gate(leader))
        workload = self.looking.workload_named(ownership.workers_name(leader))
        if self._is_ready(leader):
            return None
        if not is_true(leader, "ContainersReady"):
            found = self.looking.trouble(leader)
            if found is not None:
                return GroupTrouble(group, name, found, grouptrouble.advice(self.looking, name, found))
        found = grouptrouble.of_workers(self.looking, group, leader, workload)
        if found is not None:
            return found
        if restarts.size_told(leader, self.lws) > 1 and not is_true(leader, names.GROUP_READY_GATE):
            text = f"does not say yet that its workers are ready ({names.GROUP_READY_GATE})"
            return GroupTrouble(group, name, Trouble("not-counted", text, passes=True))
        found = self.looking.trouble(leader)
        return GroupTrouble(group, name, found) if found is not None else None

    def _at_its_gate(self, leader: Obj) -> Trouble:
        """What a leader waits for: the manager's own decision, and the pods that are in the way."""
        turn = turns.of(self.looking.snapshot(leader, None), self.lws, leader, self.looking.leaders)
        if turn.admitted:
            return Trouble(_GATE, "waits at its gate, which the manager is about to take away", passes=True)
        others = [g["name"] for g in leader["spec"].get("schedulingGates") or ()]
        text = f"waits at its gate ({', '.join(others)}): {turn.why}"
        pods = list(self._in_the_way())
        if not pods:
            return Trouble(_GATE, text, passes=True)
        told, passes = self._still_there(pods)
        return Trouble(_GATE, f"{text}; {told}", passes=passes)

    def _still_there(self, pods: Sequence[Obj], of: str = "") -> tuple[str, bool]:
        """Which of the pods in the way are there and what keeps them, and whether they go by themselves."""
        left = self._left_behind(pods)
        if left:
            return left, False
        there = ", ".join(pod["metadata"]["name"] for pod in pods[:_SHOWN])
        more = f" and {len(pods) - _SHOWN} more" if len(pods) > _SHOWN else ""
        troubles = ((pod, podtrouble.of(pod, ())) for pod in pods)
        stuck = next(((pod, t) for pod, t in troubles if t is not None and not t.passes), None)
        kept = f"; {stuck[0]['metadata']['name']} {stuck[1].text}" if stuck is not None else ""
        return f"still there{of}: {there}{more}{kept}", stuck is None

    def _besides(self) -> tuple[str, ...]:
        """What holds devices without being one of the set's groups: nothing waits for it while all groups are there."""
        orphans = [p for p in self.scene.pods if is_leader_pod(p) and _is_let_go(p) and facts_of(p).alive]
        said = [
            f"Leader pod {pod['metadata']['name']} is controlled by no ReplicaSet: its group is none of these, but its "
            "pods stay on their nodes until you delete that pod."
            for pod in orphans[:_SHOWN]
        ]
        if len(orphans) > _SHOWN:
            said.append(f"So it is with {len(orphans) - _SHOWN} more.")
        going = list(self._in_the_way())
        if going:
            said.append(f"{upper(self._still_there(going, ' of groups that are no longer wanted')[0])}.")
        return tuple(said)

    def _left_behind(self, pods: Iterable[Obj]) -> str:
        """Of pods that are in the way, what nobody removes: that of workers without an owner; empty if all go."""
        for pod in pods:
            owner = controller_of(pod)
            workers = self.looking.workload_named(owner["name"]) if owner is not None else None
            if is_deleting(pod) or is_leader_pod(pod):
                continue
            if owner is None:
                return f"pod {pod['metadata']['name']} has no owner and its leader is gone; delete it"
            if workers is not None and uid_of(workers) == owner["uid"] and controller_of(workers) is None:
                kind, name = workers.get("kind") or owner["kind"], workers["metadata"]["name"]
                return f"{kind} {name} has no owner and the leader of its pods is gone; delete it"
        return ""

    def _in_the_way(self) -> Iterable[Obj]:
        """The pods of groups that have no living leader any more."""
        alive = {group_name(p) for p in self.scene.pods if is_leader_pod(p) and facts_of(p).alive}
        return (p for p in self.scene.pods if group_name(p) not in alive)


def _is_let_go(leader: Obj) -> bool:
    """Whether no ReplicaSet controls a leader any more, so that nothing waits for its group."""
    return controller_of(leader) is None


_GATE = "group-replacement"
