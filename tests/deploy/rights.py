"""Which rights the controllers need, found out from what they read and from what their plans ask for.

The rooms are run in the simulation, through a life of a cluster in which each of them does everything it ever does;
what a plan asks of the shell is translated into what the shell asks of the API server.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from api import names
from controllers.kernel import refs
from controllers.kernel.actions import Action, Create, CreateFromTemplate, Delete, Event, Evict, Patch, Scale
from controllers.kernel.plan import Plan
from controllers.kernel.reconciler import Reconciler, ReconcilerWrapper
from controllers.kernel.refs import (
    CLUSTER,
    EVENT,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    NAMESPACE,
    NODE,
    POD,
    POD_DISRUPTION_BUDGET,
    SECRET,
    Key,
    Kind,
)
from nodewright.crds import load_crds
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.settings.options import utc_now
from nodewright.runtime.workloads.cluster_router import ClusterRouter
from nodewright.runtime.workloads.directory import AllInManagementCluster
from nodewright.sim import users
from nodewright.sim.engine import Engine, Scenario
from tests.docs.pages import ROOT

KINDS = {kind.name: kind for kind in vars(refs).values() if isinstance(kind, Kind)}


class Right(NamedTuple):
    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


@dataclass(frozen=True, slots=True)
class Watched(ReconcilerWrapper):
    """A room whose plans are noted."""

    actions: list[Action] = field(default_factory=list)

    def plan(self, observed: Any) -> Plan:
        plan = self.reconciler.plan(observed)
        self.actions.extend(plan.actions())
        return plan


def right(kind: Kind, verb: str, subresource: str = "") -> Right:
    return Right(kind.group, f"{kind.plural}/{subresource}" if subresource else kind.plural, verb)


def needed_by(reconciler: Watched) -> set[Right]:
    """To read: list and watch, but for Secrets. To write: what each action becomes in the executor."""
    kinds = {reconciler.kind, *reconciler.reads, *(wake.kind for wake in reconciler.wakes)}
    found = {right(kind, verb) for kind in kinds for verb in ("list", "watch")}
    if asks_where_nodes_live(reconciler.reconciler):
        found.add(right(SECRET, "get"))  # the kubeconfigs of clusters that have an API of their own, each by its name
    if reconciler.kind == MACHINE:
        found.add(right(NAMESPACE, "get"))  # kube-system: its UID is the mark of the cluster on hosts
    for action in reconciler.actions:
        found.update(_asked(action))
    return found


def asks_where_nodes_live(reconciler: Reconciler[Any]) -> bool:
    return ClusterRouter(reconciler, Cache(reconciler.reads), AllInManagementCluster(), utc_now).cares


def _asked(action: Action) -> Iterator[Right]:
    match action:
        case Create(kind=kind, body=body):
            yield right(kind, "create")
            yield right(kind, "get")  # whose is the one that exists already?
            yield from _of_owners(body)
        case CreateFromTemplate(kind=kind, template=template):
            yield from (right(kind, verb) for verb in ("create", "get"))
            yield right(template.kind, "get")
        case Patch(target=target, patch=patch, subresource=subresource):
            yield right(target.kind, "patch", subresource)
            yield from _of_owners(patch)
        case Scale(target=target):
            yield right(target.kind, "patch", "scale")
        case Delete(target=target):
            yield right(target.kind, "delete")
            yield right(target.kind, "get")  # is it gone, or has a namesake come?
        case Evict():
            yield right(POD, "create", "eviction")
        case Event():
            yield right(EVENT, "create")
            yield right(EVENT, "patch")  # it happened again


def _of_owners(body: Mapping[str, Any]) -> Iterator[Right]:
    """Whoever lets an object hold up its owner's deletion must be allowed to (OwnerReferencesPermissionEnforcement)."""
    for owner in (body.get("metadata") or {}).get("ownerReferences") or ():
        if owner.get("blockOwnerDeletion"):
            yield right(KINDS[owner["kind"]], "update", "finalizers")


def lived(reconcilers: tuple[Reconciler[Any], ...]) -> tuple[Watched, ...]:
    """The rooms after a life: some random weeks, pods that must be evicted, a take-over, and the end of everything."""
    watched = tuple(Watched(reconciler) for reconciler in reconcilers)
    for seed in (1, 2):
        engine = Engine(seed, Scenario(edits=8), watched, load_crds())
        result = engine.run()
        assert not result.breach, result.summary()
        _end(engine)
    return watched


