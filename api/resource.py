"""What a CRD says about a kind beside its schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from api import names


@dataclass(frozen=True, slots=True)
class Column:
    """One printer column of ``kubectl get``; ``priority`` over 0 shows with ``-o wide`` only."""

    name: str
    json_path: str
    description: str
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    priority: int = 0

    def as_crd(self) -> dict[str, Any]:
        column: dict[str, Any] = {
            "name": self.name,
            "type": self.type,
            "jsonPath": self.json_path,
            "description": self.description,
        }
        if self.priority:
            column["priority"] = self.priority
        return column


@dataclass(frozen=True, slots=True)
class Scale:
    """Paths of the scale subresource; the selector path is what a HorizontalPodAutoscaler and the CA need."""

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    label_selector: str = ".status.labelSelector"

    def as_crd(self) -> dict[str, str]:
        return {
            "specReplicasPath": self.spec_replicas,
            "statusReplicasPath": self.status_replicas,
            "labelSelectorPath": self.label_selector,
        }


@dataclass(frozen=True, slots=True)
class Resource:
    """Names, columns and subresources of one kind.

    ``older_versions`` are served with the same schema, and called deprecated.
    """

    kind: str
    plural: str
    short_name: str
    columns: tuple[Column, ...]
    scale: Scale | None = None
    group: str = names.GROUP
    version: str = names.VERSION
    more_short_names: tuple[str, ...] = ()
    older_versions: tuple[str, ...] = ()
    categories: tuple[str, ...] = (names.CATEGORY,)
    scope: Literal["Namespaced", "Cluster"] = "Namespaced"

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def crd_name(self) -> str:
        return f"{self.plural}.{self.group}"


AGE = Column("Age", ".metadata.creationTimestamp", "Time since the object was created.", "date")
