"""What a viewer may ask of the autoscaler: bounded, refused with the field's name, and never written."""

from __future__ import annotations

from typing import Any

import pytest

from api.names import AUTOSCALER_MAX_ANNOTATION, AUTOSCALER_MIN_ANNOTATION
from controllers.kernel.refs import MACHINE_DEPLOYMENT, POD
from nodewright.cli.web.whatif import MOST_PODS, WhatIfError, read
from tests.builders import machine_deployment
from tests.gateways.cloudpool.conftest import quiet_logs as quiet_logs  # noqa: PLC0414 - a fixture
from tests.gateways.cloudpool.conftest import town as town  # noqa: PLC0414 - a fixture
from tests.gateways.web.test_web_server import declared, viewing
from tests.runtime.town import Town

GROUP = "MachineDeployment/default/pool"


def test_a_pod_is_what_was_asked_for() -> None:
    asked = {"count": 2, "cpu": "500m", "memory": "1Gi", "gpu": 1, "nodeSelector": "zone = a\n\npool=gpu"}
    first, second = read({**asked, "tolerations": "gpu=yes:NoSchedule\nspot\n*"}).pods
    assert first["metadata"]["name"] != second["metadata"]["name"]
    (container,) = first["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"}
    assert first["spec"]["nodeSelector"] == {"zone": "a", "pool": "gpu"}
    assert first["spec"]["tolerations"] == [
        {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Exists"},
        {"operator": "Exists"},
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"count": MOST_PODS + 1}, "count"),
        ({"count": "3"}, "count"),
        ({"count": True}, "count"),
        ({"count": 1, "cpu": "much"}, "spec.containers"),
        ({"count": 1, "cpu": 1}, "cpu"),
        ({"count": 1, "memory": "1" * 600}, "memory"),
        ({"count": 1, "gpu": -1}, "gpu"),
        ({"count": 1, "nodeSelector": "zone"}, "nodeSelector"),
        ({"count": 1, "nodeSelector": "a=b\n" * 21}, "nodeSelector"),
        ({"count": 1, "tolerations": "gpu:Sometimes"}, "tolerations"),
        ({"sizes": ["a"]}, "sizes"),
        ({"sizes": {"a": -1}}, "sizes.a"),
        ({"sizes": {str(number): 1 for number in range(51)}}, "sizes"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_field(body: dict[str, Any], field: str) -> None:
    with pytest.raises(WhatIfError) as refused:
        read(body)
    assert str(refused.value).startswith(field)


async def test_a_group_grows_for_pods_that_are_not_there_and_nothing_is_written(town: Town) -> None:
    group = declared(machine_deployment("pool").replicas(0))
    group["metadata"]["annotations"] = {AUTOSCALER_MIN_ANNOTATION: "0", AUTOSCALER_MAX_ANNOTATION: "2"}
    await town.client.create(MACHINE_DEPLOYMENT, group)
    pods = {"count": 3, "cpu": "1500m", "memory": "1Gi"}  # one Node of the provider has room for one
    async with viewing(town) as browser:
        await browser.login()
        status, few = await browser.post("/api/whatif", pods)
        assert (status, few["groups"][0]["grows"]) == (200, 2), few
        assert few["asked"] == {"pods": 3, "onNew": 2, "left": 1, "onOld": 0}
        assert few["rows"][-1]["cells"][0]["why"] != ""
        _, more = await browser.post("/api/whatif", {**pods, "sizes": {GROUP: 9}})
        assert (more["groups"][0]["grows"], more["asked"]["left"]) == (3, 0)
        assert (await browser.post("/api/whatif", {"sizes": {"MachineDeployment/default/none": 9}}))[0] == 422
        assert (await browser.post("/api/whatif", [1]))[0] == 400
        assert (await browser.get("/api/autoscaler"))[1]["rows"] == []
    assert (await town.client.list_page(POD)).items == []
