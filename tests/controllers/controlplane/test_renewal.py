"""Certificates of hosts are renewed before they end: one host after the other, once, and never all the time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from api import names
from api.conditions import ControlPlaneCondition, MachineCondition
from controllers.controlplane.reconciler import ControlPlaneReconciler
from controllers.kernel.certificates import (
    Certificate,
    CertificateKind,
    CertificatesNeed,
    CertificatesRead,
    CertificatesUnread,
)
from controllers.kernel.plan import Plan
from controllers.kernel.refs import MACHINE
from tests.builders.clock import NOW
from tests.builders.machines import MachineBuilder
from tests.builders.plans import condition_of, creates, patches, status_of
from tests.controllers.controlplane.test_reconciler import KEY, ControlPlaneBuilder, Etcd, members, three, world

SOON, LATE = NOW + timedelta(days=59), NOW + timedelta(days=300)
YEAR = timedelta(days=365)
SERVERS = (CertificateKind.API_SERVER, CertificateKind.ETCD)


def shown(name: str, ends: datetime, lasts: timedelta = YEAR) -> tuple[Certificate, ...]:
    return tuple(Certificate(kind, f"{kind} of Machine {name}", ends, name, ends - lasts) for kind in SERVERS)


class Certificates:
    """``CertificatesView`` with what a test says."""

    def __init__(self, *read: tuple[Certificate, ...], finding_out: bool = False) -> None:
        listed = tuple(each for some in read for each in some)
        self.read: CertificatesRead | CertificatesUnread = CertificatesRead(listed)
        if finding_out:
            self.read = CertificatesUnread("not yet", finding_out=True)

    def look(self, need: CertificatesNeed) -> CertificatesRead | CertificatesUnread:
        assert need.cluster.key.name == "prod"
        return self.read


def planned(control_plane: ControlPlaneBuilder, machines: list[MachineBuilder], known: Certificates) -> Plan:
    reconciler = ControlPlaneReconciler(Etcd(members(*(True for _ in machines))), known)
    observed = reconciler.observe(KEY, world(control_plane, *machines), None)
    assert observed is not None
    return reconciler.plan(observed)


def in_place(**rollout: Any) -> ControlPlaneBuilder:
    return ControlPlaneBuilder(rollout={"inPlace": "Require", **rollout})


def all_end(ends: datetime, lasts: timedelta = YEAR) -> Certificates:
    return Certificates(*(shown(f"cp-{number}", ends, lasts) for number in (1, 2, 3)))


def test_in_place_one_machine_is_asked_for_new_ones_and_the_end_is_told() -> None:
    control_plane = in_place()
    plan = planned(control_plane, three(control_plane), all_end(SOON))
    [asked] = patches(plan, MACHINE).values()
    assert asked.patch["metadata"]["annotations"][names.RENEW_CERTIFICATES] == f"ends-{SOON:%Y-%m-%dT%H:%M:%SZ}"
    assert "spec" not in asked.patch
    condition = condition_of(plan, ControlPlaneCondition.MACHINES_UP_TO_DATE)
    assert condition["status"] == "False"
    assert f"they end on {SOON:%Y-%m-%d}" in condition["message"]


def test_no_other_machine_is_asked_until_the_host_shows_new_ones() -> None:
    """The annotation changes no generation: UpToDate still says True of what was before it."""
    control_plane = in_place()
    machines = three(control_plane)
    machines[0].annotated(names.RENEW_CERTIFICATES, f"ends-{SOON:%Y-%m-%dT%H:%M:%SZ}")
    rest = [shown("cp-2", SOON), shown("cp-3", SOON)]
    for own in (shown("cp-1", SOON), shown("cp-1", LATE)[:1], ()):
        plan = planned(control_plane, machines, Certificates(own, *rest))
        assert not patches(plan, MACHINE), own
        assert status_of(plan)["next"] == "Machine cp-1 is being updated in place"
    plan = planned(control_plane, machines, Certificates(shown("cp-1", LATE), *rest))
    assert list(patches(plan, MACHINE)) == ["cp-2"]


def test_where_hosts_are_replaced_another_machine_joins_for_it() -> None:
    control_plane = ControlPlaneBuilder()
    plan = planned(control_plane, three(control_plane), all_end(SOON))
    assert len(creates(plan)) == 1
    assert not patches(plan, MACHINE)


def test_one_whose_provider_can_not_change_its_host_gives_way_to_another() -> None:
    control_plane = ControlPlaneBuilder(rollout={"inPlace": "Prefer"})
    machines = three(control_plane)
    for each in machines:
        each.annotated(names.RENEW_CERTIFICATES, f"ends-{SOON:%Y-%m-%dT%H:%M:%SZ}")
        each.condition(MachineCondition.UP_TO_DATE, "False", "NeedsReplacement", "another host")
    assert len(creates(planned(control_plane, machines, all_end(SOON)))) == 1


@pytest.mark.parametrize(
    ("ends", "lasts", "before"),
    [
        (LATE, YEAR, "1440h"),
        (SOON, YEAR, "0s"),
        (SOON, YEAR, "24h"),
        (NOW + timedelta(days=11), timedelta(days=30), "1440h"),
    ],
    ids=["far away", "turned off", "a day before", "of a short life"],
)
def test_what_lasts_is_left_alone(ends: datetime, lasts: timedelta, before: str) -> None:
    control_plane = in_place(renewCertificatesBefore=before)
    plan = planned(control_plane, three(control_plane), all_end(ends, lasts))
    assert not patches(plan, MACHINE)
    assert condition_of(plan, ControlPlaneCondition.MACHINES_UP_TO_DATE)["status"] == "True"


def test_one_of_a_short_life_is_renewed_when_a_third_of_it_is_left() -> None:
    control_plane = in_place()
    ends = NOW + timedelta(days=10)
    assert patches(planned(control_plane, three(control_plane), all_end(ends, timedelta(days=30))), MACHINE)


def test_an_upgrade_renews_them_anyway() -> None:
    control_plane = in_place()
    control_plane.spec["version"] = "1.36.1"
    plan = planned(control_plane, three(control_plane), all_end(SOON))
    [asked] = patches(plan, MACHINE).values()
    assert names.RENEW_CERTIFICATES not in asked.patch["metadata"]["annotations"]
    assert asked.patch["spec"]["versions"]["controlPlane"] == "1.36.1"


def test_after_a_start_nothing_is_done_before_it_is_known_whether_a_renewal_has_ended() -> None:
    control_plane = in_place()
    machines = three(control_plane)
    assert list(planned(control_plane, machines, Certificates(finding_out=True)).actions())
    machines[0].annotated(names.RENEW_CERTIFICATES, f"ends-{SOON:%Y-%m-%dT%H:%M:%SZ}")
    assert not list(planned(control_plane, machines, Certificates(finding_out=True)).actions())


def test_a_value_of_a_persons_says_nothing() -> None:
    control_plane = in_place()
    machines = three(control_plane)
    machines[0].annotated(names.RENEW_CERTIFICATES, "2026-11-23")
    plan = planned(control_plane, machines, all_end(LATE))
    assert condition_of(plan, ControlPlaneCondition.MACHINES_UP_TO_DATE)["status"] == "True"
