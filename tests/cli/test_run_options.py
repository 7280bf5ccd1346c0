"""What `nodewright run` hands to the controllers."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any

import pytest

from controllers.kernel.joining import NO_LIMITS, Limits
from controllers.machine.reconciler import MachineReconciler
from nodewright.cli import main as cli
from nodewright.cli.commands import run
from nodewright.cli.election import reconcilers_named
from nodewright.runtime.hosts.options import HostOptions
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.settings.options import RunOptions
from nodewright.runtime.telemetry import logs


@pytest.mark.parametrize("names", ["*", "machine", "machineset,machine"])
def test_the_machine_controller_knows_the_node_that_it_runs_on(names: str) -> None:
    (reconciler,) = [
        reconciler for reconciler in reconcilers_named(names, "node-7") if isinstance(reconciler, MachineReconciler)
    ]
    assert reconciler.hosting_node == "node-7"


def test_without_a_name_it_runs_on_none() -> None:
    (reconciler,) = reconcilers_named("machine")
    assert isinstance(reconciler, MachineReconciler)
    assert reconciler.hosting_node == ""


def handed_over(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> RunOptions:
    seen: list[Any] = []

    async def begin(target: Any, how: Any) -> None:
        seen.append(how)

    monkeypatch.setattr(run, "_run", begin)
    monkeypatch.setattr(logs, "configure", lambda **_: None)
    assert cli.run(["run", *arguments]) == 0
    return run._options(Connection("https://127.0.0.1:6443"), seen[0])


def test_so_many_hosts_come_up_at_once_as_the_option_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert handed_over(monkeypatch, "--hosts-in-flight", "7").hosts == HostOptions(hosts_in_flight=7)


def test_without_options_hosts_come_up_as_they_do_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert handed_over(monkeypatch).hosts == HostOptions()


def test_limits_of_clusters_reach_the_machine_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    found = handed_over(monkeypatch, "--cluster-hosts-in-flight", "9", "--bootstrap-token-lifetime", "15m")
    (reconciler,) = [reconciler for reconciler in found.reconcilers or () if isinstance(reconciler, MachineReconciler)]
    assert reconciler.limits == Limits(9, timedelta(minutes=15))
    (usual,) = [
        reconciler
        for reconciler in handed_over(monkeypatch).reconcilers or ()
        if isinstance(reconciler, MachineReconciler)
    ]
    assert usual.limits == NO_LIMITS


def test_a_lifetime_that_is_none_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["run", "--bootstrap-token-lifetime", "soon"]) == 2
    assert "--bootstrap-token-lifetime" in capsys.readouterr().err


def test_no_host_at_once_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["run", "--hosts-in-flight", "0"]) == 2
    assert "--hosts-in-flight" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["run"], "--health-port"),
        (["run"], "--metrics-port"),
        (["gateway", "externalgrpc", "--metrics-port", "0"], "--port"),
        (["gateway", "externalgrpc", "--port", "0"], "--metrics-port"),
    ],
)
def test_a_port_that_is_taken_is_named_before_anything_begins(
    command: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert cli.run([*command, option, str(port)]) == 1
    assert f"{option} {port}: can't listen on 127.0.0.1: address already in use" in capsys.readouterr().err


def test_one_port_for_two_things_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
    assert cli.run(["run", "--health-port", port, "--metrics-port", port]) == 1
    assert f"--metrics-port {port}: can't listen" in capsys.readouterr().err


@pytest.mark.parametrize(("flags", "labelled"), [((), False), (("--node-owner-label",), True)])
def test_nodes_are_labelled_with_their_owner_only_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], labelled: bool
) -> None:
    seen: list[Any] = []

    async def begin(target: Any, how: Any) -> None:
        seen.append(how)

    monkeypatch.setattr(run, "_run", begin)
    assert cli.run(["run", "--controllers=machine", *flags]) == 0
    (reconciler,) = seen[0].work.reconcilers
    assert reconciler.owner_label is labelled
