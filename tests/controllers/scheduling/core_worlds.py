"""Seeded clusters as core objects. Several of them share one control plane without touching each other: every world has
its own Node label, zones, namespaces and topology keys."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

NODES = 5
APPS = ("web", "db", "cache")


@dataclass
class World:
    """``number`` makes names unique, ``dice`` decides everything else."""

    number: int
    dice: random.Random
    pods: list[dict[str, Any]] = field(default_factory=list)
    made: int = 0

    @property
    def namespaces(self) -> tuple[str, str]:
        return f"w{self.number}-a", f"w{self.number}-b"

    def key(self, name: str) -> str:
        return f"{name}.w{self.number}"

    def nodes(self) -> list[dict[str, Any]]:
        return [self._node(index) for index in range(NODES)]

    def _node(self, index: int) -> dict[str, Any]:
        dice, name = self.dice, f"w{self.number}-n{index}"
        labels = {"kubernetes.io/hostname": name, "world": str(self.number), self.key("host"): name}
        for key, values in ((self.key("zone"), "abc-"), ("size", "123x-"), (self.key("rack"), "r-")):
            value = dice.choice(values)
            if value != "-":
                labels[key] = value
        offer = {
            "cpu": dice.choice(["1", "2500m", "4", "3.5"]),
            "memory": dice.choice(["1Gi", "2500Mi", "4G"]),
            "ephemeral-storage": "10Gi",
            "pods": str(dice.choice([2, 4, 10, 10, 10])),
        }
        if dice.random() < 0.4:
            offer["example.com/gpu"] = str(dice.randint(0, 2))
        taints = []
        if dice.random() < 0.3:
            effect = dice.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"])
            taints.append({"key": "dedicated", "value": dice.choice("xy"), "effect": effect})
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints, "unschedulable": dice.random() < 0.1},
            "status": {"capacity": offer, "allocatable": offer, "conditions": [{"type": "Ready", "status": "True"}]},
        }

    def pod(self) -> dict[str, Any]:
        """Up to three of the features that decide placement."""
        self.made += 1
        dice = self.dice
        spec: dict[str, Any] = {
            "containers": [self._container("main")],
            "nodeSelector": {"world": str(self.number)},
            "terminationGracePeriodSeconds": 0,
        }
        features = [
            self._node_selector,
            self._node_affinity,
            self._tolerate,
            *[self._host_port] * 3,
            *[self._affinity] * 2,
            *[self._anti_affinity] * 2,
            *[self._spread] * 4,
            self._init,
            self._pod_level,
            self._gpu,
            self._pinned,
        ]
        for feature in dict.fromkeys(dice.sample(features, dice.choice([0, 1, 1, 2, 3]))):
            feature(spec)
        meta = {
            "namespace": dice.choice(self.namespaces),
            "name": f"p{self.made}",
            "labels": {"app": dice.choice(APPS), "rev": dice.choice("12")},
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def _container(self, name: str, cpu: str = "", memory: str = "") -> dict[str, Any]:
        cpu = cpu or self.dice.choice(["0", "50m", "100m", "250m", "0.9"])
        memory = memory or self.dice.choice(["0", "64Mi", "100M", "0.2Gi", "700Mi"])
        requests = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount != "0"}
        return {"name": name, "image": "x", "resources": {"requests": requests}}

    def _node_selector(self, spec: dict[str, Any]) -> None:
        spec["nodeSelector"][self.key("zone")] = self.dice.choice("abz")

    def _terms(self, spec: dict[str, Any]) -> list[dict[str, Any]]:
        node = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
        required = node.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": []})
        terms: list[dict[str, Any]] = required["nodeSelectorTerms"]
        return terms

    def _node_affinity(self, spec: dict[str, Any]) -> None:
        dice, zone = self.dice, self.key("zone")
        choices: list[dict[str, Any]] = [
            {"key": zone, "operator": "In", "values": dice.sample("abcz", 2)},
            {"key": zone, "operator": "NotIn", "values": ["a"]},
            {"key": self.key("rack"), "operator": "Exists"},
            {"key": "size", "operator": "DoesNotExist"},
            {"key": "size", "operator": "Gt", "values": [dice.choice("012")]},
            {"key": "size", "operator": "Lt", "values": [dice.choice("123")]},
        ]
        for _ in range(dice.choice([1, 1, 2])):
            self._terms(spec).append({"matchExpressions": dice.sample(choices, dice.choice([1, 2]))})

    def _pinned(self, spec: dict[str, Any]) -> None:
        """To one Node, as DaemonSet pods are; or away from one."""
        fields = [
            {
                "key": "metadata.name",
                "operator": self.dice.choice(["In", "In", "NotIn"]),
                "values": [f"w{self.number}-n{self.dice.randrange(NODES)}"],
            }
        ]
        terms = self._terms(spec)
        for term in terms:
            term["matchFields"] = fields
        if not terms:
            terms.append({"matchFields": fields})

    def _tolerate(self, spec: dict[str, Any]) -> None:
        spec["tolerations"] = [
            self.dice.choice(
                [
                    {"operator": "Exists"},
                    {"key": "dedicated", "operator": "Exists"},
                    {"key": "dedicated", "value": "x"},
                    {"key": "dedicated", "value": "x", "effect": "NoSchedule"},
                    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
                ]
            )
        ]

    def _host_port(self, spec: dict[str, Any]) -> None:
        port = {
            "containerPort": 80,
            "hostPort": self.dice.choice([80, 81]),
            "protocol": self.dice.choice(["TCP", "UDP"]),
        }
        address = self.dice.choice(["", "127.0.0.1", "10.0.0.1"])
        spec["containers"][0]["ports"] = [{**port, **({"hostIP": address} if address else {})}]

    def _selector(self) -> dict[str, Any]:
        app = self.dice.choice(APPS)
        return self.dice.choice(
            [
                {"matchLabels": {"app": app}},
                {"matchLabels": {"app": app}},
                {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app]}]},
                {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
                {},
            ]
        )

    def _topology(self) -> str:
        return self.dice.choice(["kubernetes.io/hostname", self.key("zone"), self.key("zone"), self.key("rack")])

    def _pod_term(self) -> dict[str, Any]:
        term = {"labelSelector": self._selector(), "topologyKey": self._topology()}
        scope = self.dice.random()
        if scope < 0.3:
            term["namespaces"] = [self.dice.choice(self.namespaces)]
        elif scope < 0.6:
            term["namespaceSelector"] = {"matchLabels": {"world": str(self.number)}}
            if self.dice.random() < 0.5:
                term["namespaceSelector"]["matchLabels"]["team"] = self.dice.choice("ab")
        if self.dice.random() < 0.2 and term["labelSelector"]:
            term["matchLabelKeys"] = ["rev"]
        return term

    def _pod_terms(self, spec: dict[str, Any], kind: str) -> None:
        terms = [self._pod_term() for _ in range(self.dice.choice([1, 1, 2]))]
        spec.setdefault("affinity", {})[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}

    def _affinity(self, spec: dict[str, Any]) -> None:
        self._pod_terms(spec, "podAffinity")

    def _anti_affinity(self, spec: dict[str, Any]) -> None:
        self._pod_terms(spec, "podAntiAffinity")

    def _spread(self, spec: dict[str, Any]) -> None:
        dice = self.dice
        constraints = []
        for key in dice.sample([self.key("host"), self.key("zone"), self.key("rack")], dice.choice([1, 1, 2])):
            each = {
                "maxSkew": dice.choice([1, 1, 2]),
                "topologyKey": key,
                "whenUnsatisfiable": dice.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
                "labelSelector": self._selector(),
            }
            if each["whenUnsatisfiable"] == "DoNotSchedule" and dice.random() < 0.3:
                each["minDomains"] = dice.choice([2, 3, 4])
            if dice.random() < 0.5:
                each["nodeAffinityPolicy"] = dice.choice(["Honor", "Ignore"])
                each["nodeTaintsPolicy"] = dice.choice(["Honor", "Ignore"])
            if dice.random() < 0.2 and each["labelSelector"]:
                each["matchLabelKeys"] = ["rev"]
            constraints.append(each)
        spec["topologySpreadConstraints"] = constraints

    def _init(self, spec: dict[str, Any]) -> None:
        first = self._container("first", cpu=self.dice.choice(["100m", "1500m", "2"]))
        sidecar = {**self._container("sidecar", cpu="200m"), "restartPolicy": "Always"}
        last = self._container("last", memory="1500M")
        spec["initContainers"] = self.dice.choice([[first], [sidecar, last], [first, sidecar], [sidecar]])

    def _pod_level(self, spec: dict[str, Any]) -> None:
        spec["resources"] = {"requests": {"cpu": self.dice.choice(["2500m", "3500m"]), "memory": "3Gi"}}

    def _gpu(self, spec: dict[str, Any]) -> None:
        resources = spec["containers"][0]["resources"]
        resources["requests"]["example.com/gpu"] = resources.setdefault("limits", {})["example.com/gpu"] = "1"