def _end(engine: Engine) -> None:
    """A new template thrice, pods on the Nodes, and then all of it is deleted, from the outside in."""
    plane = engine.plane
    plane.patch(MACHINE_DEPLOYMENT, users.DEPLOYMENT, {"spec": {"replicas": 2}})
    for value in ("one", "two", "three"):
        config = {"providerConfig": {"value": {"zone": value}}}
        template = {"spec": {"metadata": {"labels": {"tier": value}}, "nodeDrainDeleteAfter": "30s", **config}}
        plane.patch(MACHINE_DEPLOYMENT, users.DEPLOYMENT, {"spec": {"template": template}})
        engine.settle_quietly(lambda: _rolled_out(plane.get(MACHINE_DEPLOYMENT, users.DEPLOYMENT)))
    empty = {"apiVersion": MACHINE_CLASS.api_version, "kind": MACHINE_CLASS.name, "providerSpec": {}}
    plane.create(MACHINE_CLASS, {**empty, "metadata": {"name": "empty", "namespace": users.NAMESPACE}})
    _heal(engine)
    for node in plane.list(NODE):
        name = node["metadata"]["name"]
        spec = {"nodeName": name, "containers": [{"name": "c", "image": "i"}]}
        for kept in ("kept", "free"):
            meta: dict[str, Any] = {"name": f"{kept}-on-{name}", "namespace": users.NAMESPACE, "labels": {"app": kept}}
            plane.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
            runs = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            plane.patch(POD, Key(users.NAMESPACE, meta["name"]), {"status": runs}, "status")
    plane.create(POD_DISRUPTION_BUDGET, _never_disrupted("kept"))
    (cluster,) = plane.list(CLUSTER)
    plane.patch(CLUSTER, refs.key_of(cluster), {"metadata": {"finalizers": [names.CLUSTER_FINALIZER]}})
    plane.delete(CLUSTER, refs.key_of(cluster))
    plane.delete(MACHINE_DEPLOYMENT, users.DEPLOYMENT, "Foreground")
    engine.settle_quietly(lambda: not plane.list(MACHINE) and not plane.list(MACHINE_SET) and not plane.list(CLUSTER))


def _never_disrupted(app: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": users.NAMESPACE},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": app}}},
    }


def _heal(engine: Engine) -> None:
    """A host breaks, and a health check has its Machine replaced."""
    plane = engine.plane
    sick = [{"type": "Ready", "status": status, "timeout": "5m"} for status in ("False", "Unknown")]
    check = {
        "apiVersion": MACHINE_HEALTH_CHECK.api_version,
        "kind": MACHINE_HEALTH_CHECK.name,
        "metadata": {"name": "workers", "namespace": users.NAMESPACE},
        "spec": {"selector": {"matchLabels": {"pool": users.DEPLOYMENT.name}}, "unhealthyConditions": sick},
    }
    plane.create(MACHINE_HEALTH_CHECK, check)
    broken = refs.uid_of(plane.list(MACHINE)[0])
    engine.world.break_host(broken)
    engine.settle_quietly(
        lambda: (
            broken not in map(refs.uid_of, plane.list(MACHINE))
            and _rolled_out(plane.get(MACHINE_DEPLOYMENT, users.DEPLOYMENT))
        )
    )


def _rolled_out(deployment: Mapping[str, Any] | None) -> bool:
    status = (deployment or {}).get("status") or {}
    observed = status.get("observedGeneration") == (deployment or {})["metadata"]["generation"]
    return observed and status.get("updatedReplicas") == status.get("replicas") == status.get("readyReplicas") == 2


def granted(role: Mapping[str, Any]) -> list[Right]:
    """What a Role or ClusterRole allows, once for each time it says so."""
    return [
        Right(group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def rights_in(*files: Path) -> set[Right]:
    """Of all roles in these manifests."""
    documents = (doc for file in files for doc in yaml.safe_load_all(file.read_text()))
    return {each for doc in documents if "rules" in doc for each in granted(doc)}


def with_component(kubectl: Path, folder: Path, base: str, component: str) -> list[dict[str, Any]]:
    """What ``kubectl kustomize`` makes of ``deploy/<base>`` with one of ``deploy/components``."""
    above = Path("../" * (len(folder.parts) - 1)) / ROOT.relative_to("/")
    text = f"resources: [{above}/deploy/{base}]\ncomponents: [{above}/deploy/components/{component}]\n"
    (folder / "kustomization.yaml").write_text(text)
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, timeout=180, check=True)
    return list(yaml.safe_load_all(done.stdout))


def arguments_in(documents: Iterable[Mapping[str, Any]]) -> set[str]:
    """Of the only Deployment in them."""
    (deployment,) = [doc for doc in documents if doc["kind"] == "Deployment"]
    return {*deployment["spec"]["template"]["spec"]["containers"][0]["args"]}
