"""Volumes that are still attached hold the host; those of pods that stay don't."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from controllers.drain.context import claims_of, observe
from controllers.drain.volumes import Detaching, waits_for
from tests.builders import NOW, Builder, FakeView, machine, node
from tests.controllers.machine.pods import attachment, daemon_set, pod, volume

CSI = "kubernetes.io/csi/csi.example.com^handle-"


def waiting(*objects: Builder, in_use: tuple[str, ...] = (), **more: Any) -> str:
    n = node("n").ready()
    n.status["volumesAttached"] = [{"name": name, "devicePath": ""} for name in in_use]
    body = n.build()
    return waits_for(Detaching(body, observe(machine("m-1").build(), body, FakeView(*objects)), NOW, **more))


def test_nothing_attached_holds_nothing() -> None:
    assert waiting(attachment("data", "elsewhere"), volume("data", "data")) == ""


def test_a_volume_is_waited_for_until_its_attachment_is_gone() -> None:
    assert waiting(attachment("data", "n"), volume("data", "data"), in_use=(f"{CSI}data",)) == "data"


def test_what_only_the_node_still_shows_is_waited_for_as_well() -> None:
    assert waiting(in_use=("kubernetes.io/vsphere-volume/disk-1",)) == "kubernetes.io/vsphere-volume/disk-1"
    assert waiting(volume("data", "data"), in_use=(f"{CSI}data",)) == f"{CSI}data"


def test_volumes_of_pods_that_are_left_on_the_node_are_not_waited_for() -> None:
    log = pod("log").on("n").of_daemon_set().claiming("logs")
    drain_context = (log, daemon_set("log"), volume("logs-pv", "logs"), attachment("logs-pv", "n"))
    assert waiting(*drain_context, in_use=(f"{CSI}logs-pv",)) == ""
    assert waiting(*drain_context, attachment("data", "n"), volume("data", "data")) == "data"


def test_a_claim_that_comes_with_the_pod_is_known_by_its_name() -> None:
    body = pod("web").volume("scratch", ephemeral={"volumeClaimTemplate": {}}).claiming("data").build()
    assert list(claims_of(body)) == ["default/web-scratch", "default/data"]


def test_waiting_ends_with_the_timeout() -> None:
    limit = {"timeout": timedelta(seconds=60), "started_at": NOW - timedelta(seconds=59)}
    assert waiting(attachment("data", "n"), **limit) == "data"
    limit["started_at"] = NOW - timedelta(seconds=60)
    assert waiting(attachment("data", "n"), **limit) == ""
    assert waiting(attachment("data", "n"), started_at=NOW - timedelta(days=9)) == "data"


def test_many_volumes_are_not_all_named() -> None:
    assert waiting(*(attachment(f"v-{n}", "n") for n in range(9))) == "v-0, v-1, v-2, v-3, v-4 and 4 more"
