"""The custom resource with rules of all kinds: at every sort of place, on values, changes, times, sets and keys."""

from __future__ import annotations

from typing import Any

GROUP, VERSION, PLURAL, KIND = "rules.example.com", "v1", "ruleds", "Ruled"
RULES = "x-kubernetes-validations"
_TEXT = {"type": "string", "maxLength": 9}
_WHOLE = {"type": "integer"}


def ruled(schema: dict[str, Any], *rules: dict[str, Any] | str) -> dict[str, Any]:
    """The schema with rules."""
    return {**schema, RULES: [{"rule": r} if isinstance(r, str) else r for r in rules]}


def fields(**properties: Any) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", "properties": properties}


_ITEM = ruled(
    {"required": ["name"], **fields(name=_TEXT, value=_WHOLE, note=_TEXT)},
    {"rule": "!has(self.value) || self.value < 5", "messageExpression": "'too much: ' + self.name"},
    {"rule": "!has(oldSelf.value) || has(self.value)", "message": "a value stays", "reason": "FieldValueRequired"},
    {"rule": "self.note != 'bad'", "message": "bad note", "fieldPath": ".note"},
)
_ITEMS = ruled(
    {
        "type": "array",
        "maxItems": 4,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": _ITEM,
    },
    {"rule": "self.all(i, i.name != 'forbidden')", "message": "forbidden", "reason": "FieldValueForbidden"},
    {"rule": "self == oldSelf || self.exists(i, i.name == 'a')", "message": "a change needs a"},
    {"rule": "self.all(i, v, i == 0 || v.name > self[i - 1].name)", "message": "not sorted"},
)
_SPEC = ruled(
    fields(
        least=_WHOLE,
        most={"type": "integer", "default": 3},
        share={"type": "number", RULES: [{"rule": "self >= 0.0 && self <= 1", "message": "no share"}]},
        name=ruled(
            _TEXT,
            {"rule": "self == oldSelf || oldSelf == 'open'", "message": "immutable"},
            {"rule": "self.matches('^[a-z]*$')", "messageExpression": "'no name: %s'.format([self])"},
        ),
        soft=ruled(
            _TEXT,
            {
                "rule": "self == oldSelf.orValue('first') || oldSelf.hasValue()",
                "optionalOldSelf": True,
                "message": "begin with first",
            },
        ),
        mode=ruled(
            {"type": "string", "enum": ["on", "off"]}, {"rule": "self != 'off'", "reason": "FieldValueDuplicate"}
        ),
        either={"x-kubernetes-int-or-string": True, "maxLength": 5},
        items=_ITEMS,
        set={
            "type": "array",
            "maxItems": 4,
            "x-kubernetes-list-type": "set",
            "items": ruled(_TEXT, {"rule": "self != 'x'", "message": "no x"}),
        },
        list={"type": "array", "maxItems": 4, "items": ruled({**_WHOLE, "nullable": True}, "self % 2 == 0")},
        labels={
            "type": "object",
            "maxProperties": 4,
            "additionalProperties": ruled(
                _TEXT,
                {"rule": "self != ''", "message": "empty"},
                {"rule": "self.size() >= oldSelf.size()", "message": "shorter"},
            ),
        },
        when={"type": "string", "format": "date-time"},
        lasts={"type": "string", "format": "duration"},
        amount=_TEXT,
        maybe={**_TEXT, "nullable": True, RULES: [{"rule": "self != 'no'", "message": "no"}]},
        nested={
            **fields(a=_WHOLE, b={**_WHOLE, "default": 2}),
            "default": {},
            RULES: [{"rule": "!has(self.a) || self.a <= self.b", "message": "a > b", "fieldPath": ".a"}],
        },
        free={"type": "object", "x-kubernetes-preserve-unknown-fields": True, RULES: [{"rule": "self == oldSelf"}]},
        embedded={
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
            RULES: [{"rule": "self.metadata.name.startsWith('x') && self.kind == 'Pod'", "message": "no pod x"}],
        },
        **{"odd-name": _TEXT},
    ),
    "self.least <= self.most",
    {"rule": "!has(self.either) || self.either < 50", "message": "too much"},
    {"rule": "!has(self.either) || type(self.either) == int || self.either.endsWith('%')", "message": "no percentage"},
    {"rule": "!has(self.set) || !has(oldSelf.set) || self.set == oldSelf.set", "message": "another set"},
    {"rule": "!has(self.set) || !has(self.list) || self.set.size() == self.list.size()", "fieldPath": ".list"},
    {"rule": "self.?when.optMap(w, w > timestamp('2020-01-01T00:00:00Z')).orValue(true)", "message": "long ago"},
    {
        "rule": "!has(self.lasts) || duration('1h') >= self.lasts",
        "messageExpression": "self.lasts.getHours() > 3 ? 'much too long' : 'too long'",
    },
    {"rule": "!has(self.amount) || quantity(self.amount).isGreaterThan(quantity('1Gi'))", "message": "small"},
    {"rule": "self.odd__dash__name != 'bad' || has(self.name)", "message": "odd"},
    {"rule": "has(self.maybe) || has(self.name) || has(self.soft)", "message": "something"},
    {"rule": "!has(self.labels) || self.labels.all(k, v, k != v)", "message": "a key like its value"},
)
_STATUS = ruled(
    fields(ready=_WHOLE, phase={"type": "string", "enum": ["Old", "New"]}),
    {"rule": "self.ready >= 0", "message": "negative"},
    {"rule": "!has(oldSelf.ready) || self.ready >= oldSelf.ready", "message": "fewer"},
)
_ROOT = ruled(
    fields(spec=_SPEC, status=_STATUS),
    {"rule": "!has(self.status) || !has(self.spec.most) || self.status.ready <= self.spec.most", "message": "more"},
    {"rule": "self.metadata.name == oldSelf.metadata.name && size(self.metadata.name) < 9", "message": "long name"},
)


def definition(kind: str, plural: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A CRD of this group with a status."""
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural[:-1], "kind": kind, "listKind": f"{kind}List"},
            "versions": [version],
        },
    }


CRD = definition(KIND, PLURAL, _ROOT)
