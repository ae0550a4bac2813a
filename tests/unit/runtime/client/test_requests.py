import orjson
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lwskit.runtime.client import requests
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.kinds import CONFIG_MAP, POD


def test_bodies_are_spelled_as_servers_spell_them():
    assert requests.encode({"b": "<&>\u2028", "a": 1}) == b'{"a":1,"b":"\\u003c\\u0026\\u003e\\u2028"}'
    obj = {"metadata": {"name": "c", "namespace": "d"}, "data": {"k": "a&b"}}
    expected = b'{"data":{"k":"a\\u0026b"},"metadata":{"name":"c","namespace":"d"}}'
    assert requests.create(CONFIG_MAP, obj).body == expected
    assert requests.update(CONFIG_MAP, obj).body == expected
    assert requests.patch(CONFIG_MAP, "d", "c", obj, PatchType.MERGE).body == expected


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_the_body_of_an_apply_is_the_same_text_to_a_yaml_parser(text: str):
    request = requests.patch(POD, "ns", "p", {"text": text}, PatchType.APPLY, field_manager="m")
    assert request.body is not None
    assert orjson.loads(request.body) == {"text": text}
    assert yaml.safe_load(request.body) == {"text": text}


def test_line_separators_in_an_apply_are_escaped():
    request = requests.patch(POD, "ns", "p", {"a": "\u2028 é 漢 \x85\x7f"}, PatchType.APPLY, field_manager="m")
    assert request.body == '{"a":"\\u2028 é 漢 \\u0085\\u007f"}'.encode()
