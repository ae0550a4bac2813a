"""Validation rules of custom resources: when they are evaluated, on what, and what a refusal says.

The texts are those of a real API server.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from lwskit.embedded import rules
from lwskit.embedded.rule_values import escape, unescape
from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import Invalid
from lwskit.runtime.kinds import Kind

from .serving import client, server

THING = Kind("rules.example.com", "v1", "Thing", "things", namespaced=True)
CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
TEXT = {"type": "string", "maxLength": 9}
WHOLE = {"type": "integer"}
NAMED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {"name": TEXT, "value": WHOLE}},
}


def definition(spec: dict[str, Any], *root: dict[str, Any], **properties: Any) -> dict[str, Any]:
    """A CRD with this schema of `spec`, further ones, and rules at its root."""
    schema: dict[str, Any] = {"type": "object", "properties": {"spec": spec, **properties}}
    if root:
        schema[rules.RULES] = list(root)
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if "status" in properties:
        version["subresources"] = {"status": {}}
    return {
        "metadata": {"name": "things.rules.example.com"},
        "spec": {
            "group": "rules.example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    }


def ruled(schema: dict[str, Any], *found: str | dict[str, Any]) -> dict[str, Any]:
    """The schema with rules."""
    return {**schema, rules.RULES: [{"rule": r} if isinstance(r, str) else r for r in found]}


def fields(**properties: Any) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", "properties": properties}


async def serving(spec: dict[str, Any], *root: dict[str, Any], **properties: Any) -> Client:
    """A client of a server that serves such things."""
    made = client(server())
    await made.create(CRD, definition(spec, *root, **properties))
    return made


def thing(**spec: Any) -> dict[str, Any]:
    """A thing."""
    return {"metadata": {"name": "x", "namespace": "default"}, "spec": spec}


async def refusal(made: Client, obj: dict[str, Any]) -> str:
    """What creating the object is refused with, without the object's name."""
    with pytest.raises(Invalid) as found:
        await made.create(THING, obj)
    return str(found.value).partition("is invalid: ")[2]


async def test_a_broken_rule_names_its_place_and_says_itself():
    made = await serving(ruled(fields(least=WHOLE, most=WHOLE), "self.least <= self.most"))
    text = await refusal(made, thing(least=2, most=1))
    assert text == "spec: Invalid value: failed rule: self.least <= self.most"
    await made.create(THING, thing(least=1, most=1))


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"message": " too much "}, "spec.count: Invalid value: 7: too much"),
        ({"message": "m", "reason": "FieldValueForbidden"}, "spec.count: Forbidden: m"),
        ({"message": "m", "reason": "FieldValueRequired"}, "spec.count: Required value: m"),
        ({"message": "m", "reason": "FieldValueDuplicate"}, "spec.count: Duplicate value: 7"),
        ({"messageExpression": "self == 7 ? 'seven' : 'it'"}, "spec.count: Invalid value: 7: seven"),
        ({"messageExpression": "string(1 / (self - 7))", "message": "m"}, "spec.count: Invalid value: 7: m"),
        ({"messageExpression": "'a\\nb'"}, "spec.count: Invalid value: 7: failed rule: self < 5"),
    ],
)
async def test_what_a_refusal_says(more: dict[str, Any], text: str):
    made = await serving(fields(count=ruled(WHOLE, {"rule": "self < 5", **more})))
    assert await refusal(made, thing(count=7)) == text


async def test_a_rule_may_blame_another_field():
    rule = {"rule": "false", "message": "m", "fieldPath": ".labels['a b']"}
    made = await serving(ruled(fields(labels={"type": "object", "additionalProperties": TEXT}), rule))
    assert await refusal(made, thing(labels={})) == "spec.labels[a b]: Invalid value: m"


async def test_rules_of_items_and_of_maps():
    spec = fields(
        items={"type": "array", "maxItems": 3, "items": ruled(TEXT, {"rule": "self != 'b'", "message": "no b"})},
        map={"type": "object", "additionalProperties": ruled(WHOLE, {"rule": "self > 0", "message": "more"})},
    )
    made = await serving(spec)
    text = await refusal(made, thing(items=["a", "b"], map={"k": 0}))
    assert text == '[spec.items[1]: Invalid value: "b": no b, spec.map[k]: Invalid value: 0: more]'


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("self.a > 1", "no such key: a evaluating rule: self.a > 1"),
        ("self.list[3] == 1", "index out of bounds: 3 evaluating rule: self.list[3] == 1"),
        ("1 / self.zero == 1", "division by zero evaluating rule: 1 / self.zero == 1"),
        (
            "self.either > 1",
            "'no such overload': call arguments did not match a supported operator, function or macro signature for "
            "rule: self.either > 1",
        ),
    ],
)
async def test_rules_that_have_no_value(rule: str, text: str):
    spec = fields(
        a=WHOLE, zero=WHOLE, either={"x-kubernetes-int-or-string": True}, list={"type": "array", "items": WHOLE}
    )
    made = await serving(ruled(spec, rule))
    found = await refusal(made, thing(zero=0, either="x", list=[]))
    assert found == f'spec: Invalid value: "object": {text}'


