"""A Machine with ``spec.bootstrap``, what its host and its data are found as, and the Plan for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from controllers.bootstrap.credentials import secret_key, token_ids
from controllers.kernel.actions import EnsureBootstrap, Patch
from controllers.kernel.bootstrapping import (
    TOKEN_LIFE,
    BootstrapData,
    BootstrapReads,
    DataAbsent,
    DataPresent,
    JoinTarget,
    NoTarget,
    Support,
)
from controllers.kernel.conditions import find
from controllers.kernel.plan import Plan
from controllers.kernel.refs import Key
from controllers.kernel.view import HostAbsent, HostPresent, HostRead, HostReads, Workload
from controllers.machine.host_spec import desired_host
from controllers.machine.reconciler import RECONCILER
from providers.base.contract import (
    Address,
    Host,
    HostState,
)
from tests.builders import NOW, Builder, FakeView, machine
from tests.controllers.bootstrap.test_join import CA

UID, ID = "uid-m-1", "sim://1"
TARGET = JoinTarget("https://10.0.0.1:6443", CA, "1.34.2")
TAKES = Support(("cloud-config",))
TOKEN = token_ids(UID)[0]
ABSENT = HostAbsent()
ABSENT_DATA = DataAbsent()
Target = JoinTarget | NoTarget | None
SECRET = secret_key(Key("default", "m-1"))


def a_machine(**bootstrap: Any) -> Builder:
    body = machine("m-1").created(60).kubelet("1.34.0")
    body.spec["bootstrap"] = bootstrap
    return body


def a_host(body: Builder, made: float = 50, **changes: Any) -> HostPresent:
    wanted = desired_host(body.build(), FakeView()).spec_hash
    addresses = (Address("InternalIP", "10.0.0.7"),)
    shown = Host("1", UID, "m-1", ID, HostState.RUNNING, wanted, addresses, created_at=NOW - timedelta(seconds=made))
    return HostPresent(replace(shown, **changes))


def planned(
    body: Builder,
    read: HostRead,
    data: BootstrapData,
    *others: Builder,
    target: JoinTarget | NoTarget | None = TARGET,
    in_flight: bool = False,
    support: Support = TAKES,
    workload: Workload | None = None,
) -> Plan:
    view = FakeView(body, *others)
    if workload is not None:
        view.living_in(workload)
    reads = HostReads(read, support=support, bootstrap=BootstrapReads(target, data, in_flight))
    observed = RECONCILER.observe(Key("default", "m-1"), view, reads)
    assert observed is not None
    return RECONCILER.plan(observed)


def did(plan: Plan, kind: type[Any] = object) -> list[Any]:
    return [action for action in plan.actions() if isinstance(action, kind)]


def digest_of(body: Builder, *others: Builder) -> str:
    (ensure,) = did(planned(body, ABSENT, DataAbsent(), *others), EnsureBootstrap)
    return str(ensure.order.digest)


def present(body: Builder, minutes: float = 0, **changes: Any) -> DataPresent:
    """Made so many minutes ago."""
    made = DataPresent(TOKEN, NOW - timedelta(minutes=minutes) + TOKEN_LIFE, digest_of(a_machine()))
    return replace(made, **changes)


def status(plan: Plan) -> Mapping[str, Any]:
    patches = [action.patch["status"] for action in did(plan, Patch) if action.subresource == "status"]
    return patches[0] if patches else {}


def condition(plan: Plan, type_: str) -> tuple[str, str, str]:
    found = find(status(plan).get("conditions"), type_) or {}
    return str(found.get("status")), str(found.get("reason")), str(found.get("message"))
