"""How long a pod takes and what goes wrong with it: the kubelet's settings and the annotations of a pod. Pure.

Annotations of a pod (all optional, durations in seconds, `never` for infinitely long):

* `embedded.k8s.test/start-delay`: from being bound to running;
* `embedded.k8s.test/ready-delay`: from running to ready, also after a restart;
* `embedded.k8s.test/stop-delay`: from the request for deletion to being gone, at most the grace period;
* `embedded.k8s.test/run-time`: how long the containers run before they exit;
* `embedded.k8s.test/exit-code`: what they exit with, 0 by default;
* `embedded.k8s.test/crash`: containers exit with 1 until each has been restarted that often; `always` never ends.
  `NAME=COUNT`, several separated by commas, for single containers. Raised on a running pod, it restarts them;
* `embedded.k8s.test/fail`: the pod fails with this reason, for example `Evicted`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
        exit_code=int(_seconds(notes.get(EXIT_CODE), defaults.exit_code)),
        fail=notes.get(FAIL, defaults.fail),
        backoff=_scaled(defaults.backoff, speed),
    )
    if CRASH in notes:
        found = replace(found, crashes=_crashes(notes[CRASH]))
    stop = _seconds(notes.get(STOP_DELAY), defaults.stop_delay)
    grace = pod["metadata"].get("deletionGracePeriodSeconds")
    if grace is not None:
        stop = min(stop, grace)
    return replace(found, stop_delay=_scaled(stop, speed))


def _scaled(duration: float, speed: float) -> float:
    return NEVER if duration == NEVER else duration / speed


def _seconds(text: str | None, default: float) -> float:
    if text is None:
        return default
    if text == "never":
        return NEVER
    try:
        value = float(text)
    except ValueError:
        return default
    return default if math.isnan(value) else max(0.0, value)


def _crashes(text: str) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, count = part.strip().rpartition("=")
        found[name] = NEVER if count == "always" else _seconds(count, 0)
    return found
