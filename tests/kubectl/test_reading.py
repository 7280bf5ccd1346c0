"""kubectl get in all its shapes, describe, explain, and what the server says of itself."""

from __future__ import annotations

import json

import yaml

from tests.kubectl.manifests import GROUP, WIDGETS, node, widget
from tests.kubectl.terminal import Terminal


def test_get_prints_the_columns_of_the_kind(kubectl: Terminal) -> None:
    kubectl.apply(widget("a", 7), widget("b", 9))
    headings, *rows = kubectl("get", "widgets").rows
    assert headings == ["NAME", "SIZE", "PHASE", "AGE"]
    assert [row[:2] for row in rows] == [["a", "7"], ["b", "9"]]


def test_get_wide_prints_the_columns_of_lower_priority_too(kubectl: Terminal) -> None:
    kubectl.apply(widget("a", 7, color="blue"))
    headings, row = kubectl("get", "wd", "-o", "wide").rows
    assert headings == ["NAME", "SIZE", "PHASE", "COLOR", "AGE"]
    assert "blue" in row


def test_get_finds_a_kind_by_short_name_singular_and_group(kubectl: Terminal) -> None:
    kubectl.apply(widget("a"))
    for word in ("wd", "widget", "widgets", WIDGETS, f"widgets.v1.{GROUP}", "shop"):
        assert kubectl("get", word, "-o", "name").lines == [f"widget.{GROUP}/a"]


def test_get_one_as_yaml_and_json_shows_the_defaults(kubectl: Terminal) -> None:
    kubectl.apply(widget("a", 3))
    shown = yaml.safe_load(kubectl("get", "widget", "a", "-o", "yaml").out)
    assert shown["spec"] == {"size": 3, "color": "green", "replicas": 1}
    assert shown["metadata"]["generation"] == 1
    assert kubectl.read("widget", "a") == json.loads(json.dumps(shown))


def test_get_selects_by_label(kubectl: Terminal) -> None:
    kubectl.apply(widget("a"), widget("b"), widget("c"))
    kubectl("label", "widget", "a", "tier=gold")
    kubectl("label", "widget", "b", "tier=tin")
    assert kubectl("get", "wd", "-l", "tier=gold", "-o", "name").lines == [f"widget.{GROUP}/a"]
    assert kubectl("get", "wd", "-l", "tier in (gold,tin)", "-o", "name").lines == [
        f"widget.{GROUP}/a",
        f"widget.{GROUP}/b",
    ]
    assert kubectl("get", "wd", "-l", "!tier", "-o", "name").lines == [f"widget.{GROUP}/c"]


def test_get_selects_by_field(kubectl: Terminal) -> None:
    kubectl.apply(widget("a"), widget("b"))
    found = kubectl("get", "wd", "--field-selector", "metadata.name=b", "-o", "name").lines
    assert found == [f"widget.{GROUP}/b"]
    complaint = kubectl.fails("get", "wd", "--field-selector", "spec.size=5")
    assert "field label not supported: spec.size" in complaint


def test_get_everywhere_shows_the_namespace(kubectl: Terminal) -> None:
    kubectl.apply(widget("a"))
    headings, *rows = kubectl("get", "wd", "-A").rows
    assert headings[:2] == ["NAMESPACE", "NAME"]
    assert [kubectl.namespace, "a"] in [row[:2] for row in rows]


def test_get_of_nothing_says_so(kubectl: Terminal) -> None:
    assert "No resources found" in kubectl("get", "widgets").err
    assert f'widgets.{GROUP} "ghost" not found' in kubectl.fails("get", "widget", "ghost")
    assert "the server doesn't have a resource type" in kubectl.fails("get", "ghosts")


def test_get_pages_through_a_long_list(kubectl: Terminal) -> None:
    kubectl.apply(*[widget(f"w-{number:02}") for number in range(12)])
    assert len(kubectl("get", "wd", "--chunk-size=5", "-o", "name").lines) == 12


def test_get_prints_paths_and_sorts_by_them(kubectl: Terminal) -> None:
    kubectl.apply(widget("a", 9), widget("b", 4))
    assert kubectl("get", "wd", "-o", "jsonpath={.items[*].spec.size}").out == "9 4"
    columns = kubectl("get", "wd", "--sort-by=.spec.size", "-o", "custom-columns=N:.metadata.name").lines
    assert columns == ["N", "b", "a"]


