"""Sequences with the answers of a real server, kept so that the embedded one can be checked without it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.transport import InProcessTransport
from tests.differential.compare import SELECTED, Run, install, last_object
from tests.differential.kinds import ALL
from tests.differential.normal import differences
from tests.differential.session import Session, SetClock

FOLDER = Path(__file__).parent / "regressions"
ANSWER, BEFORE = "the answer", "as before"
"""What stands for an object that is the answer itself, or the same as after the step before."""


def as_recording(run: Run, about: str) -> dict[str, Any]:
    """A run as it is kept: what is said twice is said once."""
    steps: list[dict[str, Any]] = []
    last: dict[str, Any] = {}
    for step, recorded in zip(run.steps, run.recorded, strict=True):
        entry = {"step": step, **recorded}
        after, look = recorded.get("after"), step.get("look", "")
        if after is not None:
            answer = recorded["answer"]
            if after["body"] == answer.get("body") and after["code"] == 200:
                entry["after"] = ANSWER
            elif after == last.get(look):
                entry["after"] = BEFORE
            last[look] = after
        steps.append(entry)
    return {"about": about, "steps": steps, "events": run.events}


def answers(recording: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """What the real server said at each step, in full."""
    last: dict[str, Any] = {}
    for entry in recording["steps"]:
        found = {"answer": entry["answer"]}
        if "after" in entry:
            look, after = entry["step"]["look"], entry["after"]
            if after == ANSWER:
                after = {"code": 200, "body": entry["answer"]["body"]}
            elif after == BEFORE:
                after = last[look]
            found["after"] = last[look] = after
        yield found


def load(file: Path) -> list[dict[str, Any]]:
    """The recordings in a file."""
    return json.loads(file.read_text())


def save(file: Path, recordings: Iterable[Mapping[str, Any]]) -> None:
    """Write recordings, one a line."""
    file.parent.mkdir(exist_ok=True)
    file.write_text("[\n" + ",\n".join(json.dumps(r) for r in recordings) + "\n]\n")


class Replayer:
    """Plays recordings on one embedded server."""

    def __init__(self) -> None:
        self._clock = SetClock(datetime.fromisoformat("2026-01-01T00:00:00+00:00"))
        self._transport = InProcessTransport(ApiServer(clock=self._clock, rng=random.Random(1)))
        self._count = 0

    async def prepare(self) -> None:
        """Make the custom resource."""
        await install(self._transport)

    async def replay(self, recording: Mapping[str, Any]) -> list[str]:
        """Where the embedded server answers otherwise than the real one did, one line each."""
        self._count += 1
        session = Session(self._transport, f"recorded-{self._count}")
        since = await session.start((), [t.collection for t in ALL.values()])
        for number, (entry, wanted) in enumerate(zip(recording["steps"], answers(recording), strict=True)):
            self._clock.moment = datetime.fromisoformat(entry["time"])
            found = differences(await session.play(entry["step"]), wanted)
            if found:
                return [f"step {number}: {line}" for line in found]
        return await self._compare_events(session, since, recording["events"])

    async def _compare_events(self, session: Session, since: Mapping[str, str], wanted: Mapping[str, Any]) -> list[str]:
        if not wanted:
            return []
        for tested in ALL.values():
            await session.post(tested.collection, last_object(tested))
            for selector in ("", SELECTED):
                if f"{tested.collection}?{selector}" not in wanted:
                    continue  # The recording is older than the kind.
                found = await session.events(tested.collection, since[tested.collection], selector)
                lines = differences(found, wanted[f"{tested.collection}?{selector}"])
                if lines:
                    return [f"events of {tested.kind} {selector}: {line}" for line in lines]
        return []
