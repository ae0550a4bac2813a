"""The checklist of webhooks as far as it is pure (specification: 70 §17, Webhooks)."""

from __future__ import annotations

import base64
import copy
import json
from functools import partial
from typing import Any

import orjson
import pytest
import structlog

from lwskit.runtime.errors import Invalid
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Obj
from lwskit.runtime.webhook import (
    AdmissionDenied,
    Handler,
    Warn,
    allowed,
    chain,
    defaulter,
    denied,
    errored,
    mutate_path,
    patched,
    review,
    validate_path,
    validator,
)

JSON = "application/json"


def ask(handler: Handler, version: str = "v1", **request: Any) -> Obj:
    body = {
        "apiVersion": f"admission.k8s.io/{version}",
        "kind": "AdmissionReview",
        "request": {"uid": "u1", "operation": "CREATE", **request},
    }
    before = copy.deepcopy(body)
    status, answer = review(handler, orjson.dumps(body), JSON)
    assert status == 200
    assert body == before
    return orjson.loads(answer)


def never(request: Obj) -> Obj:
    raise AssertionError("must not be asked")


@pytest.mark.parametrize(
    ("body", "content_type", "code", "message"),
    [
        (b"", JSON, 400, "request body is empty"),
        (b" " * 7340032, JSON, 413, "request entity is too large; limit is 7340032 bytes"),
        (b"{}", "application/json; charset=utf-8", 400, "contentType=application/json; charset=utf-8, expected app"),
        (b"{", JSON, 400, "not JSON"),
        (b"[]", JSON, 400, "not an AdmissionReview"),
        (b'{"request":{},"apiVersion":"x/v1"}', JSON, 400, "apiVersion=x/v1, expected one of"),
        (b'{"request":{},"apiVersion":[]}', JSON, 400, "apiVersion=a value of type list, expected one of"),
        (b'{"request":{},"kind":"Pod"}', JSON, 400, "kind=Pod, expected AdmissionReview"),
        (b'{"request":{"uid":7}}', JSON, 400, "request.uid must be a text"),
        (b'{"request":{"namespace":{}}}', JSON, 400, "request.namespace must be a text"),
        (b'{"request":{"operation":true}}', JSON, 400, "request.operation must be a text"),
        (b'{"request":[]}', JSON, 400, "not an AdmissionReview"),
        (b'{"request":{"uid":"\\ud800"}}', JSON, 400, "not JSON"),
        (b'{"request":{"uid":"\xff"}}', JSON, 400, "not JSON"),
        (b'{"request":{"object":NaN}}', JSON, 400, "not JSON"),
        (b'{"request":{"object":1' + b"0" * 400 + b"}}", JSON, 400, "not JSON"),
        (b'{"request":' + b"[" * 1100 + b"]" * 1100 + b"}", JSON, 400, "not JSON"),
    ],
)
def test_what_cannot_be_read_is_an_answer_without_uid_and_version(
    body: bytes, content_type: str, code: int, message: str
) -> None:
    """70 §17 Webhooks 1: too large is 413, empty or of another type 400, and HTTP says 200."""
    status, raw = review(never, body, content_type)
    answer = orjson.loads(raw)
    assert status == 200
    assert answer.keys() == {"response"}
    assert answer["response"]["allowed"] is False
    assert answer["response"]["status"]["code"] == code
    assert message in answer["response"]["status"]["message"]
    assert "uid" not in answer["response"]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_the_answer_has_the_version_and_uid_of_the_request(version: str) -> None:
    """70 §17 Webhooks 2: who asks in v1beta1 is answered in it."""
    answer = ask(lambda request: allowed(), version)
    assert answer == {
        "apiVersion": f"admission.k8s.io/{version}",
        "kind": "AdmissionReview",
        "response": {"uid": "u1", "allowed": True, "status": {"code": 200}},
    }


def test_a_defaulter_without_change_has_no_patch_fields() -> None:
    """70 §17 Webhooks 3: nothing to change, no patch."""
    response = ask(defaulter(lambda obj, request: obj), object={"spec": {}})["response"]
    assert "patch" not in response
    assert "patchType" not in response


