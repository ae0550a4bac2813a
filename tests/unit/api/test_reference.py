"""Names are written once: each has an entry in the reference, and no other source file spells one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lwskit.api import disaggregated_names, disaggregated_reference, names, reference
from tools import names_page

SOURCE = Path(__file__).parents[3] / "src" / "lwskit"
DEFINITIONS = (SOURCE / "api" / "names.py", SOURCE / "api" / "disaggregated_names.py")
LOWER = ("runtime", "embedded", "testing")
"""Packages that know nothing of sets, and to which such words as FailedCreate are Kubernetes' own."""
NAMES = {key: value for key, value in vars(names).items() if key.isupper() and isinstance(value, str)}
DISAGGREGATED = {k: v for k, v in vars(disaggregated_names).items() if k.isupper() and isinstance(v, str)}
KINDS = re.compile(r"_LABEL$|_ANNOTATION$|_FINALIZER$|_GATE$|^ENV_|^CONDITION_")
OURS = {value for key, value in NAMES.items() if KINDS.search(key)}
THEIRS = {value for key, value in DISAGGREGATED.items() if KINDS.search(key)}
KEYS = (OURS | THEIRS) - {disaggregated_names.APP_LABEL, disaggregated_names.CONDITION_READY}
"""Names that are written once; those left out are words that others have a use for."""
FOREIGN = {names.POD_DELETION_COST_ANNOTATION}
"""Kubernetes' own names, that others may have a use for."""
FORM = re.compile(
    r"leaderworkerset\.sigs\.k8s\.io|^disaggregatedset\.x-k8s\.io/(?!v\d)|^(?:LWS|TPU|DISAGGREGATEDSET)_[A-Z]|^scheduling\.k8s\.io/(?!v\d)|google\.com/tpu|volcano\.sh/"
)
"""What looks like a name of ours."""
ENTRIES = [entry for _, entries in names_page.PARTS for entry in entries]
OF_DISAGGREGATED = [entry for title, entries in names_page.PARTS for entry in entries if "Disaggregated" in title]


def spelled(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts of a module that are one of the names or look like one, with their lines; docstrings do not count."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        if node.value in KEYS or FORM.search(node.value):
            yield node.lineno, node.value


def test_the_check_itself_sees_what_it_should() -> None:
    text = (
        '"""leaderworkerset.sigs.k8s.io/name"""\n'
        'a = "leaderworkerset.sigs.k8s.io/mine"\n'
        'b = f"{a}/{1} scheduling.k8s.io/v1"\n'
        'c = {"LWS_GROUP_SIZE": "Degraded"}\n'
        'd = "LWS001"\n'
        'e = "scheduling.k8s.io/v1beta1"\n'
        'f = "scheduling.k8s.io/group-name"\n'
    )
    found = [value for _, value in spelled(ast.parse(text))]
    assert found == [
        "leaderworkerset.sigs.k8s.io/mine",
        "scheduling.k8s.io/group-name",
        "LWS_GROUP_SIZE",
        "Degraded",
    ]


FILES = [
    f for f in sorted(SOURCE.rglob("*.py")) if f not in DEFINITIONS and f.relative_to(SOURCE).parts[0] not in LOWER
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_other_file_spells_a_name(file: Path) -> None:
    found = [f"{file}:{line}: {text}" for line, text in spelled(ast.parse(file.read_text()))]
    assert not found, f"write these once, in {DEFINITIONS}: {found}"


def test_the_lower_packages_know_nothing_of_our_domain() -> None:
    for package in LOWER:
        for file in (SOURCE / package).rglob("*.py"):
            assert names.PREFIX not in file.read_text(), file


def test_every_name_has_one_entry() -> None:
    listed = [entry.name for entry in ENTRIES if entry not in OF_DISAGGREGATED]
    assert sorted(listed) == sorted(OURS)
    assert sorted(entry.name for entry in OF_DISAGGREGATED) == sorted(THEIRS)


def test_names_stand_in_the_part_that_they_belong_to() -> None:
    other = disaggregated_reference
    parts = (
        ("_LABEL", reference.LABELS, other.LABELS),
        ("_ANNOTATION", reference.ANNOTATIONS, other.ANNOTATIONS),
        ("_FINALIZER", reference.FINALIZERS, ()),
        ("ENV_", reference.VARIABLES, other.VARIABLES),
        ("CONDITION_", reference.CONDITIONS, other.CONDITIONS),
    )
    for mark, *both in parts:
        for defined, entries in zip((NAMES, DISAGGREGATED), both, strict=True):
            wanted = {v for k, v in defined.items() if k.endswith(mark) or (mark.endswith("_") and k.startswith(mark))}
            assert {entry.name for entry in entries} == wanted
    for entry in ENTRIES:
        assert all((entry.on, entry.written, entry.read))
        assert entry.since in (reference.EARLIER, reference.NEWEST)


def test_the_page_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert names_page.main(["--check"]) == 0
    assert names_page.main([]) == 2
    assert "--write" in capsys.readouterr().err


def test_a_page_that_is_not_current_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(names_page, "PAGE", tmp_path / "names.md")
    assert names_page.main(["--check"]) == 1
    assert "run python -m tools.names_page --write" in capsys.readouterr().err
    assert names_page.main(["--write"]) == 0
    assert names_page.main(["--check"]) == 0
    (tmp_path / "names.md").write_text("old")
    assert names_page.main(["--check"]) == 1