def test_get_watch_prints_each_change(kubectl: Terminal) -> None:
    kubectl.apply(widget("a", 1))
    with kubectl.running("get", "widgets", "--watch") as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().split()[:2] == ["NAME", "SIZE"]
        assert watching.stdout.readline().split()[:2] == ["a", "1"]
        kubectl("patch", "widget", "a", "--type=merge", "-p", '{"spec": {"size": 2}}')
        assert watching.stdout.readline().split()[:2] == ["a", "2"]
        kubectl("delete", "widget", "a")
        assert watching.stdout.readline().split()[:2] == ["a", "2"]


def test_get_watch_tells_the_kind_of_event(kubectl: Terminal) -> None:
    watch = ("get", "widgets", "--watch", "--output-watch-events", "-o", "json")
    kubectl.apply(widget("a"))
    with kubectl.running(*watch) as watching:
        assert watching.stdout is not None
        decoder, text, events = json.JSONDecoder(), "", []
        while len(events) < 2:
            text += watching.stdout.readline()
            try:
                event, end = decoder.raw_decode(text)
            except ValueError:
                continue
            events.append(event["type"])
            text = text[end:].lstrip()
            if len(events) == 1:
                kubectl("delete", "widget", "a", "--wait=false")
    assert events == ["ADDED", "DELETED"]


def test_describe_shows_the_object_and_its_events(kubectl: Terminal) -> None:
    kubectl.apply(widget("a", 7))
    made = kubectl.read("widget", "a")
    subject = {
        "apiVersion": made["apiVersion"],
        "kind": "Widget",
        "name": "a",
        "namespace": kubectl.namespace,
        "uid": made["metadata"]["uid"],
    }
    moment = "2026-11-20T10:00:00Z"
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "a.1"},
        "involvedObject": subject,
        "type": "Warning",
        "reason": "TooSmall",
        "message": "seven is not enough",
        "count": 1,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "source": {"component": "tests"},
    }
    kubectl.create(event)
    described = kubectl("describe", "widget", "a").out
    assert "Size:      7" in described
    assert "TooSmall" in described
    assert "seven is not enough" in described
    headings, row = kubectl("events").rows
    assert headings == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "TooSmall" in row
    assert "TooSmall" in kubectl("get", "events", "--field-selector", "involvedObject.name=a").out
    assert "No resources" in kubectl("get", "events", "--field-selector", "involvedObject.name=b").err


def test_explain_tells_what_the_fields_mean(kubectl: Terminal) -> None:
    assert "Widget is a thing that the shop sells." in kubectl("explain", "widget").out
    size = kubectl("explain", "widget.spec.size").out
    assert "FIELD: size <integer>" in size
    assert "How big it is, in inches." in size
    assert "conditions" in kubectl("explain", "widget", "--recursive").out


def test_explain_knows_the_built_in_kinds(kubectl: Terminal) -> None:
    assert "unschedulable" in kubectl("explain", "node.spec").out.lower()
    assert "minAvailable" in kubectl("explain", "poddisruptionbudget.spec").out


def test_api_resources_lists_built_in_and_custom_kinds(terminal: Terminal) -> None:
    rows = terminal("api-resources", "-o", "wide").rows
    listed = {row[0]: row for row in rows}
    assert listed["widgets"][1:5] == ["wd", f"{GROUP}/v1", "true", "Widget"]
    assert listed["nodes"][1:5] == ["no", "v1", "false", "Node"]
    assert "selfsubjectaccessreviews" in listed
    assert f"{GROUP}/v1" in terminal("api-versions").lines


def test_version_and_cluster_info(terminal: Terminal) -> None:
    shown = terminal("version", "-o", "json").json()
    assert shown["serverVersion"]["gitVersion"].startswith(f"v1.{shown['serverVersion']['minor']}.")
    assert "is running at https://127.0.0.1:" in terminal("cluster-info").out


def test_get_nodes_shows_the_usual_columns(terminal: Terminal) -> None:
    terminal.create(node("columns"))
    headings, row = terminal("get", "node", "columns").rows
    assert headings == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert (row[0], row[1], row[-1]) == ("columns", "Ready", "v1.32.4")
    assert "KubeletReady" in terminal("describe", "node", "columns").out


def test_raw_paths_answer(terminal: Terminal) -> None:
    assert terminal("get", "--raw", "/healthz").out == "ok"
    assert terminal("get", "--raw", "/readyz").out == "ok"
    assert "/api/v1" in terminal("get", "--raw", "/").json()["paths"]
    assert terminal("get", "--raw", "/apis").json()["kind"] == "APIGroupList"
