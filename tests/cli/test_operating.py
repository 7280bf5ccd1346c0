"""For those who operate it: bad certificates and missing extras are told before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nodewright.cli import main as cli
from nodewright.cli.options import Format
from tests.gateways.pems import issue


def test_a_certificate_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--tls-cert-file", str(tmp_path / "tls.crt"), "--tls-private-key-file", str(tmp_path / "tls.key")]
    assert cli.run(["webhook", *files]) == 1
    assert "tls.crt: No such file or directory. Name PEM files" in capsys.readouterr().err


def test_a_key_of_another_certificate_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cert, key = issue("one").write(tmp_path)
    key.write_bytes(issue("another").key)
    assert cli.run(["webhook", "--tls-cert-file", str(cert), "--tls-private-key-file", str(key)]) == 1
    assert "are no certificate and its key" in capsys.readouterr().err


def test_without_a_certificate_it_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["webhook"]) == 2
    assert "--tls-cert-file" in capsys.readouterr().err


def test_traces_without_the_library_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert cli.run(["run", "--traces"]) == 1
    assert "opentelemetry is not installed: pip install" in capsys.readouterr().err


@pytest.mark.parametrize(("chosen", "json"), [("auto", None), ("json", True), ("text", False)])
def test_the_format_of_logs_can_be_chosen(chosen: str, json: bool | None) -> None:
    assert Format(chosen).json is json


def test_a_format_that_does_not_exist_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["up", "--log-format", "xml"]) == 2
    assert "xml" in capsys.readouterr().err
