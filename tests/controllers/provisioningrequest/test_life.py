"""What becomes of a ProvisioningRequest: found, grown for, rolled back, consumed, revoked, forgotten."""

from __future__ import annotations

from datetime import timedelta

import pytest

from api import provisioning_names
from controllers.kernel.plan import Wait
from controllers.provisioningrequest.deciding import MOST_TRIED
from tests.controllers.provisioningrequest.office import Office


@pytest.fixture
def office() -> Office:
    office = Office()
    office.template("big")
    return office


def test_room_that_is_there_is_booked_at_once(office: Office) -> None:
    office.fleet.group("a")["spec"]["replicas"] = 3
    office.fleet.settle()
    office.request("job", ("big", 2), class_name=provisioning_names.CHECK_CAPACITY)
    office.round()
    assert office.said("job", "Accepted") == ("True", "Accepted")
    assert office.said("job") == ("True", "CapacityIsFound")
    assert office.said("job", "CapacityAvailable") == ("True", "CapacityIsFound")
    assert len(office.booked("job")) == 2
    assert office.fleet.size("a") == 3


def test_a_check_adds_no_nodes_and_says_what_is_missing(office: Office) -> None:
    office.fleet.group("a")["spec"]["replicas"] = 1
    office.fleet.settle()
    office.request("job", ("big", 3), class_name=provisioning_names.PROPOSED_CHECK_CAPACITY)
    office.round()
    assert office.said("job") == ("False", "CapacityIsNotFound")
    assert office.said("job", "CapacityAvailable") == ("False", "CapacityIsNotFound")
    assert "2 of 3 pods" in office.condition("job", "Provisioned")["message"]
    assert office.fleet.size("a") == 1
    assert not office.plan().steps, "it rests"


def test_checks_of_one_look_see_each_other(office: Office) -> None:
    office.fleet.group("a")["spec"]["replicas"] = 3
    office.fleet.settle()
    for name in ("one", "two"):
        office.request(name, ("big", 2), class_name=provisioning_names.CHECK_CAPACITY)
    office.round()
    assert (office.said("one")[0], office.said("two")[0]) == ("True", "False")
    assert office.fleet.size("a") == 3


def test_all_groups_grow_in_one_step_and_the_room_is_there_when_all_nodes_are_ready(office: Office) -> None:
    office.fleet.group("a", most=300)
    office.fleet.group("b", most=300)
    office.request("job", ("big", 600))
    office.round()
    assert (office.fleet.size("a"), office.fleet.size("b")) == (300, 300)
    assert office.scale_steps == [2]
    assert office.condition("job", "Provisioned")["message"] == "0/600 nodes ready"
    office.make("a")
    office.make("b")
    office.join("a")
    office.join("b", 112)
    office.round()
    assert office.said("job") == ("False", "ProvisioningInProgress")
    assert office.condition("job", "Provisioned")["message"] == "412/600 nodes ready"
    office.join("b")
    office.round()
    assert office.said("job") == ("True", "CapacityIsProvisioned")
    assert office.booked("job") == set(office.fleet.nodes)
    assert office.scale_steps == [2]
    assert not office.plan().steps, "the steady state writes nothing"


def test_what_can_not_be_had_as_a_whole_is_not_asked_for_at_all(office: Office) -> None:
    office.fleet.group("a", most=5)
    office.request("job", ("big", 6))
    office.round()
    assert office.fleet.size("a") == 0
    assert office.said("job") == ("False", "CapacityIsNotFound")
    assert "it has its maximum of 5 Nodes" in office.condition("job", "Provisioned")["message"]


def a_part_fails(office: Office) -> None:
    """Two of three Nodes come."""
    office.fleet.group("a", most=3)
    office.request("job", ("big", 3))
    office.round()
    office.make("a", fails=1)
    office.join("a")


def test_a_part_that_fails_comes_from_another_group(office: Office) -> None:
    a_part_fails(office)
    office.fleet.group("b", most=3)
    office.round()
    assert office.fleet.size("b") == 1
    office.make("b")
    office.join("b")
    office.round()
    assert office.said("job") == ("True", "CapacityIsProvisioned")


def test_a_part_that_fails_for_good_rolls_all_back_and_rests(office: Office) -> None:
    office.fleet.group("a", least=1, most=4)["spec"]["replicas"] = 1
    office.fleet.settle()
    office.fleet.pod("other", "3", "a-1")
    office.fleet.now += timedelta(minutes=1)
    office.request("job", ("big", 3))
    office.round()
    assert office.fleet.size("a") == 4
    office.make("a", fails=1)
    office.join("a")
    office.round()
    assert office.said("job") == ("False", "RollingBack")
    assert office.fleet.size("a") == 4, "what goes is written down first"
    office.round()
    assert office.fleet.size("a") == 1
    office.fleet.settle()
    office.round()
    assert set(office.fleet.nodes) == {"a-1"}
    assert office.said("job") == ("False", "CapacityIsNotFound")
    message = office.condition("job", "Provisioned")["message"]
    assert "StockOut: no host is left" in message
    assert "tried again at" in message
    assert office.details("job").keys() == {provisioning_names.RETRIES_DETAIL, provisioning_names.RETRY_AFTER_DETAIL}
    assert not office.plan().steps
    office.fleet.now += timedelta(minutes=6)
    office.live(4)
    assert office.said("job") == ("True", "CapacityIsProvisioned")


