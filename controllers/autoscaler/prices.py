"""What Nodes and pods cost, from a table that the operator keeps: for our expander ``price`` and, through the gRPC
gateway, for the Cluster Autoscaler's.

nodes:                  # an hour of a Node: by node group, else by instance type
  MachineDeployment/default/batch: 0.45
  m.large: 0.12
pods:                   # an hour of what pods ask for
  cpu: 0.02             # a core
  memory: 0.003         # a GiB
  nvidia.com/gpu: 1.1   # one of any other resource
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from api import yamltext
from controllers.scheduling.shapes import CPU, MEMORY, Amounts

INSTANCE_TYPE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_UNITS = {CPU: 1000, MEMORY: 1024**3}
"""Amounts in what a price is of: a core, a GiB."""
_HOUR = timedelta(hours=1)


class PriceTableError(ValueError):
    """A table that can't be used; the message names the entry."""


@dataclass(frozen=True, slots=True)
class PriceTable:
    nodes: Mapping[str, float] = field(default_factory=dict)
    pods: Mapping[str, float] = field(default_factory=dict)

    def node(self, group: str, labels: Mapping[str, str], span: timedelta = _HOUR) -> float | None:
        """None: nobody says what such a Node costs."""
        types = (labels.get(label, "") for label in INSTANCE_TYPE_LABELS)
        hourly = next((self.nodes[name] for name in (group, *types) if name in self.nodes), None)
        return None if hourly is None else hourly * (span / _HOUR)

    def pod(self, requests: Amounts, span: timedelta) -> float:
        hourly = sum(self.pods.get(name, 0.0) * amount / _UNITS.get(name, 1) for name, amount in requests)
        return hourly * (span / _HOUR)


def read_table(text: str) -> PriceTable:
    """Raises PriceTableError."""
    try:
        found = yamltext.load(text)
    except yamltext.TextError as error:
        raise PriceTableError(f"not a table in YAML: {error}") from error
    if not isinstance(found, Mapping) or not set(found) <= {"nodes", "pods"}:
        raise PriceTableError("a map with the keys nodes and pods is needed, and nothing else")
    return PriceTable(_prices(found.get("nodes"), "nodes"), _prices(found.get("pods"), "pods"))


def _prices(found: Any, where: str) -> dict[str, float]:
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise PriceTableError(f"{where}: a map of prices is needed")
    for name, price in found.items():
        sound = isinstance(price, int | float) and not isinstance(price, bool) and math.isfinite(price) and price >= 0
        if not sound:
            raise PriceTableError(f"{where}[{yamltext.shown(name)}]: {yamltext.shown(repr(price))} is no price")
    return {str(name): float(price) for name, price in found.items()}
