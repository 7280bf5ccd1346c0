"""A machine without etcd and kube-apiserver: their tests are left out with one line, and in CI that is a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TEST = "tests/differential/test_planes_agree.py::test_a_story_goes_the_same_way[pages]"


def run_without_parts(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    without = {"XDG_CACHE_HOME": str(folder), "KUBEBUILDER_ASSETS": "", "CI": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", TEST]
    env = {**os.environ, **without, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=env)


def test_the_tier_is_left_out_with_one_line_that_says_what_to_install(tmp_path: Path) -> None:
    done = run_without_parts(tmp_path)
    said = [line for line in done.stdout.splitlines() if "make real-plane" in line]
    assert len(said) == 1, done.stdout
    for word in ("etcd", "kube-apiserver", "KUBEBUILDER_ASSETS", "setup-envtest"):
        assert word in said[0]
    assert "failed" not in done.stdout


def test_in_ci_a_missing_part_is_a_failure(tmp_path: Path) -> None:
    done = run_without_parts(tmp_path, CI="true")
    assert done.returncode == 1, done.stdout
    assert "kube-apiserver not found" in done.stdout
