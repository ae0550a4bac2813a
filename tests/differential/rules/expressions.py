"""Single expressions: what each of them is on one object, and what is said of those that do not compile.

`expressions.txt` has one expression a line, `refused.txt` rules most of which are refused; `\\n` there is a line break.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.differential.rules.ruled import GROUP, RULES, VERSION, definition, fields
from tests.differential.steps import NAMESPACE, Step

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOGETHER = 12
"""Rules of one field: each field has the same value."""
_FOLDER = Path(__file__).parent
_WHOLE: dict[str, Any] = {"type": "integer"}


def _text(length: int, **more: Any) -> dict[str, Any]:
    return {"type": "string", "maxLength": length, **more}


def _list(items: dict[str, Any], kind: str = "atomic", **more: Any) -> dict[str, Any]:
    return {"type": "array", "maxItems": 3, "x-kubernetes-list-type": kind, "items": items, **more}


SCHEMA = fields(
    a=_WHOLE,
    d={"type": "number"},
    b={"type": "boolean"},
    s=_text(9),
    l=_list(_WHOLE),
    set=_list(_text(3), "set"),
    o=fields(x=_text(5), y=_text(5, nullable=True)),
    m={"type": "object", "maxProperties": 3, "additionalProperties": _text(5)},
    e={"x-kubernetes-int-or-string": True, "maxLength": 9},
    f={"x-kubernetes-int-or-string": True, "maxLength": 9},
    names=_list(
        {"required": ["name"], **fields(name=_text(3), v=_WHOLE)}, "map", **{"x-kubernetes-list-map-keys": ["name"]}
    ),
    when=_text(30, format="date-time"),
    day=_text(10, format="date"),
    dur=_text(9, format="duration"),
    by=_text(9, format="byte"),
    free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    any={"x-kubernetes-preserve-unknown-fields": True},
    n=_text(3, nullable=True),
    namespace=_text(3),
    zz=_text(3),
    nl=_list(_text(3, nullable=True)),
    **{"a-b": _text(3)},
)
VALUE: dict[str, Any] = {
    "a": 3,
    "d": 1.5,
    "b": True,
    "s": "hello",
    "l": [3, 1, 2],
    "set": ["a", "b"],
    "o": {"x": "p"},
    "m": {"k": "v", "k2": "w"},
    "e": 5,
    "f": "50%",
    "names": [{"name": "x", "v": 1}, {"name": "y"}],
    "when": "2020-02-03T04:05:06.789+02:00",
    "day": "2021-03-04",
    "dur": "1h30m",
    "by": "aGk=",
    "free": {"u": 1},
    "n": None,
    "a-b": "q",
    "namespace": "ns",
    "nl": ["a", None],
}


def _lines(name: str) -> list[str]:
    return [line.replace("\\n", "\n") for line in (_FOLDER / name).read_text().split("\n") if line]


def _told(expression: str) -> dict[str, str]:
    """A rule that is broken by any value, and tells it."""
    told = f"'%s'.format([dyn({expression})])"
    return {"rule": f"{told} == 'never'", "messageExpression": told, "message": expression}


def _groups() -> dict[str, list[str]]:
    lines = [line for line in (_FOLDER / "expressions.txt").read_text().split("\n") if line]
    return {f"p{i // TOGETHER}": lines[i : i + TOGETHER] for i in range(0, len(lines), TOGETHER)}


def crds() -> list[dict[str, Any]]:
    """The definitions whose objects tell what expressions are."""
    groups = {name: {**SCHEMA, RULES: [_told(e) for e in found]} for name, found in _groups().items()}
    return [definition("Expression", "expressions", fields(spec=fields(**groups)))]


def steps() -> Iterator[Step]:
    """Requests that tell of every expression."""
    yield {
        "method": "POST",
        "path": f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/expressions",
        "query": {"dryRun": "All"},
        "body": {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "Expression",
            "metadata": {"name": "x"},
            "spec": dict.fromkeys(_groups(), VALUE),
        },
    }
    rules = [{"rule": line, "message": "m"} for line in _lines("refused.txt")]
    for number, broken in enumerate(({**SCHEMA, RULES: rules}, _costly(), *_broken())):
        body = definition("Refused", "refuseds", fields(spec=broken))
        yield {"method": "POST", "path": CRDS, "query": {"dryRun": "All"}, "body": body, "number": number}


def _costly() -> dict[str, Any]:
    """Rules on values with and without limits of their own, of which there can be so many that all cost too much."""
    rules = [{"rule": line} for line in _lines("costs.txt")]
    fields_of = {}
    for name, schema in (("limited", SCHEMA), ("unlimited", _unlimited(SCHEMA))):
        for often in (1000, 1_000_000):
            values = {**schema, RULES: rules}
            made = {"type": "object", "maxProperties": often, "additionalProperties": values}
            fields_of[f"{name}{often}"] = made
    return fields(**fields_of)


def _unlimited(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {k: _unlimited(v) for k, v in schema.items() if k not in ("maxLength", "maxItems", "maxProperties")}
    return schema


def _broken() -> Iterator[dict[str, Any]]:
    """Schemas whose rules cannot be used for other reasons than their expression."""
    name = _text(5)
    yield {
        **fields(a=_WHOLE),
        RULES: [
            {"rule": ""},
            {"rule": " ", "message": "m"},
            {"rule": "true", "message": " "},
            {"rule": "true", "message": "a\nb"},
            {"rule": "true\n|| false"},
            {"rule": "true", "messageExpression": " "},
            {"rule": "true", "reason": "Other"},
            {"rule": "true", "reason": ""},
            {"rule": "true", "fieldPath": " "},
            {"rule": "true", "fieldPath": ".b"},
            {"rule": "true", "fieldPath": "a"},
            {"rule": "true", "fieldPath": ".a.b"},
            {"rule": "true", "fieldPath": "['a"},
            {"rule": "true", "fieldPath": ".a\n"},
            {"rule": "true", "fieldPath": "['a']"},
        ],
    }
    yield {
        **fields(a=_WHOLE),
        RULES: [
            {"rule": "true", "messageExpression": "1"},
            {"rule": "true", "messageExpression": "self.b"},
            {"rule": "true", "messageExpression": "int('x') == 1 ? 'a' : 'b'"},
            {"rule": "true", "messageExpression": "'%d'.format(['x'])"},
            {"rule": "true", "optionalOldSelf": True},
            {"rule": "true", "optionalOldSelf": False},
            {"rule": "oldSelf.a == 1", "optionalOldSelf": True},
            {"rule": "oldSelf.?a.orValue(1) == 1", "optionalOldSelf": True},
            {"rule": "oldSelf.hasValue()"},
        ],
    }
    yield fields(l=_list({**name, RULES: [{"rule": "self == oldSelf"}, {"rule": "self != ''"}]}))
    yield fields(
        l=_list({**fields(m={**name, RULES: [{"rule": "self == oldSelf"}]}), "x-kubernetes-map-type": "atomic"}, "set")
    )
    yield fields(m={"type": "object", "additionalProperties": {**name, RULES: [{"rule": "self == oldSelf.x"}]}})
    yield {**fields(a=name), "anyOf": [{RULES: [{"rule": "true"}]}]}
    yield {**fields(a=name), "allOf": [{"properties": {"a": {RULES: [{"rule": "true"}]}}}]}
    yield {**fields(a=name), "not": {RULES: [{"rule": "true"}]}}
    yield fields(a={"x-kubernetes-preserve-unknown-fields": True, RULES: [{"rule": "true"}]})
    yield {**fields(a={**name, RULES: [{"rule": "self.x"}]}), RULES: [{"rule": "self.a.x"}]}
    yield {**fields(a={**name, RULES: [{"rule": ""}]}), RULES: [{"rule": "self.a.x"}]}
    yield fields(
        a={
            **fields(b=name),
            "x-kubernetes-embedded-resource": True,
            RULES: [{"rule": "self.metadata.labels.size() > 0"}],
        }
    )
