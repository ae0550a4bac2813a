"""Carries out plans: sends each action's request, tells the cache the answer, records the events.

A reconcile is observe, decide, execute; `reconcile` puts the three together.
Specification: architecture, parts 1 and 4.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Protocol, TypeVar, cast

import structlog
import tenacity

from lwskit.runtime.apply import apply_needed
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import (
    ApiError,
    ConfigurationError,
    Conflict,
    LwskitError,
    NotFound,
    PlanError,
    another_uid_conflicts,
)
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj, ObjectRef, is_deleting, key_of, ref_of
from lwskit.runtime.patch import merge_patch
from lwskit.runtime.plan import (
    AnswerOf,
    AnyAction,
    Apply,
    Create,
    Decision,
    Delete,
    Emit,
    Event,
    Modify,
    NeedFresh,
    OnError,
    Patch,
    Plan,
    UpdateStatus,
)
from lwskit.runtime.request import Result

log = structlog.get_logger(__name__)

CONFLICT_TRIES = 5
"""How often a write is sent at most that is made anew on a conflict."""
MODIFY_WAIT = 0.01
"""Seconds before a Modify is repeated on a conflict; doubled each time."""
ROUNDS = 4
"""How often one reconcile decides at most."""

Fresh = Mapping[tuple[Kind, Key], Obj | None]
"""What was read live in this reconcile; None stands for an object that does not exist."""
S = TypeVar("S")


class StoreLike(Protocol):
    """The part of a store that the executor reads."""

    def get(self, key: Key) -> Obj | None:
        """The object with that key, or None."""
        ...


class CacheLike(Protocol):
    """The part of a cache that the executor uses."""

    def store(self, kind: Kind) -> StoreLike:
        """The store of a kind. Raises ConfigurationError for one that is not cached."""
        ...

    def ingest(self, kind: Kind, obj: Obj) -> None:
        """Take in the server's answer to a write of our own."""
        ...

    def forget(self, kind: Kind, key: Key, uid: str) -> None:
        """Take in that a deletion of our own has removed an object."""
        ...


class RecorderLike(Protocol):
    """Records events without waiting."""

    def event(self, event: Event, related: ObjectRef | None = None, *, at: datetime | None = None) -> None:
        """Record an event; `related` stands in for a reference that the plan could not know, `at` for this moment."""
        ...


