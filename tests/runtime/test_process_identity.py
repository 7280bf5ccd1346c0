"""Whether a process that held a Lease has certainly ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from nodewright.runtime.election.process_identity import is_gone, this_process

_SAYS = """
import json, sys
from nodewright.runtime.election.process_identity import this_process
print(json.dumps(this_process()), flush=True)
sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(not this_process(), reason="the system does not tell boots and namespaces apart")


@pytest.fixture
def other() -> Iterator[tuple[subprocess.Popen[str], Mapping[str, Any]]]:
    with subprocess.Popen(
        [sys.executable, "-c", _SAYS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as it:
        assert it.stdout is not None
        yield it, json.loads(it.stdout.readline())
        it.kill()


def test_a_process_that_runs_is_not_gone(other: tuple[subprocess.Popen[str], Mapping[str, Any]]) -> None:
    assert not is_gone(other[1])
    assert not is_gone(this_process())


def test_a_process_that_was_killed_is_gone_also_before_its_parent_has_seen_it(
    other: tuple[subprocess.Popen[str], Mapping[str, Any]],
) -> None:
    process, said = other
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(said), "a zombie writes nothing any more"
    process.wait()
    assert is_gone(said)


def test_a_stopped_process_is_not_gone(other: tuple[subprocess.Popen[str], Mapping[str, Any]]) -> None:
    process, said = other
    process.send_signal(signal.SIGSTOP)
    assert not is_gone(said)


def test_another_process_under_the_same_number_is_another_one() -> None:
    mine = this_process()
    assert is_gone({**mine, "startTime": mine["startTime"] - 1})


@pytest.mark.parametrize("name", ["host", "boot", "pidNamespace", "timeNamespace"])
def test_a_process_elsewhere_is_never_judged(name: str) -> None:
    dead = {**this_process(), "startTime": 1}
    assert is_gone(dead)
    assert not is_gone({**dead, name: "another"})
    assert not is_gone({key: value for key, value in dead.items() if key != name})


@pytest.mark.parametrize("pid", [None, "1", 0, -1, 2**70, True])
def test_what_is_no_process_number_is_never_judged(pid: Any) -> None:
    assert not is_gone({**this_process(), "pid": pid, "startTime": 5})
