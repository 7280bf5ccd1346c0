"""How long nobody works after the leader was killed with SIGKILL under load, with the Lease's default terms."""

from __future__ import annotations

import json
import signal
import tempfile
import time
from pathlib import Path

from hack import kubectl as stock
from hack.bench.figures import Figure
from hack.bench.live import machine_set
from hack.program import Kubectl, Replica
from hack.realplane import RealPlane

MACHINES = 200
UNDER_WAY = 40
"""Machines that the leader has made when it dies."""
LIMIT_SECONDS = 300.0


def takeover() -> list[Figure]:
    """SIGKILL for the leader while a MachineSet grows on a real kube-apiserver, which is to be there (``missing``)."""
    with tempfile.TemporaryDirectory(prefix="nodewright-bench-") as name, RealPlane(Path(name) / "plane") as plane:
        folder = Path(name)
        kubectl = Kubectl(stock.require(), plane.kubeconfig, folder / "kubectl-cache")
        kubectl("apply", "--server-side", "-f", "crds")
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        with Replica(folder / "one", kubectl) as one, Replica(folder / "two", kubectl) as two:
            return _kill(kubectl, one, two)


def _kill(kubectl: Kubectl, one: Replica, two: Replica) -> list[Figure]:
    kubectl("apply", "-f", "-", stdin=json.dumps(machine_set(MACHINES)))
    _reach(kubectl, UNDER_WAY)
    holder = kubectl("-n", "nodewright-system", "get", "lease/nodewright", "-o", "jsonpath={.spec.holderIdentity}")
    leader, other = (one, two) if one.holds(holder) else (two, one)
    killed = time.monotonic()
    leader.stop(signal.SIGKILL)
    made = len(kubectl.items("machines"))
    other.says("ready")
    ready = time.monotonic() - killed
    kubectl.wait(f"jsonpath={{.status.readyReplicas}}={MACHINES}", "machineset/bench", timeout=int(LIMIT_SECONDS))
    machines = len(kubectl.items("machines"))
    if machines != MACHINES or made >= MACHINES:
        raise AssertionError(f"{made} Machines when the leader was killed, {machines} of {MACHINES} at the end")
    return [
        Figure("real_takeover_seconds", ready, "s", "lower", "goal", 20.0),
        Figure("real_takeover_machines_made_before", made, "Machines", "higher"),
    ]


def _reach(kubectl: Kubectl, machines: int) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while len(kubectl.items("machines")) < machines:
        if time.monotonic() > deadline:
            raise AssertionError(f"{machines} Machines were not made within {LIMIT_SECONDS:.0f} s")
        time.sleep(0.05)
