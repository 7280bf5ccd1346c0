"""``nodewright bootstrap user-data``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodewright.cli.main import build_app
from tests.controllers.bootstrap.test_join import CA, JOIN

TOKEN = JOIN.token


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    (tmp_path / "ca").write_text(CA)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    files = ["--certificate-authority", str(tmp_path / "ca"), "--token-file", str(tmp_path / "token")]
    return ["bootstrap", "user-data", "--server", JOIN.server, "--kubelet-version", "v1.36.3", *files]


def test_it_prints_user_data_for_cloud_init(arguments: list[str]) -> None:
    done = CliRunner().invoke(build_app(["bootstrap"]), arguments)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("#cloud-config\n")
    assert TOKEN not in done.stdout


def test_it_prints_the_same_steps_as_a_script(arguments: list[str]) -> None:
    done = CliRunner().invoke(build_app(["bootstrap"]), [*arguments, "--format", "shell"])
    assert done.stdout.startswith("#!/bin/sh\n")
    assert "'join the cluster'" in done.stdout


def test_it_prints_a_configuration_of_ignition(arguments: list[str]) -> None:
    done = CliRunner().invoke(build_app(["bootstrap"]), [*arguments, "--format", "ignition"])
    assert json.loads(done.stdout)["ignition"] == {"version": "3.4.0"}
    assert TOKEN not in done.stdout


def test_a_ca_that_is_none_is_refused(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
    done = CliRunner().invoke(build_app(["bootstrap"]), arguments)
    assert done.exit_code == 1
    assert "ca: certificate 1 of 1 can't be read" in str(done.exception)


def test_what_a_later_version_breaks_is_said_beside_the_data(arguments: list[str]) -> None:
    done = CliRunner().invoke(build_app(["bootstrap"]), [*arguments, "--cluster-version", "1.37.2"])
    assert done.exit_code == 0
    assert done.stdout.startswith("#cloud-config\n")
    assert "warning: kubeadm 1.36.3 is older than the cluster" in done.stderr


def test_a_kubelet_that_is_newer_than_the_cluster_is_refused(arguments: list[str]) -> None:
    done = CliRunner().invoke(build_app(["bootstrap"]), [*arguments, "--cluster-version", "1.35.0"])
    assert done.exit_code == 1
    assert "kubelet_version: 1.36.3 is newer than the API server, which is 1.35.0" in str(done.exception)


def test_a_file_that_is_not_there_is_named(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "token").unlink()
    done = CliRunner().invoke(build_app(["bootstrap"]), arguments)
    assert "--token-file" in str(done.exception)
