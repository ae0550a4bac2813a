"""The embedded server answers as a real one did when the requests were recorded (tools/record_answers.py)."""

from __future__ import annotations

import random

import pytest

from lwskit.embedded.apiserver import ApiServer

from . import replaying

NAMES = sorted(p.stem for p in replaying.FOLDER.glob("*.json"))
WHERE = "answers"


@pytest.mark.parametrize("name", NAMES)
async def test_answers_are_those_of_a_real_server(name: str):
    recording = replaying.load(name)
    server = ApiServer(rng=random.Random(1))
    await server.handle(
        replaying.request(
            {
                "method": "POST",
                "path": "/api/v1/namespaces",
                "type": "application/json",
                "body": {"metadata": {"name": WHERE}},
            },
            WHERE,
        )
    )
    for step in recording.get("setup", ()):
        await server.handle(replaying.request(step, WHERE))
    wrong = []
    for number, step in enumerate(recording["steps"]):
        answer = await server.handle(replaying.request(step, WHERE))
        compare = step.get("compare", "all")
        if compare != "nothing" and answer.status != step["status"]:
            wrong.append((number, step["method"], step["path"], answer.status, step["status"]))
        elif compare == "all" and (got := replaying.normal(answer.body, WHERE, step.get("drop", []))) != step["answer"]:
            wrong.append((number, step["method"], step["path"], got, step["answer"]))
    assert not wrong


def test_most_answers_are_compared_whole():
    steps = [step for name in NAMES for step in replaying.load(name)["steps"]]
    assert len(steps) > 400
    assert sum(1 for s in steps if "compare" in s) < len(steps) / 10
