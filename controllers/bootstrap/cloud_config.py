"""Steps → user data for cloud-init: one ``#cloud-config`` document, written as JSON.

The script of ``shell`` runs as a unit of its own, not in ``runcmd``: its output reaches the console while it runs, it
has an exit code that systemd keeps, and it goes on after a reboot until it has succeeded.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from controllers.bootstrap import shell
from controllers.bootstrap.steps import Steps

SCRIPT = "/var/lib/nodewright/bootstrap.sh"
UNIT = "nodewright-bootstrap.service"
UNIT_FILE = f"""\
[Unit]
Description=Join this host to its cluster
Wants=network-online.target
After=network-online.target containerd.service
ConditionPathExists=!{shell.STATE}/joined

[Service]
Type=oneshot
ExecStart=/bin/sh {SCRIPT} {shell.KEEP_TRYING}
ExecStartPost=/bin/touch {shell.STATE}/joined
ExecStartPost=/bin/rm -f {SCRIPT}
StandardOutput=journal+console

[Install]
WantedBy=multi-user.target
"""


def render(steps: Steps) -> bytes:
    """User data; the same bytes for the same steps. Holds the join token: keep it in a Secret."""
    script = gzip.compress(shell.render(steps).encode(), mtime=0)
    document: dict[str, Any] = {
        "write_files": [
            _file(SCRIPT, "gz+b64", base64.b64encode(script).decode(), "0600"),
            _file(f"/etc/systemd/system/{UNIT}", "text/plain", UNIT_FILE, "0644"),
        ],
        "runcmd": [
            ["systemctl", "daemon-reload"],
            ["systemctl", "enable", "--no-reload", UNIT],
            ["systemctl", "start", "--no-block", UNIT],
        ],
    }
    return b"#cloud-config\n" + json.dumps(document, sort_keys=True).encode() + b"\n"


def _file(path: str, encoding: str, content: str, mode: str) -> dict[str, str]:
    return {"path": path, "owner": "root:root", "permissions": mode, "encoding": encoding, "content": content}
