"""What admission makes of a pod of a set (specification: 10 §8.2). Pure."""

from __future__ import annotations

from lwskit.groups import environment, identity
from lwskit.runtime.objects import Obj


def admitted(pod: Obj, namespace: str) -> Obj:
    """The pod with its place in its group: labels, subdomain, exclusive terms, then environment; a copy.

    A pod of no set is returned as it is. Raises DecisionError with the sentence that it is denied with.
    """
    return environment.with_environment(identity.identified(pod, namespace), namespace)
