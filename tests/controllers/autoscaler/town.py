"""A Fleet as the room sees it: through a View."""

from __future__ import annotations

from typing import Any

from api import names
from controllers.autoscaler.observe import Observed, observe
from controllers.autoscaler.options import AutoscalerOptions
from controllers.kernel import refs
from controllers.kernel.refs import Kind, key_of
from controllers.kernel.view import ShapeUnknown
from tests.builders.view import FakeView
from tests.controllers.autoscaler.fleet import Fleet

NAMESPACE = "kube-system"


def view_of(fleet: Fleet, *more: tuple[Kind, dict[str, Any]]) -> FakeView:
    """``more``: objects of other kinds."""
    view = FakeView(now=fleet.now)
    shown = {
        refs.MACHINE_DEPLOYMENT: fleet.deployments,
        refs.MACHINE_SET: fleet.sets,
        refs.MACHINE: fleet.machines,
        refs.NODE: fleet.nodes,
        refs.POD: fleet.pods,
        refs.MACHINE_CLASS: {each.key.name: machine_class(fleet, each.key.name) for each in fleet.offered},
    }
    others = [(kind, body) for kind, bodies in shown.items() for body in bodies.values()]
    by_kind: dict[Kind, list[dict[str, Any]]] = {}
    for kind, body in (*others, *more):
        by_kind.setdefault(kind, []).append({"apiVersion": kind.api_version, "kind": kind.name, **body})
    for kind, bodies in by_kind.items():
        view.show(kind, {key_of(body): body for body in bodies})
    for each in fleet.offered:
        view.shaped(config_of(each.key.name), each.shape or ShapeUnknown("nobody told the test"))
    return view


def config_of(machine_class: str) -> dict[str, Any]:
    return {"apiVersion": "fake/v1", "kind": "Fake", "name": machine_class}


def machine_class(fleet: Fleet, name: str) -> dict[str, Any]:
    meta = {"namespace": "ns", "name": name, "uid": f"mc-{name}", "resourceVersion": "2"}
    annotations = {names.AUTOPROVISION_ANNOTATION: fleet.texts[name]}
    return {"metadata": {**meta, "annotations": annotations}, "providerSpec": config_of(name)}


def config_map(name: str, **data: str) -> dict[str, Any]:
    meta = {"namespace": NAMESPACE, "name": name, "uid": f"cm-{name}", "resourceVersion": "9"}
    return {"metadata": meta, "data": data}


def observed_of(fleet: Fleet, *more: tuple[Kind, dict[str, Any]], options: AutoscalerOptions | None = None) -> Observed:
    return observe(view_of(fleet, *more), options or fleet.options)