def test_a_patch_keeps_unknown_fields() -> None:
    """70 §17 Webhooks 4: a patch touches nothing that it does not know."""

    def default(obj: Obj, request: Obj) -> Obj:
        obj["spec"]["replicas"] = 1
        return obj

    response = ask(defaulter(default), object={"spec": {"unknown": {"x": None}}, "more": [1]})["response"]
    assert response["patchType"] == "JSONPatch"
    operations = orjson.loads(base64.b64decode(response["patch"]))
    assert operations == [{"op": "add", "path": "/spec/replicas", "value": 1}]
    assert response["status"] == {"code": 200}


def test_a_deletion_is_allowed_by_a_defaulter_and_shows_a_validator_the_old_object() -> None:
    """70 §17 Webhooks 5: on DELETE a defaulter says yes at once and a validator sees what is to go."""

    def fail(obj: Obj, request: Obj) -> Obj:
        raise AssertionError

    seen: list[Obj] = []
    handler = validator(delete=lambda old, warn: seen.append(old))
    assert ask(defaulter(fail), operation="DELETE", oldObject={"o": 1})["response"]["allowed"]
    assert ask(handler, operation="DELETE", object=None, oldObject={"o": 1})["response"]["allowed"]
    assert seen == [{"o": 1}]
    assert ask(defaulter(fail), object=None)["response"]["status"]["code"] == 400


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value} if levels % 2 else [value]
    return value


def raw(handler: Handler, obj: Any, on_panic: Any = None) -> Obj:
    """Asked with bytes that orjson could not write, because they are nested too deeply."""
    text = b'{"request":{"uid":"u1","operation":"CREATE","object":%s}}' % json.dumps(obj).encode()
    return orjson.loads(review(handler, text, JSON, on_panic)[1])["response"]


@pytest.mark.parametrize("levels", [600, 601, 900])
def test_what_is_nested_too_deeply_is_refused_unless_it_does_not_matter(levels: int) -> None:
    def default(obj: Obj, request: Obj) -> Obj:
        return {**obj, "spec": 1}

    copying, sharing = defaulter(default), defaulter(default, pure=True)
    for obj in ({"deep": nested(levels)}, {"spec": nested(levels)}):
        assert raw(sharing, obj)["allowed"]
        status = raw(copying, obj, never)["status"]
        assert status == {"code": 400, "message": "the request is nested in more than 100 levels"}
    added = defaulter(lambda obj, request: {**obj, "more": obj["deep"]}, pure=True)
    assert raw(added, {"deep": nested(levels)}, never)["status"]["code"] == 400


def test_an_endless_recursion_of_a_handler_is_its_own_fault() -> None:
    def endless(request: Obj) -> Obj:
        raise RecursionError("maximum recursion depth exceeded")

    assert raw(endless, {"deep": nested(50)})["status"]["code"] == 500


def test_a_pure_defaulter_gets_the_object_itself() -> None:
    seen: list[Obj] = []

    def default(obj: Obj, request: Obj) -> Obj:
        assert obj is request["object"]
        seen.append(obj)
        return {**obj, "a": 1}

    assert ask(defaulter(default, pure=True), object={"b": {}})["response"]["allowed"]
    assert seen == [{"b": {}}]


def test_objects_of_another_kind_are_a_400() -> None:
    pods = [defaulter(lambda obj, request: obj, POD), validator(lambda obj, warn: None, lambda *_: None, kind=POD)]
    for handler in pods:
        for mine in ({}, {"kind": "Pod"}, {"apiVersion": "v1"}, {"apiVersion": "v1", "kind": "Pod"}):
            assert ask(handler, object=mine)["response"]["allowed"]
        for other in ({"kind": "Node"}, {"apiVersion": "v2", "kind": "Pod"}, {"kind": ["Pod"]}, {"apiVersion": 1}):
            status = ask(handler, object=other)["response"]["status"]
            assert status["code"] == 400
            assert status["message"].startswith("expected v1 Pod, not ")
    answer = ask(pods[1], operation="UPDATE", object={}, oldObject={"apiVersion": "apps/v1", "kind": "StatefulSet"})
    assert answer["response"]["status"] == {"code": 400, "message": "expected v1 Pod, not apps/v1 StatefulSet"}


