"""A kubeconfig that came from the API: used if it is sound, refused if it would run or read anything of ours."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from nodewright.runtime.kube.errors import ConfigurationError
from nodewright.runtime.kube.servers import ServerPolicy, Tls
from nodewright.runtime.workloads.secret import LARGEST, connection_in

HIDDEN = "s3cr3t-t0k3n"


def config(user: dict[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
    return {
        "current-context": "prod",
        "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "admin"}}],
        "clusters": [{"name": "prod", "cluster": {"server": "https://10.0.0.1:6443", **cluster}}],
        "users": [{"name": "admin", "user": {"token": HIDDEN} if user is None else user}],
    }


def secret(content: dict[str, Any] | bytes, key: str = "value") -> dict[str, Any]:
    raw = content if isinstance(content, bytes) else yaml.safe_dump(content).encode()
    return {
        "metadata": {"namespace": "default", "name": "prod-kubeconfig"},
        "data": {key: base64.b64encode(raw).decode()},
    }


@pytest.mark.parametrize("key", ["value", "kubeconfig"])
async def test_a_sound_kubeconfig_is_a_connection(key: str) -> None:
    connection = connection_in(secret(config(), key))
    assert connection.server == "https://10.0.0.1:6443"
    assert connection.tokens is not None
    assert await connection.tokens.token() == HIDDEN
    assert HIDDEN not in repr(connection)


def test_value_is_read_before_kubeconfig() -> None:
    both = secret(config())
    both["data"]["kubeconfig"] = secret(config(server="https://other"))["data"]["value"]
    assert connection_in(both).server == "https://10.0.0.1:6443"


@pytest.mark.parametrize(
    ("user", "field"),
    [
        ({"exec": {"command": "/bin/sh", "args": ["-c", "id"]}}, "user.exec"),
        ({"auth-provider": {"name": "gcp", "config": {"cmd-path": "/bin/sh"}}}, "user.auth-provider"),
        ({"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}, "tokenFile"),
        ({"client-certificate": "/etc/passwd"}, "client-certificate"),
        ({"client-key": "/etc/shadow"}, "client-key"),
    ],
)
def test_what_would_run_a_program_or_read_a_file_here_is_refused(user: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        connection_in(secret(config(user)))
    assert str(refusal.value).startswith("Secret default/prod-kubeconfig, key value: ")
    assert field in str(refusal.value)


def test_a_file_of_certificates_is_refused_too() -> None:
    with pytest.raises(ConfigurationError, match="certificate-authority names a file"):
        connection_in(secret(config(**{"certificate-authority": "/etc/ssl/ca.pem"})))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"metadata": {"namespace": "default", "name": "prod-kubeconfig"}}, "there is no key value (or kubeconfig)"),
        ({**secret(b"x"), "data": {"value": "*"}}, "key value: not base64"),
        (secret(b"token: [" + HIDDEN.encode()), "key value: not YAML: line 2: "),
        (secret(b"\xff\xfe" + HIDDEN.encode()), "key value: not YAML"),
        (secret(b"- a list"), "key value: not a kubeconfig"),
        (secret(b"x" * (LARGEST + 1)), "key value: larger than"),
        (secret(config(server="ftp://10.0.0.1")), "clusters[prod].cluster.server is not an HTTP URL"),
        (secret(config(server="https://[::1")), "clusters[prod].cluster.server is not an HTTP URL"),
        (secret({**config(), "current-context": "other"}), "there is no context named 'other'"),
        (secret(config(**{"certificate-authority-data": "!"})), "certificate-authority-data is not base64"),
        (secret(config(**{"certificate-authority-data": "Z2FyYmFnZQ=="})), "a certificate or key of it can't be used"),
    ],
)
def test_a_bad_one_is_named_without_its_contents(body: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        connection_in(body)
    said = str(refusal.value)
    assert words in said
    assert said.startswith("Secret default/prod-kubeconfig")
    assert HIDDEN not in said
    assert refusal.value.__cause__ is None or HIDDEN not in json.dumps(str(refusal.value.__cause__))


@pytest.mark.parametrize(
    ("user", "cluster", "field"),
    [
        ({}, {"proxy-url": "http://127.0.0.1:1"}, "proxy-url"),
        ({}, {"proxy-url": "socks5://127.0.0.1:1"}, "proxy-url"),
        ({}, {"insecure-skip-tls-verify": True}, "insecure-skip-tls-verify"),
        ({}, {"insecure-skip-tls-verify": "yes"}, "insecure-skip-tls-verify"),
        ({}, {"server": "http://10.0.0.1"}, "https"),
        ({}, {"server": "https://user:word@10.0.0.1"}, "login"),
        ({}, {"server": "https://10.0.0.1/internal?x="}, "scheme, host, port and path"),
        ({}, {"server": "https://10.0.0.1/internal#"}, "scheme, host, port and path"),
        ({}, {"server": "https://10.0.0.1/a/../b"}, "path"),
        ({}, {"server": "https://10.0.0.1/a%2fb"}, "path"),
        ({}, {"server": "https://10.0.0.1/a b"}, "path"),
        ({}, {"server": "file:///etc/passwd"}, "HTTP URL"),
        ({}, {"server": "unix:///run/docker.sock"}, "HTTP URL"),
        ({"as": "system:admin"}, {}, "user.as"),
        ({"as-groups": ["system:masters"]}, {}, "user.as-groups"),
        ({"token": "a\r\nX-Header: b"}, {}, "token"),
        ({"token": "a\x00b"}, {}, "token"),
        ({"token": "ä"}, {}, "token"),
        ({"username": "a", "password": "b"}, {}, "username"),
    ],
)
def test_what_would_reach_further_than_one_api_server_is_refused(
    user: dict[str, Any], cluster: dict[str, Any], field: str
) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        connection_in(secret(config(user or None, **cluster)))
    assert str(refusal.value).startswith("Secret default/prod-kubeconfig, key value")
    assert field in str(refusal.value)
    assert "word" not in str(refusal.value).replace("password", "")


def test_the_administrator_can_allow_what_tls_does_not_protect() -> None:
    insecure, plain = secret(config(**{"insecure-skip-tls-verify": True})), secret(config(server="http://10.0.0.1"))
    assert connection_in(insecure, ServerPolicy(Tls.UNVERIFIED)).insecure
    with pytest.raises(ConfigurationError, match="--workload-tls=plain"):
        connection_in(plain, ServerPolicy(Tls.UNVERIFIED))
    assert connection_in(plain, ServerPolicy(Tls.PLAIN)).server == "http://10.0.0.1"


def test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked_for_it() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    day = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, day, day + timedelta(days=9999))
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    form = serialization.PrivateFormat.PKCS8
    locked = key.private_bytes(serialization.Encoding.PEM, form, serialization.BestAvailableEncryption(b"passphrase"))
    user = {
        "client-certificate-data": base64.b64encode(pem).decode(),
        "client-key-data": base64.b64encode(locked).decode(),
    }
    with pytest.raises(ConfigurationError, match="can't be used"):
        connection_in(secret(config(user)))
