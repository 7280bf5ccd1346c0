"""What a hostile user of a namespace, a stolen bootstrap token or a hostile provider must not get a certificate for."""

from __future__ import annotations

from typing import Any

import pytest

from api.names import BOOTSTRAP_TOKEN_ANNOTATION
from controllers.bootstrap.credentials import token_ids
from controllers.certificatesigningrequest.reconciler import (
    RECONCILER,
    CertificateSigningRequestReconciler,
    same_host,
)
from controllers.kernel.refs import MACHINE
from controllers.kernel.view import HostAbsent, HostPresent, HostReads, HostUnknown
from providers.base.contract import Address, HostState
from tests.builders import Builder, FakeView, machine, node
from tests.builders.body import Builder as Body
from tests.builders.objects import MachineBuilder
from tests.controllers.certificatesigningrequest.requests import client, dns, ips, serving
from tests.controllers.certificatesigningrequest.test_plan import (
    ITSELF,
    KEY,
    host_of,
    joined,
    joining,
    plan_on,
    verdict,
    with_nodes,
)


class Service(Body):
    api_version = "v1"
    kind = "Service"

    def at(self, *addresses: str) -> Service:
        self.spec.update(clusterIP=addresses[0], clusterIPs=list(addresses))
        return self


class Endpoints(Body):
    api_version = "v1"
    kind = "Endpoints"

    def at(self, address: str) -> Endpoints:
        self.body["subsets"] = [{"addresses": [{"ip": address}]}]
        return self


def shown(view: FakeView, **changed: Any) -> HostReads:
    need = RECONCILER.needs(KEY, view)
    assert need is not None
    body = view.by_uid(MACHINE, need.machine_uid)
    assert body is not None
    return HostReads(HostPresent(host_of(need.machine_uid, body, **changed)))


FOREIGN = node("a").provider_id("simulated:///a").ready()
UNPROVEN: dict[str, tuple[list[Builder], HostReads]] = {
    "a Machine with the providerID of a foreign Node, by hand": (
        [machine("a", "hostile").provider_id("simulated:///a"), FOREIGN],
        HostReads(HostAbsent()),
    ),
    "the same before that Node has joined": (
        [machine("a", "hostile").provider_id("simulated:///a")],
        HostReads(HostAbsent()),
    ),
    "a provider that does not answer": ([joining()], HostReads(HostUnknown("down"))),
    "a status that a user wrote": (
        [machine("a", "hostile").provider_id("simulated:///a").ready().on_node("a"), FOREIGN],
        HostReads(HostAbsent()),
    ),
}


@pytest.mark.parametrize(("objects", "reads"), UNPROVEN.values(), ids=UNPROVEN.keys())
def test_a_token_gets_nothing_for_a_machine_whose_host_its_provider_does_not_show(
    objects: list[Builder], reads: HostReads
) -> None:
    assert verdict(plan_on(FakeView(client(), *objects), reads)) == ""


@pytest.mark.parametrize("recorded", [True, False], ids=["its own", "nobody's"])
def test_a_token_gets_nothing_for_a_node_that_exists(recorded: bool) -> None:
    """As openshift's cluster-machine-approver: whoever has the host's token could else become a Node that runs."""
    there = node("a").of(joining()) if recorded else node("a").provider_id("simulated:///a")
    view = FakeView(client(), joining(), there.ready())
    assert verdict(plan_on(view, shown(view))) == ""


CHANGED: dict[str, dict[str, Any]] = {
    "of another Machine": {"machine_uid": "uid-b"},
    "of another name": {"name": "b", "addresses": (Address("Hostname", "b"),)},
    "that nobody knows by an id": {"provider_id": ""},
    "that is not the one it is bound to": {"provider_id": "simulated:///other"},
    "that goes": {"state": HostState.DELETING},
    "that failed": {"state": HostState.FAILED},
    "that is half made": {"state": HostState.UNFINISHED},
}


@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED.keys())
def test_a_host_proves_nothing(changed: dict[str, Any]) -> None:
    view = FakeView(client(), joining())
    assert verdict(plan_on(view, shown(view, **changed))) == ""


def test_a_machine_that_is_bound_to_another_host_by_hand_gets_none() -> None:
    view = FakeView(serving(), *with_nodes(joined()))
    reads = shown(view, provider_id="simulated:///mine")
    assert verdict(plan_on(view, reads)) == ""


