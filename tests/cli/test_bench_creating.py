"""The figures of `create cluster` beside a script are those that their test prints."""

from __future__ import annotations

import pytest

from hack.bench.creating import GOAL, figures_in

PRINTED = """\

40.2 s, the script 38.5 s: create_cluster_ratio 1.04 (medians of 3)
one command: 39.0 s, 40.2 s, 44.1 s; the script: 38.5 s, 36.0 s, 41.7 s
.
1 passed in 288.35s
"""


def test_the_ratio_and_the_seconds_are_read() -> None:
    ratio, seconds = figures_in(PRINTED)
    assert (ratio.name, ratio.peer_value) == ("create_cluster_ratio", GOAL)
    assert ratio.value == pytest.approx(40.2 / 38.5)
    assert (seconds.value, seconds.peer_value) == (40.2, 38.5)
