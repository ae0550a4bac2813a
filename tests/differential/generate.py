"""Random steps from a seed: every verb, patch type and subresource, by several managers, some of them bad or stale."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.differential import faults
from tests.differential.kinds import ALL, OWNER, Palette, Path, Tested, Values, copy, filled, pick, put
from tests.differential.steps import Step

MANAGERS = ("alice", "bob", "carol")
NAMES = ("a", "b")
MERGE, STRATEGIC, JSON_PATCH, APPLY = (
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)
SPOILED = 0.12
"""The share of bodies that get something bad."""
OLD = ("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z")
FAULTS = {kind: faults.palette(kind) for kind in ("Pod", "StatefulSet")}
"""What is wrong with pods and templates, besides the bad values that every kind has."""
BODY_TYPES = (
    "application/xml",
    "text/plain",
    "application/json; charset=utf-8",
    "APPLICATION/JSON",
    "application/json;a",
    "application/yaml",
    "application/cbor",
)
"""What a request may say that its body is; some of it is so, or near enough."""
ANSWER_TYPES = (
    "application/xml",
    "text/*",
    "*/*",
    "application/*",
    "application/xml;q=0.9, application/json;q=0.1",
    "application/json;as=Other;v=v1;g=meta.k8s.io",
    "application/json;stream=other",
    "nonsense",
    "application/json;pretty=0",
)
"""What a client may want to read; none of it is a form that is compared elsewhere."""
BAD_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("gracePeriodSeconds", "1"),
    ("gracePeriodSeconds", 1.5),
    ("gracePeriodSeconds", True),
    ("propagationPolicy", 1),
    ("propagationPolicy", ["Orphan"]),
    ("preconditions", "x"),
    ("preconditions", {"uid": 1}),
    ("preconditions", {"resourceVersion": 1}),
    ("orphanDependents", "true"),
    ("dryRun", "All"),
    ("dryRun", [1]),
    ("dryRun", ["Other"]),
    ("unknown", 1),
    ("kind", "Pod"),
    ("kind", 1),
    ("apiVersion", "other/v1"),
)
"""Options of a deletion that are no such options, most of them."""
BAD_LISTS = (
    ("limit", "a"),
    ("limit", ""),
    ("limit", "-1"),
    ("limit", "99999999999999999999"),
    ("timeoutSeconds", "1.5"),
    ("continue", "x"),
    ("continue", "e30"),
    ("resourceVersion", "x"),
    ("resourceVersionMatch", "x"),
    ("sendInitialEvents", "true"),
    ("fieldSelector", "="),
    ("fieldSelector", "metadata.name=a="),
    ("fieldSelector", "metadata.name=a\\,b"),
)
"""Parameters of a list that are refused, or that are odd."""


class Generator:
    """Makes the steps of one sequence. `kinds` are those to use, by name; all if empty."""

    def __init__(self, rng: random.Random, kinds: Sequence[str] = ()) -> None:
        self._rng = rng
        self._kinds = [ALL[k] for k in kinds] or list(ALL.values())
        self._makers: list[tuple[int, Callable[[Tested, str], Step]]] = [
            (14, self._create),
            (14, self._edit),
            (6, self._replace),
            (10, self._json_patch),
            (10, lambda t, n: self._patch(t, n, MERGE)),
            (11, lambda t, n: self._patch(t, n, STRATEGIC)),
            (22, self._apply),
            (10, self._status),
            (7, self._scale),
            (7, self._delete),
            (4, self._loosen),
            (2, self._delete_collection),
            (3, self._read),
        ]

    def steps(self, count: int) -> list[Step]:
        """That many steps; the first ones make objects to work on."""
        return [self._first(t, n) for t in self._kinds for n in NAMES][:count] + [
            self._step() for _ in range(count - len(self._kinds) * len(NAMES))
        ]

    def _first(self, tested: Tested, name: str) -> Step:
        return self._create(tested, name) if self._rng.random() < 0.5 else self._apply(tested, name)

    def _step(self) -> Step:
        rng = self._rng
        tested = rng.choice(self._kinds)
        name = rng.choice(NAMES)
        weights = [w for w, _ in self._makers]
        make = rng.choices([m for _, m in self._makers], weights)[0]
        return self._retyped(make(tested, name))

    def _retyped(self, step: Step) -> Step:
        """Now and then the step with another type of body, or with another type of answer wanted."""
        if self._chance(0.015) and ("body" in step or "changes" in step):
            step["type"] = self._rng.choice(BODY_TYPES)
        if self._chance(0.015):
            step["accept"] = self._rng.choice(ANSWER_TYPES)
        return step

    # -- parts of requests -------------------------------------------------------------------------------------------

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def _query(self, **more: str) -> dict[str, Any]:
        query: dict[str, str] = {}
        if not self._chance(0.08):
            query["fieldManager"] = self._manager()
        if self._chance(0.06):
            query["dryRun"] = "All"
        if self._chance(0.1):
            query["fieldValidation"] = self._rng.choice(("Strict", "Ignore", "Warn", "Strict"))
        if self._chance(0.015):
            query[self._rng.choice(("dryRun", "fieldValidation"))] = "Other"
        return query | more

    def _manager(self) -> str:
        if self._chance(0.04):
            return "kubectl"
        # Many others now and then, so that the oldest ones of an object are folded into one.
        return f"other-{self._rng.randint(1, 14)}" if self._chance(0.1) else self._rng.choice(MANAGERS)

    def _made(self, method: str, tested: Tested, name: str, path: str, **more: Any) -> Step:
        return {"method": method, "path": path, **more, "look": tested.path(name)}

    def _body(self, tested: Tested, name: str, most: int, *, base: bool = True) -> dict[str, Any]:
        rng = self._rng
        out = tested.whole(name) if base else {}
        for path, values in rng.choices(tested.palette, k=rng.randint(0 if base else 1, most)):
            put(out, path, pick(rng, values))
        return out

    def _spoil(self, tested: Tested, body: dict[str, Any]) -> None:
        if self._chance(SPOILED):
            path, values = self._fault(tested)
            put(body, path, pick(self._rng, values))

    def _fault(self, tested: Tested) -> tuple[Path, Values]:
        more = FAULTS.get(tested.kind)
        return self._rng.choice(more if more and self._chance(0.5) else tested.bad)

    # -- whole objects -----------------------------------------------------------------------------------------------

    def _create(self, tested: Tested, name: str) -> Step:
        body = self._body(tested, name, 5)
        if tested.status and self._chance(0.1):
            put(body, *self._one(tested.status))
        if self._chance(0.04):
            body["metadata"]["generateName"] = "gen-"
            if self._chance(0.7):
                del body["metadata"]["name"]
        self._spoil(tested, body)
        return self._made("POST", tested, name, tested.collection, query=self._query(), body=body)

    def _one(self, palette: Palette) -> tuple[Path, Any]:
        path, values = self._rng.choice(palette)
        return path, pick(self._rng, values)

    def _replace(self, tested: Tested, name: str) -> Step:
        body = self._body(tested, name, 5)
        if self._chance(0.6):
            body["metadata"]["resourceVersion"] = "$version"
        self._spoil(tested, body)
        return self._made("PUT", tested, name, tested.path(name), query=self._query(), body=body)

    def _edit(self, tested: Tested, name: str) -> Step:
        changes = self._changes(tested, tested.palette)
        return self._made("PUT", tested, name, tested.path(name), query=self._query(), changes=changes)

    def _changes(self, tested: Tested, palette: Palette) -> list[Any]:
        rng = self._rng
        found: list[Any] = []
        for _ in range(rng.randint(0, 3)):
            path, value = self._one(palette)
            found.append([list(path), None if self._chance(0.2) else value])
        if self._chance(0.2):
            found.append([["metadata", "$age"], rng.choice(OLD)])
        if self._chance(SPOILED):
            path, values = self._fault(tested)
            found.append([list(path), pick(self._rng, values)])
        if self._chance(0.1):
            found.append([["metadata", "resourceVersion"], rng.choice((None, "$stale"))])
        if self._chance(0.05):
            found.append([["metadata", "managedFields"], rng.choice((None, [], [{}]))])
        return found

    # -- patches -----------------------------------------------------------------------------------------------------

    def _nulls(self, tested: Tested, body: dict[str, Any], share: float) -> None:
        if self._chance(share):
            # Nothing and an empty map are the same in the embedded server's built-in objects.
            fields = [p for p, _ in tested.palette if p[0] != "binaryData"]
            path = self._rng.choice(fields)
            put(body, path[: self._rng.randint(2, max(2, len(path)))], None)

    def _patch(self, tested: Tested, name: str, kind: str) -> Step:
        rng = self._rng
        body = self._body(tested, name, 3, base=False)
        self._nulls(tested, body, 0.25)
        if kind == STRATEGIC:
            self._direct(tested, body)
        if self._chance(0.08):
            put(body, ("metadata", "resourceVersion"), rng.choice(("$version", "$version", "$stale")))
        self._spoil(tested, body)
        path = tested.path(name)
        return self._made("PATCH", tested, name, path, query=self._query(), type=kind, body=body)

    def _direct(self, tested: Tested, body: dict[str, Any]) -> None:
        """Put strategic directives into a patch."""
        rng = self._rng
        if self._chance(0.15):
            put(body, ("metadata", "$setElementOrder/finalizers"), ["example.com/two", "example.com/one"])
        # In which order a list and what to delete from it are merged is left to chance in the real server.
        if self._chance(0.25) and "finalizers" not in body.get("metadata", {}):
            put(body, ("metadata", "$deleteFromPrimitiveList/finalizers"), ["example.com/one"])
        if self._chance(0.1):
            put(body, ("metadata", "ownerReferences"), [{"$patch": "delete", "uid": OWNER["uid"]}])
        if self._chance(0.05):
            put(body, ("metadata", "labels", "$patch"), rng.choice(("replace", "delete", "other")))
        if tested.kind not in ("Pod", "StatefulSet", "Service"):
            return
        if tested.kind == "Service":
            choices: list[tuple[Path, Any]] = [
                (("spec", "ports"), [{"$patch": "delete", "port": 80}]),
                (("spec", "ports"), [{"$patch": "replace"}, {"port": 90, "name": "z"}]),
                (("spec", "ports"), [{"port": 80, "name": "n"}, {"port": 81, "name": "o"}]),
                (("spec", "$setElementOrder/ports"), [{"port": 81}, {"port": 80}]),
                (("spec", "selector"), {"$patch": "replace", "n": "m"}),
                (("spec", "$retainKeys"), ["type", "ports", "clusterIP"]),
                (("spec", "ports"), [{"name": "without"}]),
            ]
        else:
            at: Path = ("spec",) if tested.kind == "Pod" else ("spec", "template", "spec")
            choices = [
                ((*at, "containers"), [{"$patch": "delete", "name": "d"}]),
                ((*at, "containers"), [{"name": "c", "image": "i:3"}]),
                ((*at, "containers"), [{"name": "c", "env": [{"name": "A", "$patch": "delete"}]}]),
                ((*at, "containers"), [{"name": "c", "ports": [{"containerPort": 80, "$patch": "delete"}]}]),
                ((*at, "containers"), [{"name": "c", "env": [{"name": "B", "valueFrom": None, "value": "9"}]}]),
                ((*at, "containers"), [{"name": "c", "$retainKeys": ["name", "image"], "image": "i:4"}]),
                ((*at, "containers"), [{"$patch": "replace"}, {"name": "c", "image": "i:5"}]),
                ((*at, "$setElementOrder/containers"), [{"name": "d"}, {"name": "c"}]),
                ((*at, "volumes"), [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]),
                ((*at, "volumes"), [{"name": "v", "$patch": "delete"}]),
                ((*at, "containers"), [{"image": "without"}]),
                ((*at, "nodeSelector"), {"$patch": "replace", "z": "z"}),
                ((*at, "imagePullSecrets"), [{"name": "s", "$patch": "delete"}]),
            ]
        if self._chance(0.35):
            path, value = rng.choice(choices)
            put(body, path, copy(value))

    def _json_patch(self, tested: Tested, name: str) -> Step:
        rng = self._rng
        operations: list[Any] = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            palette = tested.bad if self._chance(SPOILED) else tested.palette
            path, value = self._one(palette)
            operations.append(self._operation(path, value))
        if self._chance(0.3):
            make = {"op": "add", "path": f"/{tested.palette[0][0][0]}/labels", "value": {}}
            operations.insert(0, make)
        body: Any = operations
        if self._chance(0.02):
            body = rng.choice(
                ({"op": "add"}, [{"path": "/x"}], [{"op": "add"}], ["x"], [{"op": "other", "path": "/a"}])
            )
        path_ = tested.path(name)
        return self._made("PATCH", tested, name, path_, query=self._query(), type=JSON_PATCH, body=body)

    def _operation(self, path: Path, value: Any) -> dict[str, Any]:
        rng = self._rng
        pointer = "/" + "/".join(str(p).replace("~", "~0").replace("/", "~1") for p in path)
        op = rng.choice(("add", "add", "add", "replace", "replace", "remove", "test", "copy", "move"))
        if op in ("add", "replace", "test"):
            if isinstance(value, list) and value and self._chance(0.5):
                place = rng.choice(("0", "-", "1", "9"))
                return {"op": op, "path": f"{pointer}/{place}", "value": value[0]}
            return {"op": op, "path": pointer, "value": value}
        if op == "remove":
            return {"op": op, "path": rng.choice((pointer, pointer, f"{pointer}/0"))}
        target = rng.choice((pointer, "/metadata/labels/copied", "/metadata/annotations/copied"))
        source = rng.choice((pointer, "/metadata/labels/tier", "/metadata/name"))
        return {"op": op, "from": source, "path": target}

    # -- apply -------------------------------------------------------------------------------------------------------

    def _apply(self, tested: Tested, name: str) -> Step:
        body: dict[str, Any] = {
            "apiVersion": tested.api_version,
            "kind": tested.kind,
            "metadata": {"name": name},
        }
        if self._chance(0.5):
            body = tested.whole(name)
        for path, values in self._rng.choices(tested.palette, k=self._rng.randint(0, 4)):
            put(body, path, pick(self._rng, values))
        self._nulls(tested, body, 0.05)
        self._spoil(tested, body)
        path_ = tested.path(name)
        return self._made("PATCH", tested, name, path_, query=self._force(), type=APPLY, body=body)

    def _force(self) -> dict[str, Any]:
        query = self._query()
        if self._chance(0.45):
            query["force"] = "true"
        return query

    # -- subresources ------------------------------------------------------------------------------------------------

    def _status(self, tested: Tested, name: str) -> Step:
        rng = self._rng
        if not tested.status and self._chance(0.9):
            return self._edit(tested, name)
        palette = tested.status or tested.palette
        if self._chance(0.25):
            palette = (*palette, *palette, *tested.palette)
        path = f"{tested.path(name)}/status"
        kind = rng.choice(("get", "edit", "edit", MERGE, STRATEGIC, JSON_PATCH, APPLY, APPLY))
        if kind == "get":
            return self._made("GET", tested, name, path)
        if kind == "edit":
            changes = self._changes(tested, palette)
            return self._made("PUT", tested, name, path, query=self._query(), changes=changes)
        if kind == JSON_PATCH:
            body: Any = [self._operation(*self._one(palette)) for _ in range(rng.randint(1, 2))]
            return self._made("PATCH", tested, name, path, query=self._query(), type=kind, body=body)
        body = filled(rng, palette, rng.randint(1, 3))
        if kind == APPLY:
            meta = {**(body.get("metadata") or {}), "name": name}
            body = {"apiVersion": tested.api_version, "kind": tested.kind, **body, "metadata": meta}
        elif self._chance(0.15):
            put(body, rng.choice(palette)[0], None)
        self._spoil(tested, body)
        query = self._force() if kind == APPLY else self._query()
        return self._made("PATCH", tested, name, path, query=query, type=kind, body=body)

    def _scale(self, tested: Tested, name: str) -> Step:
        rng = self._rng
        if not tested.scale and self._chance(0.97):
            return self._edit(tested, name)
        path = f"{tested.path(name)}/scale"
        wanted: Any = rng.choice((0, 1, 2, 3, 4, 5, 0, 1, 2, 3, -1, 11, "1", None))
        kind = rng.choice(("get", "edit", "edit", MERGE, STRATEGIC, JSON_PATCH, APPLY))
        query = self._query()
        if kind == "get":
            return self._made("GET", tested, name, path)
        if kind == "edit":
            changes = [[["spec", "replicas"], wanted]]
            if self._chance(0.2):
                changes.append([["metadata", "resourceVersion"], rng.choice((None, "$stale"))])
            if self._chance(0.1):
                changes.append([["metadata", "uid"], "00000000-0000-4000-8000-00000000000c"])
            if self._chance(0.1):
                changes.append([["status", "replicas"], 8])
            return self._made("PUT", tested, name, path, query=query, changes=changes)
        body: Any = {"spec": {"replicas": wanted}}
        if kind == JSON_PATCH:
            body = [{"op": rng.choice(("replace", "add", "test")), "path": "/spec/replicas", "value": wanted}]
        elif kind == APPLY:
            body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, **body}
            query = self._force()
        return self._made("PATCH", tested, name, path, query=query, type=kind, body=body)

    # -- going away --------------------------------------------------------------------------------------------------

    def _delete(self, tested: Tested, name: str) -> Step:
        rng = self._rng
        body: dict[str, Any] = {}
        query: dict[str, str] = {}
        if self._chance(0.5):
            body["propagationPolicy"] = rng.choice(("Background", "Foreground", "Orphan", "Orphan", "Other"))
        if self._chance(0.25):
            given = {
                "uid": ("$uid", "$uid", "00000000-0000-4000-8000-00000000000a"),
                "resourceVersion": ("$version", "$stale"),
            }
            body["preconditions"] = {k: rng.choice(v) for k, v in given.items() if self._chance(0.6)}
        if self._chance(0.2):
            body["gracePeriodSeconds"] = rng.choice((0, 0, 5, 60, -1))
        if self._chance(0.08):
            body["orphanDependents"] = rng.choice((True, False))
        if self._chance(0.1):
            body["dryRun"] = ["All"]
        if self._chance(0.06):
            query = {
                rng.choice(("propagationPolicy", "gracePeriodSeconds", "dryRun", "orphanDependents")): rng.choice(
                    ("Orphan", "0", "All", "", "false")
                )
            }
        if body and self._chance(0.5):
            body |= {"kind": "DeleteOptions", "apiVersion": rng.choice(("v1", "meta.k8s.io/v1"))}
        if self._chance(0.12):
            option, value = rng.choice(BAD_OPTIONS)
            body[option] = copy(value)
        more: dict[str, Any] = {"body": body} if body else {}
        return self._made("DELETE", tested, name, tested.path(name), query=query, **more)

    def _loosen(self, tested: Tested, name: str) -> Step:
        """Take the finalizers off, so that what is being deleted goes."""
        body = {"metadata": {"finalizers": None}}
        if self._chance(0.3):
            body = {
                "metadata": {"finalizers": self._rng.choice((["example.com/two"], ["orphan"], ["example.com/new"]))}
            }
        path = tested.path(name)
        return self._made("PATCH", tested, name, path, query=self._query(), type=MERGE, body=body)

    def _delete_collection(self, tested: Tested, name: str) -> Step:
        query = {"labelSelector": self._rng.choice(("tier=a", "tier!=a", "app", "tier in (b)"))}
        if self._chance(0.2):
            query["fieldSelector"] = "metadata.name=a"
        if self._chance(0.2):
            query |= (self._rng.choice(BAD_LISTS),)
        more: dict[str, Any] = {"body": dict((self._rng.choice(BAD_OPTIONS),))} if self._chance(0.2) else {}
        return self._made("DELETE", tested, name, tested.collection, query=query, **more)

    def _read(self, tested: Tested, name: str) -> Step:
        rng = self._rng
        if self._chance(0.3):
            return self._made("GET", tested, name, tested.path(name))
        query: dict[str, str] = {}
        if self._chance(0.2):
            query |= (rng.choice(BAD_LISTS),)
        if self._chance(0.7):
            query["labelSelector"] = rng.choice(("tier=a", "tier notin (a)", "!app", "tier", "app=", "=", "a in (b"))
        if self._chance(0.3):
            query["fieldSelector"] = rng.choice(
                ("metadata.name=b", "metadata.namespace!=x", "spec.x=1", "status.phase=Running")
            )
        return self._made("GET", tested, name, tested.collection, query=query)
