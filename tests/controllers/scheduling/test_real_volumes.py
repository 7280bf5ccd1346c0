"""Claims and volumes: our predicates and kube-scheduler's, on every combination of a few of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from controllers.scheduling.classes import Classes
from controllers.scheduling.predicates import Judge, Occupied
from controllers.scheduling.reading import Reader, read_node
from controllers.scheduling.refusals import Predicate, Refusal, summary
from controllers.scheduling.shapes import NodeInfo
from controllers.scheduling.volumes import VolumeBook
from tests.controllers.scheduling.real_scheduler import Api, Verdicts, bound_to, refused, scheduler

pytestmark = [pytest.mark.slow, pytest.mark.realplane]

ZONE = "topology.kubernetes.io/zone"
DRIVER = "disk.example.com"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
NODES = {"n-a": "a", "n-b": "b", "n-c": "c", "n-none": ""}
CLAIMS = ("in-a", "also-in-a", "by-label-b", "anywhere", "alone", "later", "now", "lost", "missing")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Verdicts]]:
    with scheduler(tmp_path_factory.mktemp("plane")) as found:
        yield found


def furnish(api: Api) -> tuple[list[NodeInfo], VolumeBook]:
    nodes = []
    for name, zone in NODES.items():
        labels = {"kubernetes.io/hostname": name, **({ZONE: zone} if zone else {})}
        offer = {"cpu": "8", "memory": "8Gi", "pods": "100"}
        body = {"metadata": {"name": name, "labels": labels}, "status": {"capacity": offer, "allocatable": offer}}
        driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [], "allocatable": {"count": 3 if zone == "a" else 2}}
        csi = {"metadata": {"name": name}, "spec": {"drivers": [driver]}}
        api("POST", "/api/v1/nodes", body)
        api("POST", "/apis/storage.k8s.io/v1/csinodes", csi)
        nodes.append(read_node(body, csi))
    api("POST", "/api/v1/namespaces", {"metadata": {"name": "v"}})
    api("POST", "/api/v1/namespaces/v/serviceaccounts", {"metadata": {"name": "default"}})
    return nodes, VolumeBook(*(dict(each) for each in (_claims(api), _volumes(api), _storage_classes(api))))


def _storage_classes(api: Api) -> Iterator[tuple[str, Any]]:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["c"]}]}]
    later = {"volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": allowed}
    for name, more in (("now", {}), ("later", later)):
        body = {"metadata": {"name": name}, "provisioner": DRIVER, **more}
        yield name, api("POST", "/apis/storage.k8s.io/v1/storageclasses", body)


def _volumes(api: Api) -> Iterator[tuple[str, Any]]:
    in_a = {"key": ZONE, "operator": "In", "values": ["a"]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [in_a]}]}}}
    volumes: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
        "in-a": ({}, affinity),
        "also-in-a": ({}, affinity),
        "by-label-b": ({ZONE: "b"}, {}),
        "anywhere": ({}, {}),
        "alone": ({}, {}),
    }
    for name, (labels, more) in volumes.items():
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], **more}
        spec["csi"] = {"driver": DRIVER, "volumeHandle": f"handle-{name}"}
        body = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        yield name, api("POST", "/api/v1/persistentvolumes", body)


def _claims(api: Api) -> Iterator[tuple[tuple[str, str], Any]]:
    for name in CLAIMS:
        if name == "missing":
            continue
        mode = "ReadWriteOncePod" if name == "alone" else "ReadWriteMany"
        spec: dict[str, Any] = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
        unbound = name in ("later", "now")
        spec.update({"storageClassName": name} if unbound else {"storageClassName": "", "volumeName": name})
        body = {"metadata": {"name": name, "annotations": {} if unbound else BOUND}, "spec": spec}
        yield ("v", name), api("POST", "/api/v1/namespaces/v/persistentvolumeclaims", body)


def test_the_scheduler_agrees_about_volumes(plane: tuple[Api, Verdicts]) -> None:
    api, verdicts = plane
    nodes, book = furnish(api)
    running: list[Any] = []
    decided: Counter[str] = Counter()
    singles = [(claim,) for claim in CLAIMS]
    for number, claims in enumerate([*singles, *itertools.combinations(CLAIMS, 2)] * 2):
        for zone in (None, "a") if "later" not in claims else ("a",):
            body = pod(f"p-{number}-{zone or 'any'}", claims, zone)
            made = api("POST", "/api/v1/namespaces/v/pods", body)
            seen = verdicts.of(made["metadata"]["uid"])
            ours = judged(made, running, nodes, book)
            what = f"{claims} in {zone}: {bound_to(seen) or refused(seen)}, we: {ours}"
            fitting = {name for name, refusal in ours.items() if refusal is None}
            if bound_to(seen):
                assert bound_to(seen) in fitting, what
                decided["fits"] += 1
            else:
                assert not fitting, what
                assert agree(refused(seen), [each for each in ours.values() if each]), what
                decided.update({each.predicate.value for each in ours.values() if each})
            if bound_to(seen) and (number % 3 == 0 or claims == ("alone",)):
                running.append(seen)
            else:
                api("DELETE", f"/api/v1/namespaces/v/pods/{body['metadata']['name']}?gracePeriodSeconds=0")
    print(f"\npods by what decided them: {dict(decided)}")
    asked = {Predicate.VOLUME_RESTRICTIONS, Predicate.VOLUME_LIMITS, Predicate.VOLUME_BINDING, Predicate.VOLUME_ZONE}
    assert asked <= set(decided)


def pod(name: str, claims: tuple[str, ...], zone: str | None) -> dict[str, Any]:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    spec = {"containers": [{"name": "c", "image": "x"}], "volumes": volumes}
    if zone:
        spec["nodeSelector"] = {ZONE: zone}
    return {"metadata": {"namespace": "v", "name": name}, "spec": spec}


def judged(made: Any, running: list[Any], nodes: list[NodeInfo], book: VolumeBook) -> dict[str, Refusal | None]:
    reader = Reader(book)
    pending, there = reader.pod(made), [reader.pod(each) for each in running]
    classes = Classes([each.kind for each in (pending, *there)])
    here: dict[str, Counter[Any]] = {node.name: Counter() for node in nodes}
    for each in there:
        here[each.node][classes.of(each.kind)] += 1
    occupied = [Occupied(node, here[node.name]) for node in nodes]
    judge = Judge(classes.of(pending.kind), occupied)
    return {each.node.name: judge.refusal(each) for each in occupied}


def agree(theirs: str, ours: list[Refusal]) -> bool:
    """Either the same sum of reasons, or the same one that holds for all Nodes."""
    told = theirs.split(" preemption:", maxsplit=1)[0].strip()
    if told == summary(ours):
        return True
    return all(reason in told for refusal in ours for reason in refusal.reasons)
