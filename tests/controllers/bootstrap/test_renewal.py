"""The kubeconfig of a cluster that Machines make is renewed in time, and never over one that a person brought."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from api import names
from controllers.bootstrap.authorities import CLUSTER_CA, NEW_KEYS, KeyPair, admin_kubeconfig, data_of_pair, pair_in
from controllers.bootstrap.founding import found
from controllers.bootstrap.renewal import access_in, assess, renew, secrets_of
from controllers.kernel.bootstrapping import FoundingOrder
from controllers.kernel.certificates import CertificateKind, CertificatesRead
from controllers.kernel.refs import CLUSTER, MACHINE, Key, Ref
from tests.builders.clock import NOW
from tests.controllers.bootstrap.conversations import Cut, Servers

PROD = Ref(CLUSTER, Key("default", "prod"), "uid-of-prod")
ENDPOINT = "10.0.0.1:6443"
KUBECONFIG, CA = Key("default", "prod-kubeconfig"), Key("default", "prod-ca")
DAY = timedelta(days=1)


@pytest.fixture
def servers() -> Servers:
    """A cluster that was founded at NOW."""
    made = Servers()
    made.run(found(FoundingOrder(PROD, ENDPOINT, answers=False), Ref(MACHINE, Key("default", "cp-1"), "uid-1"), NOW))
    return made


def assessed(servers: Servers, now: datetime, endpoint: str = ENDPOINT) -> CertificatesRead:
    return assess(PROD, endpoint, {key: servers.get("machines", key) for key in secrets_of(PROD.key, endpoint)}, now)


def kubeconfig(servers: Servers) -> str:
    secret = servers.get("machines", KUBECONFIG)
    assert secret is not None
    return base64.b64decode(secret["data"]["value"]).decode()


def write(servers: Servers, key: Key, data: dict[str, str]) -> None:
    secret = servers.get("machines", key)
    assert secret is not None
    servers.put("machines", {**secret, "data": data})


@pytest.mark.parametrize(
    ("days", "due"), [(0, False), (200, False), (243, False), (244, True), (300, True), (400, True)]
)
def test_a_years_kubeconfig_is_due_when_a_third_of_its_life_is_left(servers: Servers, days: int, due: bool) -> None:
    assert bool(assessed(servers, NOW + days * DAY).renewal) is due


def test_of_a_shorter_life_it_is_due_when_90_days_are_left_and_never_twice_for_a_ca_that_ends_soon(
    servers: Servers,
) -> None:
    late = NOW + 3650 * DAY - 200 * DAY
    assert servers.run(renew(PROD, ENDPOINT, late))
    assert not assessed(servers, late + 109 * DAY).renewal
    assert not assessed(servers, late + 111 * DAY).renewal, "the CA ends as soon: a new certificate gains nothing"
    text = admin_kubeconfig("prod", f"https://{ENDPOINT}", pair(servers), NOW - 165 * DAY)
    write(servers, KUBECONFIG, {"value": base64.b64encode(text.encode()).decode()})
    assert not assessed(servers, NOW).renewal
    assert assessed(servers, NOW + 111 * DAY).renewal


def test_what_is_renewed_is_current_and_the_next_look_finds_nothing_due(servers: Servers) -> None:
    later = NOW + 300 * DAY
    before = json.loads(kubeconfig(servers))
    assert servers.run(renew(PROD, ENDPOINT, later)).startswith("its client certificate ends on")
    after = json.loads(kubeconfig(servers))
    assert before["clusters"] == after["clusters"]
    assert before["users"] != after["users"]
    assert not assessed(servers, later).renewal
    assert servers.run(renew(PROD, ENDPOINT, later)) == ""
    ends = {each.kind: each.ends for each in assessed(servers, later).certificates}
    assert ends[CertificateKind.KUBECONFIG] - later > 364 * DAY
    secret = servers.get("machines", KUBECONFIG)
    assert secret is not None
    assert secret["metadata"]["annotations"][names.MANAGED_KUBECONFIG_ANNOTATION] == "true"


def test_another_endpoint_or_ca_makes_it_due(servers: Servers) -> None:
    assert "endpoint" in assessed(servers, NOW, "lb.example:443").renewal
    assert servers.run(renew(PROD, "lb.example:443", NOW))
    assert json.loads(kubeconfig(servers))["clusters"][0]["cluster"]["server"] == "https://lb.example:443"
    assert not assessed(servers, NOW, "lb.example:443").renewal
    other = NEW_KEYS.authority("kubernetes", NOW)
    write(servers, CA, data_of_pair(other))
    assert "CA" in assessed(servers, NOW, "lb.example:443").renewal
    assert servers.run(renew(PROD, "lb.example:443", NOW))
    client = access_in(servers.objects["machines", KUBECONFIG]).client
    assert client is not None
    client.verify_directly_issued_by(x509.load_pem_x509_certificate(other.certificate.encode()))


@pytest.mark.parametrize("cut", range(3))
def test_a_process_that_dies_at_any_call_leaves_a_kubeconfig_that_works(servers: Servers, cut: int) -> None:
    later = NOW + 300 * DAY
    servers.calls.clear()
    servers.cut_before = cut
    with pytest.raises(Cut):
        servers.run(renew(PROD, ENDPOINT, later))
    servers.cut_before = None
    assert access_in(servers.objects["machines", KUBECONFIG]).client is not None
    assert servers.run(renew(PROD, ENDPOINT, later))
    assert not assessed(servers, later).renewal


def test_a_kubeconfig_of_a_persons_or_of_another_cluster_is_watched_and_never_written(servers: Servers) -> None:
    later = NOW + 360 * DAY
    secret = servers.get("machines", KUBECONFIG)
    assert secret is not None
    for meta in ({**secret["metadata"], "annotations": {}},
                 {**secret["metadata"], "ownerReferences": [{"kind": "Cluster", "uid": "of-another"}]}):  # fmt: skip
        servers.put("machines", {**secret, "metadata": meta})
        before = kubeconfig(servers)
        read = assessed(servers, later)
        assert not read.renewal
        assert CertificateKind.KUBECONFIG in {each.kind for each in read.certificates}
        assert servers.run(renew(PROD, ENDPOINT, later)) == ""
        assert kubeconfig(servers) == before


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "users: 3", "current-context: a\ncontexts: [{name: a, context: {user: 7}}]", "\x00", "&a [*a]"],
)
def test_a_kubeconfig_that_can_not_be_read_is_made_anew(servers: Servers, text: str) -> None:
    write(servers, KUBECONFIG, {"value": base64.b64encode(text.encode()).decode()})
    assert assessed(servers, NOW).renewal
    assert servers.run(renew(PROD, ENDPOINT, NOW))
    assert not assessed(servers, NOW).renewal


def test_a_kubeconfig_in_yaml_of_a_cluster_made_elsewhere_is_read(servers: Servers) -> None:
    document = json.loads(kubeconfig(servers))
    user = document["users"][0]["user"]["client-certificate-data"]
    text = (
        "current-context: c\ncontexts:\n- name: c\n  context: {cluster: k, user: u}\nclusters: []\n"
        f"users:\n- name: u\n  user: {{client-certificate-data: {user}}}\n"
    )
    body = {"metadata": {"name": KUBECONFIG.name, "namespace": "default"}, "data": {"value": _b64(text)}}
    read = assess(PROD, "", {KUBECONFIG: body}, NOW)
    [certificate] = read.certificates
    assert certificate.kind is CertificateKind.KUBECONFIG
    assert not read.faults


def test_before_the_cluster_is_made_nothing_is_missing_and_once_it_is_a_missing_pair_is_named(servers: Servers) -> None:
    assert assess(PROD, ENDPOINT, {}, NOW) == CertificatesRead()
    del servers.objects["machines", Key("default", "prod-etcd")]
    [fault] = assessed(servers, NOW).faults
    assert "default/prod-etcd" in fault


# -- authorities that a person brings


def test_all_that_is_wrong_with_a_pair_names_its_key() -> None:
    good = NEW_KEYS.authority("kubernetes", NOW)
    other = NEW_KEYS.authority("kubernetes", NOW)
    assert isinstance(pair_in({"tls.crt": good.certificate, "tls.key": good.key}, CLUSTER_CA, NOW), KeyPair)
    bundle = {"tls.crt": good.certificate + other.certificate, "tls.key": good.key}
    assert isinstance(pair_in(bundle, CLUSTER_CA, NOW), KeyPair)
    for certificate, key, now, wrong in (
        (good.certificate, other.key, NOW, "tls.key is not the key"),
        (other.certificate + good.certificate, good.key, NOW, "tls.key is not the key"),
        (good.certificate, "", NOW, "tls.key is missing"),
        ("", good.key, NOW, "tls.crt is missing"),
        ("x" * 70000, good.key, NOW, "at most"),
        (good.certificate[:80], good.key, NOW, "tls.crt is no PEM"),
        (good.certificate, good.certificate, NOW, "tls.key is no PEM"),
        (good.certificate, good.key, NOW + 4000 * DAY, "it ended on"),
        (good.certificate, good.key, NOW - DAY, "it begins on"),
    ):
        said = pair_in({"tls.crt": certificate, "tls.key": key}, CLUSTER_CA, now)
        assert isinstance(said, str)
        assert wrong in said


@pytest.mark.parametrize("made", ["leaf", "no-sign", "ed25519", "dsa"])
def test_a_certificate_that_kubeadm_can_not_sign_with_is_refused(made: str) -> None:
    said = pair_in(_pair(made), CLUSTER_CA, NOW)
    assert isinstance(said, str)
    assert "tls.key" in said or "tls.crt" in said


def test_an_authority_with_an_rsa_key_is_taken() -> None:
    assert isinstance(pair_in(_pair("rsa"), CLUSTER_CA, NOW), KeyPair)


def pair(servers: Servers) -> KeyPair:
    data = servers.objects["machines", CA]["data"]
    crt, key = (base64.b64decode(data[name]).decode() for name in ("tls.crt", "tls.key"))
    return KeyPair(crt, key)


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _pair(made: str) -> dict[str, str]:
    key: Any = {
        "ed25519": ed25519.Ed25519PrivateKey.generate,
        "dsa": lambda: dsa.generate_private_key(1024),
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
    }.get(made, lambda: ec.generate_private_key(ec.SECP256R1()))()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mine")])
    usage = x509.KeyUsage(True, False, False, False, False, made != "no-sign", made != "no-sign", False, False)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + DAY)
        .add_extension(x509.BasicConstraints(ca=made != "leaf", path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, None if made == "ed25519" else hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return {"tls.crt": certificate.public_bytes(pem).decode(), "tls.key": private.decode()}
