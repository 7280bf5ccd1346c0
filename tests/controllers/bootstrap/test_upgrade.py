"""The steps that change the kubelet of a host that has joined."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from controllers.bootstrap import shell
from controllers.bootstrap.join import Install, Join
from controllers.bootstrap.prepare import LISTED
from controllers.bootstrap.refusal import Refusal
from controllers.bootstrap.settings import effective
from controllers.bootstrap.steps import (
    Binary,
    Command,
    ContentFile,
    Files,
    Packages,
    Present,
    Service,
    Steps,
    TimeServers,
)
from controllers.bootstrap.upgrade import no_other_version, upgrade_steps
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
    runtime = ["containerd.io"] if scenario == "packages" else []
    assert order(steps_of(SCENARIOS[scenario])) == [*runtime, *wanted]


@pytest.mark.parametrize("scenario", ["packages", "archives"])
def test_commands_are_left_alone_and_no_token_is_used(scenario: str) -> None:
    join = SCENARIOS[scenario]
    text = shell.render(steps_of(join))
    assert join.token not in text
    assert text == shell.render(steps_of(replace(join, token="fedcba.fedcba9876543210")))
    for command in ("kubeadm reset", "kubeadm join", "before the join"):
        assert command not in text


def test_a_kubelet_of_the_image_stays_and_its_configuration_is_changed() -> None:
    """On the host of a control plane nothing is changed then: kubeadm's own upgrade is for another version."""
    join = replace(JOIN, install=Install())
    assert "another version needs another host" in no_other_version(join)
    actions = [step.action for step in steps_of(join).steps]
    assert not any(isinstance(action, Binary | Packages) for action in actions)
    looked_for = {action.path for action in actions if isinstance(action, Present)}
    assert looked_for >= {"/usr/bin/kubelet", "/usr/bin/kubeadm"}
    assert no_other_version(SCENARIOS["archives"]) == ""


def test_runtime_and_files_come_before_the_kubelet_and_every_step_has_a_way_back() -> None:
    secret = {"path": "/etc/b", "contentFrom": {"secret": {"name": "s", "key": "k"}}}
    files = [{"path": "/etc/a", "content": "a"}, secret]
    bootstrap = {"archives": {"kubernetes": {"mirror": "https://mirror.example"}}, "files": files}
    bootstrap["users"] = [{"name": "ops"}]
    join = replace(JOIN, container_runtime="containerd/1.7.2", settings=effective({}, {"bootstrap": bootstrap}))
    steps = steps_of(join).steps
    names = [step.name for step in steps]
    wanted = ["write files", "check containerd 1.7.2", "run the containerd that is installed", "restart the kubelet"]
    assert [name for name in names if name in wanted] == wanted
    assert all(step.rescue for step in steps[1:-2]), "the last two: it is done, and what users lose"
    assert {step.rescue_after for step in steps if "install" in step.name} <= {1, 10}
    assert names.index("make the user ops") < names.index("write files"), "files may be a user's"
    (written,) = (step.action for step in steps if step.name == "write files")
    assert isinstance(written, Files)
    assert [file.path for file in written.files] == ["/etc/a", LISTED]
    assert written.files[-1].content == "/etc/a\n/etc/b\n"


def changed_by(bootstrap: dict[str, Any]) -> dict[str, Any]:
    """Steps of a change by name → what they do, as it is in the script."""
    steps = steps_of(replace(JOIN, settings=effective({}, {"bootstrap": bootstrap}))).steps
    return {step.name: step for step in steps}


def test_kernel_settings_are_written_loaded_and_applied_and_what_can_not_be_set_goes_back_at_once() -> None:
    steps = changed_by({"sysctls": {"vm.max_map_count": "262144"}, "kernelModules": ["ip_vs"]})
    assert "vm.max_map_count = 262144" in str(steps["configure the kernel"].action)
    assert "ip_vs" in str(steps["load kernel modules"].action)
    applied = steps["apply kernel settings"]
    assert applied.action.content == "sysctl -q -p /etc/sysctl.d/90-nodewright.conf\n"
    assert (bool(applied.rescue), applied.rescue_after) == (True, 1)
    assert "vm.max_map_count" in steps["keep what the host can go back to"].action.content


def test_users_are_given_what_they_lack_at_once_and_lose_what_is_no_longer_asked_for_at_the_end() -> None:
    user = {"name": "ops", "groups": ["adm"], "sudo": "ALL=(ALL) ALL", "sshAuthorizedKeys": ["ssh-ed25519 AAAA x y"]}
    steps = changed_by({"users": [user], "kubeletConfiguration": {"maxPods": 5}})
    names = list(steps)
    assert names[-2:] == ["note that the change is done", "take from users what is asked for no longer"]
    assert (steps["make the user ops"].rescue_after, steps[names[-1]].rescue) == (1, "")
    _, wanted = steps["note what users are to have"].action.files
    lines = ["user ops", "shell ops /bin/bash", "group ops adm", "sudo ops", "key ops ssh-ed25519 AAAA x y"]
    assert wanted.content.splitlines() == lines
    assert "/etc/sudoers.d/90-nodewright-ops" in steps[names[0]].action.content, "kept for the way back"
    assert changed_by({})["note what users are to have"].action.files[1].content == ""


def test_time_servers_are_set_and_those_that_nobody_asks_for_any_more_are_taken_out() -> None:
    step = changed_by({"ntp": {"servers": ["time.example"]}})["set time servers"]
    assert (step.action, step.rescue_after, bool(step.rescue)) == (TimeServers(("time.example",)), 1, True)
    assert changed_by({})["set time servers"].action == TimeServers(())


def test_files_of_secrets_are_written_from_what_comes_with_the_steps(
    tmp_path: Path,
) -> None:
    source = {"secret": {"name": "s", "key": "k"}}
    place = tmp_path / "own.conf"
    listed = [{"path": "/etc/a", "content": "a"}, {"path": str(place), "contentFrom": source, "permissions": "0640"}]
    step = changed_by({"files": listed})[f"write {place}"]
    assert (step.action, step.rescue_after) == (ContentFile(str(place), 0, 0o640), 1)
    text = shell.render(Steps((replace(step, rescue=""),))).replace(shell.STATE, str(tmp_path / "state"))
    text = text.replace('mkdir -p "$state" /etc/nodewright', 'mkdir -p "$state"')
    without = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)
    assert without.returncode != 0
    assert "did not come with the steps" in without.stdout
    done = subprocess.run(["sh", "-c", f"content_0=aHVzaAo=\n{text}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert (place.read_text(), place.stat().st_mode & 0o777) == ("hush\n", 0o640)
    assert "hush" not in done.stdout


def test_proxies_are_set_by_the_steps_of_the_join_and_taken_away_where_none_is_asked_for() -> None:
    steps = changed_by({"proxy": {"https": "http://proxy.example:3128"}})
    assert "http://proxy.example:3128" in str(steps["set the proxies of containerd"].action)
    assert steps["set the proxies of kubelet"].action.unit == "kubelet.service"
    assert "take the proxies away" not in steps
    gone = changed_by({})["take the proxies away"]
    assert "containerd.service kubelet.service" in gone.action.content
    assert gone.rescue


def test_another_change_keeps_things_anew() -> None:
    one, other = (
        steps_of(replace(SCENARIOS["archives"], container_runtime=version)).steps[0]
        for version in ("containerd/1.7.1", "containerd/1.7.2")
    )
    assert one.name == other.name == "keep what the host can go back to"
    assert one.action != other.action


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