def test_a_defaulters_errors_refuse() -> None:
    def deny(obj: Obj, request: Obj) -> Obj:
        raise AdmissionDenied("not here")

    def invalid(obj: Obj, request: Obj) -> Obj:
        raise Invalid("spec.x: bad", details={"causes": [{"field": "spec.x"}]})

    assert ask(defaulter(deny), object={})["response"] == {**denied("not here"), "uid": "u1"}
    assert ask(defaulter(invalid), object={})["response"]["status"]["details"] == {"causes": [{"field": "spec.x"}]}


def test_a_validator_gets_the_objects_of_its_operation() -> None:
    seen: list[Any] = []
    handler = validator(
        create=lambda obj, warn: seen.append(("create", obj)),
        update=lambda new, old, warn: seen.append(("update", new, old)),
        delete=lambda old, warn: seen.append(("delete", old)),
    )
    new, old = {"n": 1}, {"o": 1}
    for operation in ("CREATE", "UPDATE", "DELETE", "CONNECT"):
        assert ask(handler, operation=operation, object=new, oldObject=old)["response"]["allowed"]
    assert seen == [("create", new), ("update", new, old), ("delete", old)]
    assert ask(handler, operation="PATCH", object=new)["response"]["status"]["code"] == 400
    assert ask(handler, operation="DELETE", object=new)["response"]["status"]["code"] == 400
    assert ask(validator(), object=new)["response"]["allowed"]


def test_an_invalid_error_is_passed_on_with_its_causes_and_a_plain_one_is_forbidden() -> None:
    """70 §17 Webhooks 6: an Invalid keeps its code and causes, any other no is a 403."""

    def invalid(obj: Obj, warn: Warn) -> None:
        raise Invalid("bad", details={"causes": [{"reason": "FieldValueInvalid", "field": "spec.size"}]})

    def plain(obj: Obj, warn: Warn) -> None:
        raise AdmissionDenied("no")

    response = ask(validator(create=invalid), object={})["response"]
    assert not response["allowed"]
    assert (response["status"]["code"], response["status"]["reason"]) == (422, "Invalid")
    assert response["status"]["details"]["causes"][0]["field"] == "spec.size"
    status = ask(validator(create=plain), object={})["response"]["status"]
    assert status == {"code": 403, "reason": "Forbidden", "message": "no"}


def test_warnings_are_there_on_yes_and_no() -> None:
    """70 §17 Webhooks 7: warnings reach the user whatever the answer."""

    def check(obj: Obj, warn: Warn) -> None:
        warn("careful")
        if obj:
            raise AdmissionDenied("no")

    for obj in ({}, {"a": 1}):
        response = ask(validator(create=check), object=obj)["response"]
        assert response["allowed"] is not bool(obj)
        assert response["warnings"] == ["careful"]


def test_a_handlers_exception_is_a_500_and_is_counted() -> None:
    """70 §17 Webhooks 8: an exception answers with 500 and is counted."""
    panics: list[int] = []

    def broken(request: Obj) -> Obj:
        raise KeyError("spec")

    body = orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u1"}})
    status, answer = review(broken, body, JSON, lambda: panics.append(1))
    response = orjson.loads(answer)["response"]
    assert status == 200
    assert response["uid"] == "u1"
    assert response["status"] == {"code": 500, "message": "panic: 'spec' [recovered]"}
    assert panics == [1]


def test_a_chain_ends_at_the_first_no_and_adds_up_patches_and_warnings() -> None:
    first = patched({}, {"a": 1})
    handler = chain(lambda r: {**first, "warnings": ["w1"]}, lambda r: patched({}, {"b": 2}), lambda r: allowed())
    response = ask(handler)["response"]
    assert [o["path"] for o in orjson.loads(base64.b64decode(response["patch"]))] == ["/a", "/b"]
    assert response["warnings"] == ["w1"]
    refused = chain(lambda r: {**first, "warnings": ["w1"]}, lambda r: errored(500, "x"), never)
    response = ask(refused)["response"]
    assert not response["allowed"]
    assert response["warnings"] == ["w1"]
    assert "patch" not in response


