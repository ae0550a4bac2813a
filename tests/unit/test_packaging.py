"""The frame: constraints cover the dependencies, CI runs what the README says, pages show commands that exist."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import check_docs, readme_command

ROOT = Path(__file__).parents[2]


def project() -> dict[str, object]:
    """The project's metadata."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins() -> dict[str, str]:
    """The exact versions that CI installs."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines), "only names and exact versions"
    return {re.sub(r"[._-]+", "-", name).lower(): version for name, version in (line.split("==") for line in lines)}


def requirements() -> Iterator[str]:
    """Everything that the project asks for, as written."""
    metadata = project()
    yield from metadata["build-system"]["requires"]  # type: ignore[index]
    yield from metadata["project"]["dependencies"]  # type: ignore[index]
    for extra in metadata["project"]["optional-dependencies"].values():  # type: ignore[index]
        yield from extra


def test_every_dependency_has_an_exact_version_for_ci() -> None:
    pinned = pins()
    for requirement in requirements():
        found = re.match(r"([A-Za-z0-9._-]+)(\[[^]]*\])?(>=[0-9.]+)?", requirement)
        assert found is not None
        if found[1] == "lwskit":
            continue
        assert found[3], f"{requirement} has no lower bound"
        assert re.sub(r"[._-]+", "-", found[1]).lower() in pinned, f"{requirement} is not in constraints.txt"


def test_lower_bounds_are_not_above_what_ci_installs() -> None:
    pinned = pins()
    for requirement in requirements():
        name, _, bound = requirement.partition(">=")
        if bound:
            ours = pinned[re.sub(r"[._-]+", "-", name.split("[")[0]).lower()]
            assert tuple(map(int, re.findall(r"\d+", ours))) >= tuple(map(int, re.findall(r"\d+", bound))), requirement


def test_the_readme_has_both_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert readme_command.command("demo", text).endswith("lwskit demo")
    assert readme_command.command("tests", text).endswith("python -m pytest")


def test_a_command_that_the_readme_lacks_is_told() -> None:
    with pytest.raises(KeyError):
        readme_command.command("dance", "<!-- command: demo -->\n```sh\nlwskit demo\n```\n")


def test_links_lead_somewhere() -> None:
    assert not [fault for page in check_docs.pages() for fault in check_docs.broken_links(page)]


def test_a_broken_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_docs, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# A `B` c\n[x](other.md) [y](#a-b-c) [z](#d) `[q](gone.md)`\n```\n[c](gone.md)\n```\n[w](https://w)\n"
    )
    assert [fault.split(": ")[1] for fault in check_docs.broken_links(page)] == ["other.md does not exist", "#d"]


def test_a_page_may_show_only_commands_that_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_docs, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("`lwskit dance` and `lwskit --version`\n```sh\npip install . && .venv/bin/lwskit --loud\n```\n")
    assert list(check_docs.wrong_commands(page)) == [
        "page.md:3: lwskit --loud: cli has no option --loud",
        "page.md:1: lwskit dance: there is no command dance",
    ]


def test_quotes_are_as_the_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [fault for page in check_docs.pages() for fault in check_docs.wrong_quotes(page)]
    monkeypatch.setattr(check_docs, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    quote = "<!-- quote a.py -->\n```python\n{}\n```\n"
    page.write_text(quote.format("x = 1") + "text\n" + quote.format("y = 2\nz = 3"))
    (tmp_path / "a.py").write_text("x = 1\n\n\ny = 2\n\nz = 3\n")
    assert list(check_docs.wrong_quotes(page)) == []
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n")
    assert list(check_docs.wrong_quotes(page)) == ["page.md: the quote of a.py has 'z = 3', the file None"]
    (tmp_path / "a.py").unlink()
    assert list(check_docs.wrong_quotes(page)) == ["page.md: the quote of a.py has 'x = 1', the file None"]
