"""How a snapshot of etcd is asked for, and where it stands among the steps of an upgrade."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.bootstrap.etcd_snapshot import EtcdSnapshot, read, text_of
from controllers.bootstrap.join import Join
from controllers.bootstrap.steps import Script
from controllers.bootstrap.upgrade import upgrade_steps
from tests.controllers.bootstrap.scenarios import SCENARIOS
from tests.controllers.bootstrap.test_control_plane import PLANE
from tests.controllers.bootstrap.test_upgrade import steps_of
from tests.examples import usually

JOIN = replace(SCENARIOS["archives"], control_plane=PLANE, kubelet_version=PLANE.version)


@pytest.mark.parametrize(
    "text",
    [
        None, 3, "", "3", "3:", ":/var", "0:/var", "100:/var", "3:var", "3:/", "3://var", "3:/var/../etc", "3:/a b",
        "3:/a;reboot", "3:/a$(reboot)", "3:/a\n", "-1:/var", "3:/var/./x", "3:/" + "a" * 300,
    ],
)  # fmt: skip
def test_what_is_no_number_and_absolute_path_is_refused(text: Any) -> None:
    said = read(text)
    assert isinstance(said, str)
    assert "KEEP:FOLDER" in said


@pytest.mark.parametrize("text", ["3:/var/backups/etcd", "99:/x", "1:/var/lib/a-b_c.d/"])
def test_what_is_asked_is_read(text: str) -> None:
    said = read(text)
    assert isinstance(said, EtcdSnapshot)
    assert read(text_of(said)) == said


@usually(200)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    said = read(text)
    assert isinstance(said, str) or read(text_of(said)) == said


def test_it_is_taken_first_of_all_and_only_where_it_is_asked_for() -> None:
    assert JOIN.control_plane is not None
    assert not any("snapshot" in step.name for step in steps_of(JOIN).steps)
    asked = replace(JOIN.control_plane, snapshot=EtcdSnapshot("/var/backups/etcd", 3))
    steps = steps_of(replace(JOIN, control_plane=asked)).steps
    assert steps[0].name == "take a snapshot of etcd to /var/backups/etcd"
    assert isinstance(steps[0].action, Script)
    assert upgrade_steps(JOIN) == replace(steps_of(JOIN), steps=steps[1:])


def test_an_upgrade_is_refused_while_what_is_asked_can_not_be_read() -> None:
    assert JOIN.control_plane is not None
    found = upgrade_steps(replace(JOIN, control_plane=replace(JOIN.control_plane, snapshot="must be KEEP:FOLDER")))
    assert isinstance(found, tuple)
    assert "nodewright.dev/etcd-snapshot" in found[0].field


def test_it_counts_in_no_digest() -> None:
    assert JOIN.control_plane is not None
    asked = replace(JOIN.control_plane, snapshot=EtcdSnapshot("/var/backups/etcd", 3))
    assert repr(asked) == repr(JOIN.control_plane)
    assert asked == JOIN.control_plane


def test_certificates_are_renewed_before_kubeadm_needs_them_and_once_for_each_value() -> None:
    assert JOIN.control_plane is not None
    found = []
    for value in ("2026-11-23", "2027-11-23"):
        names = [step.name for step in steps_of(_renewing(value)).steps]
        assert names.index("renew the control plane's certificates") < names.index(
            "upgrade the control plane to v1.36.3"
        )
        found += [step.once for step in steps_of(_renewing(value)).steps if step.once.startswith("certificates-")]
    assert len(set(found)) == 2
    assert steps_of(_renewing("")) == steps_of(JOIN)


def _renewing(value: str) -> Join:
    assert JOIN.control_plane is not None
    return replace(JOIN, control_plane=replace(JOIN.control_plane, renewal=value))
