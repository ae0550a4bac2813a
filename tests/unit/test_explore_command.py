"""The command that explores the manager, as far as nothing is run."""

from __future__ import annotations

import pytest

from tools.explore import files_named, lives_named, main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-k", "NOTHING"], "Error: -k NOTHING: no life or scenario file has a name with that in it\n"),
        (["lives", "-k", "test_scale"], "Error: -k test_scale: no life has a name with that in it\n"),
        (["scenarios", "-k", "hash_scaling_life"], "Error: -k hash_scaling_life: no scenario file has a name with"),
    ],
)
def test_a_name_that_nothing_has_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(said)
    assert not captured.out


def test_names_are_found_by_a_part() -> None:
    assert "hash_scaling" in lives_named("hash_sc")
    assert files_named("test_scale") == ["tests/scenarios/test_scale.py"]
    assert len(lives_named("")) > len(lives_named("hash")) > 0
