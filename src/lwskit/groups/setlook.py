"""What explanations of sets share, whatever makes their leaders: the set's names, and how a paragraph is made. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lwskit.groups.explanation import Explanation, State
from lwskit.groups.grouptrouble import GroupTrouble, Looking
from lwskit.groups.scene import Scene
from lwskit.runtime.objects import Obj


class SetLook(ABC):
    """A look at one set; the subclasses say why it is where it is."""

    def __init__(self, scene: Scene, looking: Looking) -> None:
        assert scene.lws is not None
        self.scene, self.looking = scene, looking
        self.lws: Obj = scene.lws

    @property
    @abstractmethod
    def kind(self) -> str:
        """The kind of the set's leader workload."""

    @property
    def _name(self) -> str:
        return f"{self.scene.namespace}/{self.scene.name}"

    @property
    def _there(self) -> str:
        return f"{self.kind} {self.scene.name}"

    def _said(
        self,
        state: State,
        cause: str,
        *sentences: str,
        waits: str = "",
        advice: tuple[str, ...] = (),
        about: GroupTrouble | None = None,
    ) -> Explanation:
        return Explanation(
            namespace=self.scene.namespace,
            name=self.scene.name,
            state=state,
            cause=cause,
            sentences=tuple(s for s in sentences if s),
            group=about.group if about is not None else None,
            pod=about.pod if about is not None else "",
            waits_for=waits,
            advice=advice,
        )

    def _workload(self) -> Explanation | None:
        """Whether the leader workload stays, and its controller has looked at it."""
        workload = self.scene.workload
        assert workload is not None
        now = self.looking.leaders.observe(workload)
        if now.deleting:
            text = f"{self._there} is being deleted; the manager makes a new one when it is gone."
            return self._said(State.PROGRESSING, "workload-deleting", text, waits="the garbage collector")
        if now.observed_generation < now.generation:
            text = (
                f"{self._there} is at generation {now.generation}, of which its controller has seen "
                f"{now.observed_generation or 'none'}; if this stays so, the {self.kind} controller does not run."
            )
            waits = f"the {self.kind} controller"
            return self._said(State.BLOCKED, f"no-{self.kind.lower()}-controller", text, waits=waits)
        return None
