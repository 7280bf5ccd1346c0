"""The part of the dialogue that is about custom resources and what holds for all kinds."""

from __future__ import annotations

from typing import Any

from nodewright.apiserver.values import Obj, PatchType
from tests.apiserver.store.cluster import crd
from tests.apiserver.store.golden.dialogue import SPACE, Step

KIND = ("apiextensions.k8s.io/v1/customresourcedefinitions", "cluster.example.com/v1/machines")


def _machine(name: str = "m", **parts: Any) -> Obj:
    meta = {"name": name, **parts.pop("meta", {})}
    head = {"apiVersion": "cluster.example.com/v1", "kind": "Machine"}
    return {**head, "metadata": meta, "spec": {"replicas": 1}, **parts}


def _without(body: Obj, field: str) -> Obj:
    return {k: v for k, v in body.items() if k != field}


def _create(label: str, body: Any, namespace: str = SPACE, **query: str) -> Step:
    return Step(f"create: {label}", "create", KIND[1], body=body, namespace=namespace, query=query)


def _put(label: str, name: str, body: Obj, on_current: bool = True) -> Step:
    return Step(f"update: {label}", "update", KIND[1], name, body, on_current=on_current)


def _patch(label: str, name: str, body: Any, how: PatchType = "merge", sub: str = "", **query: str) -> Step:
    return Step(f"patch: {label}", "patch", KIND[1], name, body, subresource=sub, query=query, patch=how)


def _delete(label: str, name: str, **body: Any) -> Step:
    return Step(f"delete: {label}", "delete", KIND[1], name, body or None)


def _get(label: str, name: str, sub: str = "") -> Step:
    return Step(f"get: {label}", "get", KIND[1], name, subresource=sub)


def _list(label: str, **query: str) -> Step:
    return Step(f"list: {label}", "list", KIND[1], query=query)


_OWNER = {"apiVersion": "v1", "kind": "A", "name": "n", "uid": "u", "controller": True}

