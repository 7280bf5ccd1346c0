"""Reading: selectors, pages, versions, tables, watches."""

from __future__ import annotations

from tests.differential.sending import METADATA, METADATA_LIST, NAMESPACES, NODES, TABLE, config_maps, space, widgets
from tests.differential.speech import Request, Story
from tests.kubectl.manifests import node, widget

_W, _C = widgets("reading"), config_maps("reading")
_LABELS = {"a": {"tier": "gold", "rack": "1", "story": "reading"}, "b": {"tier": "tin"}, "c": {"rack": "2"}}
_SELECTORS = (
    "tier",
    "!tier",
    "tier=gold",
    "tier!=gold",
    "tier in (gold,tin)",
    "tier notin (gold)",
    "rack>1",
    "rack<2,tier",
    "tier==",
    "=",
    "tier in gold",
    "a/b/c=1",
)
_FIELDS = (
    "metadata.name=a",
    "metadata.name!=a",
    "metadata.namespace=reading",
    "metadata.name=a,metadata.namespace=other",
    "spec.size=1",
    "metadata.labels=x",
    "=a",
)

READING = Story(
    "reading",
    (
        space("reading"),
        *(
            _W.create(f"make {name}", {**widget(name), "metadata": {"name": name, "labels": labels}})
            for name, labels in _LABELS.items()
        ),
        *(_C.create(f"map {name}", _C.body(name, data={"x": name}, meta={"labels": _LABELS[name]})) for name in "abc"),
        _W.get("one", "a"),
        _W.get("one at a version", "a", resourceVersion="0"),
        _W.get("one at the version it has", "a", resourceVersion="{make a|metadata.resourceVersion}"),
        _W.get("one of the future", "a", resourceVersion="999999999"),
        _W.get("one at nonsense", "a", resourceVersion="abc"),
        _W.get("missing", "ghost"),
        *(_W.list(f"labels {text}", labelSelector=text) for text in _SELECTORS),
        *(_C.list(f"maps {text}", labelSelector=text) for text in ("tier=gold", "tier in gold")),
        *(_W.list(f"fields {text}", fieldSelector=text) for text in _FIELDS),
        *(_C.list(f"fields of maps {text}", fieldSelector=text) for text in ("metadata.name=b", "data.x=a", "=a")),
        _W.list("both selectors", labelSelector="tier", fieldSelector="metadata.name=b"),
        _W.list("everything"),
        _C.list("maps", labelSelector="!nobody,tier"),
        # With the label of this story: what others have left goes later on the real plane than on the embedded one.
        Request("all namespaces", "list", "GET", "/apis/shop.example.com/v1/widgets?labelSelector=story%3Dreading"),
        Request("no such namespace", "list", "GET", "/apis/shop.example.com/v1/namespaces/nowhere/widgets"),
        Request("no such plural", "list", "GET", "/apis/shop.example.com/v1/namespaces/reading/gadgets"),
        Request("no such version", "list", "GET", "/apis/shop.example.com/v2/namespaces/reading/widgets"),
        Request("no such group", "list", "GET", "/apis/nobody.example.com/v1/things"),
        NAMESPACES.get("a namespace", "reading"),
        NAMESPACES.list("namespaces by name", fieldSelector="metadata.name=reading"),
        NAMESPACES.list("namespaces by phase", fieldSelector="status.phase=Active,metadata.name=reading"),
        NODES.create("node", {**node("reading-node"), "spec": {"unschedulable": True}}),
        NODES.list("nodes unschedulable", fieldSelector="spec.unschedulable=true,metadata.name=reading-node"),
        NODES.list("nodes by bad field", fieldSelector="spec.podCIDR=x"),
        NODES.get("node as a table", "reading-node", accept=TABLE),
        NODES.delete("node goes", "reading-node"),
    ),
)

PAGES = Story(
    "pages",
    (
        space("pages"),
        *(widgets("pages").create(f"make {n}", widget(f"w{n}")) for n in range(5)),
        widgets("pages").list("first", limit="2"),
        widgets("pages").list("second", limit="2", continue_="{first|metadata.continue}"),
        widgets("pages").list("last", limit="2", continue_="{second|metadata.continue}"),
        widgets("pages").list("rest", continue_="{first|metadata.continue}"),
        widgets("pages").list("with labels", limit="2", labelSelector="!x"),
        widgets("pages").list("zero", limit="0"),
        widgets("pages").list("negative", limit="-1"),
        widgets("pages").list("no number", limit="many"),
        widgets("pages").list("nonsense", continue_="nonsense"),
        widgets("pages").list("continued at a version", continue_="{first|metadata.continue}", resourceVersion="1"),
        widgets("pages").list("version 0", limit="2", resourceVersion="0"),
        widgets("pages").list(
            "exact", resourceVersion="{first|metadata.resourceVersion}", resourceVersionMatch="Exact"
        ),
        widgets("pages").list(
            "not older", resourceVersion="{first|metadata.resourceVersion}", resourceVersionMatch="NotOlderThan"
        ),
        widgets("pages").list("at a version", resourceVersion="{make 1|metadata.resourceVersion}"),
        widgets("pages").list(
            "exactly an old one", resourceVersion="{make 1|metadata.resourceVersion}", resourceVersionMatch="Exact"
        ),
        widgets("pages").list("match alone", resourceVersionMatch="Exact"),
        widgets("pages").list("unknown match", resourceVersion="1", resourceVersionMatch="Roughly"),
        widgets("pages").list("exactly zero", resourceVersion="0", resourceVersionMatch="Exact"),
        widgets("pages").list("bad version", resourceVersion="abc"),
        widgets("pages").list("initial events", sendInitialEvents="true"),
        widgets("pages").create("one more", widget("w9")),
        widgets("pages").list("the old snapshot goes on", limit="9", continue_="{first|metadata.continue}"),
    ),
)

