"""What a Cluster says of its certificates, and when its kubeconfig is renewed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from controllers.cluster.reconciler import ClusterReconciler
from controllers.kernel.actions import Event, Patch, RenewKubeconfig
from controllers.kernel.certificates import (
    Certificate,
    CertificateKind,
    CertificatesNeed,
    CertificatesRead,
    CertificatesUnread,
)
from controllers.kernel.plan import Plan, Wait
from controllers.kernel.refs import CLUSTER, Key
from tests.builders import Builder, FakeView, cluster, machine
from tests.builders.clock import NOW
from tests.controllers.machine.arena import merged

DAY = timedelta(days=1)


@dataclass
class Said:
    """``CertificatesView`` that answers one thing."""

    read: CertificatesRead | CertificatesUnread
    needs: list[CertificatesNeed] = field(default_factory=list)

    def look(self, need: CertificatesNeed) -> CertificatesRead | CertificatesUnread:
        self.needs.append(need)
        return self.read


def prod(**spec: Any) -> Builder:
    builder = cluster("c-1")
    builder.spec["controlPlaneEndpoint"] = {"host": "10.0.0.1", "port": 6443}
    builder.spec.update(spec)
    return builder


def plan(read: CertificatesRead | CertificatesUnread, body: Any = None, *others: Builder) -> Plan:
    reconciler = ClusterReconciler(Said(read))
    observed = reconciler.observe(Key("default", "c-1"), FakeView(body or prod(), *others), None)
    assert observed is not None
    return reconciler.plan(observed)


def conditions(found: Plan) -> dict[str, dict[str, Any]]:
    patches = [a for a in found.actions() if isinstance(a, Patch) and a.subresource == "status"]
    return {c["type"]: c for patch in patches for c in patch.patch["status"].get("conditions", ())}


def held(days: int, kind: CertificateKind = CertificateKind.API_SERVER) -> Certificate:
    return Certificate(kind, f"the certificate of the {kind} of Machine cp-{days}", NOW + days * DAY)


def settled(read: CertificatesRead) -> Any:
    """The Cluster once its status says all of it."""
    body = prod().build()
    patches = [a for a in plan(read).actions() if isinstance(a, Patch)]
    body["status"] = merged({}, patches[0].patch["status"])
    return body


def test_valid_ones_are_told_with_the_first_that_ends_and_nothing_is_written_after() -> None:
    read = CertificatesRead((held(300), held(200)))
    found = conditions(plan(read))
    assert (found["CertificatesValid"]["status"], found["CertificatesValid"]["reason"]) == ("True", "CertificatesValid")
    assert "cp-200" in found["CertificatesValid"]["message"]
    assert "CertificatesExpiring" not in found
    again = plan(read, settled(read))
    assert again.steps == ()
    assert isinstance(again.outcome, Wait)


@pytest.mark.parametrize(
    ("kind", "limit"),
    [(CertificateKind.API_SERVER, 30), (CertificateKind.KUBECONFIG, 30), (CertificateKind.CLUSTER_CA, 180)],
)
def test_what_ends_soon_is_told_with_what_to_do_and_an_event_once(kind: CertificateKind, limit: int) -> None:
    assert "CertificatesExpiring" not in conditions(plan(CertificatesRead((held(limit + 1, kind),))))
    read = CertificatesRead((held(limit, kind),))
    found = plan(read)
    said = conditions(found)
    assert said["CertificatesValid"]["status"] == "True"
    assert said["CertificatesExpiring"]["status"] == "True"
    assert "2" in said["CertificatesExpiring"]["message"]
    assert [a.reason for a in found.actions() if isinstance(a, Event)] == ["CertificatesExpiring"]
    body = settled(read)
    assert plan(read, body).steps == ()
    assert conditions(plan(CertificatesRead((held(300, kind),)), body))["CertificatesExpiring"]["status"] == "False"


def test_one_that_has_ended_and_a_pair_that_can_not_be_used_make_it_false() -> None:
    found = conditions(plan(CertificatesRead((held(-1), held(5)))))["CertificatesValid"]
    assert (found["status"], found["reason"]) == ("False", "CertificateExpired")
    assert "cp--1" in found["message"]
    fault = "Secret default/c-1-etcd: tls.key is missing"
    found = conditions(plan(CertificatesRead((held(-1),), (fault,))))["CertificatesValid"]
    assert (found["status"], found["reason"]) == ("False", "InvalidCertificateAuthority")
    assert fault in found["message"]


def test_a_renewal_that_is_due_is_made_but_not_for_a_cluster_that_is_paused_or_goes() -> None:
    read = CertificatesRead((held(300),), renewal="its client certificate ends on 2026-12-01")
    [renewal] = [a for a in plan(read).actions() if isinstance(a, RenewKubeconfig)]
    assert (renewal.cluster.kind, renewal.cluster.key, renewal.endpoint) == (
        CLUSTER, Key("default", "c-1"), "10.0.0.1:6443",
    )  # fmt: skip
    assert "ends on 2026-12-01" in renewal.why
    assert [a for a in plan(read, settled(read)).actions() if isinstance(a, RenewKubeconfig)]
    for body in (prod(paused=True), prod().deleting()):
        assert not [a for a in plan(read, body, machine("a").in_cluster("c-1")).actions()
                    if isinstance(a, RenewKubeconfig)]  # fmt: skip


def test_a_renewal_that_is_held_up_is_told() -> None:
    read = CertificatesRead((held(300),), held_up="its client certificate ends on 2026-12-01: forbidden")
    assert "forbidden" in conditions(plan(read))["CertificatesExpiring"]["message"]


def test_what_was_said_stays_while_nothing_is_known_and_is_unknown_when_secrets_can_not_be_read() -> None:
    read = CertificatesRead((held(10),))
    body = settled(read)
    waiting = plan(CertificatesUnread("they were not read yet", finding_out=True), body)
    assert waiting.steps == ()
    assert isinstance(waiting.outcome, Wait)
    found = conditions(plan(CertificatesUnread("Secret default/c-1-ca can't be read: forbidden"), body))
    assert (found["CertificatesValid"]["status"], found["CertificatesValid"]["reason"]) == (
        "Unknown", "CertificatesUnknown",
    )  # fmt: skip
    assert found["CertificatesExpiring"]["status"] == "True"


def test_hosts_that_serve_are_asked_and_a_cluster_without_an_api_of_its_own_is_not_looked_at() -> None:
    said = Said(CertificatesRead())
    view = FakeView(prod(), _control_plane("a", "10.0.0.7"), _control_plane("b", ""), machine("w").in_cluster("c-1"))
    ClusterReconciler(said).observe(Key("default", "c-1"), view, None)
    assert said.needs[0].hosts == (("a", "10.0.0.7"),)
    said.needs.clear()
    ClusterReconciler(said).observe(Key("default", "c-1"), FakeView(cluster("c-1")), None)
    assert said.needs == []


def _control_plane(name: str, address: str) -> Builder:
    builder = machine(name).in_cluster("c-1")
    builder.spec["versions"] = {"kubelet": "1.36.3", "controlPlane": "1.36.3"}
    builder.status["nodeRef"] = {"name": name}
    builder.status["addresses"] = [{"type": "InternalIP", "address": address}] if address else "none"
    return builder
