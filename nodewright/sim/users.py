"""What people do to a simulated cluster: a list of edits, drawn from the seed before the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK, Key, is_deleting, key_of
from nodewright.sim.plane import Plane

NAMESPACE = "default"
DEPLOYMENT = Key(NAMESPACE, "workers")
SIMULATED = {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig"}
VERSIONS = ("1.32.1", "1.33.0", "1.34.2")


@dataclass(frozen=True, slots=True)
class Edit:
    """One thing a person does, and the sentence that tells of it."""

    says: str
    do: Callable[[Plane], None]


@dataclass(frozen=True, slots=True)
class Strategy:
    max_surge: int | str
    max_unavailable: int | str
    updates: str
    in_place: str = "Never"

    @staticmethod
    def drawn(random: Random) -> Strategy:
        budgets: list[tuple[int | str, int | str]] = [(1, 0), (0, 1), (2, 1), ("25%", "25%"), ("50%", 0), (3, 2)]
        surge, unavailable = random.choice(budgets)
        return Strategy(surge, unavailable, random.choice(["InPlace", "Replace", "DrainThenInPlace"]))

    def with_policy(self, random: Random) -> Strategy:
        """Half of them update Machines in place. Drawn apart, so that the other half's stories stay as they were."""
        # Where hosts can only be replaced, requiring updates in place stops a rollout for good, as it should.
        policies = ["Never", "Never", "Prefer", "Prefer" if self.updates == "Replace" else "Require"]
        return replace(self, in_place=random.choice(policies))


def cluster(bootstrap: bool = False) -> dict[str, Any]:
    network = {"services": {"cidrBlocks": ["10.96.0.0/12"]}, "pods": {"cidrBlocks": ["10.244.0.0/16"]}}
    return {
        "apiVersion": CLUSTER.api_version,
        "kind": "Cluster",
        "metadata": {"name": "sim", "namespace": NAMESPACE},
        "spec": {
            "clusterNetwork": {**network, "serviceDomain": "cluster.local"},
            **({"bootstrap": {}} if bootstrap else {}),
        },
    }


def deployment(replicas: int, strategy: Strategy, config: dict[str, Any]) -> dict[str, Any]:
    labels = {"pool": DEPLOYMENT.name}
    return {
        "apiVersion": MACHINE_DEPLOYMENT.api_version,
        "kind": "MachineDeployment",
        "metadata": {
            "name": DEPLOYMENT.name,
            "namespace": NAMESPACE,
            "labels": {"cluster.k8s.io/cluster-name": "sim"},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {
                    "maxSurge": strategy.max_surge,
                    "maxUnavailable": strategy.max_unavailable,
                    "inPlace": strategy.in_place,
                },
            },
            "template": {
                "metadata": {"labels": {**labels, "cluster.k8s.io/cluster-name": "sim"}},
                "spec": {
                    "metadata": {"labels": {"tier": "batch"}},
                    "providerConfig": {"value": {**config, "updates": strategy.updates}},
                    "versions": {"kubelet": VERSIONS[0]},
                },
            },
        },
    }


def health_check() -> dict[str, Any]:
    """Replaces what is silent for a minute or never joins. Nothing is frozen: the pool is so small that chance looks
    like an outage."""
    return {
        "apiVersion": MACHINE_HEALTH_CHECK.api_version,
        "kind": "MachineHealthCheck",
        "metadata": {"name": DEPLOYMENT.name, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": {"pool": DEPLOYMENT.name}},
            "unhealthyConditions": [
                {"type": "Ready", "status": "Unknown", "timeout": "60s"},
                {"type": "Ready", "status": "False", "timeout": "5m"},
            ],
            "nodeStartupTimeout": "5m",
            "remediationStrategy": {"maxInFlight": 2, "correlatedFailures": "Remediate"},
        },
    }


def _patch_deployment(spec: dict[str, Any]) -> Callable[[Plane], None]:
    def do(plane: Plane) -> None:
        if plane.get(MACHINE_DEPLOYMENT, DEPLOYMENT) is not None:
            plane.patch(MACHINE_DEPLOYMENT, DEPLOYMENT, {"spec": spec})

    return do


def _on_some_machine(index: int, act: Callable[[Plane, Key], None]) -> Callable[[Plane], None]:
    """Act on the ``index``-th Machine that exists by then, if any."""

    def do(plane: Plane) -> None:
        machines = sorted(key_of(m) for m in plane.list(MACHINE) if not is_deleting(m))
        if machines:
            act(plane, machines[index % len(machines)])

    return do


def draw(random: Random, edits: int) -> list[Edit]:
    """A story of ``edits`` edits; the last ones bring a settled, unpaused deployment."""
    return [_one(random) for _ in range(edits)] + [Edit("resumes the deployment", _patch_deployment({"paused": False}))]


def _one(random: Random) -> Edit:
    kind = random.choice(["scale", "scale", "roll", "roll", "delete", "upgrade", "label", "pause", "resume", "mark"])
    index = random.randrange(100)
    match kind:
        case "scale":
            replicas = random.randint(0, 8)
            return Edit(f"scales the deployment to {replicas}", _patch_deployment({"replicas": replicas}))
        case "roll":
            version = random.choice(VERSIONS)
            upgraded = {"template": {"spec": {"versions": {"kubelet": version}}}}
            return Edit(f"rolls the deployment to kubelet {version}", _patch_deployment(upgraded))
        case "label":
            value = random.choice(["batch", "web", None])
            labelled = {"template": {"spec": {"metadata": {"labels": {"tier": value}}}}}
            return Edit(f"sets the Node label tier to {value}", _patch_deployment(labelled))
        case "pause" | "resume":
            paused = kind == "pause"
            return Edit(f"{kind}s the deployment", _patch_deployment({"paused": paused}))
        case "delete":
            return Edit("deletes a Machine", _on_some_machine(index, lambda p, key: p.delete(MACHINE, key)))
        case "mark":
            marked = {"metadata": {"annotations": {"cluster.k8s.io/delete-machine": "yes"}}}
            act = _on_some_machine(index, lambda p, key: _discard(p.patch(MACHINE, key, marked)))
            return Edit("marks a Machine as the first to go", act)
        case _:
            version = random.choice(VERSIONS)
            edited = {"spec": {"versions": {"kubelet": version}}}
            act = _on_some_machine(index, lambda p, key: _discard(p.patch(MACHINE, key, edited)))
            return Edit(f"edits a Machine to kubelet {version}", act)


def _discard(_: object) -> None:
    """An edit answers nothing."""
