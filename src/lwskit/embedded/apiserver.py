"""The API server: from a request to an answer, over one store."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping

import orjson

from lwskit.embedded import discovery, protobuf, subresources
from lwskit.embedded.admission import Admission, Handler
from lwskit.embedded.backend import Backend
from lwskit.embedded.call import Call, UnknownPathError, read_call
from lwskit.embedded.codec import Codec
from lwskit.embedded.defaults import Defaults
from lwskit.embedded.failures import status_body
from lwskit.embedded.formats import as_yaml, choose
from lwskit.embedded.managedfields import FieldManager
from lwskit.embedded.patching import Patcher
from lwskit.embedded.reads import Reader
from lwskit.embedded.removal import Remover
from lwskit.embedded.resources import Registry
from lwskit.embedded.store import Store
from lwskit.embedded.writes import Writer
from lwskit.runtime.client.transport import HttpRequest, HttpResponse, StreamResponse
from lwskit.runtime.clock import Clock, RealClock, real_random
from lwskit.runtime.errors import ApiError
from lwskit.runtime.objects import Obj
from lwskit.runtime.typed import TypeTable, load_resource

BODY_LIMIT = 3 * 1024 * 1024
"""Bytes that a request's body may have."""

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITY_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class ApiServer:
    """A Kubernetes API server in this process.

    `store` is its database; `types` overrides the table of built-in types. Requests are answered by `handle`, watches
    by `open_watch`; neither opens a socket.
    """

    def __init__(
        self,
        store: Store | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        *,
        types: TypeTable | None = None,
        admission: Admission | None = None,
    ) -> None:
        types = types or load_resource("lwskit.embedded", "builtin-types.json")
        codec = Codec(types, Defaults(types))
        clock, store, rng = clock or RealClock(), store or Store(), rng or real_random()
        registry = Registry()
        self.backend = Backend(
            store=store,
            registry=registry,
            codec=codec,
            clock=clock,
            rng=rng,
            admission=admission or Admission(store, registry, rng),
            fields=FieldManager(codec, clock),
        )
        self.store = store
        self._reader = Reader(self.backend)
        self._writer = Writer(self.backend)
        self._patcher = Patcher(self.backend, self._writer)
        self._remover = Remover(self.backend)
        self._subresources = subresources.Subresources(self.backend, self._writer, self._patcher, self._remover)
        self._discovery = discovery.Discovery(self.backend)
        self._protobuf = protobuf.Decoder(types)
        self._begin()

    def _begin(self) -> None:
        """Make the objects that every cluster has."""
        for name in _NAMESPACES:
            self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name, value in _PRIORITY_CLASSES.items():
            self.put(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                }
            )
        self.put(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {
                    "name": "kubernetes",
                    "namespace": "default",
                    "labels": {"component": "apiserver", "provider": "kubernetes"},
                },
                "spec": {
                    "clusterIP": "10.96.0.1",
                    "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
                },
            }
        )

    def put(self, obj: Obj) -> Obj:
        """Create an object without asking webhooks; for what is there before the first request.

        Raises KeyError for a kind that is not served and the ApiError of a refusal.
        """
        group, _, version = obj["apiVersion"].rpartition("/")
        resource = self.backend.registry.by_kind(group, version, obj["kind"])
        if resource is None:
            raise KeyError(f"{obj['apiVersion']} {obj['kind']} is not served")
        namespace = obj["metadata"].get("namespace", "")
        body = orjson.dumps(obj)
        path = resource.as_kind().path(namespace or None)
        request = HttpRequest("POST", path, (), {"user-agent": "kube-apiserver/embedded"}, body)
        call = Call(request, "system:apiserver", "create", resource, namespace, "", "", {})
        coroutine = self._writer.create(call)
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value
        coroutine.close()
        raise RuntimeError("objects that a webhook must see cannot be put directly")

    def register_admission(self, target: str, handler: Handler) -> None:
        """Answer the webhooks whose URL or service is `target` by a function from AdmissionReview to AdmissionReview.

        `target` is `clientConfig.url` word for word, for which any text will do, such as `inprocess:///mutate`; or
        `namespace/name/path` of `clientConfig.service`. `partial(respond, handler)` of `lwskit.runtime.webhook` makes
        such a function of a handler. In tests, `TestCluster.webhook` does all of it.
        """
        self.backend.admission.register(target, handler)

    async def close(self) -> None:
        """Close connections to webhook servers and end open watches; the objects stay readable."""
        self.store.close_watches()
        await self.backend.admission.close()

    async def handle(self, request: HttpRequest, user: str = "admin") -> HttpResponse:
        """Answer any request but a watch. Never raises an ApiError: refusals are answers.

        Awaits nothing but webhooks; when cancelled there, nothing was stored.
        """
        return as_yaml(request.headers.get("accept", ""), await self._handle(request, user))

    async def _handle(self, request: HttpRequest, user: str) -> HttpResponse:
        try:
            if request.body is not None and len(request.body) > BODY_LIMIT:
                raise ApiError("limit exceeded", code=413, reason="RequestEntityTooLarge", details={})
            found = self._discovery.answer(request)
            if found is not None:
                return found
            call = read_call(request, user, self.backend.registry)
            call.request = self._as_json(request)
            if call.verb == "watch":
                stream = self._reader.watch(call)
                return HttpResponse(200, await stream.read(), stream.headers)
            try:
                return await self._dispatch(call)
            except ApiError as e:
                answer = refusal(e)
                return HttpResponse(answer.status, answer.body, {**answer.headers, **warning_headers(call)})
        except UnknownPathError:
            return HttpResponse(404, b"404 page not found\n", {"content-type": "text/plain; charset=utf-8"})
        except ApiError as e:
            return refusal(e)

    def _as_json(self, request: HttpRequest) -> HttpRequest:
        """The request with a binary body turned into JSON. Raises InvalidRequest."""
        content_type = request.headers.get("content-type", "")
        if not request.body or not content_type.startswith(protobuf.CONTENT_TYPE):
            return request
        headers = {**request.headers, "content-type": "application/json"}
        return HttpRequest(request.method, request.path, request.query, headers, self._protobuf.body(request.body))

    def open_watch(
        self, request: HttpRequest, user: str = "admin", idle_timeout: float | None = None
    ) -> StreamResponse:
        """Answer a watch, or refuse it with a Status as body. The caller closes the stream by leaving `chunks`."""
        try:
            call = read_call(request, user, self.backend.registry)
            if call.verb != "watch":
                raise ApiError("not a watch", code=400, reason="BadRequest")
            return self._reader.watch(call, idle_timeout)
        except UnknownPathError:
            return Complete(HttpResponse(404, b"404 page not found\n", {"content-type": "text/plain; charset=utf-8"}))
        except ApiError as e:
            return Complete(refusal(e))

    def is_watch(self, request: HttpRequest) -> bool:
        """Whether a request asks for a stream."""
        if request.method != "GET":
            return False
        if "/watch/" not in request.path and not any(k == "watch" for k, _ in request.query):
            return False
        try:
            return read_call(request, "", self.backend.registry).verb == "watch"
        except (ApiError, UnknownPathError):
            return False

    async def _dispatch(self, call: Call) -> HttpResponse:
        code = 200
        if call.subresource:
            code, obj = await self._subresources.answer(call)
        elif not call.resource.stored:
            code, obj = self._subresources.review(call)
        else:
            match call.verb:
                case "get":
                    body, content_type = self._reader.get(call)
                    return HttpResponse(200, body, {"content-type": content_type})
                case "list":
                    body, content_type = self._reader.list(call)
                    return HttpResponse(200, body, {"content-type": content_type})
                case "create":
                    code, obj = 201, await self._writer.create(call)
                case "update":
                    obj, created = await self._writer.update(call)
                    code = 201 if created else 200
                case "patch":
                    obj, created = await self._patcher.patch(call)
                    code = 201 if created else 200
                case "delete":
                    code, obj = await self._remover.delete(call)
                case _:
                    obj = await self._remover.delete_collection(call)
        return self._answer(call, code, obj)

    def _answer(self, call: Call, code: int, obj: Obj) -> HttpResponse:
        content_type, body = "application/json", b""
        header = call.request.headers.get("accept", "")
        if "as=" in header and obj.get("kind") == call.resource.kind:
            form = choose(header, call.resource, self.backend.codec, self.backend.clock, call.params)
            content_type, body = form.content_type, form.one(obj)
        else:
            body = orjson.dumps(obj)
        return HttpResponse(code, body, {"content-type": content_type, **warning_headers(call)})


def warning_headers(call: Call) -> dict[str, str]:
    """The header that tells the client what was noticed, if anything was; each warning once."""
    quoted = [w.replace("\\", "\\\\").replace('"', '\\"') for w in dict.fromkeys(call.warnings)]
    return {"warning": ", ".join(f'299 - "{w}"' for w in quoted)} if quoted else {}


class Complete:
    """A whole answer where a stream was asked for."""

    def __init__(self, response: HttpResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body in one piece."""
        yield self._response.body

    async def read(self) -> bytes:
        """The body."""
        return self._response.body

    def close(self) -> None:
        """Nothing to close."""


def refusal(error: ApiError) -> HttpResponse:
    """The answer that a refusal is."""
    body = status_body(error)
    token = getattr(error, "continue_token", None)
    if token:
        body["metadata"] = {"continue": token}
    headers = {"content-type": "application/json"}
    seconds = (error.details or {}).get("retryAfterSeconds")
    if seconds:
        headers["retry-after"] = str(seconds)
    return HttpResponse(error.code, orjson.dumps(body), headers)
