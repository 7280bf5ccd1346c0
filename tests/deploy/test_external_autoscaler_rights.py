"""The rights of an autoscaler on another provider's groups: to read what it decides on, and to empty Nodes."""

from __future__ import annotations

import yaml

from controllers.kernel.refs import NODE
from nodewright.gateways.externalgrpc.client.autoscaler import KINDS
from tests.deploy.rights import granted
from tests.docs.pages import ROOT

FOLDER = ROOT / "deploy" / "autoscaler-externalgrpc"


def test_it_reads_what_it_watches_and_writes_taints_and_evictions_alone() -> None:
    (role,) = (doc for doc in yaml.safe_load_all((FOLDER / "rights.yaml").read_text()) if doc["kind"] == "ClusterRole")
    given = [(each.resource, each.verb) for each in granted(role)]
    reading = {(kind.plural, verb) for kind in KINDS for verb in ("list", "watch")}
    assert set(given) == reading | {(NODE.plural, "patch"), ("pods/eviction", "create")}
    assert len(given) == len(set(given))
