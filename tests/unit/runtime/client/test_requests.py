from lwskit.runtime.client import requests
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.kinds import CONFIG_MAP


def test_bodies_are_spelled_as_servers_spell_them():
    assert requests.encode({"b": "<&>\u2028", "a": 1}) == b'{"a":1,"b":"\\u003c\\u0026\\u003e\\u2028"}'
    obj = {"metadata": {"name": "c", "namespace": "d"}, "data": {"k": "a&b"}}
    expected = b'{"data":{"k":"a\\u0026b"},"metadata":{"name":"c","namespace":"d"}}'
    assert requests.create(CONFIG_MAP, obj).body == expected
    assert requests.update(CONFIG_MAP, obj).body == expected
    assert requests.patch(CONFIG_MAP, "d", "c", obj, PatchType.MERGE).body == expected
