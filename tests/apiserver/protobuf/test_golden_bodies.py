"""Bodies that kubectl sent and objects that a kube-apiserver gave, decoded and compared with their JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodewright.apiserver import protobuf

FOLDER = Path(__file__).parent / "golden"
SENT = {
    f"{kubectl} {entry['command']}": entry
    for kubectl in ("kubectl-1.32", "kubectl-1.36")
    for entry in json.loads((FOLDER / f"{kubectl}.json").read_text(encoding="utf-8"))
}
STORED = {e["path"]: e for e in json.loads((FOLDER / "server-1.36.json").read_text(encoding="utf-8"))}


def without_nulls(value: Any) -> Any:
    """Go writes null for lists and times that are not set; on the wire there is nothing, which says the same."""
    if isinstance(value, dict):
        return {key: without_nulls(child) for key, child in value.items() if child is not None}
    if isinstance(value, list):
        return [without_nulls(child) for child in value]
    return value


@pytest.mark.parametrize("name", [name for name, entry in SENT.items() if "object" in entry])
def test_what_kubectl_sends_is_what_it_shows_in_a_dry_run(name: str) -> None:
    decoded = protobuf.decode(bytes.fromhex(SENT[name]["body"]))
    assert decoded == without_nulls(SENT[name]["object"])
    assert list(decoded)[:2] == ["apiVersion", "kind"]


@pytest.mark.parametrize("path", STORED)
def test_every_kind_reads_the_same_from_protobuf_and_from_json(path: str) -> None:
    expected = without_nulls(STORED[path]["object"])
    for template in expected["spec"].get("volumeClaimTemplates", []) if expected["kind"] == "StatefulSet" else []:
        # The server adds what the wire doesn't carry: an object within another has no apiVersion and kind.
        del template["apiVersion"], template["kind"]
    decoded = protobuf.decode(bytes.fromhex(STORED[path]["body"]))
    assert without_nulls(decoded) == expected


def test_reviews_and_token_requests_arrive() -> None:
    token = protobuf.decode(bytes.fromhex(SENT["kubectl-1.36 create token robot --duration=10m"]["body"]))
    review = protobuf.decode(bytes.fromhex(SENT["kubectl-1.36 auth can-i delete pods/web"]["body"]))
    path = protobuf.decode(bytes.fromhex(SENT["kubectl-1.32 auth can-i get /healthz"]["body"]))
    assert (token["kind"], token["spec"]) == ("TokenRequest", {"expirationSeconds": 600})
    wanted = {"namespace": "default", "verb": "delete", "resource": "pods", "name": "web"}
    assert review["spec"] == {"resourceAttributes": wanted}
    assert path["spec"] == {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}
