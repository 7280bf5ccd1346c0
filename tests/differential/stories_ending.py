"""Deleting in every way, the garbage that owners leave, and requests that make no sense."""

from __future__ import annotations

import json
from typing import Any

from tests.differential.sending import JSON, NAMESPACES, config_maps, space, widgets
from tests.differential.speech import Request, Story
from tests.kubectl.manifests import GROUP, widget

_D = widgets("deleting")
_HOLD = f"{GROUP}/hold"


def _held(name: str, *finalizers: str) -> dict[str, Any]:
    return {**widget(name), "metadata": {"name": name, "finalizers": list(finalizers)}}


def _labelled(name: str, tier: str) -> dict[str, Any]:
    return {**widget(name), "metadata": {"name": name, "labels": {"tier": tier}}}


DELETING = Story(
    "deleting",
    (
        space("deleting"),
        *(_D.create(f"make {name}", widget(name)) for name in "abcde"),
        _D.delete("dry run", "a", dryRun="All"),
        _D.delete("dry run in the body", "a", {"dryRun": ["All"]}),
        _D.delete("wrong uid", "a", {"preconditions": {"uid": "x"}}),
        _D.delete("wrong version", "a", {"preconditions": {"resourceVersion": "1"}}),
        _D.delete("right uid", "a", {"preconditions": {"uid": "{make a|metadata.uid}"}}),
        _D.delete("again", "a"),
        _D.delete("background", "b", propagationPolicy="Background"),
        _D.delete("orphan", "c", {"propagationPolicy": "Orphan", "dryRun": ["All"]}),
        _D.delete("unknown policy", "c", {"propagationPolicy": "Sideways"}),
        _D.delete("two policies", "c", {"propagationPolicy": "Orphan", "orphanDependents": True}),
        _D.delete("grace", "c", gracePeriodSeconds="30"),
        _D.delete("negative grace", "d", gracePeriodSeconds="-1"),
        _D.delete("grace no number", "d", gracePeriodSeconds="soon"),
        _D.delete("body of another kind", "d", widget("d")),
        _D.delete("body nonsense", "d", "nonsense"),
        _D.delete("body a list", "d", []),
        _D.create("held", _held("h", _HOLD)),
        _D.delete("held: delete", "h"),
        _D.delete("held: again", "h"),
        _D.get("held: still there", "h"),
        _D.patch("held: spec changes", "h", {"spec": {"size": 9}}),
        _D.patch("held: no new finalizer", "h", {"metadata": {"finalizers": [_HOLD, f"{GROUP}/more"]}}),
        _D.patch("held: let go", "h", {"metadata": {"finalizers": None}}),
        _D.get("held: gone", "h"),
        *(_D.create(f"group {name}", _labelled(name, tier)) for name, tier in (("g", "x"), ("i", "x"), ("j", "y"))),
        _D.delete_all("some, dry", labelSelector="tier=x", dryRun="All"),
        _D.delete_all("some", labelSelector="tier=x"),
        _D.delete_all("by field", fieldSelector="metadata.name=j"),
        _D.delete_all("bad selector", labelSelector="a in"),
        _D.delete_all("by body", {"propagationPolicy": "Sideways"}),
        _D.delete_all("all"),
        _D.delete_all("none"),
        _D.list("nothing left"),
        config_maps("deleting").create("map", config_maps("deleting").body("c")),
        config_maps("deleting").delete("map goes", "c"),
        NAMESPACES.delete("no namespace of the system", "kube-system"),
        Request("all namespaces at once", "deletecollection", "DELETE", "/api/v1/namespaces"),
    ),
)

_G = widgets("garbage")


def _of(name: str, *owners: str, blocks: bool = False, finalizers: tuple[str, ...] = ()) -> dict[str, Any]:
    references = [
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Widget",
            "name": owner,
            "uid": f"{{make {owner}|metadata.uid}}",
            "blockOwnerDeletion": blocks,
        }
        for owner in owners
    ]
    return {**widget(name), "metadata": {"name": name, "ownerReferences": references, "finalizers": list(finalizers)}}


def _make(name: str, *owners: str, **more: Any) -> Request:
    return _G.create(f"make {name}", _of(name, *owners, **more) if owners else widget(name))


