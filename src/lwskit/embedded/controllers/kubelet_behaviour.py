"""How long a pod takes and what goes wrong with it: the kubelet's settings and the annotations of a pod. Pure.

Annotations of a pod (all optional, durations in seconds, `never` for infinitely long):

* `embedded.k8s.test/start-delay`: from being bound to running;
* `embedded.k8s.test/ready-delay`: from running to ready, also after a restart;
* `embedded.k8s.test/stop-delay`: from the request for deletion to being gone, at most the grace period;
* `embedded.k8s.test/run-time`: how long the containers run before they exit;
* `embedded.k8s.test/exit-code`: what they exit with, 0 by default;
* `embedded.k8s.test/crash`: containers exit with 1 until each has been restarted that often; `always` never ends.
  `NAME=COUNT`, several separated by commas, for single containers. Raised on a running pod, it restarts them;
* `embedded.k8s.test/fail`: the pod fails with this reason, for example `Evicted`;
* `embedded.k8s.test/image-pull`: with `fail` the images are not to be had as long as it says so.

What is misspelt or cannot be read counts as absent; `problems` says so.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lwskit.runtime.objects import annotations_of

PREFIX = "embedded.k8s.test/"
START_DELAY = PREFIX + "start-delay"
READY_DELAY = PREFIX + "ready-delay"
STOP_DELAY = PREFIX + "stop-delay"
RUN_TIME = PREFIX + "run-time"
EXIT_CODE = PREFIX + "exit-code"
CRASH = PREFIX + "crash"
FAIL = PREFIX + "fail"
IMAGE_PULL = PREFIX + "image-pull"
PULL_FAILS = "fail"
"""What `image-pull` may say."""

KNOWN = (CRASH, EXIT_CODE, FAIL, IMAGE_PULL, READY_DELAY, RUN_TIME, START_DELAY, STOP_DELAY)
"""The annotations that a pod may have."""
LARGEST_CODE = 255
"""The largest code with which a program can exit."""

NEVER = math.inf
"""A duration that does not end."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What happens with a pod and when; durations in seconds.

    `crashes` says how often each container is to be restarted, under the empty name those that are not named; `backoff`
    is the wait before a container's second restart, which doubles from then on.
    """

    start_delay: float = 0.2
    ready_delay: float = 0.0
    stop_delay: float = 0.0
    run_time: float = NEVER
    exit_code: int = 0
    crashes: Mapping[str, float] | None = None
    fail: str = ""
    backoff: float = 10.0
    image_pull_fails: bool = False

    def crashes_of(self, container: str) -> float:
        """How often a container is to be restarted in all."""
        crashes = self.crashes or {}
        return crashes.get(container, crashes.get("", 0))


def behaviour_of(pod: Mapping[str, Any], defaults: Behaviour, speed: float = 1.0) -> Behaviour:
    """The behaviour of one pod: its annotations over the defaults, durations divided by `speed`.

    What cannot be read counts as absent. The delay of the end is never longer than the pod's grace period.
    """
    notes = annotations_of(pod)
    found = replace(
        defaults,
        start_delay=_scaled(_seconds(notes.get(START_DELAY), defaults.start_delay), speed),
        ready_delay=_scaled(_seconds(notes.get(READY_DELAY), defaults.ready_delay), speed),
        run_time=_scaled(_seconds(notes.get(RUN_TIME), defaults.run_time), speed),
        exit_code=_code(notes.get(EXIT_CODE), defaults.exit_code),
        fail=notes.get(FAIL, defaults.fail),
        backoff=_scaled(defaults.backoff, speed),
    )
    if IMAGE_PULL in notes:
        found = replace(found, image_pull_fails=notes[IMAGE_PULL] == PULL_FAILS)
    if CRASH in notes:
        found = replace(found, crashes=_crashes(notes[CRASH]))
    stop = _seconds(notes.get(STOP_DELAY), defaults.stop_delay)
    grace = pod["metadata"].get("deletionGracePeriodSeconds")
    if grace is not None:
        stop = min(stop, grace)
    return replace(found, stop_delay=_scaled(stop, speed))


def problems(annotations: Mapping[str, str], containers: Collection[str]) -> Iterator[str]:
    """What is wrong with the annotations of a pod that has these containers, one sentence each."""
    names = ", ".join(name.removeprefix(PREFIX) for name in KNOWN)
    for key in sorted(k for k in annotations if k.startswith(PREFIX)):
        text = annotations[key]
        if key not in KNOWN:
            near = difflib.get_close_matches(key, KNOWN, n=1)
            hint = f", perhaps {near[0].removeprefix(PREFIX)}" if near else ""
            yield f"annotation {key} is unknown and counts as absent; after {PREFIX} may stand {names}{hint}"
        elif key == EXIT_CODE:
            if _code(text, -1) < 0:
                yield f'annotation {key} is "{text}" and counts as absent; it must be a number from 0 to {LARGEST_CODE}'
        elif key == CRASH:
            yield from _crash_problems(text, containers)
        elif key == FAIL:
            if not text:
                yield f"annotation {key} is empty and counts as absent; it must be a reason, for example Evicted"
        elif key == IMAGE_PULL:
            if text != PULL_FAILS:
                yield f'annotation {key} is "{text}" and counts as absent; it must be "{PULL_FAILS}"'
        elif not _is_duration(text):
            yield (
                f'annotation {key} is "{text}" and counts as absent; it must be a number of seconds, '
                'at least 0, or "never"'
            )


def _crash_problems(text: str, containers: Collection[str]) -> Iterator[str]:
    for part in text.split(","):
        name, sign, count = part.strip().rpartition("=")
        if not re.fullmatch(r"[0-9]+|always", count):
            yield (
                f'annotation {CRASH} is "{text}", of which "{part.strip()}" counts as 0; it must be a number of '
                'restarts or "always", or such with a container before it, NAME=COUNT, several separated by commas'
            )
        if sign and name not in containers:
            known = ", ".join(containers)
            yield f'annotation {CRASH} names container "{name}", which the pod does not have; its containers: {known}'


def _is_duration(text: str) -> bool:
    try:
        return text == "never" or 0 <= float(text) < NEVER
    except ValueError:
        return False


def _code(text: str | None, default: int) -> int:
    if text is None or not re.fullmatch(r"[0-9]{1,3}", text) or int(text) > LARGEST_CODE:
        return default
    return int(text)


def _scaled(duration: float, speed: float) -> float:
    return NEVER if duration == NEVER else duration / speed


def _seconds(text: str | None, default: float) -> float:
    if text is None:
        return default
    if text == "never":
        return NEVER
    return float(text) if _is_duration(text) else default


def _crashes(text: str) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, count = part.strip().rpartition("=")
        found[name] = NEVER if count == "always" else (int(count) if re.fullmatch("[0-9]+", count) else 0)
    return found
