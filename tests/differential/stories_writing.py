"""Writing: creates, the four patch types, server-side apply and its conflicts, subresources."""

from __future__ import annotations

from typing import Any

from tests.differential.sending import NODES, Collection, config_maps, pods, space, widgets
from tests.differential.speech import Request, Story
from tests.kubectl.manifests import GROUP, node, pod, widget

_W, _C, _P = widgets("patching"), config_maps("patching"), pods("patching")
_READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def _json(label: str, *operations: dict[str, Any]) -> Request:
    return _W.patch(f"json: {label}", "a", list(operations), "json")


def _taints(key: str, effect: str) -> dict[str, Any]:
    return {"spec": {"taints": [{"key": key, "value": "1", "effect": effect}]}}


def _untaint(key: str) -> dict[str, Any]:
    return {"spec": {"taints": [{"$patch": "delete", "key": key}]}}


def _condition(type_: str, status: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": type_, "status": status, "reason": "Test"}]}}


_ADD_PROVIDER = {"op": "add", "path": "/spec/providerID", "value": "x://1"}

PATCHING = Story(
    "patching",
    (
        space("patching"),
        _W.create("make a", widget("a", parts=[{"name": "lid"}, {"name": "leg", "count": 4}])),
        _json("replace", {"op": "replace", "path": "/spec/size", "value": 6}),
        _json("add to a list", {"op": "add", "path": "/spec/parts/-", "value": {"name": "arm"}}),
        _json("add in front", {"op": "add", "path": "/spec/parts/0", "value": {"name": "top"}}),
        _json("move", {"op": "move", "from": "/spec/parts/0", "path": "/spec/parts/1"}),
        _json("copy", {"op": "copy", "from": "/spec/owner", "path": "/spec/color"}),
        _json("test", {"op": "test", "path": "/spec/size", "value": 6}),
        _json("failed test", {"op": "test", "path": "/spec/size", "value": 7}),
        _json("remove missing", {"op": "remove", "path": "/spec/ghost"}),
        _json("replace missing", {"op": "replace", "path": "/spec/ghost", "value": 1}),
        _json("add below nothing", {"op": "add", "path": "/spec/ghost/deep", "value": 1}),
        _json("list index", {"op": "replace", "path": "/spec/parts/9", "value": {}}),
        _json("unknown operation", {"op": "dance", "path": "/spec/size"}),
        _json("invalid result", {"op": "replace", "path": "/spec/size", "value": "big"}),
        _json("escaped", {"op": "add", "path": "/metadata/annotations", "value": {"a/b": "1"}}),
        _json("escaped path", {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "2"}),
        _W.patch("json: an object", "a", {"op": "add"}, "json"),
        _W.patch("json: empty", "a", [], "json"),
        _W.patch("json: nonsense", "a", "nonsense", "json"),
        _W.patch("merge", "a", {"spec": {"size": 7, "owner": "ann"}}),
        _W.patch("merge: nothing", "a", {"spec": {"size": 7}}),
        _W.patch("merge: remove", "a", {"spec": {"owner": None, "ghost": None}}),
        _W.patch("merge: list", "a", {"spec": {"parts": [{"name": "one"}]}}),
        _W.patch("merge: twice the key", "a", {"spec": {"parts": [{"name": "one"}, {"name": "one"}]}}),
        _W.patch("merge: rule", "a", {"spec": {"color": "red"}}),
        _W.patch("merge: enum", "a", {"spec": {"color": "pink"}}),
        _W.patch("merge: unknown field", "a", {"spec": {"speed": 3}}),
        _W.patch("merge: unknown field, strict", "a", {"spec": {"speed": 3}}, fieldValidation="Strict"),
        _W.patch("merge: unknown field, warn", "a", {"spec": {"speed": 3}}, fieldValidation="Warn"),
        _W.patch("merge: unknown field, ignore", "a", {"spec": {"speed": 3}}, fieldValidation="Ignore"),
        _W.patch("merge: free field", "a", {"spec": {"extra": {"b": {"c": [1, 2.5, None, "x"]}}}}),
        _W.patch("merge: a list", "a", []),
        _W.patch("merge: nonsense", "a", "nonsense"),
        _W.patch("merge: null spec", "a", {"spec": None}),
        _W.patch("merge: dry run", "a", {"spec": {"size": 99}}, dryRun="All"),
        _W.patch("merge: bad dry run", "a", {"spec": {"size": 99}}, dryRun="Some"),
        _W.patch(
            "merge: current version", "a", {"metadata": {"resourceVersion": "{merge: list|metadata.resourceVersion}"}}
        ),
        _W.patch("merge: missing", "ghost", {}),
        _W.patch("merge: by another", "a", {"spec": {"size": 8}}, fieldManager="bob"),
        _W.patch("status", "a", {"status": {"phase": "Sold", "conditions": [_READY]}}, sub="status"),
        _W.patch("status: bad condition", "a", {"status": {"conditions": [{"type": "Ready"}]}}, sub="status"),
        _W.patch("status: by the main path", "a", {"status": {"phase": "Lost"}}),
        _W.update("status: update", "a", {"status": {"phase": "Kept"}, "spec": {"size": 1}}, "status"),
        _W.patch("strategic on a custom kind", "a", {"spec": {"size": 1}}, "strategic"),
        _W.update("update", "a", {"spec": {"size": 9}}),
        _W.put("update: stale", "a", {**widget("a"), "metadata": {"name": "a", "resourceVersion": "1"}}),
        _W.put("update: other name", "b", widget("a")),
        _W.put("update: creates not", "ghost", widget("ghost")),
        _C.create("map", _C.body("c", data={"x": "1"})),
        _C.patch("strategic: map", "c", {"data": {"y": "2"}}, "strategic"),
        _C.patch("strategic: replace", "c", {"data": {"$patch": "replace", "z": "3"}}, "strategic"),
        _C.patch("strategic: nonsense", "c", "nonsense", "strategic"),
        _C.patch("strategic: wrong type", "c", {"data": 7}, "strategic"),
        NODES.create("node", node("patching-node")),
        NODES.patch("strategic: taint", "patching-node", _taints("a", "NoSchedule"), "strategic"),
        NODES.patch("strategic: second taint", "patching-node", _taints("b", "NoExecute"), "strategic"),
        NODES.patch("strategic: delete a taint", "patching-node", _untaint("a"), "strategic"),
        NODES.patch(
            "strategic: condition", "patching-node", _condition("DiskPressure", "False"), "strategic", "status"
        ),
        NODES.patch("strategic: same condition", "patching-node", _condition("Ready", "False"), "strategic", "status"),
        NODES.patch("merge: cordon", "patching-node", {"spec": {"unschedulable": True}}),
        NODES.patch("strategic: uncordon", "patching-node", {"spec": {"unschedulable": None}}, "strategic"),
        NODES.patch("json: provider", "patching-node", [_ADD_PROVIDER], "json"),
        NODES.patch("merge: another provider", "patching-node", {"spec": {"providerID": "x://2"}}),
        NODES.delete("node goes", "patching-node"),
        _P.create("pod", pod("p", "nowhere", app="x")),
        _P.patch("strategic: container", "p", {"spec": {"containers": [{"name": "c", "image": "c:2"}]}}, "strategic"),
        _P.patch("strategic: pod condition", "p", {"status": {"conditions": [_READY]}}, "strategic", "status"),
    ),
)

_A = widgets("applying")
_FORCE = {"force": "true"}


def _wanted(size: int | None = None, **spec: Any) -> dict[str, Any]:
    body = widget("a", **spec)
    body["spec"] = {**spec, **({} if size is None else {"size": size})}
    return body


_YAML = f"""
apiVersion: {GROUP}/v1
kind: Widget
metadata: {{name: yam}}
spec:
  size: 3
  parts:
  - name: lid
"""

APPLYING = Story(
    "applying",
    (
        space("applying"),
        _A.apply("create", "a", _wanted(1, owner="ann", parts=[{"name": "lid", "count": 1}, {"name": "leg"}])),
        _A.apply("the same", "a", _wanted(1, owner="ann", parts=[{"name": "lid", "count": 1}, {"name": "leg"}])),
        _A.apply("one field less", "a", _wanted(1, parts=[{"name": "lid", "count": 1}, {"name": "leg"}])),
        _A.apply("one part less", "a", _wanted(1, parts=[{"name": "leg"}])),
        _A.apply("conflict", "a", _wanted(2), "bob"),
        _A.apply("same value, shared", "a", _wanted(1), "bob"),
        _A.apply("own field", "a", _wanted(1, owner="bob"), "bob"),
        _A.apply("own part", "a", _wanted(1, parts=[{"name": "arm", "count": 2}]), "bob"),
        _A.apply(
            "two conflicts", "a", _wanted(9, parts=[{"name": "leg", "count": 9}, {"name": "arm", "count": 9}]), "eve"
        ),
        _A.apply("forced", "a", _wanted(2), "bob", **_FORCE),
        _A.apply("forced back", "a", _wanted(1, parts=[{"name": "leg"}]), **_FORCE),
        _A.patch("update by hand", "a", {"spec": {"size": 5}}, fieldManager="hand"),
        _A.apply("conflict with an update", "a", _wanted(1), "bob"),
        _A.apply("nothing", "a", _wanted(), "bob"),
        _A.apply("invalid", "a", _wanted(-1), "bob", **_FORCE),
        _A.apply("unknown field", "a", _wanted(5, speed=1), "bob"),
        _A.apply("unknown field, strict", "a", _wanted(5, speed=1), "bob", fieldValidation="Strict"),
        _A.apply("dry run", "a", _wanted(5, owner="dry"), "dry", dryRun="All"),
        _A.apply("status by the main path", "a", {**_wanted(5), "status": {"phase": "x"}}, "bob"),
        _A.apply("status", "a", {**_wanted(), "status": {"phase": "Sold"}}, "bob", "status"),
        _A.apply("status conflict", "a", {**_wanted(), "status": {"phase": "Kept"}}, "eve", "status"),
        _A.apply("twice a key", "a", _wanted(5, parts=[{"name": "x"}, {"name": "x"}]), "bob"),
        _A.apply("no key", "a", _wanted(5, parts=[{"count": 1}]), "bob"),
        _A.apply("no name", "b", {**_wanted(1), "metadata": {}}),
        _A.apply("other name", "b", _wanted(1)),
        _A.apply("managed fields given", "a", {**_wanted(1), "metadata": {"name": "a", "managedFields": []}}, "bob"),
        _A.apply("no kind", "a", {"apiVersion": f"{GROUP}/v1", "metadata": {"name": "a"}}),
        _A.apply("a list", "a", []),
        _A.apply("yaml", "yam", _YAML),
        _A.apply("bad yaml", "yam", "a: [1"),
        _A.apply(
            "labels", "yam", {**widget("yam", 3), "metadata": {"name": "yam", "labels": {"x": "1", "z": "2"}}}, "eve"
        ),
        _A.apply("labels go", "yam", {**widget("yam", 3), "metadata": {"name": "yam", "labels": {"x": "1"}}}, "eve"),
        _A.apply("free field", "yam", {**widget("yam", 3), "spec": {"extra": {"b": {"c": 1}, "l": [1, 2]}}}, "zoe"),
        _A.patch("managed fields wiped", "yam", {"metadata": {"managedFields": [{}]}}),
        _A.apply("a null", "yam", {**widget("yam", 3), "spec": {"size": None}}, "nul"),
        _A.patch("without a manager", "a", _wanted(1), "apply"),
        _A.get("in the end", "a"),
        config_maps("applying").apply("map", "c", config_maps("applying").body("c", data={"x": "1", "y": "2"})),
        config_maps("applying").apply("map, conflict", "c", config_maps("applying").body("c", data={"x": "3"}), "bob"),
        config_maps("applying").apply("map, less", "c", config_maps("applying").body("c", data={"x": "1"})),
    ),
)

_S, _SP = widgets("parts"), pods("parts")
_SETS = Collection("apps/v1", "Deployment", "deployments", "parts")
_ACCOUNTS = Collection("v1", "ServiceAccount", "serviceaccounts", "parts")
_SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
_TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}
_RUNNING = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}


