"""Record what a real API server answers to the requests under tests/unit/embedded/answers, for the unit tests.

Usage: record_answers.py SERVER TOKEN [NAME…]

Steps that the embedded server answers otherwise are marked: `compare` is then "status" or "nothing". The requests
themselves are edited by hand.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/unit/embedded"))
import replaying

from lwskit.embedded.apiserver import ApiServer
from lwskit.runtime.client.transport import HttpRequest


def send(server: str, token: str, request: HttpRequest) -> tuple[int, bytes]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    query = "&".join(f"{k}={urllib.request.quote(v)}" for k, v in request.query)
    url = server + request.path + (f"?{query}" if query else "")
    headers = {**request.headers, "Authorization": f"Bearer {token}"}
    asked = urllib.request.Request(url, request.body, headers, method=request.method)
    try:
        with urllib.request.urlopen(asked, context=context) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def namespace_step(name: str) -> dict[str, Any]:
    return {
        "method": "POST",
        "path": "/api/v1/namespaces",
        "type": "application/json",
        "body": {"metadata": {"name": name}},
    }


async def record(server: str, token: str, name: str) -> None:
    recording = replaying.load(name)
    namespace = f"answers-{random.randrange(10**6)}"
    embedded = ApiServer(rng=random.Random(1))
    for step in [namespace_step(namespace), *recording.get("setup", ())]:
        request = replaying.request(step, namespace)
        send(server, token, request)
        await embedded.handle(request)
    marked = 0
    for step in recording["steps"]:
        request = replaying.request(step, namespace)
        drop = step.get("drop", [])
        status, answer = send(server, token, request)
        step["status"], step["answer"] = status, replaying.normal(answer, namespace, drop)
        ours = await embedded.handle(request)
        step.pop("compare", None)
        if ours.status != status:
            step["compare"] = "nothing"
        elif replaying.normal(ours.body, namespace, drop) != step["answer"]:
            step["compare"] = "status"
        marked += "compare" in step
    lines = [f"  {json.dumps(step)}" for step in recording.pop("steps")]
    head = json.dumps(recording)[:-1]
    (replaying.FOLDER / f"{name}.json").write_text(head + ', "steps": [\n' + ",\n".join(lines) + "\n]}\n")
    print(f"{name}: {len(lines)} steps, {marked} not the same")


def main(server: str, token: str, *names: str) -> None:
    for name in names or sorted(p.stem for p in replaying.FOLDER.glob("*.json")):
        asyncio.run(record(server, token, name))


if __name__ == "__main__":
    main(*sys.argv[1:])
