"""A Reader that is kept reads again only what has changed."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.scheduling import reading
from controllers.scheduling.reading import Reader
from controllers.scheduling.volumes import VolumeBook

CLAIM = {"metadata": {"namespace": "d", "name": "data"}, "spec": {"storageClassName": "later"}}
LATER = {"metadata": {"name": "later"}, "provisioner": "disk", "volumeBindingMode": "WaitForFirstConsumer"}


def pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"namespace": "d", "name": name, "uid": name}, "spec": {"containers": [container], **spec}}


@pytest.fixture
def looked_into(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the pods that were looked into."""
    seen: list[str] = []
    parts = reading._parts

    def noted(body: Any) -> Any:
        seen.append(body["metadata"]["name"])
        return parts(body)

    monkeypatch.setattr(reading, "_parts", noted)
    return seen


def test_only_what_has_changed_is_looked_into(looked_into: list[str]) -> None:
    reader, same, changed = Reader(), pod("same"), pod("changed")
    before = [reader.pod(each) for each in (same, changed)]
    looked_into.clear()
    reader.look()
    after = [reader.pod(same), reader.pod(pod("changed", cpu="2"))]
    assert looked_into == ["changed"]
    assert after[0] is before[0]
    assert after[1].kind.demand.requests == (("cpu", 2000),)


def test_what_one_look_leaves_out_is_forgotten() -> None:
    reader, body = Reader(), pod("p")
    before = reader.pod(body)
    reader.look()
    reader.look()
    assert reader.pod(body) is not before


def test_a_pod_is_known_by_the_parts_that_it_shares_with_another(looked_into: list[str]) -> None:
    reader, one = Reader(), pod("one")
    kind = reader.pod(one).kind
    other = {**one, "metadata": {**one["metadata"], "name": "other", "uid": "other"}}
    seen = reader.pod(other)
    assert looked_into == ["one"]
    assert (seen.name, seen.uid, seen.kind) == ("other", "other", kind)


@pytest.mark.parametrize(
    "difference",
    [
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"metadata": {"namespace": "e"}},
        {"metadata": {"labels": {"app": "x"}}},
        {"spec": {"priority": 5}},
        {"spec": {"terminationGracePeriodSeconds": 5}},
        {"spec": {"schedulingGates": [{"name": "g"}]}},
        {"spec": {"nodeSelector": {"disk": "fast"}}},
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {"status": {"phase": "Succeeded"}},
    ],
)
def test_parts_that_are_shared_hide_no_difference(difference: dict[str, Any]) -> None:
    reader, one = Reader(), {**pod("one"), "status": {}}
    other = {part: {**found, **difference.get(part, {})} for part, found in one.items()}
    assert reader.pod(other).kind is not reader.pod(one).kind


def test_a_pod_that_was_resized_is_read_whatever_it_shares() -> None:
    reader, one = Reader(), pod("one", nodeName="n")
    granted = [{"name": "c", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2"}}]
    deferred = {"containerStatuses": granted, "conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}
    infeasible = {"containerStatuses": granted, "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
    found = [reader.pod({**one, "status": status}).kind.demand.requests for status in (deferred, infeasible)]
    alone = [Reader().pod({**one, "status": status}).kind.demand.requests for status in (deferred, infeasible)]
    assert found == alone


def test_a_claim_that_means_something_else_is_a_change() -> None:
    body = pod("p", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    reader = Reader(VolumeBook())
    assert reader.pod(body).kind.demand.blocked == 'persistentvolumeclaim "data" not found'
    reader.look(VolumeBook({("d", "data"): CLAIM}, {}, {"later": LATER}))
    demand = reader.pod(body).kind.demand
    assert (demand.blocked, [volume.handle for volume in demand.volumes]) == ("", ["d/data"])


def test_nodes_are_read_once_as_well() -> None:
    reader = Reader()
    body = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1"}}}
    before = reader.node(body)
    reader.look()
    assert reader.node(body) is before
    assert reader.node({**body, "status": {"allocatable": {"cpu": "2"}}}).amount("cpu") == 2000
