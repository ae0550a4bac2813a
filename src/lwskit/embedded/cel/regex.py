"""Regular expressions in the syntax of RE2. Pure.

Whether a text matches, RE2 itself says, which is a part of the parser's package. What a text contains, Python's
expressions find; a pattern that they take for something else is refused.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

from lwskit.embedded.cel.values import EvaluationError

_FOREIGN = re.compile(r"\[\[:|\\[pPCQzEhRXGK]|\(\?[=!]|\(\?P?<[=!]|\(\?[a-zA-Z-]*[UimaLux]|[^\x00-\x7f]|\{,")
_DIFFERENT = re.compile(r"(\\.)|(\[\^?\]?(?:\\.|[^\]\\])*\])|(\$)|\(\?P?<(\w+)>", re.DOTALL)


@cache
def _program() -> Any:
    from cel_expr_python import cel

    return cel.NewEnv(variables={"t": cel.Type.STRING, "p": cel.Type.STRING}).compile("t.matches(p)")


@lru_cache(maxsize=4096)
def matches(text: str, pattern: str) -> bool:
    """Whether a part of the text matches. Raises EvaluationError for a pattern that is none."""
    value = _program().eval(data={"t": text, "p": pattern}).value()
    if isinstance(value, bool):
        return value
    raise EvaluationError(f"error parsing regexp: {_reason(str(value), pattern)}")


def problem(pattern: str) -> str:
    """What is wrong with a pattern; empty if nothing is."""
    try:
        matches("", pattern)
    except EvaluationError as e:
        return str(e)
    return ""


_REASONS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class range": "invalid character class range",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


def _reason(text: str, pattern: str) -> str:
    """RE2's complaint in the words of the real server's expressions, where these are known."""
    for known, word in _REASONS.items():
        at = text.find(known)
        if at >= 0:
            argument = text[at + len(known) :].removeprefix(":").strip()
            where = pattern if word == "unexpected )" else argument
            return f"{word}: `{where}`" if where else f"{word}: ``"
    return text.rpartition("INVALID_ARGUMENT: ")[2]


@lru_cache(maxsize=512)
def _translated(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(_DIFFERENT.sub(_python, pattern), re.ASCII)
    except (re.error, RecursionError, OverflowError):
        return None


def _python(found: re.Match[str]) -> str:
    if found[3]:
        return r"\Z"
    return f"(?P<{found[4]}>" if found[4] else found[0]


def finder(pattern: str) -> re.Pattern[str]:
    """The pattern for searches. Raises EvaluationError for one that is none, or that means something else to Python."""
    wrong = problem(pattern)
    if wrong:
        raise EvaluationError(f"Illegal regex: {wrong}")
    compiled = None if unsupported(pattern) else _translated(pattern)
    if compiled is None:
        raise EvaluationError(unsupported_text(pattern))
    return compiled


def unsupported(pattern: str) -> bool:
    """Whether searches for a pattern cannot be made here as on a real server."""
    return bool(_FOREIGN.search(pattern)) or _translated(pattern) is None


def unsupported_text(pattern: str) -> str:
    """The sentence about such a pattern."""
    return f"the embedded API server cannot search for {pattern!r} with find and findAll; matches can use it"
