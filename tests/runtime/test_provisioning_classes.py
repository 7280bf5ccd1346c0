"""Provisioning classes of other packages: found by entry point, and a faulty one harms nobody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from controllers.provisioningrequest.classes import ENTRY_POINTS, AtomicScaleUp, NotFound, Trial, Verdict
from controllers.provisioningrequest.reconciler import ProvisioningRequestReconciler
from nodewright.runtime.settings import provisioning


class Queued:
    names = ("queued.example.com",)

    def decide(self, trial: Trial) -> Verdict:
        return NotFound("not yet")


class Greedy(Queued):
    """It wants to be asked instead of the project's own class."""

    names = AtomicScaleUp.names


@dataclass(frozen=True)
class _Point:
    name: str
    target: Callable[[], object]

    def load(self) -> Callable[[], object]:
        return self.target


def _broken() -> object:
    raise ImportError("a library is missing")


def test_classes_are_found_and_those_that_can_not_be_made_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = [_Point("queued", Queued), _Point("broken", _broken), _Point("nothing", object)]
    asked: list[str] = []

    def entry_points(group: str) -> list[_Point]:
        asked.append(group)
        return offered

    monkeypatch.setattr(provisioning, "entry_points", entry_points)
    found = provisioning.installed_classes()
    assert asked == [ENTRY_POINTS]
    assert set(found) == {"queued.example.com"}
    assert (
        ProvisioningRequestReconciler(classes=found).setting.classes["queued.example.com"]
        is found["queued.example.com"]
    )


def test_nobody_takes_the_place_of_the_projects_own_classes() -> None:
    reconciler = ProvisioningRequestReconciler(classes={name: Greedy() for name in Greedy.names})
    assert all(isinstance(reconciler.setting.classes[name], AtomicScaleUp) for name in Greedy.names)
