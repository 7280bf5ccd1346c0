"""Makes the golden files anew: `python -m tests.apiserver.table.record KUBECONFIG`, with a fresh real plane.

The objects in the files are their own source: each is created on the real server with the status it has, deleted if it
is being deleted, and read again as a row of a Table (and, for the tests of protobuf, as protobuf).
"""

from __future__ import annotations

import json
import ssl
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.apiserver.table.test_custom_columns import TYPES
from tests.apiserver.table.test_golden_tables import WIDGET_COLUMNS

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLES = Path(__file__).parent / "golden"
BODIES = Path(__file__).parents[1] / "protobuf" / "golden" / "server-1.36.json"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVER_FIELDS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
SERVED_SECONDS = 120
"""How long to wait at most for the versions of a CustomResourceDefinition to be served."""


class Server:
    """The real server."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._url = cluster["server"]
        self._context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._context.load_cert_chain(user["client-certificate"], user["client-key"])

    def ask(self, path: str, method: str = "GET", body: Any = None, accept: str = "application/json") -> bytes:
        """Ask, and give the answer's body. Raises HTTPError."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": accept, "Content-Type": kind}
        request = urllib.request.Request(self._url + path, data=data, method=method, headers=headers)
        with urllib.request.urlopen(request, context=self._context, timeout=10) as answer:
            content: bytes = answer.read()
            return content

    def read(self, path: str, accept: str = "application/json") -> Any:
        """Read JSON."""
        return json.loads(self.ask(path, accept=accept))

    def make(self, path: str, obj: Any) -> None:
        """Create an object as it was recorded, status and deletion included; one that is there stays."""
        sent = _as_sent(obj)
        metadata = sent["metadata"]
        try:
            self.ask(path, "POST", sent)
        except urllib.error.HTTPError as error:
            if error.code != 409:
                print(f"{path} {metadata['name']}: {json.loads(error.read())['message']}", file=sys.stderr)
                return
        for part in ("approval", "status") if obj.get("status") else ():
            try:
                self.ask(f"{path}/{metadata['name']}/{part}", "PATCH", {"status": obj["status"]})
            except urllib.error.HTTPError as error:
                if error.code != 404:
                    print(f"{path} {metadata['name']}/{part}: {json.loads(error.read())['message']}", file=sys.stderr)
        if "deletionTimestamp" in obj["metadata"]:
            self.ask(f"{path}/{metadata['name']}?gracePeriodSeconds=0&propagationPolicy=Background", "DELETE")


def _as_sent(obj: Any) -> Any:
    """Take out what the server puts in: it refuses to be told."""
    sent = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k not in SERVER_FIELDS}}
    if obj["kind"] == "Job":
        spec = {k: v for k, v in obj["spec"].items() if k != "selector"}
        sent["spec"] = {**spec, "template": {"spec": spec["template"]["spec"]}}
    if obj["kind"] == "Service" and obj["spec"].get("clusterIP", "None") != "None":
        sent["spec"] = {k: v for k, v in obj["spec"].items() if k not in ("clusterIP", "clusterIPs")}
    return sent


def record_tables(server: Server, file: Path) -> None:
    """Record the rows of one file again."""
    tables = json.loads(file.read_text(encoding="utf-8"))
    for golden in tables:
        for row in golden["rows"]:
            server.make(golden["path"], row["object"])
    for golden in tables:
        names = {row["object"]["metadata"]["name"] for row in golden["rows"]}
        # The server counts ages from whole seconds: in the middle of one there is no doubt which it is.
        time.sleep((1.5 - time.time() % 1) % 1)
        now = datetime.now(UTC).isoformat()
        seen = server.read(f"{golden['path']}?includeObject=Object", TABLE)
        columns = [{k: v for k, v in column.items() if k != "description"} for column in seen["columnDefinitions"]]
        rows = [row for row in seen["rows"] if row["object"]["metadata"]["name"] in names]
        if len(rows) != len(names):
            raise LookupError(f"{golden['path']}: not all of {', '.join(sorted(names))} are there")
        for row in rows:
            row["object"]["metadata"].pop("managedFields", None)
        kept = [{k: v for k, v in row.items() if k in ("object", "cells", "conditions")} | {"now": now} for row in rows]
        golden.update(columns=columns, rows=kept)
    _write(file, tables)


def record_paths(server: Server, file: Path) -> None:
    """Record what paths lead to: each has a version of its own, whose columns are the path in every type."""
    golden = json.loads(file.read_text(encoding="utf-8"))
    paths = list(golden["cells"])
    columns = [[{"name": kind, "type": kind, "jsonPath": path} for kind in TYPES] for path in paths]
    versions = [_version(f"v1alpha{place + 1}", shown) for place, shown in enumerate(columns)]
    server.make(CRDS, _crd("Cell", [{**_version("v1", []), "storage": True}, *versions]))
    _when_served(server, "/apis/example.com/v1/cells")
    server.make("/apis/example.com/v1/namespaces/default/cells", golden["object"])
    for place, path in enumerate(paths):
        where = f"/apis/example.com/v1alpha{place + 1}/namespaces/default/cells/c1"
        golden["cells"][path] = _when_served(server, where)["rows"][0]["cells"][1:]
    created = server.read("/apis/example.com/v1/namespaces/default/cells/c1")["metadata"]["creationTimestamp"]
    golden["object"]["metadata"]["creationTimestamp"] = golden["now"] = created
    golden["cells"][".metadata.creationTimestamp"] = [created, None, None, None, "0s"]
    lines = ",\n".join(f"{_text(path)}: {_text(cells)}" for path, cells in golden["cells"].items())
    head = f'{{"now": {_text(golden["now"])},\n"object": {_text(golden["object"])},\n"cells": '
    file.write_text(f"{head}{{\n{lines}\n}}}}\n", encoding="utf-8")


def record_bodies(server: Server, file: Path) -> None:
    """Record objects as JSON and as protobuf."""
    bodies = json.loads(file.read_text(encoding="utf-8"))
    for golden in bodies:
        server.make(golden["path"].rpartition("/")[0], golden["object"])
    for golden in bodies:
        golden["body"] = server.ask(golden["path"], accept=PROTOBUF).hex()
        golden["object"] = server.read(golden["path"])
    _write(file, bodies)


def _crd(kind: str, versions: list[Any]) -> Any:
    plural = f"{kind.lower()}s"
    names = {"plural": plural, "kind": kind}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    metadata = {"name": f"{plural}.example.com"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def _version(name: str, columns: list[Any]) -> Any:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "name": name,
        "served": True,
        "storage": False,
        "schema": schema,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }


def _when_served(server: Server, path: str) -> Any:
    for _ in range(SERVED_SECONDS * 2):
        try:
            return server.read(path, TABLE)
        except urllib.error.HTTPError:
            time.sleep(0.5)
    raise TimeoutError(f"{path} is not served")


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write(file: Path, entries: list[Any]) -> None:
    file.write_text("[\n" + ",\n".join(map(_text, entries)) + "\n]\n", encoding="utf-8")


def main() -> int:
    """Record all files."""
    server = Server(Path(sys.argv[1]))
    shown = [{"name": c.name, "type": c.type, "jsonPath": c.json_path, "priority": c.priority} for c in WIDGET_COLUMNS]
    server.make(CRDS, _crd("Widget", [{**_version("v1", shown), "storage": True}]))
    _when_served(server, "/apis/example.com/v1/widgets")
    record_bodies(server, BODIES)
    record_tables(server, TABLES / "tables.json")
    record_tables(server, TABLES / "more-tables.json")
    record_paths(server, TABLES / "paths.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