GARBAGE = Story(
    "garbage",
    (
        space("garbage"),
        _make("a"),
        _make("a-child", "a"),
        _make("a-grandchild", "a-child"),
        _G.delete("background", "a", {"propagationPolicy": "Background"}),
        _G.get("background: child goes", "a-child", until=404),
        _G.get("background: grandchild goes", "a-grandchild", until=404),
        _make("f"),
        _make("f-child", "f", blocks=True, finalizers=(_HOLD,)),
        _G.delete("foreground", "f", {"propagationPolicy": "Foreground"}),
        _G.get("foreground: owner waits", "f"),
        _G.delete("foreground: child is asked to go", "f-child"),
        _G.patch("foreground: child let go", "f-child", {"metadata": {"finalizers": None}}),
        _G.get("foreground: child is gone", "f-child", until=404),
        _G.get("foreground: owner is gone", "f", until=404),
        _make("o"),
        _make("o-child", "o"),
        _G.delete("orphan", "o", {"propagationPolicy": "Orphan"}),
        _G.get("orphan: owner is gone", "o", until=404),
        _G.get("orphan: child stays", "o-child"),
        _make("p"),
        _make("q"),
        _make("pq", "p", "q"),
        _G.delete("one of two owners", "p", {"propagationPolicy": "Background"}),
        _G.get("it is gone", "p", until=404),
        _G.delete("the other", "q", {"propagationPolicy": "Background"}),
        _G.get("both are gone", "pq", until=404),
        _G.create(
            "of nobody",
            _of_nobody := {
                **widget("lost"),
                "metadata": {
                    "name": "lost",
                    "ownerReferences": [
                        {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "name": "ghost", "uid": "0000"}
                    ],
                },
            },
        ),
        _G.get("of nobody: gone", "lost", until=404),
        _make("n"),
        NAMESPACES.create("space", NAMESPACES.body("garbage-space")),
        widgets("garbage-space").create("in the space", widget("w")),
        NAMESPACES.delete("space goes", "garbage-space"),
        NAMESPACES.get("space is gone", "garbage-space", until=404),
        widgets("garbage-space").list("nothing is left"),
    ),
    background=True,
)

_N = widgets("nonsense")
_TWICE = json.dumps(widget("t", 1)).replace('"size": 1', '"size": 1, "size": 2')
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch (merge)"}
_PATH = _N.path


def _ask(label: str, method: str, path: str, body: Any = None, **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(label, _VERBS.get(method, method.lower()), method, path, body, named)


NONSENSE = Story(
    "nonsense",
    (
        space("nonsense"),
        _N.create("make", widget("a")),
        _ask("no such path", "GET", "/nothing/here"),
        _ask("no such path below", "GET", "/api/v1/nothing"),
        _ask("an empty name", "GET", f"{_PATH}//"),
        _ask("post to an object", "POST", f"{_PATH}/a", widget("a"), **JSON),
        _ask("put to a collection", "PUT", _PATH, widget("a"), **JSON),
        _ask("patch of a collection", "PATCH", _PATH, {}, Content_Type="application/merge-patch+json"),
        _ask("a namespaced kind without one", "POST", f"/apis/{GROUP}/v1/widgets", widget("b"), **JSON),
        _ask("a cluster kind in a namespace", "GET", "/api/v1/namespaces/nonsense/nodes"),
        _ask("an unused method", "TRACE", _PATH),
        _ask("no media type", "POST", _PATH, '{"kind": "Widget"}', Content_Type=""),
        _ask("another media type", "POST", _PATH, "a=b", Content_Type="application/x-www-form-urlencoded"),
        _ask("an unknown patch", "PATCH", f"{_PATH}/a", {}, Content_Type="application/json"),
        _ask("no JSON", "POST", _PATH, "{", **JSON),
        _ask("an empty body", "POST", _PATH, "", **JSON),
        _ask("a number", "POST", _PATH, "7", **JSON),
        _ask("an empty object", "POST", _PATH, {}, **JSON),
        _ask(
            "twice a field",
            "POST",
            f"{_PATH}?fieldValidation=Strict",
            _TWICE,
            **JSON,
        ),
        _ask("twice a field, warned", "POST", f"{_PATH}?fieldValidation=Warn&dryRun=All", _TWICE, **JSON),
        _ask(
            "yaml",
            "POST",
            f"{_PATH}?dryRun=All",
            "apiVersion: shop.example.com/v1\nkind: Widget\nmetadata: {name: yam}\nspec: {size: 1}\n",
            Content_Type="application/yaml",
        ),
        _ask("bad yaml", "POST", _PATH, "a: [1", Content_Type="application/yaml"),
        _N.create("generated", {**widget("x"), "metadata": {"generateName": "gen-"}}),
        _N.create("generated and named", {**widget("x"), "metadata": {"name": "named", "generateName": "gen-"}}),
        _N.create("with a uid", {**widget("x"), "metadata": {"name": "x1", "uid": "u", "generation": 7}}),
        _N.create("with a version", {**widget("x"), "metadata": {"name": "x2", "resourceVersion": "5"}}),
        _N.create(
            "with a deletion", {**widget("x"), "metadata": {"name": "x3", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
        ),
        _N.create("dry run", widget("dry"), dryRun="All"),
        _N.create("bad manager", widget("x"), fieldManager="a\nb"),
        _N.create("bad validation", widget("x"), fieldValidation="Maybe"),
        _N.get("bad pretty", "a", pretty="maybe"),
        _ask("health", "GET", "/healthz"),
        _ask("readiness", "GET", "/readyz"),
        _ask("liveness", "GET", "/livez"),
        _ask("our group", "GET", "/apis/cluster.k8s.io"),
        _ask("our resources", "GET", "/apis/cluster.k8s.io/v1alpha1"),
        _ask("resources of the shop", "GET", f"/apis/{GROUP}/v1"),
        _ask("a group that is not there", "GET", "/apis/nobody.example.com"),
        _ask("the oldest group", "GET", "/api"),
    ),
)

ENDING_STORIES = (DELETING, GARBAGE, NONSENSE)
