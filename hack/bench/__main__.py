"""``python -m hack.bench [CASE…]``: run the cases, print their tables, write ``build/bench.json``.

Each case runs in a process of its own, so that one's memory is not another's.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from hack.bench import (
    autoscaler,
    churn,
    cloudpool,
    controlplane,
    creating,
    externalgrpc,
    hostile,
    joining,
    live,
    manygroups,
    mixed,
    provisioning,
    real,
    scheduling,
    spread,
    sshhosts,
    sshpools,
    takeover,
    webview,
)
from hack.bench.figures import Figure, keep, show
from hack.hosts import __main__ as hosts
from hack.processor import ticks
from hack.realplane import missing

CASES: dict[str, tuple[str, Callable[[], list[Figure]]]] = {
    "plane": ("The embedded control plane", live.plane_ready),
    "demo": ("From apply to three Ready Machines", live.demo),
    "machineset": ("A MachineSet from 0 to 1000 on the embedded plane", live.thousand),
    "rolling": ("1000 Machines rolled with a surge of 10 % on the virtual clock", live.rolling),
    "real": ("A MachineSet from 0 to 1000 on a real kube-apiserver: objects only, no hosts", real.real),
    "takeover": ("The leader killed with SIGKILL on a real kube-apiserver, default terms", takeover.takeover),
    "binpack": ("New Nodes for 51 000 pods", scheduling.binpack),
    "scaleup": ("New Nodes for pods seen for the first time", scheduling.scale_up),
    "scaledown": ("Nodes that can go together", scheduling.scale_down),
    "filter": ("Pods that need no new Node", scheduling.filtering),
    "loop": ("One loop of the autoscaler: 5000 Nodes, 150,000 pods", autoscaler.loop),
    "groups": ("One loop of the autoscaler: 500 groups, 5000 pods wait", manygroups.groups),
    "largeloop": ("One loop of the autoscaler: 15,000 Nodes, 450,000 pods", autoscaler.large_loop),
    "spread": ("New Nodes for 2000 pods that must not share them", spread.spread),
    "mixed": ("New Nodes for 1000 pods of 30 Deployments over zones: what they cost", mixed.mixed),
    "pending": ("One loop of the autoscaler: 40,000 pods of 2000 Deployments wait", manygroups.pending),
    "provreq": ("ProvisioningRequests: 600 Nodes, 16384 pods of 32 sets, 1000 at once", provisioning.provisioning),
    "grpc": ("NodeGroupForNode of the gRPC gateway: 15 000 Nodes in 100 groups", externalgrpc.gateway),
    "cloudpool": ("A scale-down of 8 Nodes through the cloudpool proxy", cloudpool.cloudpool),
    "churn": ("What 10,000 Machines that are gone leave in memory, after the first 2500", churn.churn),
    "hostile": ("A busy namespace beside a hostile one, against the same alone", hostile.hostile),
    "controlplane": ("Three control planes of real hosts to the next minor version, in place", controlplane.upgrade),
    "create": ("One command from YAML to a cluster of real hosts, beside a script", creating.create),
    "join": ("From a booted host to a Ready Node on a lab of real hosts", joining.joining),
    "ssh": ("Hosts over SSH: 50 Machines at once, looks over a pool of 1000", sshpools.pools),
    "sshreal": ("Fifty real hosts over SSH that join at once, kubelets included", sshhosts.joins),
    "web": ("The web view on 10,000 Machines: first view, memory, each view", webview.web),
    "simulation": ("10 000 Machines on the virtual clock", live.simulation),
}
NEEDS: dict[str, Callable[[], str]] = {
    "real": missing,
    "takeover": missing,
    "join": hosts.missing,
    "controlplane": hosts.missing,
    "create": hosts.missing,
    "sshreal": hosts.missing,
}
"""Case → why it can't run here, "" if it can."""
OUTPUT = Path("build/bench.json")


def main() -> int:
    names = sys.argv[1:] or list(CASES)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        print(f"no such case: {', '.join(unknown)}; known: {', '.join(CASES)}", file=sys.stderr)
        return 2
    console = Console()
    context = multiprocessing.get_context("spawn")
    for name in names:
        title, case = CASES[name]
        if name in NEEDS and (lacking := NEEDS[name]()):
            console.print(f"{title}: skipped, {lacking}", soft_wrap=True)
            continue
        before = ticks()
        with console.status(f"{title} …"), context.Pool(1) as pool:
            figures = pool.apply(case)
        show(title, figures, console)
        stolen = ticks().stolen_since(before)
        console.print(f"{stolen:.1%} of the processor time that was wanted went to other machines of the host")
        keep(figures, OUTPUT)
    console.print(f"written to {OUTPUT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
