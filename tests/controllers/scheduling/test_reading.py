"""Core objects are read as kube-scheduler reads them, and bad ones are refused with the field named."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.scheduling.classes import classes_of
from controllers.scheduling.demand import ShapeError
from controllers.scheduling.reading import Reader, read_node
from controllers.scheduling.volumes import VolumeBook


def container(name: str = "c", restart: str = "", **requests: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "resources": {"requests": requests}}
    return {**found, "restartPolicy": restart} if restart else found


def pod(name: str = "p", labels: dict[str, str] | None = None, status: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "default", "name": name, "labels": labels or {}},
        "spec": {"containers": [container(cpu="100m")], **spec},
        "status": status or {},
    }


def requests(body: dict[str, Any]) -> dict[str, int]:
    return dict(Reader().pod(body).kind.demand.requests)


REQUESTS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "containers add up": ({"containers": [container(cpu="100m"), container(cpu="1")]}, {"cpu": 1100}),
    "fractions are rounded up once, after the sum": (
        {"containers": [container(cpu="0.3m"), container(cpu="0.3m"), container(cpu="0.3m")]},
        {"cpu": 1},
    ),
    "memory has many spellings": (
        {"containers": [container(memory="1Gi"), container(memory="1.5M"), container(memory="1e3")]},
        {"memory": 1024**3 + 1_501_000},
    ),
    "an init container sets a minimum": (
        {"initContainers": [container(cpu="2"), container(memory="5")]},
        {"cpu": 2000, "memory": 5},
    ),
    "a sidecar runs beside the containers": (
        {"initContainers": [container("s", "Always", cpu="50m")]},
        {"cpu": 150},
    ),
    "an init container runs beside the sidecars that started before it": (
        {
            "initContainers": [
                container("s", "Always", cpu="50m"),
                container(cpu="1"),
                container("t", "Always", cpu="7m"),
            ]
        },
        {"cpu": 1050},
    ),
    "the pod's own request replaces cpu and memory": (
        {"containers": [container(cpu="1", **{"x/gpu": "1"})], "resources": {"requests": {"cpu": "3", "memory": "1"}}},
        {"cpu": 3000, "memory": 1, "x/gpu": 1},
    ),
    "overhead comes on top of all": (
        {"resources": {"requests": {"cpu": "3"}}, "overhead": {"cpu": "250m", "memory": "1Ki"}},
        {"cpu": 3250, "memory": 1024},
    ),
    "nothing asked is nothing": ({"containers": [{"name": "c"}, container(cpu="0")]}, {}),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_what_a_pod_asks_for(name: str) -> None:
    spec, wanted = REQUESTS[name]
    assert requests(pod(**spec)) == wanted


def test_a_resize_in_progress_counts_as_the_larger() -> None:
    def resized(reason: str = "") -> dict[str, Any]:
        running = {"name": "c", "resources": {"requests": {"cpu": "300m"}}, "allocatedResources": {"cpu": "200m"}}
        conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}]
        return {"containerStatuses": [running], "conditions": conditions}

    asks_more = [container(cpu="700m")]
    assert requests(pod(containers=asks_more, status=resized(), nodeName="n")) == {"cpu": 700}
    assert requests(pod(status=resized(), nodeName="n")) == {"cpu": 300}
    assert requests(pod(containers=asks_more, status=resized("Infeasible"), nodeName="n")) == {"cpu": 300}
    assert requests(pod(status=resized())) == {"cpu": 100}, "a pending pod has nothing yet"


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a quantity": ({"containers": [container(cpu="lots")]}, "spec.containers[0].resources.requests[cpu]"),
    "a list of quantities": ({"overhead": ["1"]}, "spec.overhead"),
    "a selector": (
        {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "z", "labelSelector": {"matchLabels": {"-": "x"}}}
            ]
        },
        "spec.topologySpreadConstraints[0].labelSelector.matchLabels[-]",
    ),
    "a skew": ({"topologySpreadConstraints": [{"maxSkew": 0}]}, "spec.topologySpreadConstraints[0].maxSkew"),
    "a container": ({"containers": ["c"]}, "spec"),
    "an affinity": ({"affinity": {"podAffinity": []}, "tolerations": 3}, "spec"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_can_not_be_read_is_named(name: str) -> None:
    spec, field = BAD[name]
    with pytest.raises(ShapeError) as caught:
        Reader().pod(pod(**spec))
    assert caught.value.field == field


def test_a_node_that_can_not_be_read_is_named() -> None:
    with pytest.raises(ShapeError, match=r"status\.allocatable\[cpu\]"):
        read_node({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "four"}}})


def test_pods_of_one_template_share_their_kind() -> None:
    reader = Reader()
    first, second, other = reader.pod(pod("a")), reader.pod(pod("b")), reader.pod(pod("c", priority=5))
    assert first.kind is second.kind
    assert first.kind is not other.kind


def test_names_that_the_api_server_made_up_do_not_part_pods() -> None:
    """autoscaler#4441: pods whose token volumes have random names were no group, and one loop took 44 minutes."""
    reader = Reader()
    volumes = [{"name": f"kube-api-access-{end}", "projected": {}} for end in "ab"]
    assert reader.pod(pod(volumes=volumes[:1])).kind is reader.pod(pod(volumes=volumes[1:])).kind


def test_labels_part_pods_only_where_a_selector_reads_them() -> None:
    def spread(key: str) -> dict[str, Any]:
        selector = {"matchExpressions": [{"key": key, "operator": "Exists"}]}
        return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}

    reader = Reader()
    for key, groups in (("app", 1), ("index", 3)):
        pods = [
            reader.pod(pod(f"p-{n}", {"app": "a", "index": str(n)}, topologySpreadConstraints=[spread(key)]))
            for n in range(3)
        ]
        assert len(classes_of(pods).group(pods)) == groups


def test_a_kind_that_was_not_announced_is_refused() -> None:
    reader = Reader()
    term = {"topologyKey": "z", "labelSelector": {"matchLabels": {"app": "a"}}}
    late = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    with pytest.raises(LookupError, match="app"):
        classes_of([reader.pod(pod())]).of(reader.pod(pod(affinity=late)).kind)


CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
LATER = {"metadata": {"name": "later"}, "provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}
CLAIMS: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({}, 'persistentvolumeclaim "data" not found'),
    "deleted": ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "is being deleted"),
    "unbound": ({"metadata": {}, "spec": {"storageClassName": "now"}}, "unbound immediate PersistentVolumeClaims"),
    "bound to nothing": (
        {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "gone"}},
        'persistentvolume "gone" not found',
    ),
    "made later": ({"metadata": {}, "spec": {"storageClassName": "later"}}, ""),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_what_a_claim_means_for_its_pod(name: str) -> None:
    claim, why = CLAIMS[name]
    book = VolumeBook({("default", "data"): claim} if claim else {}, {}, {"later": LATER})
    demand = Reader(book).pod(pod(**CLAIM)).kind.demand
    assert why in demand.blocked
    assert bool(demand.volumes) == (not why)
    seated = Reader(book).pod(pod(nodeName="n", **CLAIM)).kind.demand
    assert why in seated.blocked, "it could not be scheduled again elsewhere"
    assert Reader().pod(pod(**CLAIM)).kind.demand.blocked == "", "claims that are not known are not judged"
