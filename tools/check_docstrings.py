"""Checks that what is public is documented: a docstring for each name, and for coroutines what cancelling them does.

python -m tools.check_docstrings [PACKAGE...]      lwskit.runtime and lwskit.testing unless packages are named

The word on cancellation may stand in the docstring of a method's class, or of one that it is derived from.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
PACKAGES = ("lwskit.runtime", "lwskit.testing")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(body: Iterable[ast.stmt], owner: ast.ClassDef | None = None) -> Iterator[tuple[str, Definition]]:
    """The public classes, functions and methods of a module or class; with a method its class's name."""
    for node in body:
        if not isinstance(node, Definition) or node.name.startswith("_"):
            continue
        yield owner.name if owner else "", node
        if isinstance(node, ast.ClassDef):
            yield from definitions(node.body, node)


def is_overload(node: Definition) -> bool:
    """Whether it is only one of several signatures of a function that follows."""
    return any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list)


def speaks_of_cancellation(name: str, classes: Mapping[str, ast.ClassDef]) -> bool:
    """Whether a class, or one of those that it is derived from, says what cancelling its coroutines does."""
    node = classes.get(name)
    if node is None:
        return False
    bases = (base.id for base in node.bases if isinstance(base, ast.Name) and base.id != name)
    return "cancel" in (ast.get_docstring(node) or "").lower() or any(
        speaks_of_cancellation(base, classes) for base in bases
    )


def faults(modules: Mapping[str, ast.Module]) -> Iterator[str]:
    """What is missing in modules, given by the names that they are to be called in the answers."""
    found = [(name, owner, node) for name, tree in modules.items() for owner, node in definitions(tree.body)]
    classes = {node.name: node for _, _, node in found if isinstance(node, ast.ClassDef)}
    for name, owner, node in found:
        place = f"{name}:{node.lineno}: {f'{owner}.' if owner else ''}{node.name}"
        text = ast.get_docstring(node)
        if is_overload(node):
            continue
        if not text:
            yield f"{place} has no docstring"
        elif isinstance(node, ast.AsyncFunctionDef) and not (
            "cancel" in text.lower() or speaks_of_cancellation(owner, classes)
        ):
            yield f"{place} does not say what its cancellation does"


def main(names: Sequence[str]) -> int:
    """Print every fault; 1 if there is one."""
    modules = {
        str(file.relative_to(SOURCE)): ast.parse(file.read_text())
        for name in names or PACKAGES
        for file in sorted((SOURCE / name.replace(".", "/")).rglob("*.py"))
    }
    found = list(faults(modules))
    print("\n".join(found) if found else f"{len(modules)} modules: all that is public is documented")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
