"""The recorded cases, as tests read them."""

from __future__ import annotations

import copy
from typing import Any

from lwskit.runtime.objects import Obj


def patched(base: Obj, operations: list[dict[str, Any]]) -> Obj:
    """A copy of an object with the operations of a case, replace and remove.

    Those of JSON patch are stricter: here a field that is replaced or removed need not be there.
    """
    out = copy.deepcopy(base)
    for operation in operations:
        *parents, last = operation["path"].strip("/").split("/")
        target: Any = out
        for parent in parents:
            target = target[int(parent) if isinstance(target, list) else parent]
        if operation["op"] == "remove":
            target.pop(last, None)
        else:
            target[last] = operation["value"]
    return out
