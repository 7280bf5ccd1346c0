"""One loop of the autoscaler over a large cluster: cold, and warm, after one pod in a hundred has changed."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from api import names
from controllers.autoscaler.cluster_state import GroupObjects, Objects, WorkloadObjects, read_cluster
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.plan import decide
from controllers.kernel.refs import POD
from controllers.scheduling.reading import Reader
from hack.bench.figures import Figure
from nodewright.cli.longevity import settle_in
from nodewright.runtime.cache.store import Store

NODES, MANY_NODES, GROUPS, APPS = 5000, 15_000, 20, 1500
PER_NODE = 30
PENDING, WAITING_APPS = 1000, 100
NOW = datetime(2026, 6, 1, tzinfo=UTC)
GOAL_SECONDS, GOAL_MIB = 2.0, 1536.0
GOAL_GROWTH = 3.3
"""Times as long for three times as many Nodes: linear, and a tenth for what is not."""
GOAL = "the aim"


def loop() -> list[Figure]:
    """5000 Nodes, 150,000 pods of 1500 Deployments, 1000 more that wait; a tenth of the Nodes is little used."""
    cold, warm = measured(NODES)
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        Figure("loop_5000_nodes_cold_seconds", cold, "s", "lower"),
        Figure("loop_5000_nodes_seconds", warm, "s", "lower", GOAL, GOAL_SECONDS),
        Figure("loop_5000_nodes_rss_mib", mebibytes, "MiB", "lower", GOAL, GOAL_MIB),
    ]


def large_loop() -> list[Figure]:
    """The same with 15,000 Nodes and 450,000 pods, beside 5000 in the same process."""
    _, small = measured(NODES)
    cold, warm = measured(MANY_NODES)
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        Figure("loop_15000_nodes_cold_seconds", cold, "s", "lower"),
        Figure("loop_15000_nodes_seconds", warm, "s", "lower", "3.3 times that of 5000 Nodes", GOAL_GROWTH * small),
        Figure("loop_15000_nodes_growth", warm / small, "x", "lower", GOAL, GOAL_GROWTH),
        Figure("loop_15000_nodes_rss_mib", mebibytes, "MiB", "lower"),
    ]


def measured(nodes: int) -> tuple[float, float]:
    """Seconds of CPU of the first loop, and of the best of five once one pod in a hundred has changed."""
    cluster = _Cluster(nodes)
    settle_in()  # as the process does once all is read
    cold, decision = timed(cluster.decide)
    if not decision.scale_up.added or not decision.scale_down.unneeded:
        raise RuntimeError("nothing was decided: a figure for that is worth nothing")
    warm = []
    for zone_order in range(5):
        cluster.change(zone_order, cluster.pods_there // 100)
        seconds, _ = timed(cluster.decide)
        warm.append(seconds)
    return cold, min(warm)


def timed(job: Any) -> tuple[float, Any]:
    started = time.process_time()
    answer = job()
    return time.process_time() - started, answer


class _Cluster:
    def __init__(self, nodes: int) -> None:
        self.deployments = [_deployment(number, nodes) for number in range(GROUPS)]
        self.sets = [_set(number, nodes) for number in range(GROUPS)]
        self.machines = [_machine(number) for number in range(nodes)]
        self.nodes = [_node(number) for number in range(nodes)]
        self.pods = Store(POD)
        self.pods.replace((orjson.loads(body) for body in _pods(nodes)), "1")
        self.pods_there = len(self.pods)
        self.reader = Reader()

    def decide(self) -> Decision:
        objects = Objects(
            groups=GroupObjects(machine_deployments=self.deployments, machine_sets=self.sets, machines=self.machines),
            workload=WorkloadObjects(nodes=self.nodes, pods=tuple(self.pods), budgets=_BUDGETS),
            reader=self.reader,
        )
        return decide(read_cluster(objects, now=NOW, options=AutoscalerOptions(), memory=Memory()))

    def change(self, zone_order: int, count: int) -> None:
        """As the watch tells it: so many pods were replaced by new ones."""
        keys = list(self.pods.keys())[zone_order * count : (zone_order + 1) * count]
        for number, key in enumerate(keys):
            old = self.pods.get(key)
            assert old is not None
            self.pods.watched("DELETED", dict(old))
            new = orjson.loads(orjson.dumps(old))
            new["metadata"].update(
                name=f"{key.name}x", uid=f"new-{zone_order}-{number}", resourceVersion=f"9{zone_order}{number}"
            )
            self.pods.watched("ADDED", new)


def meta_of(name: str, owner: tuple[str, str] | None = None, **more: Any) -> dict[str, Any]:
    created = NOW - timedelta(hours=5)
    meta = {"namespace": "default", "name": name, "uid": f"uid-{name}", "resourceVersion": "5", **more}
    meta["creationTimestamp"] = created.strftime("%Y-%m-%dT%H:%M:%SZ")
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1], "uid": f"uid-{owner[1]}"}
        meta["ownerReferences"] = [{**reference, "controller": True, "blockOwnerDeletion": True}]
    return meta


def _deployment(number: int, nodes: int) -> dict[str, Any]:
    least, most = names.AUTOSCALER_MIN_ANNOTATION, names.AUTOSCALER_MAX_ANNOTATION
    meta = meta_of(f"md-{number}", annotations={least: "1", most: str(2 * nodes)})
    return {"metadata": meta, "spec": {"replicas": nodes // GROUPS, "template": {"spec": {}}}}


def _set(number: int, nodes: int) -> dict[str, Any]:
    return {
        "metadata": meta_of(f"ms-{number}", ("MachineDeployment", f"md-{number}")),
        "spec": {"replicas": nodes // GROUPS},
    }


def _machine(number: int) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True", "reason": "Ready"}
    return {
        "metadata": meta_of(f"m-{number}", ("MachineSet", f"ms-{number % GROUPS}")),
        "spec": {},
        "status": {"nodeRef": {"name": f"n-{number}"}, "conditions": [ready]},
    }


def _node(number: int) -> dict[str, Any]:
    offer = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": f"n-{number}", "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    spec: dict[str, Any] = {"providerID": f"simulated:///{number}"}
    if number % GROUPS == 1:
        spec["taints"] = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    meta = {**meta_of(f"n-{number}"), "labels": labels}
    return {"metadata": meta, "spec": spec, "status": {"capacity": offer, "allocatable": offer, "conditions": [ready]}}


def _pods(nodes: int) -> Iterator[bytes]:
    for number in range(nodes * PER_NODE):
        app = (number + number // nodes * 37) % APPS
        yield orjson.dumps(_pod(app, number, f"n-{number % nodes}"))
    for number in range(PENDING):
        yield orjson.dumps(_pod(number % WAITING_APPS, nodes * PER_NODE + number, ""))


def _pod(app: int, number: int, node: str) -> dict[str, Any]:
    """As an API server shows a pod of a Deployment, but for managedFields."""
    little_used = node and int(node[2:]) % 10 == 0
    cpu = 100 if little_used else 200 + app % 7 * 50
    if not node:
        cpu = 14_000 + app % 5 * 100
    return pod_of(app, number, node=node, cpu=cpu)


def pod_of(app: int, number: int, *, node: str, cpu: int) -> dict[str, Any]:
    """A pod of an app's Deployment; ``cpu`` in milli-cores, ``node`` "" if it waits."""
    labels = {"app": f"app-{app}", "pod-template-hash": f"{app:x}f7", "team": f"team-{app % 40}"}
    container = {
        "name": "main",
        "image": f"registry.example.org/team-{app % 40}/app-{app}:1.{app % 30}",
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": f"SETTING_{index}", "value": f"value-{index}-{app}"} for index in range(8)],
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "resources": {"requests": {"cpu": f"{cpu}m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access", "readOnly": True}
        ],
    }
    spec: dict[str, Any] = {
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {"runAsNonRoot": True},
        "serviceAccountName": f"app-{app}",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"effect": "NoExecute", "key": f"node.kubernetes.io/{what}", "operator": "Exists", "tolerationSeconds": 300}
            for what in ("not-ready", "unreachable")
        ],
        "volumes": [
            {
                "name": "kube-api-access",
                "projected": {
                    "defaultMode": 420,
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
                    ],
                },
            }
        ],
    }
    mine = {"matchLabels": {"app": labels["app"]}}
    if app % 10 == 0:
        constraint = {"maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [{**constraint, "labelSelector": mine}]
    elif app % 10 == 1:
        term = {"labelSelector": mine, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/5000 nodes"}
    said = [
        {"type": each, "status": "True", "lastTransitionTime": "2026-06-01T00:00:00Z"}
        for each in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    status: dict[str, Any] = {
        "phase": "Running" if node else "Pending",
        "qosClass": "Burstable",
        "conditions": said if node else [waits],
    }
    if node:
        spec["nodeName"] = node
        status.update(
            hostIP="10.0.0.1",
            podIP="10.1.0.1",
            podIPs=[{"ip": "10.1.0.1"}],
            startTime="2026-06-01T00:00:00Z",
            containerStatuses=[
                {
                    "name": "main",
                    "ready": True,
                    "restartCount": 0,
                    "started": True,
                    "image": container["image"],
                    "imageID": f"sha256:{app:064x}",
                    "containerID": f"containerd://{number:064x}",
                    "lastState": {},
                    "state": {"running": {"startedAt": "2026-06-01T00:00:00Z"}},
                }
            ],
        )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta_of(f"app-{app}-{number}", ("ReplicaSet", f"app-{app}-{app:x}f7")), "labels": labels},
        "spec": spec,
        "status": status,
    }


_BUDGETS = [
    {
        "metadata": meta_of(f"pdb-{app}"),
        "spec": {"selector": {"matchLabels": {"app": f"app-{app}"}}},
        "status": {"disruptionsAllowed": 40},
    }
    for app in range(0, APPS, 3)
]
