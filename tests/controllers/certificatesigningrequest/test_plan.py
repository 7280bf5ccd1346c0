"""Which certificate requests are approved, which denied, and which are nobody's business here."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
from cryptography import x509

from controllers.certificatesigningrequest.reconciler import RECONCILER
from controllers.kernel.actions import Delete, Patch
from controllers.kernel.plan import Plan, Settled, Wait
from controllers.kernel.refs import CERTIFICATE_SIGNING_REQUEST, MACHINE, Key, Obj
from controllers.kernel.view import (
    MANAGEMENT_CLUSTER,
    HostAbsent,
    HostPresent,
    HostReads,
    Reached,
    Unreachable,
    Workload,
)
from providers.base.contract import Address, Host, HostState
from tests.builders import FakeView, cluster, machine, node
from tests.builders.objects import Builder, MachineBuilder
from tests.controllers.certificatesigningrequest.requests import (
    CLIENT,
    CLIENT_USAGES,
    SERVING_USAGES,
    RequestBuilder,
    client,
    dns,
    ips,
    serving,
)

KEY = Key("", "csr")


ADDRESSES = (
    ("InternalIP", "10.0.0.7"),
    ("InternalIP", "fd00:0:0::7"),
    ("InternalDNS", "a.internal"),
    ("Hostname", "a"),
)


def addressed(body: MachineBuilder) -> MachineBuilder:
    body.status["addresses"] = [{"type": type_, "address": address} for type_, address in ADDRESSES]
    return body


def lost(body: MachineBuilder) -> MachineBuilder:
    """As the Machine controller leaves one whose providerID no host of it has."""
    return body.condition("InfrastructureReady", "False", "HostMissing")


def joining() -> MachineBuilder:
    """Its host runs, no Node has joined."""
    return addressed(machine("a").provider_id("simulated:///a"))


def joined() -> MachineBuilder:
    return addressed(machine("a").ready().on_node("a").provider_id("simulated:///a"))


def with_nodes(*bodies: Builder) -> list[Builder]:
    """The Nodes of the Machines that have joined beside them, recorded for them as the Machine controller does."""
    linked = [body for body in bodies if body.kind == "Machine" and body.status.get("nodeRef")]
    return [*bodies, *(node(str(m.status["nodeRef"]["name"])).of(m) for m in linked)]


def plan(csr: Builder, *others: Builder) -> Plan:
    return plan_on(FakeView(csr, *with_nodes(*others)))


def host_of(uid: str, body: Obj, **changed: Any) -> Host:
    """As the provider shows the host of a Machine: with the names and addresses of ``ADDRESSES``."""
    provider_id = (body.get("spec") or {}).get("providerID") or f"simulated:///{uid}"
    addresses = tuple(Address(*pair) for pair in ADDRESSES)
    shown = Host(uid, uid, body["metadata"]["name"], provider_id, HostState.RUNNING, "", addresses)
    return replace(shown, **changed)


def reads_of(view: FakeView, **changed: Any) -> HostReads | None:
    """What a provider says that has a host for each Machine which is bound to one."""
    need = RECONCILER.needs(KEY, view)
    body = view.by_uid(MACHINE, need.machine_uid) if need is not None else None
    if need is None or body is None:
        return None
    if not body["spec"].get("providerID"):
        return HostReads(HostAbsent())
    return HostReads(HostPresent(host_of(need.machine_uid, body, **changed)))


def plan_on(view: FakeView, reads: HostReads | None = None) -> Plan:
    observed = RECONCILER.observe(KEY, view, reads or reads_of(view))
    assert observed is not None
    return RECONCILER.plan(observed)


def verdict(found: Plan) -> str:
    """Approved, Denied, or "" for left alone."""
    patches = [action for action in found.actions() if isinstance(action, Patch)]
    if not patches:
        return ""
    (patch,) = patches
    assert (patch.target.kind, patch.subresource, patch.resource_version) == (
        CERTIFICATE_SIGNING_REQUEST,
        "approval",
        "1",
    )
    said = patch.patch["status"]["conditions"][-1]
    assert said["status"] == "True"
    return str(said["type"])


ITSELF = ("system:node:a", "system:nodes")
ANOTHER = ("system:node:b", "system:nodes")

CASES: dict[str, tuple[RequestBuilder, list[Builder], str]] = {
    "a kubelet that joins": (client(), [joining()], "Approved"),
    "a kubelet that joins, without key encipherment (since 1.27)": (
        client().usages("digital signature", "client auth"),
        [joining()],
        "Approved",
    ),
    "a kubelet that renews its client certificate": (client().by(*ITSELF), [joined()], "Approved"),
    "a token that asks for a Node that has joined": (client(), [joined()], ""),
    "a token of a Machine that has no host": (client(), [addressed(machine("a"))], ""),
    "a person": (client().by("alice", "admins"), [joining()], ""),
    "somebody with a token's name and not its group": (client().by("system:bootstrap:abcdef"), [joining()], ""),
    "a Node that asks for another's": (client().by(*ANOTHER), [joined()], "Denied"),
    "a Node that asks for one that nobody knows for sure": (client().by(*ANOTHER), [joining()], ""),
    "a Node of nobody's": (client(), [machine("b").provider_id("simulated:///b")], ""),
    "a Machine that goes": (client(), [joining().deleting()], ""),
    "two Machines of that name": (
        client(),
        [joining(), machine("a", "elsewhere").uid("two").provider_id("simulated:///two")],
        "",
    ),
    "another Machine of that name without a host": (
        client(),
        [joining(), machine("a", "elsewhere").uid("two")],
        "Approved",
    ),
    "another Machine of that name that was given a providerID": (
        client(),
        [joining(), lost(machine("a", "elsewhere").uid("two").provider_id("simulated:///a"))],
        "Approved",
    ),
    "a client of more organizations": (
        client().asking(organizations=("system:nodes", "system:masters")).by(*ITSELF),
        [joined()],
        "Denied",
    ),
    "a client with alternative names": (client().asking(alternatives=dns("a")).by(*ITSELF), [joined()], "Denied"),
    "a client that wants to serve": (client().usages(*SERVING_USAGES).by(*ITSELF), [joined()], "Denied"),
    "a serving certificate": (serving(), [joined()], "Approved"),
    "a serving certificate before the Node is linked": (serving(), [joining()], "Approved"),
    "a serving certificate without key encipherment (since 1.27)": (
        serving().usages("digital signature", "server auth"),
        [joined()],
        "Approved",
    ),
    "a serving certificate for another spelling of an address": (
        serving("csr", *dns("a", "a.internal"), *ips("fd00::7")),
        [joined()],
        "Approved",
    ),
    "a serving certificate for nothing": (serving().asking(), [joined()], "Denied"),
    "a serving certificate by a token": (
        serving().by("system:bootstrap:abcdef", "system:bootstrappers"),
        [joined()],
        "",
    ),
    "a serving certificate by another Node": (serving().by(*ANOTHER), [joined()], "Denied"),
    "a serving certificate without a host name, by address only": (
        serving("csr", *ips("10.0.0.7")),
        [joined()],
        "Approved",
    ),
    "a serving certificate for a URI": (
        serving("csr", *dns("a"), x509.UniformResourceIdentifier("spiffe://a")),
        [joined()],
        "Denied",
    ),
    "a serving certificate for mail": (serving("csr", *dns("a"), x509.RFC822Name("a@b.c")), [joined()], "Denied"),
    "a serving certificate for a client": (serving().usages(*CLIENT_USAGES), [joined()], "Denied"),
    "a serving certificate of no organization": (
        serving().asking(organizations=(), alternatives=dns("a")),
        [joined()],
        "Denied",
    ),
    "a foreign address, a moment ago": (serving("csr", *ips("10.0.0.8")), [joined()], ""),
    "a foreign address, for long": (serving("csr", *ips("10.0.0.8")).created(700), [joined()], "Denied"),
    "a foreign name of a Node that is not linked": (serving("csr", *dns("api")).created(700), [joining()], ""),
    "one that somebody decided about": (client().approved(), [joining()], ""),
}


@pytest.mark.parametrize(("csr", "machines", "want"), CASES.values(), ids=CASES.keys())
def test_verdict(csr: RequestBuilder, machines: list[Builder], want: str) -> None:
    assert verdict(plan(csr, *machines)) == want


def test_an_address_of_a_host_whose_addresses_its_provider_did_not_tell_is_left_alone() -> None:
    view = FakeView(serving("csr", *ips("10.0.0.8")).created(700), *with_nodes(joined()))
    assert verdict(plan_on(view, reads_of(view, addresses=(Address("Hostname", "a"),)))) == ""


def test_another_signers_requests_are_not_even_read() -> None:
    other = client()
    other.spec.update(signerName="example.com/mine", request="junk")
    found = plan(other, joining())
    assert (found.steps, found.notes) == ((), ())


@pytest.mark.parametrize("junk", ["", "junk", base64.b64encode(b"junk").decode(), "A" * 70_000, None])
def test_what_cannot_be_read_is_left_alone(junk: str | None) -> None:
    csr = client()
    csr.spec["request"] = junk
    found = plan(csr, joining())
    assert verdict(found) == ""
    assert found.notes[0].startswith("left alone")


def test_a_request_that_was_tampered_with_is_left_alone() -> None:
    whole = base64.b64decode(client().spec["request"]).decode().splitlines()
    body = bytearray(base64.b64decode("".join(whole[1:-1])))
    body[-1] ^= 1
    text = base64.b64encode(bytes(body)).decode()
    csr = client()
    csr.spec["request"] = base64.b64encode("\n".join([whole[0], text, whole[-1], ""]).encode()).decode()
    assert verdict(plan(csr, joining())) == ""


def test_one_token_gets_one_certificate_of_a_machine_before_its_node_joins() -> None:
    first = client("first").asking(number=1).created(60).approved()
    assert verdict(plan(client(), first, joining())) == ""
    again = client("first").asking(number=0).created(60).approved()
    assert verdict(plan(client(), again, joining())) == "Approved", "the same key is the same kubelet"


def test_of_several_that_wait_the_newest_counts() -> None:
    newer = serving("newer").created(1)
    assert verdict(plan(serving(), newer, joined())) == ""
    assert verdict(plan(serving(), serving("older").created(60), joined())) == "Approved"
    assert verdict(plan(serving(), client("newer").created(1).by(*ITSELF), joined())) == "Approved"


@pytest.mark.parametrize(
    "newer",
    [
        client("newer").created(1).asking(organizations=("system:nodes", "others"), number=1),
        client("newer").created(1).asking(number=1).by("alice"),
        client("newer").created(1).asking(number=1).usages("client auth", "server auth"),
    ],
    ids=["of another organization", "by somebody else", "for another use"],
)
def test_a_newer_one_that_is_no_kubelets_holds_up_nobody(newer: RequestBuilder) -> None:
    assert verdict(plan(client(), newer, joining())) == "Approved"
    assert verdict(plan(client(), client("newer").created(1).asking(number=1), joining())) == ""


def test_a_foreign_address_is_looked_at_again_when_addresses_should_be_known() -> None:
    found = plan(serving("csr", *ips("10.0.0.8")), joined())
    assert isinstance(found.outcome, Wait)
    assert found.outcome.after == 595


def test_nothing_is_decided_on_an_incomplete_view() -> None:
    found = plan_on(FakeView(client(), joining()).incomplete(MACHINE))
    assert verdict(found) == ""
    assert isinstance(found.outcome, Wait)


def test_a_request_of_nobodys_is_settled_until_a_machine_changes() -> None:
    csr, body = client(), joining()
    assert isinstance(plan(csr).outcome, Settled)
    (wake,) = [wake for wake in RECONCILER.wakes if wake.kind == MACHINE]
    assert list(wake.keys(body.build(), FakeView(csr))) == [KEY]
    assert list(wake.keys(joined().build(), FakeView(csr))) == [KEY]
    assert list(wake.keys(machine("b").build(), FakeView(csr))) == []
    assert wake.ignores is not None
    assert wake.ignores(body.build(), body.version("2").annotated("x").build())
    assert not wake.ignores(machine("a").build(), body.build())


def test_a_request_that_waits_for_another_is_looked_at_when_that_is_deleted() -> None:
    earlier, waits, of_others = client("first").approved(), client("csr").asking(number=1), client("other")
    of_others.asking(common_name="system:node:b")
    (wake,) = [wake for wake in RECONCILER.wakes if wake.kind == CERTIFICATE_SIGNING_REQUEST]
    assert list(wake.keys(earlier.build(), FakeView(earlier, waits, of_others))) == [Key("", "first")]
    assert list(wake.keys(earlier.build(), FakeView(waits, of_others))) == [Key("", "first"), Key("", "csr")]


def test_conditions_of_others_are_kept() -> None:
    csr = client()
    csr.status["conditions"] = []
    (patch,) = plan(csr, joining()).actions()
    assert isinstance(patch, Patch)
    assert [c["type"] for c in patch.patch["status"]["conditions"]] == ["Approved"]
    assert "Machine default/a" in patch.patch["status"]["conditions"][0]["message"]


ELSEWHERE = [
    (MANAGEMENT_CLUSTER, "Approved"),
    (Reached("blue-kubeconfig"), ""),
    (Unreachable("blue-kubeconfig", "Unreachable", "refused"), ""),
]


@pytest.mark.parametrize(("workload", "said"), ELSEWHERE, ids=["at home", "elsewhere", "elsewhere and lost"])
def test_a_machine_of_another_cluster_gets_no_certificate_of_this_one(workload: Workload, said: str) -> None:
    """Its Node lives elsewhere: whoever asks here for that name is somebody else."""
    for csr, body in ((client(), joining()), (serving(), joined()), (client().by(*ANOTHER), joined())):
        view = FakeView(csr, *with_nodes(body.in_cluster("blue")))
        view.elsewhere("blue", workload)
        found = plan_on(view)
        assert verdict(found) == (("Denied" if csr.spec.get("username") == ANOTHER[0] else "Approved") if said else "")


def _decided(csr: RequestBuilder, *of: MachineBuilder) -> RequestBuilder:
    """``csr`` as it is after what was decided of it for the Machines ``of``."""
    (patch,) = plan(csr, *of).actions()
    assert isinstance(patch, Patch)
    csr.status["conditions"] = patch.patch["status"]["conditions"]
    return csr


def _removed(found: Plan) -> list[str]:
    return [action.target.key.name for action in found.actions() if isinstance(action, Delete)]


@pytest.mark.parametrize("csr", [client(), serving().by(*ANOTHER)], ids=["approved", "denied"])
def test_a_request_that_was_decided_for_a_machine_goes_with_it(csr: RequestBuilder) -> None:
    body = joining() if csr.spec["signerName"] == CLIENT else joined()
    done = _decided(csr, body)
    assert list(plan(done, body).actions()) == []
    view = FakeView(done)
    early = plan_on(view)
    assert _removed(early) == []
    assert isinstance(early.outcome, Wait), "a kubelet may be about to fetch it"
    assert _removed(plan_on(view.at(61))) == ["csr"]
    assert _removed(plan_on(view.at(61).incomplete(MACHINE))) == []


def test_a_request_that_somebody_else_decided_or_nobody_stays() -> None:
    """Nothing tells whose they were: kube-controller-manager removes them when they are old."""
    for csr in (client(), client().approved(), serving().by(*ITSELF)):
        assert _removed(plan_on(FakeView(csr).at(100_000))) == []
    foreign = _decided(client(), joining())
    foreign.spec["signerName"] = "example.com/other"
    assert _removed(plan_on(FakeView(foreign).at(100_000))) == []


def test_a_machine_whose_host_takes_a_name_again_waits_for_no_request_of_the_one_before() -> None:
    """Hosts of a pool keep their names."""
    before = _decided(client(), joining().uid("uid-before"))
    before.metadata.update(name="first", uid="uid-first")
    view = FakeView(before, client("csr").asking(number=1), joining())
    assert verdict(plan_on(view)) == "Approved"


def _in_blue(*objects: Any) -> FakeView:
    """What a reconcile in the workload cluster of ``blue`` sees; it is reached at ``api.blue.example``."""
    reached = Reached("blue-kubeconfig", frozenset({"API.blue.example."}))
    return FakeView().elsewhere("blue", reached, *objects)


@pytest.mark.parametrize(
    ("of", "said"), [("blue", "Approved"), ("green", ""), (None, "")], ids=["its own", "another's", "home's"]
)
def test_in_a_workload_cluster_only_machines_of_that_cluster_get_a_certificate(of: str | None, said: str) -> None:
    for csr, body in ((client(), joining()), (serving(), joined())):
        machine_of = body.in_cluster(of) if of else body
        assert verdict(plan_on(_in_blue(csr, *with_nodes(machine_of)))) == said


def test_a_namesake_in_another_cluster_holds_up_nobody() -> None:
    other = machine("a", "other").uid("uid-other").provider_id("simulated:///b").in_cluster("green")
    assert verdict(plan_on(_in_blue(client(), joining().in_cluster("blue"), other))) == "Approved"


def test_a_machine_of_that_name_in_another_namespace_is_not_of_this_cluster() -> None:
    """A Cluster is named by its namespace, too."""
    other = machine("a", "other").provider_id("simulated:///a").in_cluster("blue")
    assert verdict(plan_on(_in_blue(client(), other))) == ""


@pytest.mark.parametrize("name", ["api.blue.example", "lb.blue.example"])
def test_no_kubelet_serves_in_the_name_of_its_workload_clusters_server(name: str) -> None:
    """By our way there, or by that of hosts (``status.apiEndpoints``)."""
    told = cluster("blue").build()
    told["status"] = {"apiEndpoints": [{"host": "lb.blue.example", "port": 6443}]}
    csr = serving("csr", *dns("a", name))
    view = _in_blue(csr, told, *with_nodes(joined().in_cluster("blue")))
    found = plan_on(view, reads_of(view, addresses=(Address("InternalDNS", name), Address("Hostname", "a"))))
    assert verdict(found) == ""
    assert any("is the API server's" in note for note in found.notes)


def test_a_request_waits_until_it_is_known_where_its_node_lives() -> None:
    view = FakeView(client(), joining().in_cluster("blue"))
    view.elsewhere("blue", Unreachable("", "Unreachable", "being found out", finding_out=True))
    found = plan_on(view)
    assert verdict(found) == ""
    assert isinstance(found.outcome, Wait)
