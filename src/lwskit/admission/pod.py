"""What admission makes of a pod of a set (specification: 10 §8.2). Pure."""

from __future__ import annotations

from lwskit.admission import shape
from lwskit.api import names
from lwskit.groups import accelerators, environment, gates, identity
from lwskit.groups.ports import Draw, PodScheduler
from lwskit.runtime.objects import Obj, labels_of


def admitted(pod: Obj, namespace: str, draw: Draw, scheduler: PodScheduler | None = None) -> Obj:
    """The pod with its place in its group; a copy that shares what is unchanged, and the pod is never changed itself.

    In this order: identity, what `scheduler` wants, TPU variables, the set's variables, the scheduling gate.
    `namespace` is that of the request; `draw` gives random characters. A pod of no set is returned as it is, and one
    that was admitted before stays equal. Raises DecisionError with the sentence that it is denied with, and
    InvalidRequest for what is no pod.
    """
    shape.check(pod)
    if names.NAME_LABEL not in labels_of(pod):
        return pod
    waits = gates.is_to_wait(pod)
    pod = identity.identified(pod, namespace, draw)
    if scheduler is not None:
        pod = scheduler.scheduled(pod, draw)
    pod = accelerators.with_tpu_variables(pod)
    pod = environment.with_environment(pod, namespace)
    return gates.with_gate(pod) if waits else pod
