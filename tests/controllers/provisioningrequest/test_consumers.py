"""Pods that consume a request that only checks for room: no Node is made for them, and they are told so."""

from __future__ import annotations

import pytest

from api import provisioning_names
from controllers.kernel.actions import Event
from tests.controllers.provisioningrequest.office import Office

CHECK = "check-capacity.autoscaling.x-k8s.io"


@pytest.fixture
def office() -> Office:
    office = Office()
    office.template("big")
    office.fleet.group("a")
    return office


def consumer(office: Office, name: str, request: str) -> None:
    body = office.fleet.pod(name)
    body["metadata"]["annotations"] = {provisioning_names.CONSUME_REQUEST_ANNOTATION: request}


def told(office: Office) -> dict[str, str]:
    """Name of the object → what its Event says, of this round."""
    events = [
        each for each in office.plan().actions() if isinstance(each, Event) and each.reason == "NotTriggerScaleUp"
    ]
    return {each.target.key.name: each.why for each in events}


def test_pods_that_consume_a_checked_request_and_find_no_place_are_told_and_so_is_the_request(office: Office) -> None:
    office.request("job", ("big", 1), class_name=CHECK)
    consumer(office, "p1", "job")
    consumer(office, "p2", "job")
    found = told(office)
    assert set(found) == {"p1", "p2", "job"}
    assert "it consumes ProvisioningRequest default/job, whose class only checks for room" in found["p1"]
    assert "2 pods that consume it found no Node" in found["job"]


def test_a_pod_whose_request_is_missing_is_told_that_it_waits_for_it(office: Office) -> None:
    consumer(office, "p", "nobody")
    assert "ProvisioningRequest default/nobody, which does not exist" in told(office)["p"]


def test_pods_of_other_classes_and_pods_with_a_node_are_told_nothing(office: Office) -> None:
    office.request("grows", ("big", 1))
    consumer(office, "p", "grows")
    office.request("job", ("big", 1), class_name=CHECK)
    body = office.fleet.pod("on", node="n")
    body["metadata"]["annotations"] = {provisioning_names.CONSUME_REQUEST_ANNOTATION: "job"}
    assert told(office) == {}
