"""The part of the dialogue that is about built-in kinds and about CustomResourceDefinitions themselves."""

from __future__ import annotations

from typing import Any

from nodewright.apiserver.values import Obj
from tests.apiserver.store.cluster import crd
from tests.apiserver.store.golden.dialogue import SPACE, Step

PODS, SECRETS, CONFIGS, NODES = "/v1/pods", "/v1/secrets", "/v1/configmaps", "/v1/nodes"
SPACES, EVENTS, BUDGETS = "/v1/namespaces", "/v1/events", "policy/v1/poddisruptionbudgets"
LEASES, CRDS = "coordination.k8s.io/v1/leases", "apiextensions.k8s.io/v1/customresourcedefinitions"

_KINDS = {
    PODS: "Pod",
    SECRETS: "Secret",
    CONFIGS: "ConfigMap",
    NODES: "Node",
    SPACES: "Namespace",
    EVENTS: "Event",
    BUDGETS: "PodDisruptionBudget",
    LEASES: "Lease",
    "apps/v1/deployments": "Deployment",
    "apps/v1/replicasets": "ReplicaSet",
    "apps/v1/statefulsets": "StatefulSet",
    "apps/v1/daemonsets": "DaemonSet",
    "scheduling.k8s.io/v1/priorityclasses": "PriorityClass",
    "rbac.authorization.k8s.io/v1/roles": "Role",
}


def _body(kind: str, name: str, **parts: Any) -> Obj:
    group, version, _ = kind.split("/")
    api = f"{group}/{version}" if group else version
    return {"apiVersion": api, "kind": _KINDS[kind], "metadata": {"name": name, **parts.pop("meta", {})}, **parts}


def _create(label: str, kind: str, name: str, **parts: Any) -> Step:
    return Step(label, "create", kind, body=_body(kind, name, **parts))


def _patch(label: str, kind: str, name: str, sub: str = "", **body: Any) -> Step:
    return Step(label, "patch", kind, name, body, subresource=sub, patch="strategic")


def _pod(label: str, name: str, **spec: Any) -> Step:
    return _create(label, PODS, name, spec={"containers": [{"name": "c", "image": "i:1"}], **spec})


def _resources(**resources: Any) -> list[Obj]:
    return [{"name": "c", "image": "i:1", "resources": resources}]


def _workload(label: str, plural: str, name: str, **spec: Any) -> Step:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "r.example/i:1@sha256:" + "0" * 64}]},
    }
    base = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return _create(label, f"apps/v1/{plural}", name, spec={**base, **spec})


def _evict(label: str, name: str, **options: Any) -> Step:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **options}
    return Step(label, "create", PODS, name, body, subresource="eviction")


def _definition(label: str, name: str = "zoos.cluster.example.com", **spec: Any) -> Step:
    body = crd("zoos", "Zoo")
    body["metadata"]["name"] = name
    body["spec"].update(spec)
    return Step(f"definition: {label}", "create", CRDS, body=body)


def _version(**parts: Any) -> Obj:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    return {**version, **parts}


def _schema(**schema: Any) -> Obj:
    return _version(schema={"openAPIV3Schema": schema})


_NAMESPACES = [
    _create("namespace: dotted", SPACES, "a.b"),
    _create("namespace: long", SPACES, "a" * 64),
    Step("namespace: immortal", "delete", SPACES, "default"),
    _patch("namespace: label stays", SPACES, SPACE, metadata={"labels": {"kubernetes.io/metadata.name": None}}),
]

_PODS = [
    _pod("pod: plain", "p"),
    _pod("pod: no containers", "q", containers=[]),
    _pod("pod: guaranteed", "q1", containers=_resources(limits={"cpu": "1", "memory": "1Gi"})),
    _pod("pod: burstable", "q2", containers=_resources(requests={"cpu": "1"})),
    _pod("pod: critical", "q3", priorityClassName="system-node-critical"),
    _pod("pod: no such class", "q4", priorityClassName="none"),
    _pod("pod: tolerant", "q5", tolerations=[{"operator": "Exists"}]),
    _patch("pod: node by update", PODS, "p", spec={"nodeName": "n2"}),
    _patch("pod: image", PODS, "p", spec={"containers": [{"name": "c", "image": "i:2"}]}),
    _patch("pod: status", PODS, "p", "status", status={"phase": "Running"}, metadata={"labels": {"a": "b"}}),
    Step("pods: running", "list", PODS, query={"fieldSelector": "status.phase=Running"}),
    Step("pods: bad field", "list", PODS, query={"fieldSelector": "spec.foo=1"}),
    _create("budget: both", BUDGETS, "x", spec={"minAvailable": 1, "maxUnavailable": 1}),
    _create("budget: negative", BUDGETS, "x", spec={"minAvailable": -1}),
    _create("budget: half", BUDGETS, "x", spec={"minAvailable": "half"}),
    _create("budget: too much", BUDGETS, "x", spec={"minAvailable": "101%"}),
    _create("budget: one", BUDGETS, "b1", spec={"minAvailable": 0, "selector": {"matchLabels": {"a": "b"}}}),
    _create("budget: two", BUDGETS, "b2", spec={"minAvailable": 0, "selector": {"matchLabels": {"a": "b"}}}),
    _evict("evict: missing", "zz"),
    _evict("evict: two budgets", "p"),
    Step("budget: delete one", "delete", BUDGETS, "b1"),
    Step("budget: delete two", "delete", BUDGETS, "b2"),
    _evict("evict: other uid", "p", deleteOptions={"preconditions": {"uid": "x"}}),
    _evict("evict: free", "p"),
    Step("pod: evicted", "get", PODS, "p"),
]

