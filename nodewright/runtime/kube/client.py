"""Ask an API server: get, list, create, patch, scale, delete, evict, watch, all with plain dicts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from controllers.kernel.refs import EVENT, POD, Key, Kind, Obj, Ref
from nodewright.runtime.kube.answers import (
    checked,
    decoded,
    event_of,
    items_of,
    page_marks,
    remaining_of,
    weight,
)
from nodewright.runtime.kube.paths import api_path, collection_path, field_selector, object_path, one_object, with_query
from nodewright.runtime.kube.requests import delete_options, encoded, guarded
from nodewright.runtime.kube.transport import Call, Transport
from nodewright.runtime.kube.transport import ClientLimits as ClientLimits  # noqa: PLC0414 - openers of a client import it from here

_MERGE_PATCH = "application/merge-patch+json"
_STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"
FIELD_MANAGER = "nodewright"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list. ``continue_`` is "" on the last one; ``resource_version`` is that of the whole list."""

    items: list[dict[str, Any]]
    resource_version: str
    continue_: str
    weight: int = 0
    """Bytes of memory that it takes, about."""
    remaining: int = 0
    """Objects behind this page; 0 if the server does not say."""


class ObjectClient(Protocol):
    """The verbs of `KubeClient` by which objects are copied, looked at and marked, wherever they lie."""

    async def get(self, kind: Kind, key: Key) -> dict[str, Any]: ...

    async def list_page(
        self, kind: Kind, limit: int = 500, continue_: str = "", namespace: str = "", name: str = ""
    ) -> Page: ...

    async def create(self, kind: Kind, body: Obj) -> dict[str, Any]: ...

    async def merge_patch(
        self, target: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = ""
    ) -> dict[str, Any]: ...

    async def patch_status(
        self, target: Ref, status: Mapping[str, Any], resource_version: str = ""
    ) -> dict[str, Any]: ...

    async def delete(
        self,
        target: Ref,
        propagation: str = "Background",
        grace_seconds: int | None = None,
        resource_version: str = "",
    ) -> dict[str, Any]: ...


