"""Bad input is refused with the field named, or told on the object; everything else goes on."""

from __future__ import annotations

import pytest

from hack.program import Kubectl
from tests.e2e.manifests import machine_deployment, machine_set

pytestmark = [pytest.mark.kubectl, pytest.mark.e2e]

REFUSED = {
    "negative replicas": (machine_set("bad", 1).replace("replicas: 1", "replicas: -1"), "spec.replicas"),
    "replicas that are no number": (machine_set("bad", 1).replace("replicas: 1", "replicas: many"), "spec.replicas"),
    "a selector that doesn't match the template": (
        machine_set("bad", 1).replace("matchLabels: {pool: bad}", "matchLabels: {pool: other}"),
        "selector",
    ),
    "an empty selector": (machine_set("bad", 1).replace("matchLabels: {pool: bad}", "matchLabels: {}"), "selector"),
    "surge and unavailable both zero": (
        machine_deployment("bad", 1).replace(
            "  selector:", "  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}\n  selector:"
        ),
        "rollingUpdate",
    ),
    "a field that does not exist": (machine_set("bad", 1).replace("replicas: 1", "replica: 1"), "spec.replica"),
    "a name that is too long": (machine_set("x" * 254, 1), "metadata.name"),
    "a name from which no Node name can be made": (machine_set("x" * 60, 1), "metadata.name"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_at_apply_with_the_field_named(kubectl: Kubectl, what: str) -> None:
    text, field = REFUSED[what]
    refused = kubectl.fails("apply", "-f", "-", stdin=text)
    assert field in refused
    assert kubectl.items("ms,md", "-l", "pool=bad") == []


def test_malformed_yaml_is_refused(kubectl: Kubectl) -> None:
    assert "yaml" in kubectl.fails("apply", "-f", "-", stdin="kind: [MachineSet").lower()


TOLD = {
    "an unknown provider": (
        machine_set("lost", 1).replace("simulated.nodewright.dev/v1alpha1", "nobody.example.com/v1"),
        "nobody.example.com/v1",
    ),
    "a providerConfig that fails its schema": (
        machine_set("lost", 1).replace("updates: InPlace", "updates: Sideways"),
        "updates",
    ),
}


@pytest.mark.parametrize("what", TOLD)
def test_told_on_the_object_while_others_go_on(kubectl: Kubectl, what: str) -> None:
    text, words = TOLD[what]
    kubectl("apply", "-f", "-", stdin=text)
    kubectl("apply", "-f", "-", stdin=machine_set("fine", 1))
    kubectl.wait("jsonpath={.status.readyReplicas}=1", "ms/fine")
    kubectl.wait("jsonpath={.status.phase}=Failed", "ma", "-l", "pool=lost")
    found = kubectl.items("ma", "-l", "pool=lost")
    (machine,) = [m for m in found if "deletionTimestamp" not in m["metadata"]]
    assert words in machine["status"]["errorMessage"]
    name = machine["metadata"]["name"]
    for shown in (f"machine/{name}", "machineset/lost"):
        # An Event is written after the status that it speaks of, and the set tells what it has seen of its Machine.
        kubectl.until(words, "describe", shown)
        kubectl.until("Warning", "describe", shown)
    # What was never made is gone at once, bad config or not.
    kubectl("delete", "ms", "lost", "fine", "--wait", "--cascade=foreground")
    assert kubectl.items("ma") == []
