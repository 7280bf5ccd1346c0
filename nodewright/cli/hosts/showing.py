"""Hosts of pools, and what was found on them, as lines and as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from providers.ssh.checkup import Finding
from providers.ssh.pool import Pool

if TYPE_CHECKING:
    from rich.text import Text

_MOODS = {"Free": "green", "Quarantined": "red", "Unreachable": "red", "Cleaning": "yellow"}
_UNSEEN = "not looked at yet"


@dataclass(frozen=True, slots=True)
class Checked:
    """One host. ``system``: what it reported of itself, "" if it did not answer."""

    name: str
    address: str
    system: str
    findings: tuple[Finding, ...]


def pools_value(pools: Sequence[Pool]) -> dict[str, Any]:
    """As the status of each pool says."""
    return {
        "pools": [
            {
                "namespace": _namespace(pool),
                "name": pool.name,
                "hosts": [_host_value(pool, name) for name in pool.hosts],
            }
            for pool in pools
        ]
    }


def _namespace(pool: Pool) -> str:
    return str(pool.object["metadata"].get("namespace") or "")


def _host_value(pool: Pool, name: str) -> dict[str, Any]:
    host = pool.hosts[name]
    seen = ((pool.object.get("status") or {}).get("hosts") or {}).get(name) or {}
    value = {
        "name": name,
        "address": f"{host.address}:{host.port}",
        "state": seen.get("state") or "",
        "machine": seen.get("machine") or "",
        "zone": host.zone or "",
        "labels": dict(host.labels or {}),
        "reason": seen.get("reason") or "",
    }
    return {key: each for key, each in value.items() if each}


def pools_lines(pools: Sequence[Pool], *, namespaces: bool = False) -> list[Text]:
    """A row for each host, if wished with its namespace first; why it is as it is below it.

    Without a pool one line that says what to do.
    """
    from rich.text import Text  # noqa: PLC0415

    from nodewright.reports.columns import line_of, widths_of  # noqa: PLC0415

    if not pools:
        return [Text("no SSHHostPools here; docs/providers/ssh.md shows how to make one")]
    first = ("NAMESPACE",) if namespaces else ()
    rows = [[Text(word) for word in (*first, "POOL", "HOST", "ADDRESS", "STATE", "ZONE", "MACHINE")]]
    reasons: list[str] = [""]
    for pool in pools:
        for host in pools_value([pool])["pools"][0]["hosts"]:
            state = host.get("state", _UNSEEN)
            before = ((_namespace(pool),) if namespaces else ()) + (pool.name, host["name"], host["address"])
            after = (host.get("zone", "-"), host.get("machine", "-"))
            rows.append([*map(Text, before), Text(state, style=_MOODS.get(state, "")), *map(Text, after)])
            reasons.append(host.get("reason", ""))
    widths = widths_of(rows)
    lines = []
    for row, reason in zip(rows, reasons, strict=True):
        lines.append(line_of(row, widths))
        lines += [Text(f"    {reason}", style="dim")] if reason else []
    return lines


def checked_value(checked: Sequence[Checked]) -> dict[str, Any]:
    return {
        "hosts": [
            {
                "name": one.name,
                "address": one.address,
                **({"system": one.system} if one.system else {}),
                "findings": [{"problem": each.problem, "remedy": each.remedy} for each in one.findings],
            }
            for one in checked
        ]
    }


def checked_lines(checked: Sequence[Checked]) -> list[Text]:
    """A row for each host, and below it each problem with its remedy."""
    from rich.text import Text  # noqa: PLC0415

    from nodewright.reports.columns import line_of, widths_of  # noqa: PLC0415

    rows = [
        [Text("✘" if one.findings else "✔", style="red" if one.findings else "green"), Text(one.name),
         Text(one.address), Text(one.system)]
        for one in checked
    ]  # fmt: skip
    widths = widths_of(rows)
    lines = []
    for row, one in zip(rows, checked, strict=True):
        lines.append(line_of(row, widths))
        for each in one.findings:
            lines += [Text(f"    {each.problem}"), Text(f"      {each.remedy}", style="dim")]
    return lines
