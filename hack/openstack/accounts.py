"""What a cloud itself says of Machines' servers when all should be over, past all proxies."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import openstack
import yaml

MICROVERSION = "2.79"
MARK = "nodewright-machine-"
FLEET = "pool-"
"""How the names of a fleet's Machines begin."""
SETTLE_SECONDS = 60.0
"""Nova asks Cinder to delete the volumes of a server, and does not wait until they are gone."""

Life = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Accounts:
    """``lives``: when each server that was ever made began and ended ("" for not yet), by the name of its Machine: of
    deleted ones Nova shows no metadata, and a name is used once.
    ``left``: servers, ports, floating IPs, trunks and volumes of the project ``demo`` that are still there.
    """

    lives: Mapping[str, Sequence[Life]]
    left: tuple[str, ...]

    @property
    def duplicates(self) -> list[str]:
        """Machines that had two servers at a time. One after the other is none: the first had found no place."""
        return [name for name, lives in self.lives.items() if _overlap(lives)]

    @classmethod
    def of(cls, clouds_yaml: Path) -> Self:
        demo = connect(clouds_yaml, "demo")
        deadline = time.monotonic() + SETTLE_SECONDS
        while (left := tuple(_left(demo))) and time.monotonic() < deadline:
            time.sleep(2)
        return cls(_ever_made(connect(clouds_yaml, "admin")), left)


def connect(clouds_yaml: Path, name: str, **options: Any) -> Any:
    warnings.filterwarnings("ignore", module=r"openstack\.")  # it speaks of its own parts that nobody uses here
    cloud = yaml.safe_load(clouds_yaml.read_text())["clouds"][name]
    return openstack.connect(load_yaml_config=False, load_envvars=False, api_timeout=60, **cloud, **options)


def zones_of(clouds_yaml: Path) -> Counter[str]:
    """How many servers of fleets are in each zone now."""
    listed = connect(clouds_yaml, "demo").compute.get("/servers/detail?limit=1000", microversion=MICROVERSION).json()
    ours = [server for server in listed["servers"] if str(server["name"]).startswith(FLEET)]
    return Counter(str(server["OS-EXT-AZ:availability_zone"]) for server in ours)


def _ever_made(admin: Any) -> dict[str, list[Life]]:
    found: dict[str, list[Life]] = {}
    for deleted in ("true", "false"):
        path = f"/servers/detail?all_tenants=1&deleted={deleted}&limit=1000"
        for server in admin.compute.get(path, microversion=MICROVERSION).json()["servers"]:
            ended = str(server["updated"]) if server["status"] == "DELETED" else ""
            if str(server["name"]).startswith(FLEET):
                found.setdefault(str(server["name"]), []).append((str(server["created"]), ended))
    return found


def _overlap(lives: Sequence[Life]) -> bool:
    ordered = sorted(lives)
    return any(not ended or began < ended for (_, ended), (began, _) in pairwise(ordered))


def _left(demo: Any) -> Iterator[str]:
    yield from (f"server {one['name']}" for one in demo.compute.get("/servers").json()["servers"])
    yield from (f"port {one.name}" for one in demo.network.ports() if one.description.startswith(MARK))
    yield from (f"floating IP {one.name}" for one in demo.network.ips() if one.description.startswith(MARK))
    yield from (f"trunk {one.name}" for one in demo.network.trunks())
    yield from (f"volume {one.id}" for one in demo.block_storage.volumes())
