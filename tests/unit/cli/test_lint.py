"""`lwskit lint`: files, folders, standard input, options and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lwskit.cli.lint import OUTPUT_NAMES, command
from lwskit.lint import files
from lwskit.lint.output import OUTPUTS
from tests.unit.lint.support import lws

ROOT = Path(__file__).parents[3]


def run(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], input=stdin)


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    file = tmp_path / "clean.yaml"
    file.write_text(lws())
    return file


@pytest.fixture
def warned(tmp_path: Path) -> Path:
    file = tmp_path / "warned.yaml"
    file.write_text(lws("warned", worker={"hostname": "x"}))
    return file


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    file = tmp_path / "refused.yaml"
    file.write_text(lws("refused", template={"size": 0}))
    return file


def test_exit_codes(clean: Path, warned: Path, refused: Path, tmp_path: Path) -> None:
    assert run(clean).exit_code == 0
    assert run(warned).exit_code == 0
    assert run(warned, "--strict").exit_code == 1
    assert run(warned, "--strict", "--ignore", "LWS432").exit_code == 0
    assert run(refused).exit_code == 1
    assert run(clean, refused, tmp_path / "none.yaml").exit_code == 2
    assert run().exit_code == 2
    assert run(clean, "--output", "xml").exit_code == 2


def test_a_line_for_each_finding_and_a_summary(warned: Path) -> None:
    result = run(warned)
    first, hint, summary = result.stdout.splitlines()
    assert first.startswith(f"{warned}:")
    assert " warning LWS432: spec.leaderWorkerTemplate.workerTemplate.spec.hostname: " in first
    assert hint == "    leave it out"
    assert summary == "1 LeaderWorkerSet in 1 file: 0 errors, 1 warning"


def test_standard_input() -> None:
    result = run("-", "-o", "json", stdin=lws(worker={"hostname": "x"}))
    assert [f["file"] for f in json.loads(result.stdout)["findings"]] == ["<stdin>"]
    assert run("-", stdin="").stdout == "0 LeaderWorkerSets in 1 file: 0 errors, 0 warnings\n"
    assert run("-", "-", stdin="").exit_code == 2
    assert run("-", "--old", "-", stdin="").exit_code == 2


def test_a_folder_is_its_manifests(clean: Path, warned: Path, refused: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a: [")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "deeper.yaml").write_text("a: [")
    (tmp_path / "service.json").write_text('{"apiVersion": "v1", "kind": "Service"}')
    result = run(tmp_path)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == (
        "3 LeaderWorkerSets in 4 files: 1 error, 1 warning; 1 other document skipped"
    )


def test_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty, binary, zeros, other = (tmp_path / n for n in ("empty", "binary.yaml", "zeros.yaml", "utf16.yaml"))
    empty.mkdir()
    binary.write_bytes(b"\xff\xfa")
    zeros.write_bytes(b"a: \0\n")
    other.write_bytes("a: 1\n".encode("utf-16-le"))
    huge = tmp_path / "huge.yaml"
    huge.write_text("#" * 100)
    monkeypatch.setattr(files, "LARGEST", 99)
    for path, sentence in (
        (tmp_path / "none", f"cannot read {tmp_path}/none: No such file or directory"),
        (empty, f"{empty} is a folder without .yaml, .yml or .json files"),
        (binary, f"cannot read {binary}: it is not UTF-8 text"),
        (zeros, f"cannot read {zeros}: it is not text"),
        (other, f"cannot read {other}: it is not text"),
        (huge, f"cannot read {huge}: it has more than "),
        (Path("/dev/null"), "cannot read /dev/null: it is no file"),
    ):
        result = run(path)
        assert (result.exit_code, result.exception is None or isinstance(result.exception, SystemExit)) == (2, True)
        assert result.stdout.startswith(f"{path}: error LWS001: {sentence}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read(clean: Path) -> None:
    clean.chmod(0)
    assert "Permission denied" in run(clean).stdout


def test_a_mark_at_the_beginning_and_other_line_ends_do_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    text = lws(worker={"hostname": "x"})
    file.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    line = 1 + text.splitlines().index("        hostname: x")
    assert f"{file}:{line}:9: warning LWS432" in run(file).stdout


def test_broken_yaml_is_a_sentence_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text("a: b: c\n")
    result = run(file)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (
        2,
        f"{file}:1:5: error LWS001: this is neither YAML nor JSON: mapping values are not allowed in this context",
    )


def test_codes_to_ignore_are_known_warnings(clean: Path) -> None:
    for code, why in (("LWS999", "there is no code 'LWS999'"), ("LWS002", "LWS002 is no warning")):
        result = run(clean, "--ignore", code)
        assert result.exit_code == 2
        assert why in result.stderr


def test_old_sets(clean: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(lws(container={"image": "img:v0"}))
    assert "LWS501" in run(clean, "--old", old).stdout
    assert "LWS501" in run(clean, "--old", "-", stdin=old.read_text()).stdout
    assert run(clean, "--old", old, "--strict").exit_code == 1
    result = run(clean, "--old", tmp_path / "none")
    assert (result.exit_code, result.stderr) == (2, f"--old: cannot read {tmp_path}/none: No such file or directory\n")


def test_the_namespace_of_sets_without_one(clean: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(lws(container={"image": "img:v0"}, meta={"namespace": "team"}))
    assert "LWS501" not in run(clean, "--old", old).stdout
    assert "LWS501" in run(clean, "--old", old, "-n", "team").stdout


def test_sets_as_they_are_may_come_from_several_places(tmp_path: Path) -> None:
    new, base = tmp_path / "new.yaml", tmp_path / "base"
    changed = {"container": {"image": "img:v2"}}
    new.write_text("---\n".join(lws(name, **changed) for name in ("a", "b", "fresh")))
    base.mkdir()
    (base / "a.yaml").write_text(lws("a"))
    empty = tmp_path / "empty.yaml"
    empty.write_text("")
    result = run(new, "--old", base, "--old", "-", "--old", empty, "--output", "json", stdin=lws("b"))
    findings = json.loads(result.stdout)["findings"]
    assert [(f["code"], f["name"]) for f in findings] == [("LWS501", "a"), ("LWS501", "b")]
    assert run(new, "--old", "-", "--old", "-", stdin="").exit_code == 2


def test_scheduling_needs_the_gate(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(lws(scheduling={}))
    refused = run(file)
    assert "spec.scheduling: Forbidden: requires the WorkloadAwareScheduling feature gate" in refused.stdout
    assert "--scheduler" in refused.stdout
    assert run(file, "--scheduler", "kubernetes").exit_code == 0


def test_choices_are_what_there_is() -> None:
    assert set(OUTPUT_NAMES) == set(OUTPUTS)


def test_the_samples_are_accepted() -> None:
    result = run(ROOT / "config" / "samples", "--strict", "--ignore", "LWS202")
    assert result.exit_code == 0, result.stdout


def test_help_needs_little() -> None:
    code = (
        "import sys; from lwskit.cli.main import cli; cli.get_command(None, 'lint'); "
        "print([m for m in ('yaml', 'pydantic', 'jsonschema_rs', 'lwskit.lint', 'aiohttp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
