"""The object behind the fixture `cluster`: one cluster, one namespace of its own, and what a test needs around it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest, Transport
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import NotFound
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj
from lwskit.runtime.webhook import Handler
from lwskit.testing import namespaces, polling, webhooks
from lwskit.testing.arguments import body_of, check_kind
from lwskit.testing.interceptors import Interceptor
from lwskit.testing.kubelet import Kubelet
from lwskit.testing.observer import Observer, settled

T = TypeVar("T")

USER_AGENT = "lwskit-test"

EMBEDDED = "embedded"
REAL = "real"
EXISTING = "existing"
MODES = (EMBEDDED, REAL, EXISTING)
"""What LWSKIT_CLUSTER may be: in this process; a control plane made for tests; a user's cluster."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """How the clusters of tests are made; a project overrides the fixture `cluster_options` to change it.

    `without` names the controllers that the embedded cluster leaves out: by default the tests play scheduler and
    kubelet. `nodes` is how many nodes it has. `timeout` is the default of `eventually` on a real cluster, in seconds
    (embedded: virtual, four times as many). `quiet` is how long nothing may change until `settled` believes it.
    """

    without: frozenset[str] = frozenset({"scheduler", "kubelet"})
    nodes: int = 1
    seed: int = 1
    timeout: float = 30.0
    quiet: float = 1.5


@dataclass(slots=True)
class TestCluster:
    """A cluster as a test sees it.

    `client` is an administrator's, `clock` the cluster's time, `namespace` is fresh, `kubelet` plays the node's part
    for pods that no scheduler has placed. `mode` is one of MODES. `server` is the embedded API server, None on a real
    cluster; `kubeconfig` is the path of a real one's, empty when embedded. `transport` connects for a user agent.
    `namespaces` are those that the test has, `cleanup` is closed after its programs have ended, and `last_look` is
    called before anything is taken away.
    Cancelling a coroutine ends its wait; a write under way may or may not have taken effect.
    """

    __test__ = False

    mode: str
    client: Client
    clock: Clock
    rng: random.Random
    namespace: str
    options: ClusterOptions
    transport: Callable[[str], Awaitable[Transport]]
    server: Any = None
    kubeconfig: str = ""
    interceptors: list[Interceptor] = field(default_factory=list)
    crds: Sequence[Obj] = ()
    namespaces: list[str] = field(default_factory=list)
    cleanup: AsyncExitStack = field(default_factory=AsyncExitStack)
    last_look: Callable[[], Awaitable[None]] | None = None
    cleared: bool = field(init=False, default=False)
    kubelet: Kubelet = field(init=False)

    def __post_init__(self) -> None:
        self.namespaces.insert(0, self.namespace)
        self.kubelet = Kubelet(self.client, self.clock, self.namespace)

    @property
    def embedded(self) -> bool:
        """Whether the cluster runs in this process, in virtual time."""
        return self.mode == EMBEDDED

    async def connect(self, user_agent: str) -> Interceptor:
        """A connection of its own for a program under test; `cut_watches` and the other interferences reach it."""
        interceptor = Interceptor(await self.transport(user_agent), user_agent=user_agent)
        self.interceptors.append(interceptor)
        connected = CONNECTED.get()
        if connected is not None:
            connected(interceptor)
        return interceptor

    async def add_namespace(self, suffix: str, labels: Mapping[str, str] | None = None) -> str:
        """A further namespace, named after the test's and with these labels; it goes when the test's does.

        Returns its name. Raises AlreadyExists for a second one of that suffix.
        """
        name = f"{self.namespace}-{suffix}"
        await namespaces.add_namespace(self.client, name, self.namespace, labels)
        self.namespaces.append(name)
        return name

    async def webhook(
        self,
        kind: Kind,
        *,
        mutate: Handler | None = None,
        validate: Handler | None = None,
        operations: Sequence[str] = ("CREATE", "UPDATE"),
        **settings: Any,
    ) -> webhooks.TestWebhook:
        """Have the API server ask handlers of `lwskit.runtime.webhook` about a kind, from now to the test's end.

        `settings` are further fields of the webhook in its configuration: `failurePolicy`, `matchPolicy`, and so on.
        On the embedded cluster the handlers are called as functions. On a real one they are served over HTTPS on this
        machine, at the address in LWSKIT_WEBHOOK_HOST or on 127.0.0.1, and asked about the test's namespaces only.
        Raises ConfigurationError without a handler, and when a real API server does not reach them; Invalid for wrong
        settings; AlreadyExists the second time for one kind.
        """
        check_kind(kind, "cluster.webhook")
        return await webhooks.register(self, kind, mutate, validate, operations, settings)

    async def clear(self) -> None:
        """End the test: take a last look and, on a real cluster, let its namespaces go. Only the first call counts.

        The embedded cluster goes as a whole. Raises LeftBehind when a finalizer holds a namespace.
        """
        if self.cleared:
            return
        self.cleared = True
        if self.last_look is not None:
            await self.last_look()
        if not self.embedded:
            await namespaces.clear(self)

    def cut_watches(self) -> int:
        """Break the open watches of all programs under test; returns how many there were."""
        return sum(i.cut_watches() for i in self.interceptors)

    @contextmanager
    def hold_watches(self) -> Iterator[None]:
        """Inside the block the programs under test are told nothing; afterwards what has come in, in its order."""
        with ExitStack() as stack:
            for interceptor in self.interceptors:
                stack.enter_context(interceptor.hold_watches())
            yield

    @contextmanager
    def slow_watches(self, lag: Callable[[HttpRequest], float]) -> Iterator[None]:
        """Inside the block news reaches the programs under test late, by the seconds that `lag` tells for each."""
        with ExitStack() as stack:
            for interceptor in self.interceptors:
                stack.enter_context(interceptor.slow_watches(lag))
            yield

    @contextmanager
    def watches_down(self) -> Iterator[None]:
        """Inside the block the watches of the programs under test are broken and cannot be opened anew."""
        with ExitStack() as stack:
            for interceptor in self.interceptors:
                stack.enter_context(interceptor.watches_down())
            yield

    def observe(self, kind: Kind) -> Observer:
        """An Observer of a kind in this namespace, to be entered with `async with`."""
        check_kind(kind, "cluster.observe")
        return Observer(self.client, kind, self.namespace)

    async def eventually(
        self, fn: Callable[[], T | Awaitable[T]], timeout: float | None = None, interval: float = polling.INTERVAL
    ) -> T:
        """`polling.eventually` with this cluster's timeout."""
        __tracebackhide__ = True
        return await polling.eventually(fn, self.timeout if timeout is None else timeout, interval)

    async def consistently(
        self, fn: Callable[[], T | Awaitable[T]], duration: float | None = None, interval: float = polling.INTERVAL
    ) -> T:
        """`polling.consistently`, by default for as long as `settled` takes to believe that nothing changes."""
        __tracebackhide__ = True
        return await polling.consistently(fn, 2 * self.options.quiet if duration is None else duration, interval)

    @property
    def timeout(self) -> float:
        """How long `eventually` tries, in seconds of the cluster's time."""
        return self.options.timeout * (4 if self.embedded else 1)

    async def settled(self, *kinds: Kind) -> None:
        """Wait until no object of these kinds in the namespace has changed for a while. Raises AssertionError."""

        async def snapshot() -> list[tuple[str, str, str]]:
            return [
                (kind.plural, o["metadata"]["name"], o["metadata"]["resourceVersion"])
                for kind in kinds
                for o in await self.list(kind)
            ]

        await settled(snapshot, self.options.quiet, self.timeout)

    async def get(self, kind: Kind, name: str) -> Obj:
        """An object of the namespace. Raises NotFound."""
        __tracebackhide__ = True
        check_kind(kind, "cluster.get")
        return await self.client.get(kind, name, self.namespace)

    async def list(self, kind: Kind, selector: str | None = None) -> list[Obj]:
        """The objects of the namespace that a label selector matches, by name."""
        __tracebackhide__ = True
        check_kind(kind, "cluster.list")
        listed = await self.client.list(kind, self.namespace, label_selector=selector)
        return sorted(listed["items"], key=lambda o: o["metadata"]["name"])

    async def names(self, kind: Kind, selector: str | None = None) -> list[str]:
        """The names of the objects that a label selector matches, in order."""
        return [o["metadata"]["name"] for o in await self.list(kind, selector)]

    async def uids(self, kind: Kind, selector: str | None = None) -> dict[str, str]:
        """The UIDs by name of the objects that a label selector matches."""
        return {o["metadata"]["name"]: o["metadata"]["uid"] for o in await self.list(kind, selector)}

    async def create(self, kind: Kind, obj: Obj) -> Obj:
        """Create an object in the namespace; apiVersion, kind and namespace may be left out.

        Raises AlreadyExists, Invalid, Forbidden, and ConfigurationError for an object that names another namespace.
        """
        __tracebackhide__ = True
        check_kind(kind, "cluster.create")
        return await self.client.create(kind, body_of(kind, obj, self.namespace, "cluster.create"))

    async def patch(self, kind: Kind, name: str, body: Obj, *, subresource: str | None = None) -> Obj:
        """A merge patch of an object of the namespace. Raises NotFound, Invalid, Forbidden."""
        __tracebackhide__ = True
        check_kind(kind, "cluster.patch")
        return await self.client.patch(kind, name, body, self.namespace, subresource=subresource)

    async def delete(self, kind: Kind, name: str, propagation: str = "Background", uid: str | None = None) -> None:
        """Delete an object of the namespace. Raises NotFound, and Conflict for another UID."""
        __tracebackhide__ = True
        check_kind(kind, "cluster.delete")
        await self.client.delete(kind, name, self.namespace, propagation=propagation, uid=uid)

    async def gone(self, kind: Kind, name: str) -> bool:
        """Whether there is no object of that name."""
        try:
            await self.get(kind, name)
        except NotFound:
            return True
        return False


CONNECTED: ContextVar[Callable[[Interceptor], None] | None] = ContextVar("CONNECTED", default=None)
"""Who is told of connections that the running program makes: the process that it is, where it can die."""

Runnable = Callable[[TestCluster], AbstractAsyncContextManager[object]]
"""A program under test: given the cluster, it runs for the length of the block."""

Crds = Sequence[Obj]