_SETUP = [
    Step(
        "namespace",
        "create",
        "/v1/namespaces",
        body={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
    ),
    Step("kind", "create", KIND[0], body=crd()),
    Step("kind, established", "get", KIND[0], "machines.cluster.example.com"),
]

_CREATES = [
    _create("plain", _machine()),
    _create("name taken", _machine()),
    _create("no name", _machine(meta={"name": ""})),
    _create("upper case name", _machine("Upper")),
    _create("long name", _machine("x" * 254)),
    _create("long bad name", _machine("-x" * 200)),
    _create("wrong type", _machine("n", spec={"replicas": "x"})),
    _create("negative", _machine("n", spec={"replicas": -1})),
    _create("no spec", _without(_machine("n"), "spec")),
    _create("no namespace", _machine("n"), namespace="nowhere"),
    _create("other namespace", _machine("n", meta={"namespace": "other"})),
    _create("other version", _machine("n", apiVersion="cluster.example.com/v2")),
    _create("other group", _machine("n", apiVersion="v2")),
    _create("no version", _without(_machine("n"), "apiVersion")),
    _create("other kind", _machine("n", kind="Car")),
    _create("no kind", _without(_machine("n"), "kind")),
    _create("a list", []),
    _create("label key", _machine("n", meta={"labels": {"bad key": "x"}})),
    _create("label key with slashes", _machine("n", meta={"labels": {"a/b/c": "x"}})),
    _create("label key without prefix", _machine("n", meta={"labels": {"/x": "x"}})),
    _create("label key empty", _machine("n", meta={"labels": {"": "x"}})),
    _create("label key long", _machine("n", meta={"labels": {"a" * 64: "x"}})),
    _create("label value", _machine("n", meta={"labels": {"a": "no spaces"}})),
    _create("label value long", _machine("n", meta={"labels": {"a": "x" * 64}})),
    _create("label value a number", _machine("n", meta={"labels": {"a": 1}})),
    _create("labels a list", _machine("n", meta={"labels": []})),
    _create("name a number", _machine(meta={"name": 3})),
    _create("metadata a text", {**_machine("n"), "metadata": "x"}),
    _create("annotation key", _machine("n", meta={"annotations": {"/x": "y"}})),
    _create("annotations long", _machine("n", meta={"annotations": {"x": "y" * 300_000}})),
    _create("finalizer", _machine("n", meta={"finalizers": ["not ok"]})),
    _create("finalizer unqualified", _machine("n", meta={"finalizers": ["plain"]}), dryRun="All"),
    _create("finalizer a number", _machine("n", meta={"finalizers": [1]})),
    _create("finalizers a text", _machine("n", meta={"finalizers": "x"})),
    _create("owner incomplete", _machine("n", meta={"ownerReferences": [{"kind": "A"}]})),
    _create("owner version", _machine("n", meta={"ownerReferences": [{**_OWNER, "apiVersion": "a/b/c"}]})),
    _create("two controllers", _machine("n", meta={"ownerReferences": [_OWNER, {**_OWNER, "uid": "v"}]})),
    _create("generated bad", _machine(meta={"name": "", "generateName": "Bad_"})),
    _create("unknown field", _machine("n", spec={"colour": 1}), fieldValidation="Strict"),
    _create("unknown fields", _machine("n", spec={"colour": 1, "hue": 2}, foo=1), fieldValidation="Strict"),
    _create("unknown field pruned", _machine("n", spec={"colour": 1}), dryRun="All"),
    _create("unknown validation", _machine("n"), fieldValidation="Maybe"),
    _create("long manager", _machine("n"), fieldManager="x" * 129),
    _create("status dropped", _machine("n", status={"phase": "x"}), dryRun="All"),
]

_UPDATES = [
    _get("missing", "zz"),
    _put("spec", "m", {"spec": {"replicas": 5}}),
    _put("nothing", "m", {}),
    _put("labels", "m", {"metadata": {"labels": {"a": "b"}}}),
    _put("status ignored", "m", {"status": {"phase": "x"}}),
    _put("no resource version", "m", {"metadata": {"resourceVersion": None}}),
    _put("stale", "m", _machine(meta={"resourceVersion": "1"}), on_current=False),
    _put("other name", "zz", _machine(), on_current=False),
    _put("missing", "zz", _machine("zz"), on_current=False),
    _put("other namespace", "m", {"metadata": {"namespace": "other"}}),
    _put("other uid", "m", {"metadata": {"uid": "other"}}),
    _put("creation time", "m", {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}}),
    _put("deletion time", "m", {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}),
    _put("generation", "m", {"metadata": {"generation": 99}}),
    _put("without metadata", "m", {"metadata": {"uid": None, "creationTimestamp": None, "labels": None}}),
    _patch("status", "m", {"status": {"phase": "Ready", "x": 1}, "spec": {"replicas": 9}}, sub="status"),
    _patch("labels by status", "m", {"metadata": {"labels": {"x": "y"}}}, sub="status"),
    _patch("status of wrong type", "m", {"status": {"phase": 1}}, sub="status"),
    _patch("rename", "m", {"metadata": {"name": "q"}}),
    _patch("move", "m", {"metadata": {"namespace": "q"}}),
    _patch("kind", "m", {"kind": "q"}),
    _patch("version", "m", {"apiVersion": "q"}),
    _patch("stale", "m", {"metadata": {"resourceVersion": "1"}}),
    _patch("uid", "m", {"metadata": {"uid": "q"}}),
    _patch("no metadata", "m", {"metadata": None}),
    _patch("missing", "zz", {}),
    _patch("forced", "m", {}, force="true"),
    _patch("strategic", "m", {}, "strategic"),
    _patch("operations", "m", [{"op": "replace", "path": "/spec/replicas", "value": 6}], "json"),
    _patch("failed test", "m", [{"op": "test", "path": "/spec/replicas", "value": 7}], "json"),
    _patch("pool", "m", {"spec": {"pool": "a"}}),
    _patch("pool again", "m", {"spec": {"pool": "b"}}),
    _patch("apply without manager", "m", _machine(), "apply"),
    _patch("apply", "m", _machine(spec={"version": "v1"}), "apply", fieldManager="ap", force="true"),
    _patch("apply conflict", "m", _machine(spec={"replicas": 77}), "apply", fieldManager="ap"),
    _patch("apply new", "applied", _machine("applied"), "apply", fieldManager="ap"),
    _patch("apply again", "applied", _machine("applied"), "apply", fieldManager="ap"),
    _patch("apply other name", "applied", _machine("q"), "apply", fieldManager="ap"),
    _patch("apply without name", "applied", {**_machine(), "metadata": {}}, "apply", fieldManager="ap"),
    _patch("apply uid", "q", _machine("q", meta={"uid": "u"}), "apply", fieldManager="ap"),
    _patch("apply status of nothing", "q", _machine("q"), "apply", "status", fieldManager="ap"),
]

