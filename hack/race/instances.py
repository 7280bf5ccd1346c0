"""What both sides may choose from: the Linux machines below 32 CPUs of Karpenter's own list, on demand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FILE = Path("kwok/cloudprovider/instance_types.json")
ZONES = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
MOST_CPUS = 32


@dataclass(frozen=True, slots=True)
class Instance:
    """``memory`` in Gi, ``price`` of an hour."""

    name: str
    cpus: int
    memory: int
    pods: int
    price: float


def instances(karpenter: Path) -> list[Instance]:
    """Of the list in Karpenter's sources; each is offered in every zone at one price."""
    return [read for each in json.loads((karpenter / FILE).read_text()) if (read := _read(each)) is not None]


def _read(each: dict[str, object]) -> Instance | None:
    resources, offerings = each["resources"], each["offerings"]
    assert isinstance(resources, dict)
    assert isinstance(offerings, list)
    cpus = int(resources["cpu"])
    if each["architecture"] != "amd64" or each["operatingSystems"] != ["linux"] or cpus >= MOST_CPUS:
        return None
    price = next(offer["Price"] for offer in offerings if _on_demand(offer))
    memory = int(str(resources["memory"]).removesuffix("Gi"))
    return Instance(str(each["name"]), cpus, memory, int(resources["pods"]), float(price))


def _on_demand(offer: dict[str, list[dict[str, list[str]]]]) -> bool:
    return any("on-demand" in requirement["values"] for requirement in offer["Requirements"])