def test_paths() -> None:
    """70 §17 Webhooks 11: the core group has an empty place in the path."""
    assert mutate_path(POD) == "/mutate--v1-pod"
    assert validate_path(POD) == "/validate--v1-pod"
    assert validate_path(STATEFUL_SET) == "/validate-apps-v1-statefulset"


def forgets(obj: Any, *more: Any) -> Any:
    obj["spec"] = {}


async def waits(*arguments: Any) -> Any:
    return arguments[0]


def says_no(obj: Any, warn: Warn) -> Any:
    return False


def warns(obj: Any, warn: Any) -> None:
    warn(5)


def answers(value: Any) -> Any:
    def handler(request: Obj) -> Any:
        return value

    return handler


HANDLER = "answers.<locals>.handler"
MADE_WITH = "return a response, made with allowed, denied, errored or patched"
ASYNC = "a coroutine (handlers are plain functions, not async ones)"


@pytest.mark.parametrize(
    ("handler", "sentence"),
    [
        (answers(None), f"{HANDLER} returned None; {MADE_WITH}"),
        (answers("yes"), f"{HANDLER} returned str; {MADE_WITH}"),
        (answers({"allowed"}), f"{HANDLER} returned set; {MADE_WITH}"),
        (partial(answers(None)), f"{HANDLER} returned None; {MADE_WITH}"),
        (waits, f"waits returned {ASYNC}; {MADE_WITH}"),
        (answers({"allowed": "no"}), f"{HANDLER} returned str as allowed; it must be True or False"),
        (answers({"status": "no"}), f"{HANDLER} returned str as status; it must be a Status with an int as its code"),
        (answers({"status": {"code": "4"}}), f"{HANDLER} returned dict as status; it must be a Status with an int as"),
        (answers({"patch": 5}), f"{HANDLER} returned int as patch; it must be a list of JSON patch operations"),
        (answers({"patch": ["x"]}), f"{HANDLER} returned a list with str as patch; it must be a list of JSON patch"),
        (answers({"warnings": [5, ""]}), f"{HANDLER} returned a list with int, str as warnings; it must be a list of"),
        (answers({"allowed": True, "x": {1}}), "Type is not JSON serializable: set"),
        (answers({"allowed": True, "patch": [{"value": {1}}]}), "Type is not JSON serializable: set"),
        (answers({"allowed": True, "warnings": ["\ud800"]}), "str is not valid UTF-8: surrogates not allowed"),
        (defaulter(forgets), "forgets returned None; return the object, also when it stays as it is"),
        (defaulter(forgets, pure=True), "forgets returned None; return the object, also when it stays as it is"),
        (defaulter(waits), f"waits returned {ASYNC}; return the object, also when it stays as it is"),
        (validator(create=waits), f"waits returned {ASYNC}; raise an LwskitError to refuse, return None else"),
        (validator(create=says_no), "says_no returned bool; raise an LwskitError to refuse, return None else"),
        (chain(answers(None), allowed), f"{HANDLER} returned None; {MADE_WITH}"),  # type: ignore[arg-type]
    ],
)
def test_what_a_handler_returns_wrongly_is_a_500_in_the_answer_and_is_counted(handler: Any, sentence: str) -> None:
    body = {"request": {"uid": "u1", "operation": "CREATE", "object": {"a": 1}}, "apiVersion": "admission.k8s.io/v1"}
    panics: list[None] = []
    with structlog.testing.capture_logs() as logs:
        status, answer = review(handler, orjson.dumps(body), JSON, lambda: panics.append(None))
    response = orjson.loads(answer)["response"]
    assert (status, response["uid"], response["allowed"], response["status"]["code"]) == (200, "u1", False, 500)
    assert "patch" not in response
    assert response["status"]["message"].startswith(f"panic: {sentence}")
    assert response["status"]["message"].endswith(" [recovered]")
    assert len(panics) == len(logs) == 1


def test_warnings_that_are_no_texts_name_their_handler() -> None:
    answer = ask(validator(create=warns), object={})
    assert "returned a list with int as warnings" in answer["response"]["status"]["message"]


def test_an_error_that_cannot_be_written_is_still_a_500() -> None:
    def fails(request: Obj) -> Obj:
        raise ValueError("\ud800")

    assert ask(fails)["response"]["status"] == {"code": 500, "message": "panic: ValueError [recovered]"}
