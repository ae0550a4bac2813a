"""Sequences that once told the embedded server from a real one: both answer alike now (docs/differential.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.differential import recording

FILES = sorted(recording.FOLDER.glob("*.json"))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def replayer() -> AsyncIterator[recording.Replayer]:
    replayer = recording.Replayer()
    await replayer.prepare()
    yield replayer


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
async def test_recorded_sequences_are_answered_as_a_real_server_did(replayer, file):
    wrong = {}
    for number, one in enumerate(recording.load(file)):
        lines = await replayer.replay(one)
        if lines:
            wrong[f"{number}: {one['about'][:100]}"] = lines[:3]
    assert not wrong


def test_there_are_recordings_of_every_kind():
    text = "".join(file.read_text() for file in FILES)
    kinds = ("pods", "services", "configmaps", "statefulsets", "widgets", "ruleds")
    assert all(f"/{kind}/" in text for kind in kinds)
    assert sum(len(recording.load(file)) for file in FILES) > 50


async def test_another_answer_is_noticed():
    one = recording.load(FILES[0])[0]
    one["steps"][-1]["answer"]["code"] = 299
    replayer = recording.Replayer()
    await replayer.prepare()
    assert await replayer.replay(one)
