"""The page ``docs/reference/lookup.md``: each condition, reason, error, metric and alert by its name, with an anchor.

What stands there comes from where the names are declared: ``api``, the provider's error classes, the tables of metrics,
the rules of ``deploy/monitoring``.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import yaml

from controllers.autoscaler import metrics as autoscaler_metrics
from controllers.provisioningrequest import metrics as request_metrics
from hack.apidocs import meanings
from nodewright.reports.tree.runbooks import runbook_for
from nodewright.runtime.telemetry import metrics
from providers.base.errors import REACTIONS

HEAD = """# Look up a name

Conditions, reasons, errors of providers, metrics and alerts, by name. The anchor of each is its name in small letters:
`lookup.md#drainblocked`.
What to do about a reason or an alert stands in the [runbooks](../runbooks.md).

"""
SOURCES = ("conditions", "capacity_conditions")
"""Modules of ``api`` that declare conditions and their reasons."""


def page(root: Path) -> str:
    """Below the remark that it is generated: a heading for each name, in the order of the alphabet."""
    entries: dict[str, list[str]] = defaultdict(list)
    for name, line in _all(root):
        entries[name].append(line)
    parts = []
    for name in sorted(entries, key=str.lower):
        lines = "\n".join(f"- {line}" for line in entries[name])
        parts.append(f"### {name}\n\n{lines}\n")
    return HEAD + "\n".join(parts)


def _all(root: Path) -> Iterator[tuple[str, str]]:
    for module in SOURCES:
        yield from _declared(root / "api" / f"{module}.py")
    for name, reaction in REACTIONS.items():
        yield str(name), f"[error of a provider](errors.md): {reaction.meaning}{_runbook(str(name))}"
    for one in metrics.TABLE.values():
        yield one.name, f"[metric](metrics.md), {one.type}{_labels(one.labels)}: {one.meaning}"
    for measure in (*autoscaler_metrics.METRICS, *request_metrics.METRICS):
        kind = "counter" if measure.total else "gauge"
        yield measure.name, f"[metric](metrics.md#the-autoscaler), {kind}{_labels(measure.labels)}: {measure.meaning}"
    for group in yaml.safe_load((root / "deploy/monitoring/alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            link = rule["annotations"]["runbook"].removeprefix("docs/")
            yield rule["alert"], f"alert: [what to do](../{link})"


def _declared(source: Path) -> Iterator[tuple[str, str]]:
    for node in ast.parse(source.read_text()).body:
        if not isinstance(node, ast.ClassDef):
            continue
        what = _kind(str(ast.get_docstring(node)).splitlines()[0], node.name)
        for name, meaning in meanings(source, node.name).items():
            step = _runbook(name) if what.startswith("reason") else ""
            yield name, f"{what}: {' '.join(meaning.split())}{step}".rstrip(": ")


def _kind(title: str, name: str) -> str:
    """``condition of a Machine`` of "Condition types of a Machine."."""
    if name.endswith("Reason"):
        return "[reason](../api/names.md) of a condition"
    return title.rstrip(".").replace("Condition types", "[condition](../api/names.md)")


def _labels(labels: tuple[str, ...]) -> str:
    return f" by {', '.join(f'`{label}`' for label in labels)}" if labels else ""


def _runbook(reason: str) -> str:
    found = runbook_for(reason).removeprefix("docs/")
    return f" [What to do](../{found})." if found else ""
