"""Steps of a differential run: requests as data, with places for what only the server knows.

A step is JSON: `method`, `path` (with NAMESPACE), and, where needed, `query`, `type` (of the body), `accept`, `body`,
`changes`, `look`. With
`changes` the object at the path is read, changed and sent back (a list of [path of names, new value]; null removes).
`look` is the object that is read after the step. In a body, `$version`, `$stale` and `$uid` stand for the object's
latest resourceVersion, an earlier one, and its UID.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lwskit.runtime.client.transport import HttpRequest

Step = dict[str, Any]
NAMESPACE = "NAMESPACE"
UNKNOWN_VERSION, UNKNOWN_UID = "1", "00000000-0000-4000-8000-000000000000"


class Memory:
    """What one server has said of one object: its versions in order, and its UID."""

    def __init__(self) -> None:
        self.versions: list[str] = []
        self.uid = ""

    def learn(self, meta: Mapping[str, Any]) -> None:
        """Take in the metadata of an answer."""
        version = meta.get("resourceVersion")
        if version and version not in self.versions:
            self.versions.append(version)
        self.uid = meta.get("uid") or self.uid

    def resolve(self, value: Any) -> Any:
        """The value with the placeholders filled in."""
        if isinstance(value, dict):
            return {k: self.resolve(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.resolve(v) for v in value]
        match value:
            case "$version":
                return self.versions[-1] if self.versions else UNKNOWN_VERSION
            case "$stale":
                return self.versions[-2] if len(self.versions) > 1 else UNKNOWN_VERSION
            case "$uid":
                return self.uid or UNKNOWN_UID
        return value


def request(step: Step, namespace: str, memory: Memory, body: Any = None) -> HttpRequest:
    """The request of a step; `body` replaces the step's own."""
    given = body if body is not None else memory.resolve(step.get("body"))
    raw = None
    if given is not None:
        raw = (given if isinstance(given, str) else json.dumps(given)).replace(NAMESPACE, namespace).encode()
    headers = {"accept": step.get("accept", "application/json"), "user-agent": step.get("agent", "differential/1")}
    if raw is not None:
        headers["content-type"] = step.get("type", "application/json")
    path = step["path"].replace(NAMESPACE, namespace)
    query = tuple((k, memory.resolve(v)) for k, v in step.get("query", {}).items())
    return HttpRequest(step["method"], path, query, headers, raw)


def change(obj: dict[str, Any], changes: Sequence[Sequence[Any]], memory: Memory) -> None:
    """Make the changes of a step in an object, in place; what does not fit is passed over."""
    for path, value in changes:
        target: Any = obj
        for name in path[:-1]:
            below = _step(target, name)
            if below is None and isinstance(target, dict) and value is not None:
                below = target[name] = {}
            target = below
        _set(target, path[-1], memory.resolve(value))


def _step(target: Any, name: Any) -> Any:
    if isinstance(target, dict):
        return target.get(name)
    if isinstance(target, list) and isinstance(name, int) and name < len(target):
        return target[name]
    return None


def _set(target: Any, name: Any, value: Any) -> None:
    if isinstance(target, dict):
        if value is None:
            target.pop(name, None)
        elif name == "$age":
            # Entries of managed fields as if they were old, so that a new time shows.
            for entry in target.get("managedFields") or ():
                if "time" in entry:
                    entry["time"] = value
        else:
            target[name] = value
    elif isinstance(target, list) and isinstance(name, int):
        if value is None:
            del target[name : name + 1]
        elif name < len(target):
            target[name] = value
        else:
            target.append(value)
