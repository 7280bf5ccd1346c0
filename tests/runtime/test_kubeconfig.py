"""Reading kubeconfigs: what is in them is used, what is wrong with them is named."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodewright.runtime.kube.connection import Connection, FileToken, in_cluster
from nodewright.runtime.kube.errors import ConfigurationError
from nodewright.runtime.kube.kubeconfig import find_connection, load_kubeconfig


def kubeconfig(path: Path, user: dict[str, Any] | None = None, **cluster: Any) -> Path:
    document = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443/", **cluster}}],
        "users": [{"name": "u", "user": user or {}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def test_data_and_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("KEY")
    user = {"client-certificate-data": b64("CERT"), "client-key": "key.pem"}
    path = kubeconfig(tmp_path / "config", user, **{"certificate-authority-data": b64("CA"), "tls-server-name": "kube"})
    connection = await load_kubeconfig([path])
    assert connection == Connection(
        "https://127.0.0.1:6443",
        ca=b"CA",
        client_certificate=b"CERT",
        client_key=b"KEY",
        server_name="kube",
        namespace="team",
    )


async def test_a_token_is_read(tmp_path: Path) -> None:
    connection = await load_kubeconfig([kubeconfig(tmp_path / "config", {"token": "t0ken"})])
    assert connection.tokens is not None
    assert await connection.tokens.token() == "t0ken"
    assert "t0ken" not in repr(connection)


async def test_a_token_file_is_read_again_after_the_server_has_refused_its_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old\n")
    connection = await load_kubeconfig([kubeconfig(tmp_path / "config", {"tokenFile": "token"})])
    assert connection.tokens is not None
    assert await connection.tokens.token() == "old"
    (tmp_path / "token").write_text("new\n")
    assert await connection.tokens.token() == "old", "files are not read for every request"
    connection.tokens.reject()
    assert await connection.tokens.token() == "new"


async def test_of_several_files_the_first_that_sets_a_thing_wins(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text(yaml.safe_dump({"users": [{"name": "u", "user": {"token": "first"}}]}))
    connection = await load_kubeconfig([first, kubeconfig(tmp_path / "second", {"token": "second"})])
    assert connection.tokens is not None
    assert await connection.tokens.token() == "first"


async def test_a_context_can_be_asked_for_by_name(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config")
    with pytest.raises(ConfigurationError, match="no context named 'other'") as caught:
        await load_kubeconfig([path], "other")
    assert caught.value.remedy == "Contexts there: main"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("just text", "not a kubeconfig"),
        ("a: [", "not YAML"),
        ("clusters: 7", "clusters is not a list"),
        ("contexts: [7]", r"contexts\[0\]"),
        ("users: []", "current-context is not set"),
    ],
)
async def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, change: str, says: str) -> None:
    path = tmp_path / "config"
    path.write_text(change)
    with pytest.raises(ConfigurationError, match=says) as caught:
        await load_kubeconfig([path])
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("user", "says"),
    [
        ({"client-key-data": "not base64!"}, "client-key-data is not base64"),
        ({"client-key": "missing.pem"}, "missing.pem"),
        ({"username": "admin", "password": "x"}, "username"),
    ],
)
async def test_credentials_that_can_not_be_used_are_named(tmp_path: Path, user: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        await load_kubeconfig([kubeconfig(tmp_path / "config", user)])


async def test_a_server_that_is_no_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="server"):
        await load_kubeconfig([kubeconfig(tmp_path / "config", server="localhost:6443")])


async def test_a_certificate_that_is_none_is_refused(tmp_path: Path) -> None:
    connection = await load_kubeconfig([kubeconfig(tmp_path / "config", **{"certificate-authority-data": b64("CA")})])
    with pytest.raises(ConfigurationError, match=r"127\.0\.0\.1"):
        connection.ssl_context()


async def test_an_exec_plugin_gives_the_token(tmp_path: Path) -> None:
    plugin = tmp_path / "login"
    plugin.write_text(
        f"#!{sys.executable}\nprint('"
        '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-plugin"}}'
        "')\n"
    )
    plugin.chmod(0o700)
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(plugin),
            "args": [],
            "interactiveMode": "Never",
        }
    }
    connection = await load_kubeconfig([kubeconfig(tmp_path / "config", user)])
    assert connection.tokens is not None
    assert await connection.tokens.token() == "from-plugin"


async def test_an_exec_plugin_that_fails_is_named(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(tmp_path / "nothing")}}
    with pytest.raises(ConfigurationError, match="login plugin"):
        await load_kubeconfig([kubeconfig(tmp_path / "config", user)])


async def test_the_environment_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = kubeconfig(tmp_path / "config")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{path}")
    assert (await find_connection()).namespace == "team"
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(ConfigurationError, match="missing"):
        await find_connection()


async def test_in_a_cluster_the_service_account_is_used(tmp_path: Path) -> None:
    for name, content in (("ca.crt", "CA"), ("namespace", "kube-system"), ("token", "sa-token")):
        (tmp_path / name).write_text(content)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    connection = in_cluster(tmp_path, environment)
    assert connection.server == "https://[fd00::1]:443"
    assert isinstance(connection.tokens, FileToken)
    assert await connection.tokens.token() == "sa-token"
    with pytest.raises(ConfigurationError, match="not in a cluster"):
        in_cluster(tmp_path, {})


def test_kubernetes_asyncio_and_kopf_are_not_imported_for_a_plain_kubeconfig() -> None:
    """They cost seconds at start."""
    program = (
        "import sys, nodewright.runtime.manager, nodewright.runtime.kube.kubeconfig\n"
        "print([name for name in ('kubernetes_asyncio', 'kopf', 'openstack', 'grpc') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=300)
    assert found.stdout.strip() == "[]"
