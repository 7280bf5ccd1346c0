"""What can't work is refused with its field and what to do, before anything is made."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from controllers.bootstrap import checks
from controllers.bootstrap.documents import join_configuration
from controllers.bootstrap.join import Install, Join
from controllers.bootstrap.plan import join_steps
from controllers.bootstrap.steps import Steps
from providers.base.contract import Taint
from tests.controllers.bootstrap.test_join import CA, JOIN

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
YEAR = timedelta(days=365)
KEY = ec.generate_private_key(ec.SECP256R1())
PRIVATE = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
).decode()


def certificate(begins: timedelta = -YEAR, ends: timedelta = YEAR, ca: bool | None = True, signs: bool = True) -> str:
    """``ca`` None: without basic constraints; ``signs``: what the key's usage says."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(KEY.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW + begins).not_valid_after(NOW + ends)
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca, None), True)
    usage = x509.KeyUsage(True, False, False, False, False, signs, False, False, False)
    return (
        builder.add_extension(usage, True).sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    )


VALID, EXPIRED, FUTURE = certificate(), certificate(-2 * YEAR, -YEAR), certificate(YEAR, 2 * YEAR)
LEAF = certificate(ca=False, signs=False)
BROKEN = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

AUTHORITIES: list[tuple[str, str]] = [
    (VALID, ""),
    (VALID + VALID, ""),
    (f"# kubernetes\n{EXPIRED}\n{VALID}", ""),
    (EXPIRED, "expired at 2025-11-23T12:00:00Z, it is 2026-11-23T12:00:00Z"),
    (EXPIRED + certificate(-3 * YEAR, -2 * YEAR) + FUTURE, "expired at 2025-11-23T12:00:00Z"),
    (FUTURE, "is not valid before 2027-11-23T12:00:00Z, it is 2026-11-23"),
    (LEAF, "is no CA but the certificate of a server"),
    (LEAF + VALID, ""),
    (certificate(ca=None), "is no CA"),
    (certificate(signs=False), "is no CA"),
    (BROKEN, "certificate 1 of 1 can't be read"),
    (VALID + BROKEN, "certificate 2 of 2 can't be read"),
    (VALID[:200], "must be the PEM of a certificate"),
    ("", "must be the PEM of a certificate"),
    (VALID + PRIVATE, "holds a EC PRIVATE KEY, which must never reach a host"),
    (VALID * 200, "at most 65536 are taken"),
]


@pytest.mark.parametrize(("pem", "want"), AUTHORITIES)
def test_a_ca_is_one_that_signs_now(pem: str, want: str) -> None:
    found = join_steps(replace(JOIN, ca=pem), NOW)
    if not want:
        assert isinstance(found, Steps), found
        return
    assert isinstance(found, tuple)
    (refusal,) = found
    assert refusal.field == "ca"
    assert want in refusal.message
    assert not any(line in refusal.message for line in PRIVATE.splitlines()[1:-1])


def test_without_a_time_no_dates_are_looked_at() -> None:
    assert isinstance(join_steps(replace(JOIN, ca=EXPIRED)), Steps)
    assert isinstance(join_steps(JOIN, NOW), Steps)


CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "no endpoint": ({"server": ""}, "server", "must be https://HOST:PORT"),
    "no TLS": ({"server": "http://10.0.0.1:6443"}, "server", "must be https"),
    "a path": ({"server": "https://10.0.0.1:6443/api"}, "server", "without a path"),
    "no host": ({"server": "https://:6443"}, "server", "must be https://HOST:PORT"),
    "a port too many": ({"server": "https://10.0.0.1:65536"}, "server", "must be https://HOST:PORT"),
    "port 0": ({"server": "https://10.0.0.1:0"}, "server", "from 1 to 65535"),
    "half an address": ({"server": "https://[::1"}, "server", "is no URL"),
    "loopback": ({"server": "https://127.0.0.1:6443"}, "server", "means something else on each host"),
    "loopback of IPv6": ({"server": "https://[::1]:6443"}, "server", "means something else on each host"),
    "no address": ({"server": "https://0.0.0.0:6443"}, "server", "means something else on each host"),
    "too large an address": ({"server": "https://10.0.0.256:6443"}, "server", "neither a DNS name nor an IP"),
    "no name": ({"server": "https://-a-.b:6443"}, "server", "neither a DNS name nor an IP"),
    "localhost": ({"server": "https://localhost:6443"}, "server", "each host itself"),
    "a Service": ({"server": "https://kubernetes.default.svc:443"}, "server", "known to pods only"),
    "no kubelet version": ({"kubelet_version": ""}, "kubelet_version", "whole version"),
    "newer": ({"cluster_version": "1.35.4"}, "kubelet_version", "newer than the API server"),
    "too old": ({"kubelet_version": "1.32.0", "cluster_version": "1.36.3"}, "kubelet_version", "older than"),
    "too old for us": ({"kubelet_version": "1.30.4"}, "kubelet_version", "can't read kubeadm.k8s.io/v1beta4"),
    "no cluster version": ({"cluster_version": "latest"}, "cluster_version", "is no version"),
    "unknown runtime": ({"container_runtime": "cri-o/1.30"}, "container_runtime", "use containerd"),
    "a long name": ({"node_name": "a" * 64}, "node_name", "at most 63"),
    "an empty part": ({"node_name": "a..b"}, "node_name", "DNS name"),
    "a label's key": ({"labels": {"a b": "x"}}, "labels[a b]", "no Node can be registered"),
    "a label's value": ({"labels": {"a": "x,b=y"}}, "labels[a]", "no Node can be registered"),
    "a taint's key": ({"taints": (Taint("", "NoSchedule"),)}, "taints[0].key", "name must be"),
    "a taint's value": ({"taints": (Taint("a", "NoSchedule", "b c"),)}, "taints[0].value", "at most 63"),
    "a taint's effect": ({"taints": (Taint("a", "Never"),)}, "taints[0].effect", "NoSchedule"),
    "a taint twice": ({"taints": (Taint("a", "NoExecute", "1"), Taint("a", "NoExecute"))}, "taints[1]", "keep one"),
    "a wrong mirror": ({"install": Install("mirror.example/k8s")}, "install.mirror", "URL"),
    "a mirror with a password": ({"install": Install("https://a:b@mirror.example")}, "install.mirror", "credentials"),
    "no token": ({"token": ""}, "token", "bootstrap token"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_can_not_work_is_refused_with_its_field_and_a_remedy(case: str) -> None:
    change, field, text = CASES[case]
    found = join_steps(replace(JOIN, **change), NOW)
    assert isinstance(found, tuple), case
    assert [each.field for each in found] == [field]
    assert text in found[0].message
    assert checks.where(field) != field, "a person is told what to change"


GOOD: dict[str, dict[str, Any]] = {
    "a name": {"server": "https://api.example.com:6443"},
    "no port": {"server": "https://api.svc.example.com"},
    "IPv6": {"server": "https://[2001:db8::1]:6443"},
    "a distribution's version": {"kubelet_version": "1.36.3", "cluster_version": "1.36.3+k3s1"},
    "a taint with two effects": {"taints": (Taint("a", "NoExecute"), Taint("a", "NoSchedule"))},
    "labels that only the controller may set": {"labels": {"node-role.kubernetes.io/worker": "", "pool": "a"}},
    "a mirror": {"install": Install("http://10.0.0.9:8080/k8s/")},
    "files": {"install": Install("file:///mnt/k8s")},
}


@pytest.mark.parametrize("change", GOOD.values(), ids=list(GOOD))
def test_what_works_is_not_refused(change: dict[str, Any]) -> None:
    assert isinstance(join_steps(replace(JOIN, **change), NOW), Steps)


def test_labels_that_a_kubelet_may_not_set_are_left_to_the_controller() -> None:
    labels = {
        "pool": "a",
        "node-role.kubernetes.io/worker": "",
        "node-restriction.kubernetes.io/x": "y",
        "a.k8s.io/b": "c",
    }
    found = join_configuration(replace(JOIN, labels=labels))["nodeRegistration"]["kubeletExtraArgs"]
    assert found == [{"name": "node-labels", "value": "pool=a"}]
    assert join_configuration(replace(JOIN, labels={"a.k8s.io/b": "c"}))["nodeRegistration"]["kubeletExtraArgs"] == []


def test_what_a_later_version_breaks_is_a_warning_and_no_refusal() -> None:
    join = replace(JOIN, container_runtime="containerd/1.7.24", kubelet_version="1.35.1", cluster_version="1.36.3")
    assert isinstance(join_steps(join, NOW), Steps)
    assert [text.split(" ")[0] for text in checks.warnings(join)] == ["kubeadm", "containerd"]
    assert checks.warnings(JOIN) == ()


def test_a_person_is_told_where_to_change_it() -> None:
    assert checks.where("labels[a b]") == "spec.metadata.labels[a b] of the Machine"
    assert checks.where("taints[0].key") == "spec.taints[0].key of the Machine"
    assert checks.where("install.mirror") == "spec.bootstrap.archives of the Machine or its Cluster"
    assert checks.where("spec.bootstrap.files[0].path") == "spec.bootstrap.files[0].path"


texts = st.text(max_size=30)


@given(
    st.builds(
        Join, texts, texts.map("https://{}".format), st.sampled_from([CA, EXPIRED, LEAF, BROKEN, ""]) | texts, texts,
        texts, texts, texts, st.dictionaries(texts, texts, max_size=3),
        st.lists(st.builds(Taint, texts, texts, texts), max_size=3).map(tuple), st.builds(Install, texts),
    )
)  # fmt: skip
def test_any_input_is_answered_in_few_and_short_words(join: Join) -> None:
    found = join_steps(join, NOW)
    if isinstance(found, Steps):
        return
    assert 0 < len(found) < 32
    for each in found:
        assert each.message
        assert len(each.message) + len(checks.where(each.field)) < 700
        assert "\n" not in each.message
