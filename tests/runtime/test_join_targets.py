"""Where hosts are told to join: addresses that they can reach, and a CA that they can trust."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from nodewright.apiserver.app.authority import load_or_create
from nodewright.runtime.bootstrap.targets import ca_fault, is_reachable
from tests.builders import NOW


@pytest.mark.parametrize(
    ("server", "reachable"),
    [
        ("https://10.0.0.1:6443", True),
        ("https://api.example.com", True),
        ("https://[fd00::1]:6443", True),
        ("https://127.0.0.1:6443", False),
        ("https://[::1]:6443", False),
        ("https://0.0.0.0:6443", False),
        ("https://169.254.1.1", False),
        ("https://localhost:6443", False),
        ("https://kubernetes.default.svc", False),
        ("https://kubernetes.default.svc.cluster.local:443", False),
        ("http://10.0.0.1:6443", False),
        ("https://10.0.0.1:6443/proxy/prod", False),
        ("", False),
        ("nonsense", False),
    ],
)
def test_only_an_address_that_a_host_can_reach_counts(server: str, reachable: bool) -> None:
    assert is_reachable(server) is reachable


def test_a_ca_has_to_be_there_readable_and_valid(tmp_path: Path) -> None:
    load_or_create(tmp_path / "ca.crt", tmp_path / "ca.key", NOW)
    pem = (tmp_path / "ca.crt").read_bytes()
    assert ca_fault(pem, NOW) == ""
    assert "expired" in ca_fault(pem, NOW + timedelta(days=4000))
    assert "not known" in ca_fault(b"", NOW)
    assert "no PEM" in ca_fault(b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", NOW)
    assert "larger" in ca_fault(b"x" * 100_000, NOW)
