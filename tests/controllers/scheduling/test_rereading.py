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


def test_what_one_look_leaves_out_is_forgotten(looked_into: list[str]) -> None:
    reader, body = Reader(), pod("p")
    reader.pod(body)
    reader.look()
    reader.look()
    reader.pod(body)
    assert looked_into == ["p", "p"]


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
