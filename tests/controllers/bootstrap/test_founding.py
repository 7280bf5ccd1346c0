"""The Secrets of a cluster that Machines make: once, the same for all, and one Machine that makes the cluster."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from cryptography import x509

from api import names
from controllers.bootstrap.authorities import AUTHORITIES, CLUSTER_CA, NEW_KEYS, admin_ends, data_of_pair, pki_files
from controllers.bootstrap.calls import Call, Refused
from controllers.bootstrap.founding import Founded, found, release
from controllers.kernel.bootstrapping import FoundingOrder
from controllers.kernel.refs import CLUSTER, MACHINE, SECRET, Key, Obj, Ref
from tests.builders.clock import NOW
from tests.controllers.bootstrap.conversations import Cut, Servers

ORDER = FoundingOrder(Ref(CLUSTER, Key("default", "prod"), "uid-of-prod"), "10.0.0.1:6443", answers=False)
FIRST, SECOND = (Ref(MACHINE, Key("default", name), f"uid-of-{name}") for name in ("cp-1", "cp-2"))
CA = Key("default", "prod-ca")
SECRETS = {"prod-ca", "prod-etcd", "prod-proxy", "prod-sa", "prod-kubeconfig"}


def founded(servers: Servers, machine: Ref = FIRST, order: FoundingOrder = ORDER) -> Founded | Refused:
    """Tried again where somebody was faster, as ``ensure`` does."""
    for _ in range(5):
        said = servers.run(found(order, machine, NOW))
        if said is not None:
            return said
    raise AssertionError("somebody is always faster")


def data(servers: Servers) -> dict[str, Any]:
    return {key.name: obj["data"] for (_, key), obj in servers.objects.items()}


def decoded(secret: Mapping[str, Any], name: str) -> str:
    return base64.b64decode(secret["data"][name]).decode()


def reason(said: Founded | Refused) -> str:
    assert isinstance(said, Refused), said
    return said.reason


def test_the_first_machine_finds_all_secrets_made_and_makes_the_cluster() -> None:
    servers = Servers()
    said = founded(servers)
    assert isinstance(said, Founded)
    assert said.initializes
    assert data(servers).keys() == SECRETS
    for (_, key), secret in servers.objects.items():
        assert secret["type"] == names.AUTHORITY_SECRET_TYPE
        assert secret["metadata"]["ownerReferences"][0]["uid"] == "uid-of-prod", key
        assert secret["metadata"]["labels"][names.CAPI_CLUSTER_NAME_LABEL] == "prod"
    assert servers.objects["machines", CA]["metadata"]["annotations"] == {
        names.CONTROL_PLANE_MADE_BY: "cp-1/uid-of-cp-1"
    }


def test_the_kubeconfig_leads_to_the_endpoint_and_its_certificate_is_signed_by_the_ca_for_a_year() -> None:
    servers = Servers()
    said = founded(servers)
    assert isinstance(said, Founded)
    text = decoded(servers.objects["machines", Key("default", "prod-kubeconfig")], "value")
    document = json.loads(text)
    assert document["clusters"][0]["cluster"]["server"] == "https://10.0.0.1:6443"
    pem = base64.b64decode(document["users"][0]["user"]["client-certificate-data"])
    ca = x509.load_pem_x509_certificate(said.ca.encode())
    client = x509.load_pem_x509_certificate(pem)
    client.verify_directly_issued_by(ca)
    assert client.subject.rfc4514_string() == "CN=prod-admin,O=system:masters"
    ends = admin_ends(text)
    assert ends is not None
    assert 364 <= (ends - NOW).days <= 365


@pytest.mark.parametrize("cut", range(14))
def test_a_process_that_dies_at_any_call_leaves_what_the_next_one_goes_on_with(cut: int) -> None:
    servers = Servers(cut_before=cut)
    try:
        founded(servers)
    except Cut:
        before = data(servers)
    else:
        before = data(servers)
    servers.cut_before = None
    said = founded(servers)
    assert isinstance(said, Founded)
    assert said.initializes
    after = data(servers)
    assert {name: after[name] for name in before} == before
    assert after.keys() == SECRETS


@pytest.mark.parametrize("turns", list(product((0, 1), repeat=7)))
def test_of_two_controllers_at_once_one_machine_makes_the_cluster_and_both_see_the_same_authorities(
    turns: tuple[int, ...],
) -> None:
    """Calls are carried out in any order: ``turns`` says which conversation goes on, three calls at a time."""
    servers = Servers()
    runs = [_Run(servers, FIRST), _Run(servers, SECOND)]
    for turn in turns:
        for _ in range(3):
            runs[turn].go_on()
    said = [run.end() for run in runs]
    makers = [each for each in said if isinstance(each, Founded) and each.initializes]
    assert len(makers) == 1
    assert {reason(each) for each in said if isinstance(each, Refused)} <= {"WaitingForControlPlane"}
    assert data(servers).keys() == SECRETS
    pairs = {file.path: file.content for file in pki_files(makers[0].pki)}
    assert pairs["/etc/kubernetes/pki/ca.crt"] == decoded(servers.objects["machines", CA], "tls.crt")
    assert pairs["/etc/kubernetes/pki/sa.pub"].startswith("-----BEGIN PUBLIC KEY-----")


class _Run:
    def __init__(self, servers: Servers, machine: Ref) -> None:
        self._servers, self._machine = servers, machine
        self._talk = found(ORDER, machine, NOW)
        self._answer: Obj | None = None
        self.said: Founded | Refused | None = None

    def go_on(self) -> None:
        if self.said is not None:
            return
        try:
            call: Call = self._talk.send(self._answer)
        except StopIteration as end:
            self.said, self._answer = end.value, None
            if self.said is None:
                self._talk = found(ORDER, self._machine, NOW)
            return
        self._answer = self._servers.answer(call)

    def end(self) -> Founded | Refused:
        for _ in range(100):
            if self.said is not None:
                return self.said
            self.go_on()
        raise AssertionError("it never ends")


def test_others_wait_until_the_cluster_answers_and_join_then() -> None:
    servers = Servers()
    founded(servers)
    waiting = founded(servers, SECOND)
    assert reason(waiting) == "WaitingForControlPlane"
    assert isinstance(waiting, Refused)
    assert "Machine cp-1" in waiting.message
    joining = founded(servers, SECOND, replace(ORDER, answers=True))
    assert isinstance(joining, Founded)
    assert not joining.initializes


def test_the_machine_that_made_it_never_makes_it_again() -> None:
    servers = Servers()
    founded(servers)
    assert reason(founded(servers, FIRST, replace(ORDER, had_node=True))) == "WorkloadUnreachable"
    assert reason(founded(servers, FIRST, replace(ORDER, was_made=True))) == "WorkloadUnreachable"


def test_a_machine_that_goes_before_its_host_joined_leaves_the_making_to_another() -> None:
    servers = Servers()
    founded(servers)
    servers.run(release(ORDER.cluster.key, "uid-of-somebody"))
    assert reason(founded(servers, SECOND)) == "WaitingForControlPlane"
    servers.run(release(ORDER.cluster.key, FIRST.uid))
    said = founded(servers, SECOND)
    assert isinstance(said, Founded)
    assert said.initializes


def test_a_cluster_whose_kubeconfig_a_person_brought_is_only_ever_joined() -> None:
    servers = Servers()
    founded(servers)
    kubeconfig = servers.objects["machines", Key("default", "prod-kubeconfig")]
    kubeconfig["metadata"]["annotations"] = {}
    assert reason(founded(servers)) == "WorkloadUnreachable"
    said = founded(servers, order=replace(ORDER, answers=True))
    assert isinstance(said, Founded)
    assert not said.initializes


@pytest.mark.parametrize("lost", ["prod-ca", "prod-etcd", "prod-proxy", "prod-sa"])
def test_a_lost_pair_of_a_cluster_that_was_made_is_named_and_never_made_anew(lost: str) -> None:
    servers = Servers()
    founded(servers)
    del servers.objects["machines", Key("default", lost)]
    said = founded(servers)
    assert reason(said) == "InvalidCertificateAuthority"
    assert isinstance(said, Refused)
    assert lost in said.message
    assert Key("default", lost) not in {key for _, key in servers.objects}


def test_secrets_of_an_earlier_cluster_of_the_name_are_left_alone() -> None:
    servers = Servers()
    founded(servers)
    later = replace(ORDER, cluster=replace(ORDER.cluster, uid="uid-of-a-later-one"))
    assert reason(founded(servers, order=later)) == "SecretConflict"


def brought(servers: Servers, name: str, pair_data: Mapping[str, str]) -> None:
    meta = {"name": name, "namespace": "default"}
    servers.put("machines", {"apiVersion": "v1", "kind": SECRET.name, "metadata": meta, "data": dict(pair_data)})


def test_authorities_that_a_person_brought_count() -> None:
    servers = Servers()
    pair = NEW_KEYS.authority("ours", NOW)
    brought(servers, "prod-ca", data_of_pair(pair))
    said = founded(servers)
    assert isinstance(said, Founded)
    assert said.pki[CLUSTER_CA.suffix] == pair


@pytest.mark.parametrize("authority", AUTHORITIES, ids=lambda each: each.suffix)
@pytest.mark.parametrize("how", ["nothing", "no PEM", "keys of two pairs", "too long"])
def test_what_is_no_pair_is_refused_by_its_secret_and_nothing_is_made(authority: Any, how: str) -> None:
    one, other = (NEW_KEYS.authority("x", NOW) if authority.common_name else NEW_KEYS.signing() for _ in range(2))
    pairs = {
        "nothing": {},
        "no PEM": {"tls.crt": base64.b64encode(b"no").decode(), "tls.key": base64.b64encode(b"no").decode()},
        "keys of two pairs": {**data_of_pair(one), "tls.key": data_of_pair(other)["tls.key"]},
        "too long": {**data_of_pair(one), "tls.crt": base64.b64encode(b"x" * 70_000).decode()},
    }
    servers = Servers()
    brought(servers, f"prod{authority.suffix}", pairs[how])
    said = founded(servers)
    assert reason(said) == "InvalidCertificateAuthority"
    assert isinstance(said, Refused)
    assert f"default/prod{authority.suffix}" in said.message
    assert Key("default", "prod-kubeconfig") not in {key for _, key in servers.objects}


def test_no_private_key_is_in_what_is_printed() -> None:
    servers = Servers()
    said = founded(servers)
    assert isinstance(said, Founded)
    for pair in said.pki.values():
        assert pair.key not in repr(said)
        assert pair.key not in repr(pair)
