"""`nodewright create cluster` beside a script of ssh, kubeadm and kubectl: one control plane and two workers.

Both make their clusters on the same real hosts, in turns: `tests/hosts/clusters/test_create_cluster_beside_a_script.py`
does it and holds that both end with the same three Nodes. This case runs it and reads its figures.
"""

from __future__ import annotations

import re

from hack.bench.figures import Figure
from hack.bench.labtests import printed_by

TEST = "tests/hosts/clusters/test_create_cluster_beside_a_script.py::test_one_command_takes_about_as_long_as_a_script"
GOAL = 1.1
_FIGURES = re.compile(r"(?P<ours>[\d.]+) s, the script (?P<script>[\d.]+) s: create_cluster_ratio ")


def create() -> list[Figure]:
    """Some minutes; needs the lab. Raises RuntimeError if a cluster was not made."""
    return figures_in(printed_by(TEST))


def figures_in(text: str) -> list[Figure]:
    """From what the test prints: medians. Raises RuntimeError if its figures are not there."""
    found = _FIGURES.search(text)
    if found is None:
        raise RuntimeError(f"no figures in {text[-400:]!r}")
    ours, script = float(found["ours"]), float(found["script"])
    return [
        Figure("create_cluster_ratio", ours / script, "×", "lower", "goal", GOAL),
        Figure("create_cluster_seconds", ours, "s", "lower", "the script", script),
    ]
