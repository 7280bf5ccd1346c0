"""`make deflake` finds a test that fails now and then, and says how to have it fail again."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack import deflake

FLAKY = """
from pathlib import Path

def test_sound():
    assert True

def test_that_fails_the_second_time():
    seen = Path(__file__).with_name("seen")
    if seen.exists():
        raise AssertionError("now and then")
    seen.touch()
"""


@pytest.mark.e2e
def test_what_fails_now_and_then_is_printed_with_its_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_it.py").write_text(FLAKY)
    options = ["--runs", "2", "--quiet", "1", "--workers", "1", "--seed", "7"]
    assert deflake.main([*options, "--", f"--rootdir={tmp_path}", str(tmp_path / "test_it.py")]) == 1
    told = capsys.readouterr().out
    assert "run 1 of 2, under load, seed 7: passed" in told
    assert "run 2 of 2, alone, seed 8: 1 failed" in told
    assert "test_it.py::test_that_fails_the_second_time" in told
    assert "--randomly-seed=8" in told
    assert "1 of 2 runs failed" in told


def test_runs_without_a_failure_end_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_it.py").write_text("def test_sound():\n    assert True\n")
    options = ["--runs", "1", "--quiet", "1", "--workers", "1"]
    assert deflake.main([*options, "--", f"--rootdir={tmp_path}", str(tmp_path / "test_it.py")]) == 0
    assert "0 of 1 runs failed" in capsys.readouterr().out


def test_a_run_that_collects_nothing_is_a_failure(tmp_path: Path) -> None:
    assert deflake.main(["--runs", "1", "--quiet", "1", "--workers", "1", "--", str(tmp_path)]) == 1


def test_failures_are_read_from_the_short_summary() -> None:
    summary = (
        "FAILED tests/a.py::test_b[x y] - AssertionError: c\nERROR tests/d.py::test_e\nFAILED tests/a.py::test_b[x y]\n"
    )
    assert deflake.failures(summary) == ("tests/a.py::test_b[x y]", "tests/d.py::test_e")
