"""deploy/monitoring asks for metrics that exist, by labels that they have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from controllers.autoscaler.metrics import METRICS
from nodewright.runtime.telemetry.metrics import TABLE as OWN
from nodewright.runtime.telemetry.metrics import Metric
from tests.docs.pages import ROOT

FOLDER = ROOT / "deploy" / "monitoring"
ALERTS = yaml.safe_load((FOLDER / "alerts.yaml").read_text())
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text())

MEASURED = {
    metric.name: Metric(metric.name, "counter" if metric.total else "gauge", metric.labels, "", metric.meaning)
    for metric in METRICS
}
TABLE = {**OWN, **MEASURED}
"""With those that a room gives, under the names of the Cluster Autoscaler."""
SCRAPED = {"instance", "job", "pod", "namespace"}
"""Labels that Prometheus gives every series by where it was scraped."""
PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes"}

_USED = re.compile(r"\b((?:nodewright|process|cluster_autoscaler)_\w+)(?:\{([^}]*)\})?")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")
_BY = re.compile(r"\bby\s*\(([^)]*)\)")
_SHOWN = re.compile(r"\$labels\.(\w+)")
_LEGEND = re.compile(r"\{\{(\w+)\}\}")


def rules() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for group in ALERTS["groups"] for rule in group["rules"]}


def targets() -> dict[str, dict[str, str]]:
    panels = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
    return {
        f"{panel['title']} ({panel['id']}{target['refId']})": target for panel in panels for target in panel["targets"]
    }


def metric_of(name: str) -> Metric | None:
    found = TABLE.get(name)
    if found is None:
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        found = TABLE.get(base) if base != name else None
        return found if found is not None and found.type == "histogram" else None
    return found if found.type != "histogram" else None


def labels_of(expression: str) -> set[str]:
    """The labels that the expression's series can have."""
    found: set[str] = set(SCRAPED)
    for name, _ in _USED.findall(expression):
        metric = metric_of(name)
        if metric is not None:
            found |= {*metric.labels, *(("le",) if name.endswith("_bucket") else ())}
    return found


def faults(expression: str) -> Iterator[str]:
    used = _USED.findall(expression)
    if not used:
        yield "asks for no metric"
    for name, selector in used:
        metric = metric_of(name)
        if metric is None and name not in PROCESS:
            yield f"{name} does not exist"
            continue
        known = {*(metric.labels if metric else ()), *SCRAPED}
        yield from (f"{name} has no label {label}" for label in _LABEL.findall(selector) if label not in known)
    known = labels_of(expression)
    for names in _BY.findall(expression):
        yield from (f"nothing has the label {n.strip()}" for n in names.split(",") if n.strip() not in known)
    if expression.count("(") != expression.count(")"):
        yield "parentheses don't match"


def shown(expression: str) -> set[str]:
    """Labels of the result: those that are grouped by, if it is grouped."""
    grouped = [{name.strip() for name in names.split(",")} for names in _BY.findall(expression)]
    return set.union(*grouped) - {"le"} if grouped else labels_of(expression)


@pytest.mark.parametrize("name", rules())
def test_an_alert_asks_for_what_is_there_and_says_what_to_do(name: str) -> None:
    rule = rules()[name]
    assert list(faults(rule["expr"])) == []
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    for text in (rule["annotations"]["summary"], rule["annotations"]["description"]):
        assert text.endswith(".")
        assert set(_SHOWN.findall(text)) <= shown(rule["expr"])


@pytest.mark.parametrize("name", targets())
def test_a_panel_asks_for_what_is_there(name: str) -> None:
    target = targets()[name]
    expression = target["expr"].replace("$__rate_interval", "5m")
    assert list(faults(expression)) == []
    assert set(_LEGEND.findall(target["legendFormat"])) <= shown(expression)


def test_variables_of_the_dashboard_ask_for_what_is_there() -> None:
    asked = [v["query"]["query"] for v in DASHBOARD["templating"]["list"] if v["type"] == "query"]
    assert len(asked) == 2
    for query in asked:
        name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", query).groups()  # type: ignore[union-attr]
        assert name in TABLE
        assert label in {*TABLE[name].labels, *SCRAPED}


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("nodewright_nonsense > 0", "nodewright_nonsense does not exist"),
        ("nodewright_reconcile_seconds > 0", "nodewright_reconcile_seconds does not exist"),
        ("nodewright_machines_bucket", "nodewright_machines_bucket does not exist"),
        ('nodewright_machines{room="a"}', "nodewright_machines has no label room"),
        ("sum by (room) (nodewright_machines)", "nothing has the label room"),
        ("vector(1)", "asks for no metric"),
    ],
)
def test_a_wrong_one_would_be_found(expression: str, fault: str) -> None:
    assert fault in list(faults(expression))


def test_panels_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_what_people_watch_first_is_on_the_dashboard() -> None:
    used = {name for target in targets().values() for name, _ in _USED.findall(target["expr"])}
    used |= {name for rule in rules().values() for name, _ in _USED.findall(rule["expr"])}
    bases = {metric.name for name in used if (metric := metric_of(name))}
    left_out = {name.removeprefix("nodewright_") for name in set(TABLE) - bases}
    only_documented = {
        "machinedeployment_status_replicas_ready",
        "machineset_spec_replicas",
        "machineset_status_replicas",
        "machineset_status_replicas_available",
        "machineset_status_replicas_ready",
        "watch_events_total",
        "admission_review_seconds",
        "externalgrpc_call_seconds",
    }
    assert left_out == only_documented, "put a new metric on the dashboard or into an alert"
