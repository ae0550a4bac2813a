"""Quantities of a set are stored as the API's types spell them; nothing else of it changes."""

from __future__ import annotations

from lwskit.groups.encoding import canonical_quantities


def _set(template: object) -> dict[str, object]:
    return {"metadata": {"name": "s"}, "spec": {"replicas": 1, "leaderWorkerTemplate": template}}


def test_quantities_are_respelled_and_the_argument_is_left_alone():
    container = {"name": "c", "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}}, "env": [], "later": {}}
    lws = _set({"size": 2, "workerTemplate": {"spec": {"containers": [container], "future": ["x"]}}})
    changed = canonical_quantities(lws)
    spec = changed["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert spec["containers"][0]["env"] == []
    assert spec["containers"][0]["later"] == {}
    assert spec["future"] == ["x"]
    assert container["resources"]["requests"]["cpu"] == "1000m"


def test_a_template_that_cannot_be_read_stays_for_the_schema_to_refuse():
    lws = _set({"workerTemplate": {"spec": {"containers": "many"}}})
    assert canonical_quantities(lws) == lws
    assert canonical_quantities({"spec": None}) == {"spec": None}