async def test_defaults_come_first_and_metadata_is_seen_in_part():
    rule = {"rule": "self.spec.count == 1 && self.metadata.name == 'x' && self.kind == 'Thing'"}
    made = await serving(fields(count={"type": "integer", "default": 1}), rule)
    await made.create(THING, thing())
    other = server()
    with pytest.raises(Invalid, match="undefined field 'labels'"):
        await client(other).create(CRD, definition(fields(), {"rule": "self.metadata.labels.size() == 0"}))


async def test_rules_wait_until_the_object_fits_its_schema():
    made = await serving(ruled(fields(a=WHOLE, b=WHOLE), "self.a > self.b"))
    assert await refusal(made, thing(a="x", b=1)) == (
        '[spec.a: Invalid value: "string": spec.a in body must be of type integer: "string", <nil>: Invalid value: '
        "null: some validation rules were not checked because the object was invalid; correct the existing errors to "
        "complete validation]"
    )


async def test_transition_rules_are_of_updates():
    rule = {"rule": "self == oldSelf", "message": "immutable"}
    made = await serving(fields(name=ruled(TEXT, rule), count=WHOLE))
    obj = await made.create(THING, thing(name="a"))
    obj["spec"] = {"name": "a", "count": 3}
    obj = await made.update(THING, obj)
    obj["spec"]["name"] = "b"
    with pytest.raises(Invalid, match=r'spec\.name: Invalid value: "b": immutable'):
        await made.update(THING, obj)
    del obj["spec"]["name"]
    obj = await made.update(THING, obj)
    obj["spec"]["name"] = "c"
    await made.update(THING, obj)


async def test_items_are_compared_with_those_of_their_keys():
    items = {**NAMED, "items": ruled(NAMED["items"], {"rule": "self.value >= oldSelf.value", "message": "less"})}
    made = await serving(fields(items=items))
    obj = await made.create(THING, thing(items=[{"name": "a", "value": 1}, {"name": "b", "value": 5}]))
    obj["spec"]["items"] = [{"name": "b", "value": 5}, {"name": "new", "value": 0}, {"name": "a", "value": 2}]
    obj = await made.update(THING, obj)
    obj["spec"]["items"][2]["value"] = 0
    with pytest.raises(Invalid, match=r"spec\.items\[2\]: Invalid value: less"):
        await made.update(THING, obj)


async def test_the_value_before_may_be_optional():
    rule = {"rule": "oldSelf.orValue('a') == 'a'", "optionalOldSelf": True, "message": "m"}
    made = await serving(fields(name=ruled(TEXT, rule)))
    obj = await made.create(THING, thing(name="b"))
    obj["spec"]["name"] = "c"
    with pytest.raises(Invalid, match=r'spec\.name: Invalid value: "c": m'):
        await made.update(THING, obj)


async def test_what_did_not_change_is_forgiven():
    spec = fields(name=TEXT, count=WHOLE)
    made = await serving(spec)
    obj = await made.create(THING, thing(name="b", count=1))
    crd = await made.get(CRD, "things.rules.example.com")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = fields(name=ruled(TEXT, {"rule": "self == 'a'", "message": "m"}), count=WHOLE)
    await made.update(CRD, crd)
    obj["spec"]["count"] = 2
    obj = await made.update(THING, obj)
    obj["spec"]["name"] = "c"
    with pytest.raises(Invalid, match=r'spec\.name: Invalid value: "c": m'):
        await made.update(THING, obj)


async def test_rules_of_the_status():
    status = ruled(fields(ready=WHOLE), {"rule": "self.ready >= 0", "message": "negative"})
    made = await serving(
        fields(count=WHOLE), {"rule": "!has(self.status) || self.status.ready <= self.spec.count"}, status=status
    )
    obj = await made.create(THING, thing(count=1))
    with pytest.raises(Invalid, match=r"^Thing.*: status: Invalid value: negative$"):
        await made.update(THING, {**obj, "status": {"ready": -1}}, subresource="status")
    with pytest.raises(Invalid, match="<nil>: Invalid value: failed rule"):
        await made.update(THING, {**obj, "status": {"ready": 2}}, subresource="status")


# -- definitions -------------------------------------------------------------------------------------------------------

RULE_AT = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]"


