"""A dialogue with an API server, in steps that can be played to a real one and to the store alike.

`record.py` plays it to a kube-apiserver and keeps the answers; `test_agrees_with_a_real_server.py` plays it to the
store and compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from nodewright.apiserver.patch import apply_merge
from nodewright.apiserver.values import (
    ApiError,
    DeleteOptions,
    ListOptions,
    Obj,
    PatchRequest,
    PatchType,
    WriteOptions,
)
from tests.apiserver.store.cluster import Cluster

SPACE = "golden"
"""The namespace in which the dialogue takes place; it must not be there before."""


@dataclass(frozen=True)
class Step:
    """One request. With `on_current` the body is a merge patch on what a GET gives, to be sent whole."""

    label: str
    verb: str
    kind: str
    """"group/version/plural"; the group of core kinds is empty."""
    name: str = ""
    body: Any = None
    namespace: str = SPACE
    subresource: str = ""
    query: dict[str, str] = field(default_factory=dict)
    patch: PatchType = "merge"
    on_current: bool = False


class Api(Protocol):
    """Something that answers requests."""

    def ask(self, step: Step) -> tuple[int, Obj]:
        """Give the HTTP status and the body of the answer."""
        ...


def play(api: Api, steps: Iterable[Step]) -> dict[str, Obj]:
    """Ask all steps in order; give what matters of each answer by the step's label."""
    answers: dict[str, Obj] = {}
    for step in steps:
        asked = step
        if step.on_current:
            current = api.ask(Step("", "get", step.kind, step.name, None, step.namespace, step.subresource))[1]
            body = apply_merge(current, step.body)
            asked = Step(**{**step.__dict__, "body": body, "on_current": False})
        assert step.label not in answers, step.label
        answers[step.label] = _essence(*api.ask(asked))
    return answers


def _essence(code: int, body: Obj) -> Obj:
    if "items" in body:
        return {"code": code, "items": [item["metadata"]["name"] for item in body["items"]]}
    if body.get("kind") == "Status" and body.get("status") == "Failure":
        causes = (body.get("details") or {}).get("causes") or []
        # The real server repeats some causes; once is enough.
        said = list(dict.fromkeys((c.get("field", ""), c["reason"], _text(c["message"])) for c in causes))
        reason = body.get("reason") or ""
        return {"code": code, "reason": reason, "message": _text(body["message"]), "causes": [list(c) for c in said]}
    return {"code": code, "object": _plain(body)}


_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VOLATILE = (
    "managedFields",
    "time",
    "resourceVersion",
    "creationTimestamp",
    "lastTransitionTime",
    "deletionTimestamp",
)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in sorted(value.items()) if k not in _VOLATILE}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    text = re.sub(r"\(\d+\) does not match the ResourceVersion in record \(\d+\)", "(RV)", _UID.sub("UID", text))
    text = re.sub(r"Bad_[a-z0-9]{5}", "Bad_SUFFIX", text)
    return text if len(text) <= 300 else f"{text[:150]}…{text[-100:]}"


class StoreApi:
    """The store as an Api, with the background work done after each request."""

    def __init__(self) -> None:
        self._cluster = Cluster()
        self._store = self._cluster.store

    def ask(self, step: Step) -> tuple[int, Obj]:
        answers: dict[str, Callable[[Step], tuple[int, Obj]]] = {
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "get": self._get,
            "list": self._list,
            "delete": self._delete,
        }
        try:
            return answers[step.verb](step)
        except ApiError as error:
            return error.code, error.status()
        finally:
            self._cluster.settle()

    def _resource(self, step: Step) -> Any:
        group, version, plural = step.kind.split("/")
        resource = self._store.resources.find(group, version, plural)
        assert resource is not None, step
        return resource

    def _create(self, step: Step) -> tuple[int, Obj]:
        if step.subresource == "eviction":
            return 201, self._store.evict(step.namespace, step.name, step.body)
        return 201, self._store.create(self._resource(step), step.namespace, step.body, _options(step)).obj

    def _update(self, step: Step) -> tuple[int, Obj]:
        written = self._store.update(
            self._resource(step), step.namespace, step.name, step.body, _options(step), subresource=step.subresource
        )
        return 201 if written.created else 200, written.obj

    def _patch(self, step: Step) -> tuple[int, Obj]:
        request = PatchRequest(step.patch, step.body, _options(step), step.query.get("force") == "true")
        resource = self._resource(step)
        written = self._store.patch(resource, step.namespace, step.name, request, subresource=step.subresource)
        return 201 if written.created else 200, written.obj

    def _get(self, step: Step) -> tuple[int, Obj]:
        if step.subresource == "scale":
            return 200, self._store.get_scale(self._resource(step), step.namespace, step.name)
        return 200, self._store.get(self._resource(step), step.namespace, step.name)

    def _list(self, step: Step) -> tuple[int, Obj]:
        query = step.query
        options = ListOptions(
            label_selector=query.get("labelSelector", ""),
            field_selector=query.get("fieldSelector", ""),
            limit=int(query.get("limit", "0")),
            continue_=query.get("continue", ""),
            resource_version=query.get("resourceVersion", ""),
            resource_version_match=query.get("resourceVersionMatch", ""),
        )
        return 200, {"items": self._store.list(self._resource(step), step.namespace, options).items}

    def _delete(self, step: Step) -> tuple[int, Obj]:
        body = step.body or {}
        preconditions = body.get("preconditions") or {}
        options = DeleteOptions(
            propagation=body.get("propagationPolicy", ""),
            uid=preconditions.get("uid", ""),
            resource_version=preconditions.get("resourceVersion", ""),
            grace_seconds=body.get("gracePeriodSeconds"),
        )
        return 200, self._store.delete(self._resource(step), step.namespace, step.name, options)


def _options(step: Step) -> WriteOptions:
    query = step.query
    # The real server makes a manager of the user agent; `record.py` sends this one.
    manager = query.get("fieldManager", "" if step.patch == "apply" else "golden")
    return WriteOptions(manager, query.get("fieldValidation", ""), query.get("dryRun") == "All")
