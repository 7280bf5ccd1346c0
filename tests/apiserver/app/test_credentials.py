"""Keys, certificates, tokens and the kubeconfig: private, durable, and renewed in time."""

from __future__ import annotations

import base64
import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from nodewright.apiserver.app.certificates import ensure_credentials, server_context
from nodewright.apiserver.app.kubeconfig import write_kubeconfig
from nodewright.apiserver.app.private_files import private_folder, write_private
from nodewright.apiserver.app.tokens import AccountClaim, Tokens

NOW = datetime(2026, 11, 20, tzinfo=UTC)
ACCOUNT = AccountClaim("default", "robot", "u-1")


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def names(path: Path) -> set[str]:
    extension = certificate(path).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return {str(name.value) for name in extension.value}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_everything_is_private_to_its_owner(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "plane")
    credentials = ensure_credentials(folder, "127.0.0.1", NOW)
    Tokens.load_or_create(folder)
    write_kubeconfig(folder / "kubeconfig", "https://127.0.0.1:1", credentials)
    assert mode(folder) == 0o700
    assert {path.name: mode(path) for path in folder.iterdir()} == {path.name: 0o600 for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["server.pem", "admin.crt", "admin.key", "ca.crt", "ca.key", "certificates.json"])
@pytest.mark.parametrize("content", [b"", b"garbage" * 100, b"\xff\x00"])
def test_a_damaged_file_is_made_anew(tmp_path: Path, name: str, content: bytes) -> None:
    ensure_credentials(tmp_path, "127.0.0.1", NOW)
    (tmp_path / name).write_bytes(content)
    credentials = ensure_credentials(tmp_path, "127.0.0.1", NOW)
    server_context(credentials)
    for path in (credentials.server, credentials.client_certificate):
        certificate(path).verify_directly_issued_by(certificate(credentials.ca))


def test_files_of_another_plane_are_not_mixed_in(tmp_path: Path) -> None:
    other = ensure_credentials(private_folder(tmp_path / "other"), "127.0.0.1", NOW)
    mine = ensure_credentials(private_folder(tmp_path / "mine"), "127.0.0.1", NOW)
    mine.client_certificate.write_bytes(other.client_certificate.read_bytes())
    again = ensure_credentials(tmp_path / "mine", "127.0.0.1", NOW)
    certificate(again.client_certificate).verify_directly_issued_by(certificate(again.ca))


def test_certificates_of_a_clock_that_was_ahead_are_made_anew(tmp_path: Path) -> None:
    ensure_credentials(tmp_path, "127.0.0.1", NOW + timedelta(days=400))
    credentials = ensure_credentials(tmp_path, "127.0.0.1", NOW)
    for path in (credentials.ca, credentials.server, credentials.client_certificate):
        assert certificate(path).not_valid_before_utc <= NOW < certificate(path).not_valid_after_utc
    kept = credentials.server.read_bytes()
    assert ensure_credentials(tmp_path, "127.0.0.1", NOW + timedelta(days=1)).server.read_bytes() == kept


@pytest.mark.parametrize("content", [b"", b"\xff" * 40, b"a b " * 20, b"short"])
def test_a_damaged_token_is_made_anew(tmp_path: Path, content: bytes) -> None:
    for name in ("token", "service-account.key"):
        (tmp_path / name).write_bytes(content)
    tokens = Tokens.load_or_create(tmp_path)
    assert len(tokens.admin) >= 32
    assert tokens == Tokens.load_or_create(tmp_path)


def test_the_server_is_known_by_every_name_of_loopback(tmp_path: Path) -> None:
    credentials = ensure_credentials(tmp_path, "127.0.0.1", NOW)
    assert names(credentials.server) == {"localhost", "127.0.0.1", "::1"}
    assert isinstance(certificate(credentials.server).public_key(), ec.EllipticCurvePublicKey)


def test_a_restart_finds_the_same_keys(tmp_path: Path) -> None:
    credentials = ensure_credentials(tmp_path, "127.0.0.1", NOW)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    ensure_credentials(tmp_path, "127.0.0.1", NOW + timedelta(days=100))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert server_context(credentials) is not None


def test_a_server_certificate_near_its_end_is_renewed_under_the_same_authority(tmp_path: Path) -> None:
    credentials = ensure_credentials(tmp_path, "127.0.0.1", NOW)
    authority, server = credentials.ca.read_bytes(), credentials.server.read_bytes()
    ensure_credentials(tmp_path, "127.0.0.1", NOW + timedelta(days=340))
    assert credentials.ca.read_bytes() == authority
    assert credentials.server.read_bytes() != server
    certificate(credentials.server).verify_directly_issued_by(certificate(credentials.ca))


def test_another_host_gets_into_the_certificate(tmp_path: Path) -> None:
    ensure_credentials(tmp_path, "127.0.0.1", NOW)
    credentials = ensure_credentials(tmp_path, "10.1.2.3", NOW)
    assert "10.1.2.3" in names(credentials.server)


def test_a_missing_key_is_made_again(tmp_path: Path) -> None:
    credentials = ensure_credentials(tmp_path, "127.0.0.1", NOW)
    credentials.client_key.unlink()
    ensure_credentials(tmp_path, "127.0.0.1", NOW)
    assert credentials.client_key.is_file()


def test_the_kubeconfig_holds_all_it_needs_and_replaces_what_was_there(tmp_path: Path) -> None:
    credentials = ensure_credentials(tmp_path, "127.0.0.1", NOW)
    path = tmp_path / "deep" / "kubeconfig"
    path.parent.mkdir()
    path.write_text("something else")
    write_kubeconfig(path, "https://127.0.0.1:6443", credentials)
    content = json.loads(path.read_text())
    assert content["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    trusted = content["clusters"][0]["cluster"]["certificate-authority-data"]
    assert base64.b64decode(trusted) == credentials.ca.read_bytes()
    assert [entry.name for entry in path.parent.iterdir()] == ["kubeconfig"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(elsewhere)
    write_private(link, b"new")
    assert elsewhere.read_text() == "mine"
    assert link.read_bytes() == b"new"


def test_a_token_speaks_for_its_account_until_it_runs_out(tmp_path: Path) -> None:
    tokens = Tokens.load_or_create(tmp_path)
    token = tokens.issue(ACCOUNT, NOW, timedelta(hours=1))
    assert tokens.account(token, NOW) == ACCOUNT
    assert tokens.account(token, NOW + timedelta(hours=1)) is None


@pytest.mark.parametrize("forged", ["", "x", "a.b.c", "é.é.é", "..", "{}"])
def test_a_token_that_is_not_ours_speaks_for_nobody(tmp_path: Path, forged: str) -> None:
    assert Tokens.load_or_create(tmp_path).account(forged, NOW) is None


def test_a_token_with_changed_claims_speaks_for_nobody(tmp_path: Path) -> None:
    tokens = Tokens.load_or_create(tmp_path)
    header, claims, signature = tokens.issue(ACCOUNT, NOW, timedelta(hours=1)).split(".")
    other = tokens.issue(AccountClaim("kube-system", "admin", "u-2"), NOW, timedelta(hours=1)).split(".")[1]
    assert tokens.account(f"{header}.{other}.{signature}", NOW) is None
    assert tokens.account(f"{header}.{claims}.{signature}", NOW) == ACCOUNT


def test_tokens_survive_a_restart(tmp_path: Path) -> None:
    first = Tokens.load_or_create(tmp_path)
    assert Tokens.load_or_create(tmp_path) == first
    assert first.is_admin(first.admin)
    assert not first.is_admin(first.admin + "x")
