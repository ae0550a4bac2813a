"""Server-side apply."""

from __future__ import annotations

import orjson

from lwskit.embedded.backend import Backend
from lwskit.embedded.call import Call
from lwskit.embedded.patch import merge
from lwskit.runtime.objects import Obj


class Applier:
    """Applies."""

    def __init__(self, backend: Backend) -> None:
        self._b = backend

    def created(self, call: Call, config: Obj) -> Obj:
        """The object that an apply makes when there is none."""
        obj = self._b.codec.decode(call.resource, orjson.loads(orjson.dumps(config)), call.validation)
        obj["metadata"]["name"] = call.name
        if call.resource.namespaced:
            obj["metadata"]["namespace"] = call.namespace
        return obj

    def applied(self, call: Call, current: Obj, config: Obj) -> Obj:
        """The object after an apply."""
        new = merge(orjson.loads(orjson.dumps(current)), config)
        return self._b.codec.decode(call.resource, new, call.validation)
