"""The token of a control plane's host lives until kubeadm has ended there, since the Node is Ready before that."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api import names
from controllers.kernel.actions import EnsureBootstrap, RemoveBootstrap
from controllers.kernel.bootstrapping import (
    TOKEN_LIFE,
    BootstrapData,
    BootstrapReads,
    DataAbsent,
    DataPresent,
    DataRefused,
    DataUnknown,
)
from controllers.kernel.host_report import Report
from controllers.kernel.plan import Plan, Settled, Wait
from controllers.kernel.refs import Key
from controllers.kernel.view import HostReads
from controllers.machine.bootstrap_data import ENDS_WITHIN
from controllers.machine.reconciler import RECONCILER
from tests.builders import Builder, FakeView, node
from tests.builders.clock import NOW
from tests.controllers.machine.joining import ID, TAKES, a_host, a_machine, did
from tests.controllers.machine.test_control_plane_data import ANSWERS, TARGET, control_plane, prod

AT_KUBEADM = Report("abcdef", 9, 12, 12, "join the control plane", "script")
FAILED = replace(AT_KUBEADM, failed=True, code=1)
DONE = replace(AT_KUBEADM, done=True)
TOKEN = "abcdef"


def present(minutes: float = 0) -> DataPresent:
    """Made so many minutes ago."""
    return DataPresent(TOKEN, NOW - timedelta(minutes=minutes) + TOKEN_LIFE, "digest")


def joined(body: Builder, seconds: float = 30) -> Builder:
    """Its Node has been there for so long, and its status says so."""
    body.provider_id(ID).condition("NodeJoined", "True", "Joined")
    since = (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    body.status["conditions"][-1]["lastTransitionTime"] = since
    body.status["nodeRef"] = {"name": "m-1", "uid": "uid-m-1"}
    return body


def planned(body: Builder, data: BootstrapData, report: Report | None = None, *, ready: bool = True) -> Plan:
    its_node = node("m-1").of(body)
    view = FakeView(body, prod(), its_node.ready() if ready else its_node).living_in(ANSWERS)
    made = a_host(body, made=600)
    reads = HostReads(made, support=TAKES, bootstrap=BootstrapReads(TARGET, data, report=report))
    observed = RECONCILER.observe(Key("default", "m-1"), view, reads)
    assert observed is not None
    return RECONCILER.plan(observed)


@pytest.mark.parametrize("report", [None, AT_KUBEADM, FAILED], ids=["silent", "at kubeadm", "failed"])
def test_while_kubeadm_has_not_ended_the_token_stays_though_the_node_is_ready(report: Report | None) -> None:
    plan = planned(joined(control_plane()), present(), report)
    assert not did(plan, RemoveBootstrap)
    assert isinstance(plan.outcome, Wait)


@pytest.mark.parametrize("ready", [True, False])
def test_and_it_is_renewed_so_that_the_host_can_join_a_second_time(ready: bool) -> None:
    plan = planned(joined(control_plane()), present(minutes=12), FAILED, ready=ready)
    assert len(did(plan, EnsureBootstrap)) == 1


def test_it_goes_as_soon_as_the_host_says_that_kubeadm_has_ended() -> None:
    plan = planned(joined(control_plane()), present(), DONE)
    assert len(did(plan, RemoveBootstrap)) == 1
    assert not did(plan, EnsureBootstrap)


def test_of_a_host_that_never_says_so_it_goes_after_an_hour() -> None:
    late = joined(control_plane(), ENDS_WITHIN.total_seconds())
    assert len(did(planned(late, present(), FAILED), RemoveBootstrap)) == 1


@pytest.mark.parametrize("data", [DataAbsent(), DataUnknown()], ids=["absent", "unknown"])
def test_a_token_that_has_gone_is_not_made_again(data: BootstrapData) -> None:
    plan = planned(joined(control_plane()), data)
    assert did(plan, EnsureBootstrap | RemoveBootstrap) == []  # type: ignore[arg-type]
    assert isinstance(plan.outcome, Settled)


def test_the_data_of_a_host_that_made_its_cluster_stays_for_the_hour_and_never_becomes_that_of_a_join() -> None:
    made_it = DataPresent("", None, "digest")
    assert did(planned(joined(control_plane()), made_it), EnsureBootstrap | RemoveBootstrap) == []  # type: ignore[arg-type]
    late = joined(control_plane(), ENDS_WITHIN.total_seconds())
    assert len(did(planned(late, made_it), RemoveBootstrap)) == 1


def test_a_removal_that_was_refused_is_tried_again() -> None:
    refused = DataRefused("TokenRefused", "forbidden", NOW)
    assert len(did(planned(joined(control_plane()), refused, DONE), RemoveBootstrap)) == 1


def test_a_renewal_that_was_refused_while_the_api_server_was_away_is_tried_again() -> None:
    refused = DataRefused("WorkloadUnreachable", "no answer", NOW)
    body = joined(control_plane()).annotated(names.BOOTSTRAP_TOKEN_ANNOTATION, TOKEN)
    plan = planned(body, refused, FAILED)
    assert len(did(plan, EnsureBootstrap)) == 1
    assert not did(plan, RemoveBootstrap)


def test_a_worker_is_rid_of_its_token_when_its_node_is_ready() -> None:
    body: Any = joined(a_machine().in_cluster("prod"))
    assert len(did(planned(body, present(), AT_KUBEADM), RemoveBootstrap)) == 1
