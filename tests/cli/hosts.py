"""What the simulated cloud of another process holds, read from its journals."""

from __future__ import annotations

import json
from pathlib import Path


def hosts_in(folder: Path) -> dict[str, str]:
    """Live hosts by the journals in ``folder``: id → UID of the Machine."""
    hosts: dict[str, str] = {}
    for journal in folder.glob("*.jsonl"):
        for line in journal.read_bytes().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break  # cut off by the kill: it did not happen
            change = json.loads(line)
            if "gone" in change:
                hosts.pop(change["gone"], None)
            else:
                host = change["put"]
                hosts[host["id"]] = host["request"]["identity"]["machine_uid"]
    return hosts
