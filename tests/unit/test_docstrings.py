"""What is public of the controller library and of the test helpers is documented."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools import check_docstrings

TEXT = '''
class Base:
    """Cancelling its coroutines does nothing."""

    async def told(self):
        """Said above."""

class Derived(Base):
    """More of it."""

    async def inherited(self):
        """Said by the base."""

    def bare(self): ...

class Silent:
    """Says nothing of it."""

    async def mute(self):
        """Waits."""

    async def loud(self):
        """Cancelled, it ends."""

    async def _private(self): ...

async def alone():
    """Waits, too."""

@overload
def many(x): ...
'''


def test_the_check_itself_sees_what_it_should() -> None:
    assert list(check_docstrings.faults({"m.py": ast.parse(TEXT)})) == [
        "m.py:14: Derived.bare has no docstring",
        "m.py:19: Silent.mute does not say what its cancellation does",
        "m.py:27: alone does not say what its cancellation does",
    ]


def test_everything_public_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    code = check_docstrings.main(())
    assert "all that is public is documented" in capsys.readouterr().out
    assert code == 0


def test_a_fault_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_docstrings, "SOURCE", tmp_path)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "till.py").write_text("def ring(): ...\n")
    assert check_docstrings.main(["shop"]) == 1
    assert capsys.readouterr().out == "shop/till.py:1: ring has no docstring\n"