class Executor:
    """Runs the actions of plans, in order, up to the first failure that an action's `errors` do not absorb."""

    def __init__(
        self,
        client: Client,
        cache: CacheLike,
        recorder: RecorderLike,
        clock: Clock,
        field_manager: str | None = None,
    ) -> None:
        self._client = client
        self._cache = cache
        self._recorder = recorder
        self._clock = clock
        self._field_manager = field_manager

    async def execute(self, plan: Plan) -> Result:
        """Carry out a plan and return its result, or a requeue where an error asks for one or for a look.

        Raises what `attempt` raises; cancelled, it is as there.
        """
        found = await self.attempt(plan)
        return found if isinstance(found, Result) else Result(requeue=True, reason=found.why)

    async def attempt(self, plan: Plan) -> Result | NeedFresh:
        """Carry out a plan. Its result; a requeue where an error asks for one; what to read where one asks for a look.

        Raises PlanError for a reference to an answer that no earlier action gives, before anything is sent; the
        ApiError or ConnectionFailed of an action that failed otherwise, the first of those that were to fail later.
        Cancelled in mid-write, the write may or may
        not have taken effect, and its answer and events are lost.
        """
        _check(plan)
        answers: dict[str, Obj] = {}
        failed: LwskitError | None = None
        for action in plan.actions:
            if isinstance(action, Emit):
                self._record(action.event, answers)
                continue
            # What follows from a request may be told before its answer is here.
            sent = self._clock.now()
            try:
                answer, changed = await self._send(action)
            except LwskitError as error:
                rule = action.errors.get(error.reason, OnError.RAISE) if isinstance(error, ApiError) else OnError.RAISE
                if rule in (OnError.RAISE, OnError.LATER) and action.on_failure:
                    self._record(action.on_failure, answers, str(error))
                if rule is OnError.RAISE:
                    raise
                log.debug("action failed as foreseen", why=action.why, error=str(error), rule=rule.value)
                why = f"{action.why}: {error}"
                if rule is OnError.LOOK:
                    return NeedFresh(((action.kind, _key(action)),), why)
                if rule is OnError.REQUEUE:
                    return Result(requeue=True, reason=why)
                if rule is OnError.LATER:
                    failed = failed or error
                continue
            if action.name:
                answers[action.name] = answer
            if changed:
                log.info(action.why, action=type(action).__name__, object=_label(action))
                if action.on_success:
                    self._record(action.on_success, answers, at=sent)
        if failed is not None:
            raise failed
        if plan.note:
            log.debug(plan.note)
        return plan.result

    async def refresh(self, keys: tuple[tuple[Kind, Key], ...]) -> dict[tuple[Kind, Key], Obj | None]:
        """Read objects live and hand them to the cache; None for those that do not exist. Raises ApiError.

        When cancelled, the cache keeps what was read until then.
        """
        found: dict[tuple[Kind, Key], Obj | None] = {}
        for kind, key in keys:
            try:
                obj = await self._client.get(kind, key.name, key.namespace or None)
            except NotFound:
                found[kind, key] = None
            else:
                found[kind, key] = obj
                self._cache.ingest(kind, obj)
        return found

    async def _send(self, action: AnyAction) -> tuple[Obj, bool]:
        """The answer to an action's request, and whether there was anything to change."""
        match action:
            case Create():
                answer = await self._client.create(action.kind, action.obj, field_manager=self._field_manager)
            case Apply():
                live = self._live(action.kind, key_of(action.obj))
                if live is not None and not apply_needed(live, action.obj, action.manager):
                    return live, False
                answer = await self._client.apply(
                    action.kind, action.obj, field_manager=action.manager, force=action.force
                )
            case Patch():
                answer = await self._patch(action)
            case UpdateStatus():
                answer = await self._client.update(
                    action.kind, action.obj, subresource="status", field_manager=self._field_manager
                )
            case Delete():
                return await self._delete(action), True
            case Modify():
                return await self._modify(action)
            case _:
                raise PlanError(f"{type(action).__name__} is not an action with a request")
        self._cache.ingest(action.kind, answer)
        return answer, True

    async def _patch(self, action: Patch) -> Obj:
        body = action.body
        for left in reversed(range(CONFLICT_TRIES)):
            try:
                return await self._patch_once(action, body)
            except Conflict as error:
                again = await self._anew(action) if left else None
                if again is None:
                    raise
                log.debug("the object has changed, but not in what was decided on", why=action.why, error=str(error))
                body = again
        raise AssertionError("the last try always ends")

    async def _anew(self, action: Patch) -> Obj | None:
        """The body that is right for the object as it is now; None where there is none."""
        if action.anew is None:
            return None
        found = (await self.refresh(((action.kind, action.key),)))[action.kind, action.key]
        return action.anew(found) if found is not None else None

    async def _patch_once(self, action: Patch, body: Obj) -> Obj:
        if action.uid:
            body = {**body, "metadata": {**(body.get("metadata") or {}), "uid": action.uid}}
        with another_uid_conflicts():
            return await self._client.patch(
                action.kind,
                action.key.name,
                body,
                action.key.namespace or None,
                patch_type=PatchType.STRATEGIC if action.strategic else PatchType.MERGE,
                subresource=action.subresource or None,
                field_manager=self._field_manager,
            )

    async def _delete(self, action: Delete) -> Obj:
        answer = await self._client.delete(
            action.kind,
            action.key.name,
            action.key.namespace or None,
            propagation=action.propagation,
            uid=action.uid or None,
        )
        if answer.get("metadata", {}).get("uid") and is_deleting(answer):
            self._cache.ingest(action.kind, answer)
        elif action.uid and answer.get("kind") == "Status" and answer.get("status") == "Success":
            # Only what is gone at once is answered with a Status.
            self._cache.forget(action.kind, action.key, action.uid)
        return answer

    async def _modify(self, action: Modify) -> tuple[Obj, bool]:
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(Conflict),
            stop=tenacity.stop_after_attempt(CONFLICT_TRIES),
            wait=tenacity.wait_exponential(multiplier=MODIFY_WAIT),
            sleep=self._clock.sleep,
            reraise=True,
        )
        return await retrying(self._modify_once, action)

    async def _modify_once(self, action: Modify) -> tuple[Obj, bool]:
        name, namespace = action.key.name, action.key.namespace or None
        fresh = await self._client.get(action.kind, name, namespace)
        self._cache.ingest(action.kind, fresh)
        changed = action.change(fresh)
        patch = merge_patch(fresh, changed) if changed is not None else {}
        if not patch:
            return fresh, False
        meta = fresh["metadata"]
        identity = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        patch["metadata"] = {**patch.get("metadata", {}), **identity}
        answer = await self._client.patch(action.kind, name, patch, namespace, field_manager=self._field_manager)
        self._cache.ingest(action.kind, answer)
        return answer, True

    def _live(self, kind: Kind, key: Key) -> Obj | None:
        try:
            return self._cache.store(kind).get(key)
        except ConfigurationError:
            # A kind that is not cached is applied without looking.
            return None

    def _record(self, event: Event, answers: Mapping[str, Obj], error: str = "", at: datetime | None = None) -> None:
        if error:
            event = dataclasses.replace(event, note=event.note.replace("{error}", error))
        related = event.related
        if isinstance(related, AnswerOf):
            # The action's error may have been absorbed: then there is nothing to relate to.
            answer = answers.get(related.name)
            related = ref_of(answer, related.kind) if answer is not None else None
        self._recorder.event(dataclasses.replace(event, related=related), at=at)


