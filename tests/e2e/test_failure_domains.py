"""Failure domains with the stock kubectl: Machines are spread, go elsewhere when a zone is out of stock, and say so."""

from __future__ import annotations

from collections import Counter

import pytest

from hack.program import Kubectl, Program
from tests.e2e.manifests import CLUSTER, machine_deployment

pytestmark = [pytest.mark.kubectl, pytest.mark.e2e]

ZONES = "cloud: {name: zoned, zones: {east: 20, west: 20, north: 1}}"


@pytest.fixture(scope="module", autouse=True)
def cluster(up: Program) -> None:
    up.kubectl("apply", "-f", "-", stdin=CLUSTER)


def spread(name: str, replicas: int, domains: str) -> str:
    body = machine_deployment(name, replicas).replace("  selector:", f"  failureDomains: {domains}\n  selector:", 1)
    return body.replace("updates: InPlace", f"updates: InPlace\n          {ZONES}")


def zones(kubectl: Kubectl, name: str) -> Counter[str]:
    return Counter(machine["status"].get("failureDomain") for machine in kubectl.items("ma", "-l", f"pool={name}"))


def test_machines_are_spread_and_scaling_down_keeps_them_so(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=spread("even", 4, "[east, west]"))
    kubectl.wait("jsonpath={.status.readyReplicas}=4", "md/even")
    assert zones(kubectl, "even") == {"east": 2, "west": 2}
    kubectl("scale", "md/even", "--replicas=2")
    kubectl.wait("jsonpath={.status.replicas}=2", "md/even")
    kubectl.wait("condition=Balanced", "md/even")
    left = [m for m in kubectl.items("ma", "-l", "pool=even") if "deletionTimestamp" not in m["metadata"]]
    assert Counter(m["status"]["failureDomain"] for m in left) == {"east": 1, "west": 1}


def test_a_zone_without_stock_is_left_and_says_until_when(kubectl: Kubectl) -> None:
    """Of six Machines two were meant for the zone that has room for one."""
    kubectl("apply", "-f", "-", stdin=spread("full", 6, "[north, east, west]"))
    kubectl.wait("jsonpath={.status.readyReplicas}=6", "md/full")
    found = zones(kubectl, "full")
    assert (found["north"], found["east"] + found["west"]) == (1, 5)
    kubectl.wait("jsonpath={.status.conditions[?(@.type=='Balanced')].reason}=FailureDomainExhausted", "md/full")
    (owner,) = kubectl.items("ms", "-l", "pool=full")
    (rest,) = owner["status"]["restingFailureDomains"]
    assert (rest["name"], rest["reason"]) == ("north", "StockOut")
    said = next(c for c in owner["status"]["conditions"] if c["type"] == "Balanced")
    assert f"failure domain north has no host (StockOut) and rests until {rest['until']}" in said["message"]


def test_two_words_on_the_failure_domain_are_refused(kubectl: Kubectl) -> None:
    body = spread("both", 1, "[east]").replace("      versions:", "      failureDomain: west\n      versions:", 1)
    assert "only one of failureDomains and template.spec.failureDomain" in kubectl.fails("apply", "-f", "-", stdin=body)
