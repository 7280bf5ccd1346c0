"""The steps that change the kubelet of a host that has joined."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from controllers.bootstrap import shell
from controllers.bootstrap.join import Install, Join
from controllers.bootstrap.refusal import Refusal
from controllers.bootstrap.settings import effective
from controllers.bootstrap.steps import Binary, Command, Packages, Service, Steps
from controllers.bootstrap.upgrade import upgrade_steps
from tests.controllers.bootstrap.scenarios import SCENARIOS
from tests.controllers.bootstrap.specs import bootstraps
from tests.controllers.bootstrap.test_join import JOIN
from tests.examples import usually


def steps_of(join: Join) -> Steps:
    found = upgrade_steps(join)
    assert isinstance(found, Steps), found
    return found


def refused(join: Join) -> Refusal:
    found = upgrade_steps(join)
    assert isinstance(found, tuple)
    (refusal,) = found
    return refusal


def order(steps: Steps) -> list[str]:
    """kubeadm, its call, the kubelet and its restart, in their order."""
    found = []
    for step in steps.steps:
        match step.action:
            case Binary(path=path):
                found.append(path.rpartition("/")[2])
            case Packages(packages=packages):
                found += [name for name, _ in packages]
            case Command(argv=argv):
                found.append(" ".join(argv[:3]))
            case Service(unit=unit, restart=True):
                found.append(f"restart {unit}")
    return found


@pytest.mark.parametrize("scenario", ["packages", "archives"])
def test_kubeadm_comes_first_and_the_kubelet_runs_again_at_the_end(scenario: str) -> None:
    wanted = ["kubeadm", "kubeadm upgrade node", "kubelet", "restart kubelet.service"]
    assert order(steps_of(SCENARIOS[scenario])) == wanted


@pytest.mark.parametrize("scenario", ["packages", "archives"])
def test_nothing_else_of_the_host_is_changed_and_no_token_is_used(scenario: str) -> None:
    join = SCENARIOS[scenario]
    text = shell.render(steps_of(join))
    assert join.token not in text
    assert text == shell.render(steps_of(replace(join, token="fedcba.fedcba9876543210")))
    for command in ("kubeadm reset", "kubeadm join", "containerd/config.toml", "useradd"):
        assert command not in text


def test_a_kubelet_of_the_image_needs_another_host() -> None:
    refusal = refused(replace(JOIN, install=Install()))
    assert refusal.field == "spec.bootstrap.source"
    assert "another host" in refusal.message


def test_a_kubelet_newer_than_the_api_server_is_refused() -> None:
    assert refused(replace(SCENARIOS["archives"], cluster_version="1.30.0")).skew


def test_checks_that_may_fail_and_patches_are_those_of_the_join() -> None:
    bootstrap = {
        "archives": {"kubernetes": {"mirror": "https://mirror.example"}},
        "nodeRegistration": {"ignorePreflightErrors": ["Swap", "Mem"]},
        "kubeletConfiguration": {"maxPods": 42},
    }
    steps = steps_of(replace(JOIN, settings=effective({}, {"bootstrap": bootstrap})))
    (argv,) = (step.action.argv for step in steps.steps if isinstance(step.action, Command))
    assert argv == (
        "kubeadm", "upgrade", "node", "--ignore-preflight-errors=Mem,Swap", "--patches=/etc/nodewright/patches",
    )  # fmt: skip


@given(machine=bootstraps())
@usually(40)
def test_any_spec_gives_a_script_that_shells_read_or_is_refused_by_field(machine: Any) -> None:
    found = upgrade_steps(replace(JOIN, kubelet_version="1.37.2", settings=effective({}, {"bootstrap": machine})))
    if not isinstance(found, Steps):
        assert found
        assert all(each.field.startswith("spec.bootstrap") and each.message for each in found)
        return
    for program in ("dash", "bash"):
        done = subprocess.run([program, "-n"], input=shell.render(found), text=True, check=False, capture_output=True)
        assert done.returncode == 0, done.stderr
