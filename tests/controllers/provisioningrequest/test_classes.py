"""Classes: their defaults from the ConfigMap, and those that other packages bring."""

from __future__ import annotations

from datetime import timedelta

import pytest

from api import names, provisioning_names
from controllers.provisioningrequest.classes import NotFound, Trial, Verdict, by_name
from tests.controllers.provisioningrequest.office import Office


@pytest.fixture
def office() -> Office:
    office = Office()
    office.template("big")
    return office


class _Lender:
    """A class of somebody else's: half of what is asked for must be there, the rest comes."""

    names = ("lender.example.com",)

    def decide(self, trial: Trial) -> Verdict:
        if trial.parameters.get("explode"):
            raise ValueError("boom")
        return trial.grow() if len(trial.fit().nodes) > 0 else NotFound("nothing is there to begin with")


def test_a_class_of_another_package_decides_in_its_own_way(office: Office) -> None:
    office.classes |= by_name([_Lender()])
    office.fleet.group("a")
    office.request("job", ("big", 2), class_name="lender.example.com")
    office.round()
    assert "nothing is there to begin with" in office.condition("job", "Provisioned")["message"]
    office.fleet.deployments["a"]["spec"]["replicas"] = 1
    office.fleet.settle()
    office.fleet.now += timedelta(minutes=1)
    office.live(4)
    assert office.said("job") == ("True", "CapacityIsProvisioned")
    assert office.fleet.size("a") == 2


def test_its_faults_are_told_to_those_who_ask_for_it_and_touch_nobody_else(office: Office) -> None:
    office.classes |= by_name([_Lender()])
    office.fleet.group("a")
    office.request("job", ("big", 1), class_name="lender.example.com", explode="yes")
    office.request("other", ("big", 1))
    office.round()
    assert "boom" in office.condition("job", "Provisioned")["message"]
    assert office.said("other")[1] == "ProvisioningInProgress"


def test_defaults_of_a_class_hold_unless_the_request_says_otherwise(office: Office) -> None:
    office.defaults[provisioning_names.ATOMIC_SCALE_UP] = "parameters: {noRetry: true}\nbookingTime: 1h\n"
    office.request("job", ("big", 1))
    office.request("stubborn", ("big", 1), noRetry="false")
    office.round()
    assert office.said("job", "Failed")[0] == "True"
    assert office.said("stubborn", "Failed")[0] == ""
    office.fleet.group("a")
    office.fleet.now += timedelta(minutes=1)
    office.live(3)
    office.fleet.now += timedelta(minutes=30)
    office.round()
    assert office.said("stubborn", "BookingExpired") == ("", "")


def test_faulty_defaults_are_named(office: Office) -> None:
    office.defaults[provisioning_names.ATOMIC_SCALE_UP] = "bookingTime: long"
    office.request("job", ("big", 1))
    office.round()
    assert office.said("job", "Failed") == ("True", "InvalidParameters")
    message = office.condition("job", "Failed")["message"]
    assert f"data[{provisioning_names.ATOMIC_SCALE_UP}]: bookingTime" in message


def test_pods_for_which_only_one_group_will_do_are_not_crowded_out_of_it(office: Office) -> None:
    """First fit by size alone gives the one group to pods that another would take as well."""
    office.fleet.group("gpu", most=1)["metadata"]["annotations"][names.CAPACITY_LABELS_ANNOTATION] = "kind=gpu"
    office.fleet.group("plain", most=1)
    office.template("choosy", cpu="2", nodeSelector={"kind": "gpu"})
    office.request("job", ("big", 1), ("choosy", 1))
    office.round()
    assert office.said("job")[1] == "ProvisioningInProgress"
    assert (office.fleet.size("gpu"), office.fleet.size("plain")) == (1, 1)


def test_what_is_missing_is_counted_over_all_sets(office: Office) -> None:
    office.template("other", cpu="2")
    office.request("job", ("big", 4), ("other", 1))
    office.round()
    assert "5 of 5 pods would have no room; there is no node group" in office.condition("job", "Provisioned")["message"]
