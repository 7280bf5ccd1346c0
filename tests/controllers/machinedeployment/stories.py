"""Worlds in the middle of a rollout, and what the next round of sizes is."""

from __future__ import annotations

from typing import Any

from controllers.kernel.plan import Plan
from controllers.kernel.refs import MACHINE_DEPLOYMENT, MACHINE_SET
from tests.builders import FakeView, machine, machine_deployment, machine_set
from tests.builders.loop import plan_for
from tests.builders.objects import Builder, MachineDeploymentBuilder, MachineSetBuilder
from tests.builders.plans import sizes
from tests.builders.world import World

OLD, NEW = "1.34.0", "1.35.0"


def deployment(replicas: int, surge: int | str = 1, unavailable: int | str = 0) -> MachineDeploymentBuilder:
    return machine_deployment("md").replicas(replicas).rolling(surge, unavailable).kubelet(NEW)


def a_set(
    name: str, replicas: int, version: str = OLD, *, of: MachineDeploymentBuilder | None = None, age: float = 1000
) -> MachineSetBuilder:
    """A MachineSet of the deployment as it stands after observing its spec."""
    owner = of or machine_deployment("md")
    return machine_set(name).of(owner, name).kubelet(version).replicas(replicas).created(age).observed()


def machines(of: MachineSetBuilder, available: int = 0, unready: int = 0, pending: int = 0) -> list[Builder]:
    """Machines of a set: so many available, so many with a Node that is not ready, so many without a Node."""
    name = of.metadata["name"]
    found: list[Builder] = [machine(f"{name}-ok-{n}").of(of).ready() for n in range(available)]
    found += [machine(f"{name}-bad-{n}").of(of).not_ready() for n in range(unready)]
    found += [machine(f"{name}-new-{n}").of(of).pending() for n in range(pending)]
    return found


def plan(*objects: Any) -> Plan:
    flat = [obj for entry in objects for obj in (entry if isinstance(entry, list) else [entry])]
    return plan_for(FakeView(*flat), MACHINE_DEPLOYMENT, "md")


def next_sizes(*objects: Any) -> dict[str, int]:
    """Replicas that the next round sets; MachineSets that keep theirs are not named."""
    return sizes(plan(*objects))


def sets_of(world: World) -> dict[str, int]:
    """Replicas of the MachineSets by kubelet version."""
    return {
        body["spec"]["template"]["spec"]["versions"]["kubelet"]: body["spec"]["replicas"]
        for body in world.all(MACHINE_SET)
    }


def set_template(world: World, version: str) -> None:
    world.change(
        MACHINE_DEPLOYMENT, "md", lambda body: body["spec"]["template"]["spec"]["versions"].update(kubelet=version)
    )


def set_replicas(world: World, replicas: int) -> None:
    world.change(MACHINE_DEPLOYMENT, "md", lambda body: body["spec"].update(replicas=replicas))