class KubeClient(Transport):
    """The verbs of one API server. All methods raise ApiError (the server said no) and NoAnswer (it said nothing)."""

    async def get(self, kind: Kind, key: Key) -> dict[str, Any]:
        return checked(await self.object_of(Call("get", "GET", object_path(kind, key), kind.plural)), kind)

    async def list_page(
        self, kind: Kind, limit: int = 500, continue_: str = "", namespace: str = "", name: str = ""
    ) -> Page:
        """One page, in the server's consistent order. ``limit`` 0: everything at once. ``name``: that object only.

        A 410 means that ``continue_`` is too old: start again.
        """
        query = {**({"limit": str(limit)} if limit else {}), **one_object(name)}
        if continue_:
            query["continue"] = continue_
        path = with_query(collection_path(kind, namespace), query)
        async with self._lists:
            body = await self.answer(Call("list", "GET", path, kind.plural))
            answer = decoded(body, f"list of {kind.plural}", self._limits.heaviest_answer)
            return Page(items_of(answer, kind), *page_marks(answer, kind), weight(body), remaining_of(answer))

    async def pods_on(self, node: str) -> list[dict[str, Any]]:
        """Its pods as the server has them now, with those that the watch has not delivered yet."""
        path = with_query(collection_path(POD, ""), field_selector("spec.nodeName", node))
        return items_of(await self.object_of(Call("list", "GET", path, "pods")), POD)

    async def events_about(self, namespace: str, name: str, most: int) -> list[dict[str, Any]]:
        """Events of ``namespace`` about objects of that name, whatever their kind; at most ``most``."""
        query = {"limit": str(most), **field_selector("involvedObject.name", name)}
        path = with_query(collection_path(EVENT, namespace), query)
        async with self._lists:
            return items_of(await self.object_of(Call("list", "GET", path, EVENT.plural)), EVENT)

    async def labelled(self, kind: Kind, namespace: str, selector: str) -> list[dict[str, Any]]:
        """Objects of a namespace that a label selector finds, as the server has them now."""
        path = with_query(collection_path(kind, namespace), {"labelSelector": selector})
        async with self._lists:
            return items_of(await self.object_of(Call("list", "GET", path, kind.plural)), kind)

    async def create(self, kind: Kind, body: Obj) -> dict[str, Any]:
        """POST. After NoAnswer or a 5xx (``ambiguous``) the object may exist."""
        namespace = body["metadata"].get("namespace", "") if kind.namespaced else ""
        call = Call("create", "POST", collection_path(kind, namespace), kind.plural, encoded(body))
        return checked(await self.object_of(call), kind)

    async def merge_patch(
        self, target: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = ""
    ) -> dict[str, Any]:
        """JSON merge patch, refused if the object has another uid than ``target.uid`` or another resourceVersion."""
        path = object_path(target.kind, target.key, subresource)
        body = encoded(guarded(patch, target.uid, resource_version))
        verb = f"patch-{subresource}" if subresource else "patch"
        answer = await self.object_of(Call(verb, "PATCH", path, target.kind.plural, body, _MERGE_PATCH))
        return checked(answer, target.kind)

    async def patch_status(self, target: Ref, status: Mapping[str, Any], resource_version: str = "") -> dict[str, Any]:
        """Merge ``status`` into the object's own."""
        patch = {"status": status}
        return await self.merge_patch(target, patch, subresource="status", resource_version=resource_version)

    async def report_status(self, target: Ref, status: Mapping[str, Any]) -> dict[str, Any]:
        """Strategic merge of a built-in kind's ``status``, as kubelets send it: conditions of other types stay."""
        path = object_path(target.kind, target.key, "status")
        body = encoded(guarded({"status": status}, target.uid, ""))
        return await self.object_of(Call("patch-status", "PATCH", path, target.kind.plural, body, _STRATEGIC_PATCH))

    async def scale(self, target: Ref, replicas: int, resource_version: str = "") -> dict[str, Any]:
        """Set the replicas of the scale subresource; answers an ``autoscaling/v1 Scale``."""
        patch = {"spec": {"replicas": replicas}}
        return await self.merge_patch(target, patch, subresource="scale", resource_version=resource_version)

    async def apply(
        self, kind: Kind, key: Key, body: Mapping[str, Any], *, force: bool = False, dry_run: bool = False
    ) -> dict[str, Any]:
        """Server-side apply as ``FIELD_MANAGER`` with strict field validation; creates what is not there.

        A 409 with FieldManagerConflict causes names fields that another manager owns; ``force`` takes them over.
        """
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", "force": str(force).lower()}
        if dry_run:
            query["dryRun"] = "All"
        path = with_query(object_path(kind, key), query)
        return await self.object_of(Call("apply", "PATCH", path, kind.plural, encoded(body), _APPLY_PATCH))

    async def delete(
        self,
        target: Ref,
        propagation: str = "Background",
        grace_seconds: int | None = None,
        resource_version: str = "",
    ) -> dict[str, Any]:
        """DELETE with uid and version as preconditions. Answers the object while something keeps it, else a Status."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        options |= delete_options(target, grace_seconds, resource_version)
        path = object_path(target.kind, target.key)
        answer = await self.object_of(Call("delete", "DELETE", path, target.kind.plural, encoded(options)))
        return checked(answer, target.kind)

    async def evict(self, target: Ref, grace_seconds: int | None = None) -> dict[str, Any]:
        """POST an eviction of the pod ``target``; 429 means that a PodDisruptionBudget refuses it (never retried)."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": target.key.name, "namespace": target.key.namespace},
            "deleteOptions": delete_options(target, grace_seconds),
        }
        path = object_path(target.kind, target.key, "eviction")
        return await self.object_of(Call("evict", "POST", path, target.kind.plural, encoded(body)))

    async def bind(self, target: Ref, node: str) -> dict[str, Any]:
        """POST a binding of the pod ``target`` to ``node``; 409 if it has one, or is another pod by now."""
        meta = {"name": target.key.name, "namespace": target.key.namespace, "uid": target.uid}
        to = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = encoded({"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": to})
        path = object_path(target.kind, target.key, "binding")
        return await self.object_of(Call("bind", "POST", path, target.kind.plural, body))

    async def version(self) -> dict[str, Any]:
        """``/version``: the cheapest way to see whether the server is there."""
        return await self.object_of(Call("version", "GET", "/version", ""))

    async def resources(self, group: str, version: str) -> list[dict[str, Any]]:
        """The resources that discovery lists for a version of a group ("": core). Raises ApiError (404: not served)."""
        answer = await self.object_of(Call("get", "GET", api_path(group, version), "discovery"))
        return answer.get("resources") or []

    async def schemas(self, group: str, version: str) -> dict[str, Any]:
        """The OpenAPI v3 schemas of one version of a group, by name."""
        answer = await self.object_of(Call("get", "GET", f"/openapi/v3/apis/{group}/{version}", "openapi"))
        return (answer.get("components") or {}).get("schemas") or {}

    async def watch(
        self, kind: Kind, resource_version: str, seconds: int = 300, namespace: str = "", name: str = ""
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Batches of watch events (``type``, ``object``) since ``resource_version``, as they arrive.

        The first batch is empty: the server has accepted the watch.
        Ends when the server ends it. Raises ApiError if the watch is refused (410: too old), NoAnswer if the
        connection breaks, SilenceError if nothing is heard for ``watch_silence``. ERROR events are yielded like others.
        """
        query = {
            "watch": "true",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
            **one_object(name),
        }
        call = Call("watch", "GET", with_query(collection_path(kind, namespace), query), kind.plural)
        async with aclosing(self.lines(call, seconds)) as batches:
            async for lines in batches:
                yield [event_of(line, kind, self._limits.heaviest_answer) for line in lines]
