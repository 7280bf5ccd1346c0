"""The dialogue of which golden answers were recorded, as requests over HTTP."""

from __future__ import annotations

from urllib.parse import urlencode

from tests.apiserver.store.golden.dialogue import Step
from tests.apiserver.store.golden.steps_builtin import BUILTIN_STEPS
from tests.apiserver.store.golden.steps_custom import CUSTOM_STEPS
from tests.differential.speech import PATCHES, Request, Story

_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "get": "GET", "list": "GET"}
_CLUSTER_SCOPED = ("namespaces", "nodes", "customresourcedefinitions", "priorityclasses")


def request_of(step: Step) -> Request:
    """The step as a request."""
    kind = PATCHES[step.patch] if step.verb == "patch" else "application/json"
    verb = f"patch ({step.patch})" if step.verb == "patch" else step.verb
    return Request(
        step.label,
        verb,
        _METHODS[step.verb],
        _path(step),
        step.body,
        {"Content-Type": kind},
        on_current=step.on_current,
    )


def _path(step: Step) -> str:
    group, version, plural = step.kind.split("/")
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    if plural not in _CLUSTER_SCOPED:
        path += f"/namespaces/{step.namespace}"
    path += "".join(f"/{part}" for part in (plural, step.name, step.subresource) if part)
    return path + (f"?{urlencode(step.query)}" if step.query else "")


_served = Request("kind, served", "list", "GET", "/apis/cluster.example.com/v1/namespaces/golden/machines", until=200)
_PLACE = next(n for n, step in enumerate(CUSTOM_STEPS) if step.label == "kind, established")

RECORDED = Story(
    "recorded",
    (
        *(request_of(step) for step in CUSTOM_STEPS[:_PLACE]),
        _served,
        *(request_of(step) for step in [*CUSTOM_STEPS[_PLACE:], *BUILTIN_STEPS]),
        Request(
            "kind, removed",
            "delete",
            "DELETE",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/machines.cluster.example.com",
        ),
    ),
)
