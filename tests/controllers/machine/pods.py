"""Pods and PodDisruptionBudgets for drains."""

from __future__ import annotations

from typing import Self

from tests.builders.objects import Builder


class PodBuilder(Builder):
    api_version = "v1"
    kind = "Pod"

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self.labelled(app=name)
        self.status["phase"] = "Running"

    def on(self, node_name: str) -> Self:
        self.spec["nodeName"] = node_name
        return self

    def _owner(self, kind: str) -> Self:
        name = f"{self.metadata['name']}-owner"
        self.metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
        ]
        return self

    def of_daemon_set(self) -> Self:
        return self._owner("DaemonSet")

    def mirror(self) -> Self:
        return self.annotated("kubernetes.io/config.mirror", "abc")

    def phase(self, phase: str) -> Self:
        self.status["phase"] = phase
        return self

    def priority(self, priority: int) -> Self:
        self.spec["priority"] = priority
        return self


class BudgetBuilder(Builder):
    api_version = "policy/v1"
    kind = "PodDisruptionBudget"

    def over(self, app: str) -> Self:
        self.spec["selector"] = {"matchLabels": {"app": app}}
        return self

    def allowing(self, disruptions: int) -> Self:
        self.status["disruptionsAllowed"] = disruptions
        return self


def pod(name: str, namespace: str = "default") -> PodBuilder:
    return PodBuilder(name, namespace)


def budget(name: str, namespace: str = "default") -> BudgetBuilder:
    return BudgetBuilder(name, namespace)