def test_nodes_that_others_use_stay(office: Office) -> None:
    a_part_fails(office)
    office.fleet.pod("guest", "1", "a-1")
    office.live(4)
    assert set(office.fleet.nodes) == {"a-1"}


def test_pauses_grow_from_one_minute_to_ten(office: Office) -> None:
    office.request("job", ("big", 1))
    pauses = []
    for _ in range(6):
        office.round(after=timedelta(0))
        before = office.fleet.now
        while not office.plan().steps:
            office.fleet.now += timedelta(minutes=1)
        pauses.append(int((office.fleet.now - before).total_seconds() // 60))
    assert pauses == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize(
    "class_name", [provisioning_names.ATOMIC_SCALE_UP, provisioning_names.PROPOSED_ATOMIC_SCALE_UP]
)
def test_it_is_tried_until_its_time_is_over(office: Office, class_name: str) -> None:
    office.request("job", ("big", 1), class_name=class_name, ValidUntilSeconds="90")
    office.round(after=timedelta(seconds=80))
    office.round(after=timedelta(seconds=80))
    assert office.said("job", "Failed") == ("", "")
    office.round()
    assert office.said("job", "Failed") == ("True", "Expired")
    assert "ValidUntilSeconds" in office.condition("job", "Failed")["message"]


def test_its_time_may_end_while_nodes_are_on_their_way(office: Office) -> None:
    office.fleet.group("a")
    office.request("job", ("big", 2), ValidUntilSeconds="60")
    office.round(after=timedelta(seconds=70))
    office.make("a")
    office.live(3)
    assert office.fleet.size("a") == 0
    assert office.said("job", "Failed") == ("True", "Expired")


def test_without_retry_the_first_failure_is_the_last(office: Office) -> None:
    office.request("job", ("big", 1), noRetry="true", class_name=provisioning_names.CHECK_CAPACITY)
    office.round()
    assert office.said("job", "Failed") == ("True", "CapacityIsNotFound")


@pytest.mark.parametrize("parameters", [{"ValidUntilSeconds": "soon"}, {"noRetry": "maybe"}])
def test_parameters_that_can_not_be_read_are_named(office: Office, parameters: dict[str, str]) -> None:
    office.request("job", ("big", 1), **parameters)
    office.round()
    assert office.said("job", "Failed") == ("True", "InvalidParameters")
    (name,) = parameters
    assert f"spec.parameters[{name}]" in office.condition("job", "Failed")["message"]


def test_a_template_that_is_missing_fails_it_and_when_it_comes_it_is_taken_up(office: Office) -> None:
    office.fleet.group("a")
    office.request("job", ("later", 1))
    office.round()
    assert office.said("job") == ("False", "FailedToCreatePods"), "said at once, though it may come a little later"
    assert (
        "there is no PodTemplate default/later; waited for until" in office.condition("job", "Provisioned")["message"]
    )
    assert office.said("job", "Failed") == ("", "")
    office.fleet.now += timedelta(minutes=2)
    office.round()
    assert office.said("job", "Failed") == ("True", "FailedToCreatePods")
    assert "there is no PodTemplate default/later" in office.condition("job", "Failed")["message"]
    office.template("later", cpu="many")
    office.round()
    assert office.said("job", "Failed") == ("True", "FailedToCreatePods")
    office.template("later")
    office.live(4)
    assert office.said("job", "Failed") == ("", "")
    assert office.said("job") == ("True", "CapacityIsProvisioned")


def test_an_unknown_class_of_the_project_is_told_and_others_are_left_alone(office: Office) -> None:
    office.request("ours", ("big", 1), class_name="guess.autoscaling.x-k8s.io")
    office.request("theirs", ("big", 1), class_name="queued-provisioning.example.com")
    office.request("another", ("big", 1), class_name=provisioning_names.CHECK_CAPACITY, processorInstance="elsewhere")
    office.round()
    assert office.said("ours", "Accepted") == ("False", "UnknownProvisioningClass")
    assert "status" not in office.requests["theirs"]
    assert "status" not in office.requests["another"]


def test_requests_are_served_in_the_order_in_which_they_came(office: Office) -> None:
    office.fleet.group("a", most=3)
    office.request("zebra", ("big", 2))
    office.fleet.now += timedelta(seconds=5)
    office.request("ape", ("big", 2))
    office.round()
    assert office.said("zebra")[1] == "ProvisioningInProgress"
    assert office.said("ape")[1] == "CapacityIsNotFound"
    assert office.fleet.size("a") == 2


def test_a_booking_that_pods_consume_ends_when_all_have_a_node(office: Office) -> None:
    office.fleet.group("a")
    office.request("job", ("big", 2))
    office.live(3)
    first, second = sorted(office.booked("job"))
    office.consumer("job", "one", node=first)
    office.round()
    assert office.said("job", "BookingExpired") == ("", "")
    office.consumer("job", "two", node=second, key=provisioning_names.CA_CONSUME_REQUEST_ANNOTATION)
    office.round()
    assert office.said("job", "BookingExpired") == ("True", "CapacityBookingConsumed")


def test_a_booking_ends_after_ten_minutes_and_frees_the_room(office: Office) -> None:
    office.fleet.group("a", most=1)
    office.request("job", ("big", 1))
    office.live(3)
    office.request("next", ("big", 1), class_name=provisioning_names.CHECK_CAPACITY)
    office.round()
    assert office.said("next")[0] == "False"
    office.fleet.now += timedelta(minutes=10)
    office.round()
    assert office.said("job", "BookingExpired") == ("True", "CapacityReservationTimeExpired")
    assert office.said("next")[0] == "True", "who waits gets the room in the same look"


def test_deleting_a_request_frees_its_room(office: Office) -> None:
    office.fleet.group("a", most=1)
    office.request("job", ("big", 1))
    office.live(3)
    del office.requests["job"]
    office.request("next", ("big", 1), class_name=provisioning_names.CHECK_CAPACITY)
    office.round()
    assert office.said("next")[0] == "True"


def test_room_on_a_node_that_is_gone_moves_if_it_can_and_is_revoked_if_not(office: Office) -> None:
    office.fleet.group("a", most=3)["spec"]["replicas"] = 2
    office.fleet.settle()
    office.request("job", ("big", 1), class_name=provisioning_names.CHECK_CAPACITY)
    office.round()
    (node,) = office.booked("job")
    del office.fleet.nodes[node]
    office.round()
    (other,) = office.booked("job")
    assert other != node
    assert office.said("job", "CapacityRevoked") == ("", "")
    del office.fleet.nodes[other]
    office.round()
    assert office.said("job", "CapacityRevoked") == ("", ""), "two Nodes may come again"
    office.fleet.deployments["a"]["spec"]["replicas"] = 0
    office.round()
    assert office.said("job", "CapacityRevoked") == ("True", "CapacityIsGone")
    assert other in office.condition("job", "CapacityRevoked")["message"]


def test_a_node_that_is_not_ready_for_a_while_revokes_nothing(office: Office) -> None:
    office.fleet.group("a", most=1)["spec"]["replicas"] = 1
    office.fleet.settle()
    office.request("job", ("big", 1), class_name=provisioning_names.CHECK_CAPACITY)
    office.round()
    (node,) = office.booked("job")
    since = office.fleet.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    office.fleet.nodes[node]["status"]["conditions"] = [
        {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": since}
    ]
    office.round()
    assert office.said("job", "CapacityRevoked") == ("", "")
    office.fleet.now += timedelta(minutes=5)
    office.round()
    assert office.said("job", "CapacityRevoked") == ("", ""), "its group is to have one Node"
    office.fleet.deployments["a"]["spec"]["replicas"] = 0
    office.round()
    assert office.said("job", "CapacityRevoked") == ("True", "CapacityIsGone")


def test_what_is_over_is_deleted_after_seven_days(office: Office) -> None:
    office.request("job", ("big", 1), noRetry="true")
    office.round()
    office.fleet.now += timedelta(days=6)
    assert not office.plan().steps
    office.fleet.now += timedelta(days=1)
    office.round()
    assert office.requests == {}


def test_what_is_never_found_fails_after_seven_days(office: Office) -> None:
    office.request("job", ("big", 1))
    office.round(after=timedelta(days=7))
    office.round()
    assert office.said("job", "Failed") == ("True", "Expired")


def test_of_very_many_some_are_tried_in_each_look_and_the_next_one_comes_at_once(office: Office) -> None:
    office.fleet.group("a", most=2000)
    for number in range(MOST_TRIED + 1):
        office.request(f"job-{number:04}", ("big", 1))
    first = office.round()
    assert office.fleet.size("a") == MOST_TRIED
    assert isinstance(first.outcome, Wait)
    assert first.outcome.after < 1
    office.round()
    assert office.fleet.size("a") == MOST_TRIED + 1
