"""Which machine is which Node."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.cloudpool.matching import pair
from tests.controllers.cloudpool.fleet import machine, node

NODE = node("worker-1", providerID="cloud:///zone/i-1", externalID="ext-1")
NODE["status"]["addresses"] = [
    {"type": "InternalIP", "address": "10.0.0.1"},
    {"type": "Hostname", "address": "worker-1.example.com"},
]
OTHER = node("worker-2", providerID="cloud:///zone/i-2")

KNOWN: dict[str, Any] = {
    "the whole provider ID": machine("cloud:///zone/i-1"),
    "a provider ID in the metadata": machine("m", metadata={"providerID": "cloud:///zone/i-1"}),
    "the last part of the provider ID": machine("i-1"),
    "another form of the provider ID": machine("zone/i-1"),
    "the name": machine("worker-1"),
    "the host name": machine("worker-1.example.com"),
    "a name in the metadata": machine("m", metadata={"nodeName": "worker-1"}),
    "a private address": machine("m", private_ips=("10.0.0.1",)),
    "a public address": machine("m", public_ips=("10.0.0.1",)),
    "the external ID": machine("ext-1"),
}


@pytest.mark.parametrize("by", KNOWN)
def test_a_machine_is_known_by(by: str) -> None:
    found = pair([KNOWN[by]], [NODE, OTHER])
    assert {id_: body["metadata"]["name"] for id_, body in found.node_of.items()} == {KNOWN[by].id: "worker-1"}


def test_a_surer_mark_goes_first_and_each_node_is_one_machine() -> None:
    sure, late = machine("i-1"), machine("m", private_ips=("10.0.0.1",))
    assert set(pair([late, sure], [NODE]).node_of) == {"i-1"}


def test_what_may_be_two_nodes_or_two_machines_is_left_open_and_named() -> None:
    twins = [machine("x", private_ips=("10.0.0.1",)), machine("y", private_ips=("10.0.0.1",))]
    found = pair(twins, [NODE])
    assert not found.node_of
    assert found.ambiguous["x"] == "by its address Node worker-1 may as well be machine y"
    nodes = [node("a", providerID="one/i-9"), node("b", providerID="two/i-9")]
    assert pair([machine("i-9")], nodes).ambiguous["i-9"].endswith("it may be any of the Nodes a, b")


def test_a_machine_that_has_ended_takes_no_part() -> None:
    old, new = machine("old", "TERMINATED", private_ips=("10.0.0.1",)), machine("new", private_ips=("10.0.0.1",))
    assert set(pair([old, new], [NODE]).node_of) == {"new"}
