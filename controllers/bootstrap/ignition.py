"""Steps → user data for Ignition (Fedora CoreOS, Flatcar): a configuration of spec 3.4.0, as JSON.

Ignition writes files and units before the system starts, and runs nothing: the script of ``shell`` runs as the same
unit as with cloud-init. Source of the fields: coreos/ignition, docs/configuration-v3_4.md.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from controllers.bootstrap import shell
from controllers.bootstrap.cloud_config import SCRIPT, UNIT, UNIT_FILE
from controllers.bootstrap.steps import Steps

VERSION = "3.4.0"


def render(steps: Steps) -> bytes:
    """User data; the same bytes for the same steps. Holds the join token: keep it in a Secret."""
    script = base64.b64encode(gzip.compress(shell.render(steps).encode(), mtime=0)).decode()
    document: dict[str, Any] = {
        "ignition": {"version": VERSION},
        "storage": {
            "files": [
                {
                    "path": SCRIPT,
                    "mode": 0o600,
                    "contents": {"source": f"data:;base64,{script}", "compression": "gzip"},
                }
            ]
        },
        "systemd": {"units": [{"name": UNIT, "enabled": True, "contents": UNIT_FILE}]},
    }
    return json.dumps(document, sort_keys=True).encode() + b"\n"
