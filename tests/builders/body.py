"""What the builders of all kinds share. See ``tests.builders.objects``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

from api import names
from tests.builders.clock import ago

SIMULATED = {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig"}
"""The smallest providerConfig there is."""


def as_dict(obj: Builder | Mapping[str, Any]) -> dict[str, Any]:
    return obj.build() if isinstance(obj, Builder) else copy.deepcopy(dict(obj))


def owner_reference(owner: Builder | Mapping[str, Any]) -> dict[str, Any]:
    body = as_dict(owner)
    return {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "name": body["metadata"]["name"],
        "uid": body["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


class Builder:
    """What all kinds share."""

    api_version = names.API_VERSION
    kind = ""
    namespaced = True

    def __init__(self, name: str, namespace: str = "default") -> None:
        metadata: dict[str, Any] = {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": ago(3600),
        }
        if self.namespaced:
            metadata["namespace"] = namespace
        self.body: dict[str, Any] = {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata}

    def build(self) -> dict[str, Any]:
        return copy.deepcopy(self.body)

    @property
    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.body.setdefault("spec", {})
        return spec

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.body.setdefault("status", {})
        return status

    @property
    def metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self.body["metadata"]
        return metadata

    def uid(self, uid: str) -> Self:
        self.metadata["uid"] = uid
        return self

    def version(self, resource_version: str) -> Self:
        self.metadata["resourceVersion"] = resource_version
        return self

    def generation(self, generation: int) -> Self:
        self.metadata["generation"] = generation
        return self

    def labelled(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        self.metadata.setdefault("labels", {}).update({**(labels or {}), **more})
        return self

    def unlabelled(self, key: str) -> Self:
        self.metadata.get("labels", {}).pop(key, None)
        return self

    def annotated(self, key: str, value: str = "true") -> Self:
        self.metadata.setdefault("annotations", {})[key] = value
        return self

    def in_cluster(self, name: str) -> Self:
        return self.labelled({names.CLUSTER_NAME_LABEL: name})

    def created(self, seconds_ago: float) -> Self:
        self.metadata["creationTimestamp"] = ago(seconds_ago)
        return self

    def deleting(self, seconds_ago: float = 5, *finalizers: str) -> Self:
        """Marked for deletion; an object that is deleting must have a finalizer, else it would be gone."""
        self.metadata["deletionTimestamp"] = ago(seconds_ago)
        if finalizers or not self.metadata.get("finalizers"):
            self.metadata["finalizers"] = list(finalizers or (names.FOREGROUND_FINALIZER,))
        return self

    def finalized_by(self, *finalizers: str) -> Self:
        self.metadata["finalizers"] = list(finalizers)
        return self

    def owned_by(self, owner: Builder | Mapping[str, Any]) -> Self:
        """Controlled by ``owner``; nothing else is taken over from it."""
        self.metadata["ownerReferences"] = [owner_reference(owner)]
        return self

    def orphan(self) -> Self:
        self.metadata.pop("ownerReferences", None)
        return self

    def condition(self, type_: str, status: str, reason: str = "", message: str = "", since: float = 600) -> Self:
        """Set a condition that has had this status for ``since`` seconds."""
        conditions = self.status.setdefault("conditions", [])
        conditions[:] = [c for c in conditions if c["type"] != type_]
        conditions.append(
            {
                "type": type_,
                "status": status,
                "reason": reason or type_,
                "message": message,
                "lastTransitionTime": ago(since),
                "observedGeneration": self.metadata["generation"],
            }
        )
        return self