async def reconcile(
    observe: Callable[[Fresh], S | Awaitable[S]],
    decide: Callable[[S], Decision],
    executor: Executor,
    *,
    rounds: int = ROUNDS,
    done: Callable[[S, Plan], None] | None = None,
) -> Result:
    """Observe, decide, execute; where the decision or a failed action needs objects fresh, read them and do it again.

    `observe` is given what was read live so far, at first nothing, and may be asynchronous. After `rounds` decisions
    that all asked for more the request is tried again with back-off. `done` is called with the last snapshot and the
    plan made from it once that was carried out to its end. Raises what observe, decide and `Executor.execute`
    raise. When cancelled, a write under way may or may not have taken effect.
    """
    fresh: dict[tuple[Kind, Key], Obj | None] = {}
    why = ""
    for _ in range(rounds):
        snapshot = observe(fresh)
        if inspect.isawaitable(snapshot):
            snapshot = await snapshot
        seen = cast(S, snapshot)
        decision = decide(seen)
        found = await executor.attempt(decision) if isinstance(decision, Plan) else decision
        if isinstance(found, Result):
            # A plan that stopped half-way has another result than its own.
            if done is not None and isinstance(decision, Plan) and found is decision.result:
                done(seen, decision)
            return found
        why = found.why
        log.debug("reading live before deciding", why=why, keys=[f"{k.kind} {key}" for k, key in found.keys])
        fresh.update(await executor.refresh(found.keys))
    return Result(requeue=True, reason=f"still not decided after {rounds} live reads: {why}")


def _check(plan: Plan) -> None:
    named: set[str] = set()
    for action in plan.actions:
        if action.name and not isinstance(action, Emit):
            named.add(action.name)
        for event in _events(action):
            if isinstance(event.related, AnswerOf) and event.related.name not in named:
                raise PlanError(
                    f"event {event.reason} refers to the answer of {event.related.name!r}, not given before it"
                )


def _events(action: AnyAction) -> list[Event]:
    events = [action.event] if isinstance(action, Emit) else []
    return [*events, *(event for event in (action.on_success, action.on_failure) if event)]


def _label(action: Create | Apply | Patch | UpdateStatus | Delete | Modify) -> str:
    return f"{action.kind.kind} {_key(action)}"


def _key(action: Create | Apply | Patch | UpdateStatus | Delete | Modify) -> Key:
    if not isinstance(action, Create | Apply | UpdateStatus):
        return action.key
    meta = action.obj["metadata"]
    return Key(meta.get("namespace", ""), meta.get("name") or meta.get("generateName", ""))
