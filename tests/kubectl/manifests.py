"""The custom kind that these tests use, with everything that a CRD can ask of the server, and objects of it."""

from __future__ import annotations

from typing import Any

GROUP = "shop.example.com"
WIDGETS = f"widgets.{GROUP}"

_SPEC = {
    "type": "object",
    "description": "What the owner wants.",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 100, "description": "How big it is, in inches."},
        "color": {"type": "string", "enum": ["red", "green", "blue"], "default": "green"},
        "replicas": {"type": "integer", "minimum": 0, "default": 1},
        "owner": {"type": "string"},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
            },
        },
        "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
    "x-kubernetes-validations": [
        {"rule": "self.color != 'red' || self.size >= 10", "message": "red ones are at least 10 big"}
    ],
}
_CONDITION = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "string"},
        "reason": {"type": "string"},
        "message": {"type": "string"},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    },
}
_STATUS = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "phase": {"type": "string"},
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": _CONDITION,
        },
    },
}
WIDGET_CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": WIDGETS},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {
            "plural": "widgets",
            "singular": "widget",
            "kind": "Widget",
            "listKind": "WidgetList",
            "shortNames": ["wd"],
            "categories": ["shop"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "Widget is a thing that the shop sells.",
                        "required": ["spec"],
                        "properties": {"spec": _SPEC, "status": _STATUS},
                    }
                },
            }
        ],
    },
}


def widget(name: str, size: int = 5, **spec: Any) -> dict[str, Any]:
    """Make a Widget without a namespace; `spec` adds fields."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": size, **spec},
    }


def owned_by(owner: dict[str, Any], obj: dict[str, Any], *, blocks: bool = False) -> dict[str, Any]:
    """Give an object that belongs to another one, as that was read from the server."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": blocks,
    }
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [reference]}}


def node(name: str) -> dict[str, Any]:
    """Make a Ready Node."""
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"conditions": [ready], "nodeInfo": {"kubeletVersion": "v1.32.4"}},
    }


def replicaset(name: str) -> dict[str, Any]:
    """Make a ReplicaSet that wants nothing, to own Pods: kubectl evicts none that nobody would make again."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def pod(name: str, on: str, **labels: str) -> dict[str, Any]:
    """Make a Pod that is bound to a Node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": on, "containers": [{"name": "c", "image": "registry.example.com/c:1"}]},
    }


def budget(name: str, min_available: int, **labels: str) -> dict[str, Any]:
    """Make a PodDisruptionBudget."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": labels}},
    }
