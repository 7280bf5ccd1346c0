"""What a host reports becomes the condition of its Machine, and of no other, while the controllers run."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from api import names
from controllers.bootstrap import report
from controllers.bootstrap.credentials import token_ids, token_key
from controllers.kernel.conditions import find
from controllers.kernel.host_report import Report
from controllers.kernel.refs import EVENT, MACHINE, MACHINE_HEALTH_CHECK, MACHINE_SET, SECRET, Obj, uid_of
from tests.runtime.test_bootstrap_data import condition, machine_set, working
from tests.runtime.town import Town

NEVER_BOOTS = {"bootSeconds": 3000.0}
"""So that no simulated kubelet registers a Node."""
SAID = Report("", 1, 8, 13, "install kubelet 1.36.9", "binary", True, 1, 1, "curl: (22) 404\nk can't be fetched")


async def secret_of(town: Town, machine: Obj) -> str:
    token = await town.client.get(SECRET, token_key(token_ids(uid_of(machine))[0]))
    return base64.b64decode(token["data"]["token-secret"]).decode()


async def says(town: Town, machine: Obj, said: Report, secret: str = "") -> None:
    """As its host would, or whoever has another ``secret``."""
    token_id = token_ids(uid_of(machine))[0]
    key = secret or await secret_of(town, machine)
    text = report.as_text(replace(said, token_id=token_id))
    annotations = {names.REPORT_ANNOTATION: text, names.REPORT_SIGNATURE_ANNOTATION: report.sign(text, key)}
    meta = {"generateName": f"{token_id}-", "namespace": names.BOOTSTRAP_NAMESPACE, "annotations": annotations}
    about = {"kind": "Host", "namespace": names.BOOTSTRAP_NAMESPACE, "name": token_id}
    await town.client.create(EVENT, {"apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": about})


def joined(town: Town, name: str) -> dict[str, Any]:
    machine = next(each for each in town.objects(MACHINE) if each["metadata"]["name"] == name)
    return dict(find((machine.get("status") or {}).get("conditions"), "NodeJoined") or {})


async def hosts(town: Town, number: int, **spec: Any) -> list[Obj]:
    """Machines whose hosts are there and never join by themselves."""
    await machine_set(town, number, config=NEVER_BOOTS, **spec)
    await town.until(lambda: town.hosts() == number)
    await town.until(lambda: all((each.get("spec") or {}).get("providerID") for each in town.objects(MACHINE)))
    return sorted(town.objects(MACHINE), key=lambda each: str(each["metadata"]["name"]))


async def test_a_failed_step_is_told_by_the_machine_with_reason_step_and_cause(town: Town) -> None:
    async with working(town):
        (machine,) = await hosts(town, 1)
        name = machine["metadata"]["name"]
        await says(town, machine, SAID)
        await town.until(lambda: joined(town, name).get("reason") == "PackageUnavailable")
        said = joined(town, name)
        assert said["status"] == "False"
        assert said["message"].startswith(
            "step 8/13 'install kubelet 1.36.9': no kubelet of 1.36.9 in the repository: curl: (22) 404 | k can't be"
        )
        await town.until(lambda: condition(town, "Ready").get("reason") == "PackageUnavailable")
        await town.until(lambda: "PackageUnavailable" in {event.get("reason") for event in town.objects(EVENT)})
        await town.until(lambda: "PackageUnavailable" in json.dumps(town.objects(MACHINE_SET)))

        await says(town, machine, replace(SAID, sequence=2, failed=False, step=9, log="", name="enable the kubelet"))
        await town.until(lambda: joined(town, name).get("reason") == "Bootstrapping")
        assert joined(town, name)["message"] == "9/13 enable the kubelet"


async def test_a_host_can_not_speak_for_the_machine_of_another(town: Town) -> None:
    async with working(town):
        first, second = await hosts(town, 2)
        await says(town, first, replace(SAID, sequence=9), await secret_of(town, second))
        await says(town, second, SAID)
        await town.until(lambda: joined(town, second["metadata"]["name"]).get("reason") == "PackageUnavailable")
        assert joined(town, first["metadata"]["name"]).get("reason", "WaitingForNode") == "WaitingForNode"


async def test_what_was_reported_while_no_controller_ran_is_told_by_the_next(town: Town) -> None:
    async with working(town):
        (machine,) = await hosts(town, 1)
    await says(town, machine, SAID)
    async with town.controllers():
        await town.until(lambda: joined(town, machine["metadata"]["name"]).get("reason") == "PackageUnavailable")


@pytest.mark.parametrize("reports", [True, False])
async def test_the_time_limit_counts_more_than_what_the_host_says(reports: bool, town: Town) -> None:
    async with working(town):
        (machine,) = await hosts(town, 1, bootstrap={"joinTimeout": "1s"})
        if reports:
            await says(town, machine, SAID)
        name = machine["metadata"]["name"]
        console = f"said nothing; last on its console: simulated host {name} is Pending"
        words = "last: step 8/13 'install kubelet 1.36.9'" if reports else console
        await town.until(lambda: words in joined(town, name).get("message", ""))
        assert joined(town, name)["reason"] == "JoinTimedOut"


async def test_a_health_check_replaces_a_machine_whose_host_did_not_join_in_time(town: Town) -> None:
    async with working(town):
        (machine,) = await hosts(town, 1, bootstrap={"joinTimeout": "1s"})
        check = {
            "apiVersion": "cluster.k8s.io/v1alpha1",
            "kind": "MachineHealthCheck",
            "metadata": {"name": "join", "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"pool": "ms"}},
                "nodeStartupTimeout": "1h",
                "maxUnhealthy": "100%",
                "unhealthyMachineConditions": [{"type": "NodeJoined", "status": "False", "timeout": "2s"}],
            },
        }
        await town.client.create(MACHINE_HEALTH_CHECK, check)
        uid = uid_of(machine)
        await town.until(lambda: all(uid_of(each) != uid for each in town.objects(MACHINE)))
