"""What the lane of recorded cases makes of the comparison's output, and how the real lane shares out its files."""

from __future__ import annotations

from tools.lanes import differing, idle_patterns, lane_files, shares

EVENT = '  -snapshots.ready.event[Normal/GroupsProgressing].note = "Created"'
STATUS = "  +snapshots.ready.lws[sample].status.replicas = 2"


def test_same_cases_do_not_differ() -> None:
    assert differing(["a: same", "b-c: same", "allowed 3: x", "2 passed, 0 failed"], ["a", "b-c"]) == {}


def test_a_case_in_which_only_events_differ_is_told_apart() -> None:
    lines = ["a: 1 lines differ", EVENT, "b: 2 lines differ", EVENT, STATUS, "c: same", "1 passed, 2 failed"]
    assert differing(lines, ["a", "b", "c"]) == {"a": True, "b": False}


def test_differences_that_are_not_printed_count_as_others() -> None:
    assert differing(["a: 81 lines differ", *[EVENT] * 80], ["a"]) == {"a": False}


def test_a_case_that_stopped_or_was_not_heard_of_differs() -> None:
    lines = ["a: stopped", "Traceback (most recent call last):", "  File x", "RuntimeError: namespace case-a: None"]
    assert differing(lines, ["a", "b"]) == {"a": False, "b": False}


def test_lists_of_faults_are_differences() -> None:
    assert differing(["a: nothing recorded in golden/a.json"], ["a"]) == {"a": False}


def test_events_at_the_end_of_a_case_are_told_apart() -> None:
    lines = ["a: 1 lines differ", '  -event[Normal/LWSDeleted].note = "Deleted"']
    assert differing(lines, ["a"]) == {"a": True}


def test_allowed_lines_that_nothing_needed_are_found() -> None:
    lines = ["a: same", "allowed 2: x", r"allowed 0: \+lws\[a\]", "1 passed, 0 failed"]
    assert idle_patterns(lines) == [r"\+lws\[a\]"]


def test_every_file_is_in_one_share() -> None:
    files = lane_files([])
    first, second = shares(files, 2)
    assert sorted(first + second) == files
    assert abs(len(first) - len(second)) <= 1
    assert {name.split("/")[1] for name in files} == {"scenarios", "real"}


def test_files_can_be_left_out() -> None:
    left_out = "tests/scenarios/test_scale.py"
    assert {*lane_files([])} - {*lane_files(["-x", f"--ignore={left_out}"])} == {left_out}
