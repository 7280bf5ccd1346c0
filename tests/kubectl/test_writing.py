"""Everything by which people change objects: apply, edit, patch, scale, replace, label, annotate, diff."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kubectl.manifests import GROUP, widget
from tests.kubectl.terminal import Terminal


def test_apply_creates_then_configures_then_leaves_alone(kubectl: Terminal) -> None:
    name = f"widget.{GROUP}/a"
    assert kubectl.apply(widget("a", 3, owner="ann")).lines == [f"{name} created"]
    assert kubectl.apply(widget("a", 4, owner="ann")).lines == [f"{name} configured"]
    assert kubectl.apply(widget("a", 4, owner="ann")).lines == [f"{name} unchanged"]
    kubectl.apply(widget("a", 4))
    assert "owner" not in kubectl.read("widget", "a")["spec"]


def test_apply_merges_a_built_in_kind_by_the_keys_of_its_lists(kubectl: Terminal) -> None:
    containers = [{"name": "a", "image": "x:1"}, {"name": "b", "image": "x:1"}]
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template},
    }
    kubectl.apply(deployment)
    containers[0]["image"] = "x:2"
    containers.pop()
    kubectl.apply(deployment)
    found = kubectl.read("deployment", "d")["spec"]["template"]["spec"]["containers"]
    assert [(c["name"], c["image"]) for c in found] == [("a", "x:2")]


def test_apply_on_the_client_and_on_the_server_as_a_dry_run_changes_nothing(kubectl: Terminal) -> None:
    kubectl("apply", "-f", "-", "--dry-run=server", stdin=widget("a"))
    kubectl("apply", "-f", "-", "--dry-run=client", stdin=widget("a"))
    assert "not found" in kubectl.fails("get", "widget", "a")


REFUSED = {
    "an unknown field": (widget("a", speed=3), 'unknown field "spec.speed"'),
    "a wrong type": (widget("a", "big"), "spec.size"),  # type: ignore[arg-type]
    "too small a number": (widget("a", -1), "spec.size in body should be greater than or equal to 0"),
    "a word that is not offered": (widget("a", color="pink"), 'Unsupported value: "pink": supported values: '),
    "what a rule forbids": (widget("a", 5, color="red"), "red ones are at least 10 big"),
    "a bad name": (widget("Not_A_Name"), "metadata.name"),
    "a missing field": ({**widget("a"), "spec": {}}, "spec.size: Required value"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_server_refuses_with_the_field_named(kubectl: Terminal, case: str) -> None:
    body, complaint = REFUSED[case]
    assert complaint in kubectl.fails("create", "--validate=strict", "-f", "-", stdin=body)
    assert kubectl("get", "widgets", "-o", "name").out == ""


def test_unknown_fields_are_dropped_with_a_warning_if_the_user_wants_that(kubectl: Terminal) -> None:
    said = kubectl("create", "--validate=warn", "-f", "-", stdin=widget("a", speed=3))
    assert 'Warning: unknown field "spec.speed"' in said.err
    assert "speed" not in kubectl.read("widget", "a")["spec"]


def test_doubled_fields_are_refused(kubectl: Terminal) -> None:
    text = json.dumps(widget("a")).replace('"size": 5', '"size": 5, "size": 6')
    path = f"/apis/{GROUP}/v1/namespaces/{kubectl.namespace}/widgets?fieldValidation=Strict"
    assert 'duplicate field "spec.size"' in kubectl.fails("create", "--raw", path, "-f", "-", stdin=text)


def test_patch_in_its_three_dialects(kubectl: Terminal) -> None:
    kubectl.apply(widget("a", 1))
    kubectl("patch", "wd", "a", "--type=merge", "-p", '{"spec": {"size": 2}}')
    assert kubectl.read("wd", "a")["spec"]["size"] == 2
    kubectl("patch", "wd", "a", "--type=json", "-p", '[{"op": "replace", "path": "/spec/size", "value": 3}]')
    assert kubectl.read("wd", "a")["spec"]["size"] == 3
    complaint = kubectl.fails("patch", "wd", "a", "--type=strategic", "-p", '{"spec": {"size": 4}}')
    assert "application/strategic-merge-patch+json is not supported" in complaint
    kubectl("create", "configmap", "c", "--from-literal=x=1")
    kubectl("patch", "configmap", "c", "-p", '{"data": {"y": "2"}}')
    assert kubectl.read("configmap", "c")["data"] == {"x": "1", "y": "2"}


def test_a_bad_json_patch_is_refused(kubectl: Terminal) -> None:
    kubectl.apply(widget("a", 1))
    kubectl.fails("patch", "wd", "a", "--type=json", "-p", '[{"op": "test", "path": "/spec/size", "value": 9}]')
    kubectl.fails("patch", "wd", "a", "--type=json", "-p", '[{"op": "remove", "path": "/spec/ghost"}]')
    assert kubectl.read("wd", "a")["spec"]["size"] == 1


def test_patch_of_the_status_changes_the_status_alone(kubectl: Terminal) -> None:
    kubectl.apply(widget("a", 1))
    before = kubectl.read("wd", "a")["metadata"]["generation"]
    patch = '{"spec": {"size": 9}, "status": {"phase": "Sold", "replicas": 1}}'
    kubectl("patch", "wd", "a", "--subresource=status", "--type=merge", "-p", patch)
    kubectl("patch", "wd", "a", "--type=merge", "-p", '{"status": {"phase": "Lost"}}')
    found = kubectl.read("wd", "a")
    assert (found["status"]["phase"], found["spec"]["size"]) == ("Sold", 1)
    assert found["metadata"]["generation"] == before
    assert "Sold" in kubectl("get", "wd", "a").out


def test_scale_changes_the_replicas(kubectl: Terminal) -> None:
    kubectl.apply(widget("a"))
    kubectl("scale", "widget", "a", "--replicas=4")
    assert kubectl.read("wd", "a")["spec"]["replicas"] == 4
    complaint = kubectl.fails("scale", "widget", "a", "--current-replicas=9", "--replicas=1")
    assert "Expected replicas to be 9, was 4" in complaint
    kubectl.fails("scale", "widget", "a", "--replicas=-1")
    assert kubectl("get", "wd", "a", "--subresource=scale", "-o", "jsonpath={.spec.replicas}").out == "4"


def test_scale_of_a_deployment(kubectl: Terminal) -> None:
    kubectl("create", "deployment", "web", "--image=web:1")
    kubectl("scale", "deployment", "web", "--replicas=3")
    assert kubectl.read("deployment", "web")["spec"]["replicas"] == 3


def test_edit_writes_what_the_editor_left(kubectl: Terminal, tmp_path: Path) -> None:
    kubectl.apply(widget("a", 1))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/size: 1/size: 8/" "$1"\n')
    editor.chmod(0o700)
    editing = replace(kubectl, environment={"EDITOR": str(editor)})
    assert "edited" in editing("edit", "widget", "a").out
    assert kubectl.read("wd", "a")["spec"]["size"] == 8
    editor.write_text("#!/bin/sh\nexit 0\n")
    assert "no changes made" in editing("edit", "widget", "a").err


def test_replace_takes_the_place_and_needs_a_current_version(kubectl: Terminal) -> None:
    kubectl.apply(widget("a", 1, owner="ann"))
    kubectl("replace", "-f", "-", stdin=widget("a", 2))
    assert kubectl.read("wd", "a")["spec"] == {"size": 2, "color": "green", "replicas": 1}
    stale = widget("a", 3)
    stale["metadata"]["resourceVersion"] = "1"
    assert "the object has been modified" in kubectl.fails("replace", "-f", "-", stdin=stale)
    kubectl("replace", "--force", "-f", "-", stdin=widget("a", 6))
    assert kubectl.read("wd", "a")["spec"]["size"] == 6


def test_diff_shows_the_change_and_makes_none(kubectl: Terminal) -> None:
    kubectl.apply(widget("a", 1))
    said = kubectl.tries("diff", "-f", "-", stdin=widget("a", 2))
    assert said.code == 1, said.err
    assert "-  size: 1" in said.out
    assert "+  size: 2" in said.out
    assert kubectl.read("wd", "a")["spec"]["size"] == 1
    assert kubectl.tries("diff", "-f", "-", stdin=widget("a", 1)).code == 0


def test_label_and_annotate(kubectl: Terminal) -> None:
    kubectl.apply(widget("a"))
    kubectl("label", "widget", "a", "tier=gold")
    assert "already has a value" in kubectl.fails("label", "widget", "a", "tier=tin")
    kubectl("label", "widget", "a", "tier=tin", "--overwrite")
    kubectl("annotate", "widget", "a", "note=hello there")
    metadata = kubectl.read("wd", "a")["metadata"]
    assert metadata["labels"] == {"tier": "tin"}
    assert metadata["annotations"]["note"] == "hello there"
    assert metadata["generation"] == 1
    kubectl("label", "widget", "a", "tier-")
    assert "labels" not in kubectl.read("wd", "a")["metadata"]


def server_side(kubectl: Terminal, body: object, *words: str, by: str = "ann") -> list[str]:
    command = ("apply", "--server-side", f"--field-manager={by}", *words, "-f", "-")
    return kubectl(*command, stdin=body).lines


def test_server_side_apply_creates_and_says_who_owns_what(kubectl: Terminal) -> None:
    assert server_side(kubectl, widget("a", 1)) == [f"widget.{GROUP}/a serverside-applied"]
    metadata = json.loads(kubectl("get", "wd", "a", "-o", "json", "--show-managed-fields").out)["metadata"]
    (entry,) = metadata["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("ann", "Apply")
    assert entry["fieldsV1"] == {"f:spec": {"f:size": {}}}


def test_server_side_apply_refuses_to_take_what_others_own_unless_forced(kubectl: Terminal) -> None:
    server_side(kubectl, widget("a", 1))
    command = ("apply", "--server-side", "--field-manager=bob", "-f", "-")
    complaint = kubectl.fails(*command, stdin=widget("a", 2))
    assert 'conflict with "ann": .spec.size' in complaint
    assert kubectl.read("wd", "a")["spec"]["size"] == 1
    server_side(kubectl, widget("a", 2), "--force-conflicts", by="bob")
    assert kubectl.read("wd", "a")["spec"]["size"] == 2
    server_side(kubectl, widget("a", 2))


def test_server_side_apply_takes_away_what_is_no_longer_wanted(kubectl: Terminal) -> None:
    parts = [{"name": "lid", "count": 1}, {"name": "leg", "count": 4}]
    server_side(kubectl, widget("a", 1, owner="ann", parts=parts))
    server_side(kubectl, widget("a", 1, parts=[{"name": "arm", "count": 2}]), by="bob")
    server_side(kubectl, widget("a", 1, parts=parts[1:]))
    spec = kubectl.read("wd", "a")["spec"]
    assert "owner" not in spec
    assert {part["name"]: part["count"] for part in spec["parts"]} == {"leg": 4, "arm": 2}


def test_server_side_apply_takes_over_from_apply_on_the_client(kubectl: Terminal) -> None:
    kubectl.apply(widget("a", 1, owner="ann"))
    server_side(kubectl, widget("a", 2), by="kubectl")
    spec = kubectl.read("wd", "a")["spec"]
    assert spec["size"] == 2
    assert "owner" not in spec


def test_a_crd_appears_is_explained_and_goes_with_its_objects(kubectl: Terminal) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "description": "Any bolt."}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "bolts", "singular": "bolt", "kind": "Bolt"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"bolts.hardware.{GROUP}"},
        "spec": {"group": f"hardware.{GROUP}", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    bolt = {"apiVersion": f"hardware.{GROUP}/v1", "kind": "Bolt", "metadata": {"name": "b"}}
    kubectl.apply(crd)
    kubectl("wait", "--for=condition=Established", "crd", crd["metadata"]["name"])
    served = ("api-resources", f"--api-group=hardware.{GROUP}")
    kubectl.until(lambda: "bolts" in kubectl(*served).out)
    kubectl.until(lambda: kubectl.tries("apply", "-f", "-", stdin=bolt).code == 0)
    assert kubectl("get", "bolts").rows[1][0] == "b"
    kubectl.until(lambda: "Any bolt." in kubectl.tries("explain", "bolt.spec").out)
    kubectl("delete", "crd", crd["metadata"]["name"])
    kubectl.until(lambda: "bolts" not in kubectl(*served).out)
    kubectl.fails("get", "bolts")