NAMES = (
    "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
    "KUBERNETES.default.svc", "kubernetes.default.svc.", "kubernetes.default.svc.corp.example", "db.shop.svc",
    "db.shop.svc.cluster.local", "x.cluster.local", "cluster.local", "localhost", "x.localhost", "*.example.com",
    "api.example.com", "victim",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_serving_certificate_for_a_name_that_means_somebody_else(name: str) -> None:
    """Though the provider reports the name: a cloud of a tenant's own says what its owner wants."""
    view = FakeView(serving("csr", *dns("a", name)), *with_nodes(joined()), node("victim").ready())
    reads = shown(view, addresses=(Address("Hostname", "a"), Address("InternalDNS", name.rstrip("."))))
    reconciler = CertificateSigningRequestReconciler(frozenset({"api.example.com"}))
    observed = reconciler.observe(KEY, view, reads)
    assert observed is not None
    assert verdict(reconciler.plan(observed)) == ""
    assert observed.foreign


@pytest.mark.parametrize(
    "name", ["kubernetes", "kubernetes.default.svc", "db.shop.svc", "localhost", "api.example.com"]
)
@pytest.mark.parametrize("signer", [client, serving])
def test_a_machine_that_is_named_like_somebody_else_gets_no_certificate(name: str, signer: Any) -> None:
    """The Machine's name becomes the host's, and the provider reports it in good faith."""
    body = machine(name).provider_id("simulated:///x")
    csr = signer().asking(common_name=f"system:node:{name}", alternatives=dns(name) if signer is serving else ())
    view = FakeView(csr.by(f"system:node:{name}", "system:nodes") if signer is serving else csr, body)
    reconciler = CertificateSigningRequestReconciler(frozenset({"api.example.com"}))
    observed = reconciler.observe(KEY, view, shown(view, addresses=(Address("Hostname", name),)))
    assert observed is not None
    assert verdict(reconciler.plan(observed)) == ""


ADDRESSES = ("127.0.0.1", "::1", "0.0.0.0", "10.96.0.1", "fd00:96::1", "::ffff:10.96.0.1", "10.0.0.2", "10.9.9.9",
             "192.0.2.1")  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_serving_certificate_for_an_address_that_means_somebody_else(address: str) -> None:
    around = (
        Service("kubernetes").at("10.96.0.1", "fd00:96::1"),
        Endpoints("kubernetes").at("10.0.0.2"),
        node("victim").address("10.9.9.9"),
    )
    view = FakeView(serving("csr", *ips(address)), *with_nodes(joined()), *around)
    reads = shown(view, addresses=(Address("Hostname", "a"), Address("InternalIP", address)))
    reconciler = CertificateSigningRequestReconciler(frozenset({"192.0.2.1"}))
    observed = reconciler.observe(KEY, view, reads)
    assert observed is not None
    assert verdict(reconciler.plan(observed)) == ""
    assert observed.foreign


def test_names_and_addresses_of_the_status_count_for_nothing() -> None:
    """Whoever may write a Machine's status writes them."""
    body = joined()
    body.status["addresses"].append({"type": "InternalDNS", "address": "bank.example.com"})
    view = FakeView(serving("csr", *dns("a", "bank.example.com")).created(700), *with_nodes(body))
    assert verdict(plan_on(view, shown(view))) == "Denied"


def test_a_node_that_is_recorded_for_another_machine_is_not_that_of_its_namesake() -> None:
    hostile = machine("a", "hostile").uid("two").provider_id("simulated:///two").ready().on_node("a")
    view = FakeView(client().by(*ITSELF), *with_nodes(joined()), hostile)
    need = RECONCILER.needs(KEY, view)
    assert need is not None
    assert (need.machine_uid, need.namespace) == ("uid-a", "default"), "clouds of other namespaces are not believed"


def test_a_request_that_goes_asks_for_no_host() -> None:
    """The shell takes back what waits for a host whose object goes: a request's end must not stop a Machine's host."""
    view = FakeView(client().deleting(5, "x/y"), joining())
    assert RECONCILER.needs(KEY, view) is None


def namesake() -> MachineBuilder:
    """Bound by hand, and paused, so that nobody ever looks for the host that it has not."""
    body = machine("a", "hostile").uid("two").provider_id("simulated:///made-up")
    return body.annotated("cluster.x-k8s.io/paused", "true")


def test_a_paused_namesake_with_a_provider_id_written_by_hand_holds_up_nobody() -> None:
    seen = joining()
    seen.status["hostScope"] = "simulated/default"
    view = FakeView(client(), seen, namesake())
    assert verdict(plan_on(view, shown(view))) == "Approved"


def test_of_namesakes_that_have_hosts_the_token_tells_which_one_asks() -> None:
    for said, token in (("Approved", OWN), ("", token_ids("two")[0]), ("", "abcdef")):
        both = [joining(), namesake()]
        for body in both:
            body.status["hostScope"] = "simulated/default"
        view = FakeView(client().by(f"system:bootstrap:{token}", "system:bootstrappers"), *both)
        reads = shown(view) if said else HostReads(HostAbsent())
        assert verdict(plan_on(view, reads)) == said


def test_a_machine_whose_host_is_seen_now_wakes_the_requests_that_it_held_up() -> None:
    body, seen = namesake().build(), namesake()
    seen.status["hostScope"] = "simulated/default"
    assert not same_host(body, seen.build())


OWN, OTHER = token_ids("uid-a")[0], token_ids("uid-b")[0]
OURS = "system:bootstrappers:nodewright"


@pytest.mark.parametrize(
    ("username", "groups", "expected"),
    [
        (f"system:bootstrap:{OWN}", (OURS,), "Approved"),
        (f"system:bootstrap:{OTHER}", (OURS,), ""),
        (f"system:bootstrap:{OTHER}", (), ""),
        ("system:bootstrap:abcdef", (), ""),
    ],
    ids=["its own", "another Machine's", "another Machine's, its group hidden", "one that somebody else made"],
)
def test_a_machine_that_joins_by_a_token_of_ours_joins_by_no_other(
    username: str, groups: tuple[str, ...], expected: str
) -> None:
    body = joining().annotated(BOOTSTRAP_TOKEN_ANNOTATION, OWN)
    view = FakeView(client().by(username, "system:bootstrappers", *groups), body)
    assert verdict(plan_on(view, shown(view))) == expected


def test_a_token_of_ours_gets_nothing_for_a_machine_that_brings_its_own_user_data() -> None:
    view = FakeView(client().by(f"system:bootstrap:{OTHER}", "system:bootstrappers", OURS), joining())
    assert verdict(plan_on(view, shown(view))) == ""
