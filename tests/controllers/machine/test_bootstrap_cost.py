"""A reconcile of a Machine whose specs have not changed validates and renders nothing again: calls are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from cryptography import x509

from controllers.bootstrap import ordering, settings
from controllers.bootstrap.settings import effective
from controllers.kernel.actions import EnsureBootstrap
from controllers.kernel.bootstrapping import BootstrapReads, DataAbsent
from controllers.kernel.refs import Key
from controllers.kernel.view import HostRead, HostReads
from controllers.machine.reconciler import RECONCILER
from tests.builders import NOW, Builder, FakeView, cluster, machine, node
from tests.controllers.bootstrap.test_join import CA
from tests.controllers.machine.joining import ABSENT, TAKES, TARGET, a_host, a_machine, did, planned


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often specs were validated and data was rendered."""
    counted: Counter[str] = Counter()
    parse, render = settings._parse, ordering.join_steps
    settings._effective.cache_clear()
    ordering._checked.cache_clear()

    def parsing(*args: object, **kwargs: object) -> object:
        counted["validate"] += 1
        return parse(*args, **kwargs)  # type: ignore[arg-type]

    def rendering(*args: object, **kwargs: object) -> object:
        counted["render"] += 1
        return render(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(settings, "_parse", parsing)
    monkeypatch.setattr(ordering, "join_steps", rendering)
    yield counted
    settings._effective.cache_clear()
    ordering._checked.cache_clear()


def reconciled(body: Builder, read: HostRead, *others: Builder, now: datetime = NOW) -> None:
    view = FakeView(body, *others, now=now)
    reads = HostReads(read, support=TAKES, bootstrap=BootstrapReads(TARGET, DataAbsent()))
    RECONCILER.needs(Key("default", "m-1"), view)
    assert RECONCILER.observe(Key("default", "m-1"), view, reads) is not None


@pytest.mark.parametrize("joined", [False, True], ids=["coming up", "joined"])
def test_what_has_not_changed_is_neither_validated_nor_rendered_again(joined: bool, calls: Counter[str]) -> None:
    body = a_machine(joinTimeout="15m")
    others = (node("m-1"),) if joined else ()
    reconciled(body, a_host(body), *others)
    first = dict(calls)
    calls.clear()
    for minute in range(10):
        reconciled(body, a_host(body), *others, now=NOW + timedelta(minutes=minute))
    assert first["validate"] == 1
    assert calls == {}


def test_machines_of_one_template_share_the_work(calls: Counter[str]) -> None:
    for number in range(10):
        body = machine("m-1").created(60).kubelet("1.34.0")
        body.uid(f"uid-{number}")
        body.spec["bootstrap"] = {"joinTimeout": "15m"}
        reconciled(body, ABSENT)
    assert calls["validate"] == 1
    assert calls["render"] == 2  # the check, and the data without a token whose size is compared


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"joinTimeout": "15m"}, {"joinTimeout": "16m"}),
        ({"sysctls": {"a.b": "1"}}, {"sysctls": {"a.b": 1}}),
        ({"swap": "Keep"}, {"swap": None}),
        ({}, []),
    ],
)
def test_what_differs_in_the_least_is_looked_at_anew(one: object, other: object) -> None:
    specs = [{"bootstrap": one}, {"bootstrap": other}, {"bootstrap": one}]
    first, second, again = (effective({}, spec) for spec in specs)
    assert first is again
    assert first is not second
    network = {"clusterNetwork": {"serviceDomain": "another.example"}}
    assert effective(network, specs[0]).no_proxy != first.no_proxy


def test_a_changed_cluster_counts_at_the_next_reconcile(calls: Counter[str]) -> None:
    body = a_machine().in_cluster("prod")
    orders = []
    for timeout in ("15m", "16m"):
        holder = cluster("prod")
        holder.spec["bootstrap"] = {"joinTimeout": timeout}
        (ensure,) = did(planned(body, ABSENT, DataAbsent(), holder), EnsureBootstrap)
        orders.append(ensure.order.render.join.settings.join_timeout)
    assert orders == [timedelta(minutes=15), timedelta(minutes=16)]


def test_a_ca_that_expires_while_all_else_is_remembered_is_refused(calls: Counter[str]) -> None:
    ends = x509.load_pem_x509_certificate(CA.encode()).not_valid_after_utc
    wanted = did(planned(a_machine(), ABSENT, DataAbsent()), EnsureBootstrap)[0].order.render.join
    question = ordering._question(wanted, "cloud-config", None)
    assert not isinstance(ordering._checked(question), ordering.Refused)
    body = a_machine()
    for late, refused in ((timedelta(seconds=-1), False), (timedelta(seconds=1), True)):
        view = FakeView(body, now=ends + late)
        reads = HostReads(ABSENT, support=TAKES, bootstrap=BootstrapReads(TARGET, DataAbsent()))
        observed = RECONCILER.observe(Key("default", "m-1"), view, reads)
        assert observed is not None
        assert observed.bootstrapping is not None
        found = observed.bootstrapping.refused
        assert (found is not None) is refused
        assert found is None or "expired at" in found.message
    assert calls["render"] == 2
