"""Rooms that look at the same cluster in one process."""

from __future__ import annotations

from datetime import timedelta

from nodewright.runtime.settings.wiring import on_request
from tests.controllers.provisioningrequest.office import Office


def test_what_the_autoscaler_has_read_the_room_of_requests_need_not_read_again() -> None:
    office = Office()
    office.fleet.group("a", least=1, most=3)["spec"]["replicas"] = 1
    office.fleet.settle()
    office.fleet.pod("web", "1", "a-1")
    office.fleet.now += timedelta(minutes=1)
    view, made = office.view(), on_request()
    autoscaler, requests = made["autoscaler"](), made["provisioningrequest"]()
    (first,), (second,) = (
        looked.workload.pods
        for looked in (
            autoscaler.observe(autoscaler.key, view, None).cluster,  # type: ignore[attr-defined]
            requests.observe(requests.key, view, None).autoscaler.cluster,  # type: ignore[attr-defined]
        )
    )
    assert first.name == "web"
    assert first is second
