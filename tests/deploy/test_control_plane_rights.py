"""The role in docs/tasks/control-planes.md is what the controller of ControlPlanes needs, and no more."""

from __future__ import annotations

import re
from typing import Any

import yaml

from controllers.controlplane.observe import READS
from nodewright.runtime.settings.rights import WRITES
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "tasks" / "control-planes.md"


def role() -> dict[str, Any]:
    blocks = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)]
    [found] = [block for block in blocks if block["kind"] == "ClusterRole"]
    return dict(found)


def test_the_documented_role_is_what_is_needed() -> None:
    granted = {
        (group, resource, verb)
        for rule in role()["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    reads = {(kind.group, kind.plural, verb) for kind in READS for verb in ("list", "watch")}
    writes = {(group, resource, verb) for group, resource, verbs in WRITES["controlplane"] for verb in verbs}
    assert granted == reads | writes