_OTHERS = [
    _create("node: taint", NODES, "n", spec={"taints": [{"key": "a", "effect": "Sometimes"}]}),
    _create("secret: texts", SECRETS, "s", stringData={"a": "hello"}, data={"b": "eA=="}),
    _create("secret: key", SECRETS, "s2", data={"b c": "eA=="}),
    _patch("secret: type", SECRETS, "s", type="x/y"),
    _patch("secret: more texts", SECRETS, "s", stringData={"z": "1"}),
    Step("secret: update without type", "update", SECRETS, "s", _body(SECRETS, "s", data={"b": "eA=="})),
    Step("secret: delete", "delete", SECRETS, "s"),
    _create("config: immutable", CONFIGS, "c", data={"a": "1"}, immutable=True),
    _create("config: key", CONFIGS, "d", data={"a b": "1"}),
    _patch("config: change", CONFIGS, "c", data={"a": "2"}),
    _patch("config: thaw", CONFIGS, "c", immutable=False),
    Step("config: update missing", "update", CONFIGS, "zz", _body(CONFIGS, "zz")),
    _create("lease: negative", LEASES, "l", spec={"leaseDurationSeconds": -10}),
    Step("lease: update missing", "update", LEASES, "l", _body(LEASES, "l", spec={"holderIdentity": "me"})),
    Step("lease: update unconditionally", "update", LEASES, "l", _body(LEASES, "l", spec={"holderIdentity": "you"})),
    _create("event: elsewhere", EVENTS, "e", involvedObject={"kind": "Pod", "name": "p", "namespace": "other"}),
    _create(
        "role: colon",
        "rbac.authorization.k8s.io/v1/roles",
        "a:b",
        rules=[{"verbs": ["get"], "resources": ["x"], "apiGroups": [""]}],
    ),
    _create("role: slash", "rbac.authorization.k8s.io/v1/roles", "a/b"),
    _workload("deployment: plain", "deployments", "d"),
    _workload("deployment: negative", "deployments", "e", replicas=-1),
    _workload("deployment: other labels", "deployments", "e", selector={"matchLabels": {"x": "y"}}),
    _patch(
        "deployment: selector",
        "apps/v1/deployments",
        "d",
        spec={"selector": {"matchLabels": {"c": "d"}}, "template": {"metadata": {"labels": {"c": "d"}}}},
    ),
    Step("deployment: scale", "get", "apps/v1/deployments", "d", subresource="scale"),
    _patch("deployment: scaled", "apps/v1/deployments", "d", "scale", spec={"replicas": 3}),
    _patch("deployment: scaled below zero", "apps/v1/deployments", "d", "scale", spec={"replicas": -3}),
    _workload("replicaset: plain", "replicasets", "r"),
    _workload("statefulset: plain", "statefulsets", "r", serviceName="x"),
]

_DEFINITIONS = [
    _definition("other group", group="other.io"),
    _definition("scope", scope="Galaxy"),
    _definition("other name", name="a.b"),
    _definition("protected group", name="zoos.x.k8s.io", group="x.k8s.io"),
    _definition("short name", names={"plural": "zoos", "kind": "Zoo", "shortNames": ["A_"]}),
    _definition("no schema", versions=[{k: v for k, v in _version().items() if k != "schema"}]),
    _definition("no root type", versions=[_schema(properties={"a": {"type": "string"}})]),
    _definition("strange type", versions=[_schema(type="object", properties={"a": {"type": "strange"}})]),
    _definition("no type", versions=[_schema(type="object", properties={"a": {"description": "x"}})]),
    _definition("list without items", versions=[_schema(type="object", properties={"a": {"type": "array"}})]),
    _definition(
        "unique items",
        versions=[
            _schema(
                type="object", properties={"a": {"type": "array", "uniqueItems": True, "items": {"type": "string"}}}
            )
        ],
    ),
]

BUILTIN_STEPS = [*_NAMESPACES, *_PODS, *_OTHERS, *_DEFINITIONS]
