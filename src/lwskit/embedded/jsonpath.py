"""The simple JSON paths of printer columns: fields, indexes, wildcards, filters by equality. Pure.

Source: Kubernetes documentation, "JSONPath Support".
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

Step = tuple[str, Any]

_TOKEN = re.compile(
    r"""
      \.(?P<field>(?:\\.|[^.\[\]\\])+)
    | \[\?\(@(?P<path>[^=!]*?)\s*(?P<sign>==|!=)\s*(?P<value>"[^"]*"|'[^']*'|[^)]+?)\s*\)\]
    | \['(?P<quoted>[^']*)'\]
    | \["(?P<double>[^"]*)"\]
    | \[(?P<index>-?\d+)\]
    | \[(?P<any>\*)\]
    """,
    re.VERBOSE,
)


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[Step, ...] | None:
    """The path taken apart, None when it cannot be read."""
    text = path.strip().removeprefix("{").removesuffix("}")
    if text and not text.startswith((".", "[")):
        text = "." + text
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        at = match.end()
        if match["field"] is not None:
            name = re.sub(r"\\(.)", r"\1", match["field"])
            steps.append(("any", None) if name == "*" else ("field", name))
        elif match["sign"] is not None:
            raw = match["value"].strip()
            value = raw[1:-1] if raw[:1] in "\"'" else raw
            steps.append(("filter", (match["path"] or "", match["sign"] == "==", value)))
        elif match["index"] is not None:
            steps.append(("index", int(match["index"])))
        elif match["any"] is not None:
            steps.append(("any", None))
        else:
            steps.append(("field", match["quoted"] if match["quoted"] is not None else match["double"]))
    return tuple(steps)


def find(path: str, obj: Any) -> list[Any]:
    """All values at a path, empty when there is none or the path cannot be read."""
    steps = _steps(path)
    if steps is None:
        return []
    values = [obj]
    for kind, detail in steps:
        values = [found for value in values for found in _step(kind, detail, value)]
    return values


def _step(kind: str, detail: Any, value: Any) -> list[Any]:
    if kind == "field":
        return [value[detail]] if isinstance(value, dict) and detail in value else []
    if kind == "index":
        ok = isinstance(value, list) and -len(value) <= detail < len(value)
        return [value[detail]] if ok else []
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if kind == "any":
        return items
    path, equal, wanted = detail
    return [item for item in items if any(_text(v) == wanted for v in find(path, item)) is equal]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