async def crd_refusal(spec: dict[str, Any]) -> str:
    with pytest.raises(Invalid) as found:
        await client(server()).create(CRD, definition(spec))
    return str(found.value).partition("is invalid: ")[2]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (
            "self.a > 'x'",
            "1:8: found no matching overload for '_>_' applied to '(int, string)'\n | self.a > 'x'\n | .......^",
        ),
        ("self.b == 1", "1:5: undefined field 'b'\n | self.b == 1\n | ....^"),
        ("foo(self)", "1:4: undeclared reference to 'foo' (in container '')\n | foo(self)\n | ...^"),
        ("self.a +", "1:9: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', "),
    ],
)
async def test_a_rule_that_does_not_compile(rule: str, text: str):
    found = await crd_refusal(ruled(fields(a=WHOLE), rule))
    where, _, rest = found.partition(": compilation failed: ERROR: <input>:")
    shown = rule.replace(">", "\\u003e")
    assert where == (
        f'{RULE_AT}.rule: Invalid value: {{"Rule":"{shown}","Message":"","MessageExpression":"","Reason":null,'
        '"FieldPath":"","OptionalOldSelf":null}'
    )
    assert rest.startswith(text)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"rule": "self.a"}, ": cel expression must evaluate to a bool"),
        (
            {"rule": "int('x') == self.a"},
            ": program instantiation failed: type conversion error from 'string' to 'int'",
        ),
        ({"rule": "true", "messageExpression": "1"}, ": messageExpression must evaluate to a string"),
        ({"rule": " "}, f"{RULE_AT}.rule: Required value: rule is not specified"),
        ({"rule": "true", "fieldPath": ".b"}, f'{RULE_AT}.fieldPath: Invalid value: ".b": must be a valid path'),
        (
            {"rule": "true", "message": "a\nb"},
            f'{RULE_AT}.message: Invalid value: "a\\nb": must not contain line breaks',
        ),
        ({"rule": "true", "optionalOldSelf": True}, "true: may not be set if oldSelf is not used in rule"),
        (
            {"rule": "true", "reason": "Other"},
            f'{RULE_AT}.reason: Unsupported value: "Other": supported values: "FieldValueDuplicate", '
            '"FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
        ),
    ],
)
async def test_a_rule_that_cannot_be_used(rule: dict[str, Any], text: str):
    assert (await crd_refusal(ruled(fields(a=WHOLE), rule))).endswith(text)


async def test_what_cannot_be_compared_has_no_value_before():
    spec = fields(list={"type": "array", "maxItems": 3, "items": ruled(TEXT, "self == oldSelf")})
    assert (await crd_refusal(spec)).endswith(
        "oldSelf cannot be used on the uncorrelatable portion of the schema within "
        "spec.validation.openAPIV3Schema.properties[spec].properties[list]"
    )


@pytest.mark.parametrize(
    ("rule", "most", "factor"),
    [
        ("self.items.all(i, i.name != '')", {}, None),
        ("self.items.all(i, self.items.exists(j, j.name == i.name))", {"maxItems": 100}, None),
        ("self.items.all(i, self.items.exists(j, j.name == i.name))", {"maxItems": 1500}, "2.7x"),
        ("self.items.all(i, self.items.exists(j, j.name == i.name))", {}, "more than 100x"),
    ],
)
async def test_what_rules_may_cost_is_estimated(rule: str, most: dict[str, int], factor: str | None):
    spec = ruled(fields(items={**NAMED, **most}), rule)
    if factor is None:
        await serving(spec)
        return
    text = f"estimated rule cost exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems"
    assert f"{RULE_AT}.rule: Forbidden: {text}" in await crd_refusal(spec)


async def test_alternatives_have_no_rules():
    spec = {**fields(a=WHOLE), "anyOf": [ruled({}, "true")]}
    assert (await crd_refusal(spec)).endswith(
        "anyOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural"
    )


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (
            "self.s.find('[[:alpha:]]') == ''",
            "the embedded API server cannot search for '[[:alpha:]]' with find and findAll",
        ),
        (
            "google.protobuf.Timestamp{seconds: 1} == timestamp(1)",
            "the embedded API server has no messages such as google.protobuf.Timestamp in expressions",
        ),
    ],
)
async def test_what_this_server_cannot_do_is_refused(rule: str, text: str):
    assert text in await crd_refusal(ruled(fields(s=TEXT), rule))


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("if", "__if__"),
        ("a", "a"),
    ],
)
def test_names_of_fields(name: str, escaped: str):
    assert escape(name) == escaped
    assert unescape(escaped) == name


@pytest.mark.parametrize("name", ["1a", "a b", "é", ""])
def test_names_that_rules_cannot_write(name: str):
    assert escape(name) is None


async def test_a_thousand_items_take_no_time():
    spec = fields(
        items={
            **NAMED,
            "maxItems": 1000,
            "items": ruled(NAMED["items"], {"rule": "self.value >= oldSelf.value", "message": "m"}),
        }
    )
    rule = "self.items.map(i, i.name).filter(n, n != '').size() == self.items.size() && self.items == oldSelf.items"
    node = rules.build(definition(ruled(spec, rule))["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    assert node is not None
    obj = thing(items=[{"name": f"n{i}", "value": i} for i in range(1000)])
    began = time.process_time()
    assert rules.Rules(node).errors(obj, obj, (), lambda _: None) == []
    assert time.process_time() - began < 0.25
