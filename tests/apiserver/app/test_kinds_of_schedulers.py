"""Cluster Autoscaler, kube-scheduler and Karpenter begin only when all that they watch is served: each kind is."""

from __future__ import annotations

from typing import Any

import pytest

from nodewright.apiserver.app import APIServer
from tests.apiserver.app.client import Client, client_of

POD = {"containers": [{"name": "a", "image": "b"}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
SELECTOR = {"matchLabels": {"a": "b"}}
CLAIM = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}

# (group/version, plural, kind, namespaced, what an object of it holds). The kinds are those for which there are
# informers in kubernetes/pkg/scheduler 1.36, in cluster-autoscaler 1.36 and in sigs.k8s.io/karpenter 1.8, but for alpha
# ones behind feature gates, and others that clients of that kind list.
KINDS: list[tuple[str, str, str, bool, dict[str, Any]]] = [
    ("v1", "namespaces", "Namespace", False, {}),
    ("v1", "nodes", "Node", False, {}),
    ("v1", "pods", "Pod", True, {"spec": POD}),
    ("v1", "services", "Service", True, {"spec": {"ports": [{"port": 80}]}}),
    ("v1", "configmaps", "ConfigMap", True, {"data": {"a": "b"}}),
    ("v1", "events", "Event", True, {"involvedObject": {"namespace": "default"}}),
    ("v1", "podtemplates", "PodTemplate", True, {"template": TEMPLATE}),
    ("v1", "replicationcontrollers", "ReplicationController", True, {"spec": {"template": TEMPLATE}}),
    ("v1", "persistentvolumes", "PersistentVolume", False, {"spec": {"capacity": {"storage": "1Gi"}}}),
    ("v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, {"spec": {"accessModes": ["ReadWriteOnce"]}}),
    ("apps/v1", "daemonsets", "DaemonSet", True, {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("apps/v1", "deployments", "Deployment", True, {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("apps/v1", "replicasets", "ReplicaSet", True, {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("apps/v1", "statefulsets", "StatefulSet", True, {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("apps/v1", "controllerrevisions", "ControllerRevision", True, {"revision": 1}),
    ("batch/v1", "jobs", "Job", True, {"spec": {"template": TEMPLATE}}),
    ("batch/v1", "cronjobs", "CronJob", True, {"spec": {"schedule": "@daily", "jobTemplate": {}}}),
    ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", True, {"spec": {"minAvailable": 1}}),
    ("coordination.k8s.io/v1", "leases", "Lease", True, {"spec": {"holderIdentity": "a"}}),
    ("events.k8s.io/v1", "events", "Event", True, {"regarding": {"namespace": "default"}}),
    ("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", False, {"value": 5}),
    ("storage.k8s.io/v1", "storageclasses", "StorageClass", False, {"provisioner": "p"}),
    ("storage.k8s.io/v1", "csinodes", "CSINode", False, {"spec": {"drivers": []}}),
    ("storage.k8s.io/v1", "csidrivers", "CSIDriver", False, {"spec": {"attachRequired": False}}),
    ("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity", True, {"storageClassName": "s"}),
    ("storage.k8s.io/v1", "volumeattributesclasses", "VolumeAttributesClass", False, {"driverName": "d"}),
    (
        "storage.k8s.io/v1",
        "volumeattachments",
        "VolumeAttachment",
        False,
        {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
    ),
    (
        "resource.k8s.io/v1",
        "deviceclasses",
        "DeviceClass",
        False,
        {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    ),
    ("resource.k8s.io/v1", "resourceclaims", "ResourceClaim", True, {"spec": CLAIM}),
    ("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate", True, {"spec": {"spec": CLAIM}}),
    (
        "resource.k8s.io/v1",
        "resourceslices",
        "ResourceSlice",
        False,
        {
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "n",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {"name": "gpu-0", "attributes": {"model": {"string": "x"}}, "capacity": {"mem": {"value": "1Gi"}}}
                ],
            }
        },
    ),
    ("node.k8s.io/v1", "runtimeclasses", "RuntimeClass", False, {"handler": "runc"}),
    ("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", False, {"rules": []}),
    ("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False, {}),
    (
        "certificates.k8s.io/v1",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        False,
        {"spec": {"signerName": "a/b"}},
    ),
]


def base(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


@pytest.mark.parametrize(
    ("version", "plural", "kind", "namespaced", "content"), KINDS, ids=[f"{k[0]}-{k[1]}" for k in KINDS]
)
async def test_a_kind_that_schedulers_watch_is_served(
    plane: APIServer, version: str, plural: str, kind: str, namespaced: bool, content: dict[str, Any]
) -> None:
    async with client_of(plane) as api:
        found = {r["name"]: r for r in (await api.get(base(version)))["resources"]}[plural]
        assert (found["kind"], found["namespaced"]) == (kind, namespaced)
        assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(found["verbs"])
        await described(api, version, kind)
        everywhere = f"{base(version)}/{plural}"
        collection = f"{base(version)}/namespaces/default/{plural}" if namespaced else everywhere
        listed = await api.get(everywhere)
        assert listed["kind"] == f"{kind}List"
        since = listed["metadata"]["resourceVersion"]
        async with api.watch(everywhere, f"resourceVersion={since}&allowWatchBookmarks=true") as events:
            made = await api.create(collection, {"metadata": {"name": "one"}, **content})
            event = await events.next()
            assert (event["type"], event["object"]["metadata"]["uid"]) == ("ADDED", made["metadata"]["uid"])
        assert holds(made, content), made
        assert (
            await api("GET", f"{collection}/one", Accept="application/json;as=Table;g=meta.k8s.io;v=v1")
        ).status == 200
        await api.patch(
            f"{collection}/one", {"metadata": {"labels": {"x": "y"}}}, "application/strategic-merge-patch+json"
        )
        assert (await api("DELETE", f"{collection}/one")).status == 200


async def described(api: Client, version: str, kind: str) -> None:
    """OpenAPI says what the kind is, as `kubectl explain` and server-side apply need it."""
    group, _, short = version.rpartition("/")
    path = f"/openapi/v3/apis/{group}/{short}" if group else f"/openapi/v3/api/{short}"
    schemas = (await api.get(path))["components"]["schemas"]
    wanted = {"group": group, "kind": kind, "version": short}
    assert any(wanted in schema.get("x-kubernetes-group-version-kind", ()) for schema in schemas.values())


def holds(found: Any, wanted: Any) -> bool:
    """Say whether all that is wanted is in what was found, which may have defaults beside it."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(holds(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(holds, found, wanted))
    return bool(found == wanted)


async def test_a_claim_says_how_many_devices_it_asks_for(api: Client) -> None:
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    made = await api.create(path, {"metadata": {"name": "c"}, "spec": CLAIM})
    exactly = made["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly == {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}
    status = {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
    assert (await api.patch(f"{path}/c/status", status))["status"] == status["status"]


async def test_slices_are_selected_by_their_node(api: Client) -> None:
    path = "/apis/resource.k8s.io/v1/resourceslices"
    for node in ("a", "b"):
        pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
        await api.create(path, {"metadata": {"name": node}, "spec": {"driver": "d", "nodeName": node, "pool": pool}})
    found = await api.get(f"{path}?fieldSelector=spec.nodeName%3Da")
    assert [item["metadata"]["name"] for item in found["items"]] == ["a"]
