"""The config kind: what passes its schema, and what is said of what does not."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from providers.base.config_schema import problems_of
from providers.openstack.config import json_schema, parse
from tests.providers.openstack.scene import CONFIG

SCHEMA = json_schema()
WHOLE: dict[str, Any] = {
    **CONFIG,
    "flavor": {"filter": {"minCPUs": 2, "minMemoryMiB": 2048}},
    "image": {"filter": {"tags": ["kubernetes"], "properties": {"os_distro": "debian"}}},
    "ports": [
        {
            "network": {"id": "11111111-1111-1111-1111-111111111111"},
            "fixedIPs": [{"subnet": "nodes", "address": "10.9.0.7"}],
            "allowedAddressPairs": [{"ipAddress": "10.244.0.0/16"}],
            "securityGroups": ["nodes", {"filter": {"tags": ["workers"]}}],
            "vnicType": "direct",
            "trunk": True,
            "subports": [{"network": "storage", "segmentationID": 100, "fixedIPs": [{"subnet": "storage"}]}],
            "floatingIP": {"network": "public"},
        },
        {"network": {"filter": {"tags": ["storage"]}}, "portSecurity": False},
    ],
    "availabilityZones": ["az1", "az2"],
    "bootVolume": {"sizeGiB": 50, "type": "ssd"},
    "volumes": [{"sizeGiB": 100, "tag": "data"}],
    "securityGroups": ["nodes"],
    "serverGroup": {"name": "spread"},
    "keyPair": "ops",
    "configDrive": True,
    "schedulerHints": {"different_host": ["a", "b"]},
    "userData": {"secretName": "worker-user-data"},
    "metadata": {"team": "blue"},
    "tags": ["blue"],
    "updates": {"resize": True, "rebuild": True},
    "shape": {"capacity": {"nvidia.com/gpu": "1"}, "labels": {"gpu": "yes"}},
}


def test_a_config_may_say_all_of_it() -> None:
    assert problems_of(WHOLE, SCHEMA) == ()
    assert parse(WHOLE).ports[0].fixed_ips[0].address == "10.9.0.7"


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"flavour": "m1"}, "flavour", "did you mean 'flavor'?"),
        ({"flavor": None}, "flavor", "must be a string or an object"),
        ({"flavor": {}}, "flavor", "at least 1"),
        ({"image": {"name": "a", "id": "11111111-1111-1111-1111-111111111111"}}, "image", "at most 1"),
        ({"ports": []}, "ports", "at least 1"),
        ({"ports": [{"networks": "nodes"}]}, "ports[0].network", "is required"),
        ({"ports": [{"network": "n", "vnicType": "fast"}]}, "ports[0].vnicType", "must be one of normal"),
        (
            {"ports": [{"network": "n", "subports": [{"network": "n", "segmentationID": 4095}]}]},
            "ports[0].subports[0].segmentationID",
            "at most 4094",
        ),
        ({"cloud": {}}, "cloud.secretName", "is required"),
        ({"bootVolume": {"sizeGiB": 0}}, "bootVolume.sizeGiB", "at least 1"),
        ({"metadata": {"team": "x" * 256}}, "metadata.team", "at most 255"),
        ({"tags": ["a,b"]}, "tags[0]", "must match"),
    ],
)
def test_a_mistake_is_told_with_its_field(change: dict[str, Any], path: str, words: str) -> None:
    problems = problems_of({**CONFIG, **change}, SCHEMA)
    assert [problem for problem in problems if problem.path == path and words in problem.message], problems


def test_the_kind_is_known_without_the_sdk() -> None:
    code = "import providers.openstack, sys; sys.exit(bool({'openstack', 'keystoneauth1'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