_T = widgets("tables")
TABLES = Story(
    "tables",
    (
        space("tables"),
        _T.create("make", widget("a", 3)),
        _T.list("table", accept=TABLE),
        _T.get("table of one", "a", accept=TABLE),
        _T.list("table with objects", accept=TABLE, includeObject="Object"),
        _T.list("table without objects", accept=TABLE, includeObject="None"),
        _T.list("table of nonsense", accept=TABLE, includeObject="Some"),
        _T.list("table of a page", accept=TABLE, limit="1"),
        _T.list("table of nothing", accept=TABLE, labelSelector="x"),
        _T.list("metadata", accept=METADATA_LIST),
        _T.get("metadata of one", "a", accept=METADATA),
        _T.list("not acceptable", accept="text/plain"),
        _T.list("a table in another version", accept="application/json;as=Table;v=v2;g=meta.k8s.io"),
        _T.get("missing in a table", "ghost", accept=TABLE),
        config_maps("tables").create("map", config_maps("tables").body("c", data={"x": "1", "y": "2"})),
        config_maps("tables").get("table of a map", "c", accept=TABLE),
        NAMESPACES.get("table of a namespace", "tables", accept=TABLE),
        _T.watch("watch as a table", 1, accept=TABLE, resourceVersion="0"),
        _T.watch("watch as metadata", 1, accept=METADATA, resourceVersion="0"),
    ),
)

_V = widgets("watching")
_SINCE = "{start|metadata.resourceVersion}"
WATCHING = Story(
    "watching",
    (
        space("watching"),
        _V.list("start"),
        _V.create("make a", widget("a")),
        _V.patch("label a", "a", {"metadata": {"labels": {"tier": "gold"}}}),
        _V.create("make b", widget("b")),
        _V.patch("unlabel a", "a", {"metadata": {"labels": {"tier": None}}}),
        _V.delete("delete b", "b"),
        _V.watch("everything", 5, resourceVersion=_SINCE),
        _V.watch("by label", 2, resourceVersion=_SINCE, labelSelector="tier=gold"),
        _V.watch("by name", 2, resourceVersion=_SINCE, fieldSelector="metadata.name=b"),
        _V.watch("from a later one", 2, resourceVersion="{make b|metadata.resourceVersion}"),
        _V.watch("what is there", 1, resourceVersion="0"),
        _V.watch("what is there, unversioned", 1),
        _V.watch(
            "initial events",
            2,
            sendInitialEvents="true",
            resourceVersionMatch="NotOlderThan",
            allowWatchBookmarks="true",
        ),
        _V.watch(
            "no initial events",
            1,
            sendInitialEvents="false",
            resourceVersionMatch="NotOlderThan",
            timeoutSeconds="3",  # nothing comes
        ),
        _V.watch("initial events without a match", 1, sendInitialEvents="true"),
        _V.watch("a match without initial events", 1, resourceVersionMatch="NotOlderThan"),
        _V.watch("bad version", 1, resourceVersion="abc"),
        _V.watch("bad selector", 1, labelSelector="a in"),
        _V.watch("bad field", 1, fieldSelector="spec.x=1"),
        _V.watch("bad timeout", 1, timeoutSeconds="soon"),
        _V.watch("of the far future", 1, resourceVersion="99999999999", timeoutSeconds="1"),
        _V.watch("it ends in time", 1, resourceVersion="{delete b|metadata.resourceVersion}", timeoutSeconds="1"),
        Request(
            "of one object",
            "watch",
            "GET",
            f"{_V.path}?watch=1&fieldSelector=metadata.name%3Da&resourceVersion={_SINCE}&timeoutSeconds=60",
            events=3,
        ),
        Request("the old way", "watch", "GET", "/apis/shop.example.com/v1/watch/namespaces/watching/widgets", events=1),
    ),
)

READING_STORIES = (READING, PAGES, TABLES, WATCHING)
