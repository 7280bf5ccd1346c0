"""What a start may not load: each of these costs a tenth of a second or more."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "cryptography": "only signing needs it, and a restart signs nothing",
    "kopf": "imports all of kubernetes_asyncio",
    "kubernetes_asyncio": "over a thousand modules",
    "openstack": "belongs to a provider",
    "prompt_toolkit": "the command line tool of the CEL interpreter, which no server needs",
    "pydantic": "the plane keeps plain dicts",
    "structlog": "the plane logs through the standard library",
    "typer": "belongs to the command line",
    "yaml": "most clients send JSON",
}


def test_the_plane_starts_without_what_it_may_never_need() -> None:
    code = "import sys, nodewright.apiserver.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert {name: why for name, why in HEAVY.items() if name in loaded} == {}