_SCALES = [
    _get("scale", "m", "scale"),
    _get("scale of nothing", "zz", "scale"),
    _patch("scale", "m", {"spec": {"replicas": 4}}, sub="scale"),
    _get("scaled", "m"),
    _patch("scale negative", "m", {"spec": {"replicas": -1}}, sub="scale"),
    Step(
        "update: scale stale",
        "update",
        KIND[1],
        "m",
        {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "m", "resourceVersion": "1"},
            "spec": {"replicas": 3},
        },
        subresource="scale",
    ),
    Step("update: scale", "update", KIND[1], "m", {"spec": {"replicas": 0}}, subresource="scale", on_current=True),
]

_SELECTORS = (
    "a=b a==b a!=b a!=b,x=y !a a in(b) a,x=y a=b=c a|in|b in|(a) a|> =x a|in|(b -a a=-b a>x a>1 a|in|() a|in|(b,) a|b "
    "a! a==b,,c , a, ! x|notin|(y,z) a|in|(b,c),x"
)
_FIELDS = (
    "metadata.name=m",
    "metadata.name!=m",
    "metadata.name==m",
    "metadata.name",
    "metadata.name=a=b",
    "spec.x=1",
)

_LISTS = [
    *(
        _list(f"labels {text.replace('|', ' ')}", labelSelector=text.replace("|", " "))
        for text in _SELECTORS.split(" ")
    ),
    *(_list(f"fields {text}", fieldSelector=text) for text in _FIELDS),
    _list("bad match", resourceVersion="1", resourceVersionMatch="Sometimes"),
    _list("match of nothing", resourceVersionMatch="Exact"),
    _list("match of zero", resourceVersion="0", resourceVersionMatch="Exact"),
    _list("first page", limit="1"),
]

_DELETES = [
    _delete("other uid", "m", preconditions={"uid": "x"}),
    _delete("other version", "m", preconditions={"resourceVersion": "1"}),
    _delete("missing", "zz"),
    _delete("bad propagation", "m", propagationPolicy="Sideways"),
    _create("with finalizer", _machine("f", meta={"finalizers": ["a.b/c"]})),
    _delete("held", "f"),
    _create("over a deleting one", _machine("f")),
    _patch("finalizer added too late", "f", {"metadata": {"finalizers": ["a.b/c", "a.b/d"]}}),
    _patch("undelete", "f", {"metadata": {"deletionTimestamp": None}}),
    _put("grace", "f", {"metadata": {"deletionGracePeriodSeconds": 5}}),
    _delete("held again, foreground", "f", propagationPolicy="Foreground"),
    _delete("held again, background", "f", propagationPolicy="Background"),
    _patch("released", "f", {"metadata": {"finalizers": None}}),
    _get("released", "f"),
    _delete("at once", "m"),
    _create("to orphan", _machine("o", meta={"finalizers": ["a.b/c"]})),
    _delete("orphaning", "o", propagationPolicy="Foreground"),
    _patch("o released", "o", {"metadata": {"finalizers": None}}),
]

CUSTOM_STEPS = [*_SETUP, *_CREATES, *_UPDATES, *_SCALES, *_LISTS, *_DELETES]