def _evict(label: str, name: str, **more: Any) -> Request:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "parts"}, **more}
    return _SP.post_to(label, name, "eviction", body)


def _review(label: str, group: str, kind: str, plural: str, **parts: Any) -> Request:
    body = {"apiVersion": f"{group}/v1", "kind": kind, **parts}
    return Request(label, "create", "POST", f"/apis/{group}/v1/{plural}", body, {"Content-Type": "application/json"})


SUBRESOURCES = Story(
    "subresources",
    (
        space("parts"),
        _S.create("make", widget("a", replicas=2)),
        _S.get("scale", "a", "scale"),
        _S.patch("status", "a", {"status": {"replicas": 2, "selector": "app=a"}}, sub="status"),
        _S.get("scale with a selector", "a", "scale"),
        _S.patch("scale: merge", "a", {"spec": {"replicas": 3}}, sub="scale"),
        _S.patch("scale: json", "a", [{"op": "replace", "path": "/spec/replicas", "value": 4}], "json", "scale"),
        _S.patch("scale: negative", "a", {"spec": {"replicas": -1}}, sub="scale"),
        _S.patch("scale: text", "a", {"spec": {"replicas": "many"}}, sub="scale"),
        _S.update("scale: update", "a", {"spec": {"replicas": 5}}, "scale"),
        _S.put("scale: stale", "a", {**_SCALE, "metadata": {"name": "a", "resourceVersion": "1"}, "spec": {}}, "scale"),
        _S.put("scale: other kind", "a", widget("a"), "scale"),
        _S.get("scaled", "a"),
        _S.get("status is read", "a", "status"),
        _S.get("no such part", "a", "taste"),
        _S.post_to("a status can't be created", "a", "status", {}),
        Request("a status can't be deleted", "delete", "DELETE", f"{_S.path}/a/status"),
        _SETS.create(
            "deployment",
            _SETS.body("d", spec={"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": _TEMPLATE}),
        ),
        _SETS.get("deployment scale", "d", "scale"),
        _SETS.patch("deployment scale: merge", "d", {"spec": {"replicas": 0}}, sub="scale"),
        _SETS.patch(
            "deployment: image",
            "d",
            {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "c:2"}]}}}},
            "strategic",
        ),
        _SP.create("pod", pod("p", "nowhere", app="x")),
        _SP.patch("pod runs", "p", _RUNNING, "strategic", "status"),
        _SP.create("pod of another app", pod("q", "nowhere", app="y")),
        _evict("evict: free", "q"),
        _evict("evict: dry run", "p", deleteOptions={"dryRun": ["All"]}),
        _evict("evict: other name", "p", metadata={"name": "q"}),
        _evict("evict: wrong uid", "p", deleteOptions={"preconditions": {"uid": "x"}}),
        _evict("evict: missing", "ghost"),
        _SP.post_to("bind", "p", "binding", {"apiVersion": "v1", "kind": "Binding", "target": {"name": "n"}}),
        _SP.post_to(
            "bind: missing", "ghost", "binding", {"apiVersion": "v1", "kind": "Binding", "target": {"name": "n"}}
        ),
        _ACCOUNTS.create("account", _ACCOUNTS.body("robot")),
        _ACCOUNTS.post_to("token: bad time", "robot", "token", {"spec": {"expirationSeconds": 5}}),
        _ACCOUNTS.post_to("token: missing", "ghost", "token", {"spec": {}}),
        _review("who am I", "authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews"),
        _review(
            "may I",
            "authorization.k8s.io",
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
            spec={"resourceAttributes": {"verb": "get", "resource": "nodes"}},
        ),
    ),
)

WRITING_STORIES = (PATCHING, APPLYING, SUBRESOURCES)
