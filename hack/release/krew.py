"""The plugin for krew, kubectl's plugin manager: an archive with the wheel and what starts it, and its manifest."""

from __future__ import annotations

import hashlib

from api import yamltext
from hack.release.parts import ROOT
from hack.release.tree import file, to_tar, zipped
from nodewright.cli.main import PLUGIN

MANIFEST = "nodewright-krew.yaml"
NOWHERE = "https://example.invalid"
"""Where nothing is published: ``kubectl krew install --manifest … --archive …`` asks for no address."""
_SAID = (
    "Nodewright declares machines for Kubernetes: Clusters, MachineDeployments, Machines. The plugin shows the fleet "
    "with reasons, plans changes, follows rollouts and installs the controllers."
)
_CAVEATS = "It needs Python 3.11 or newer, and nodewright, uv or pipx on the PATH."
LAUNCHER = f"""#!/bin/sh
# {PLUGIN}: the program where it is installed, or the wheel beside this file in an environment that uv or pipx keeps.
set -eu
if command -v nodewright >/dev/null 2>&1; then exec nodewright "$@"; fi
here=$(dirname -- "$(readlink -f -- "$0")")
wheel=$(echo "$here"/nodewright-*.whl)
if command -v uv >/dev/null 2>&1; then exec uv tool run --from "$wheel" nodewright "$@"; fi
if command -v pipx >/dev/null 2>&1; then exec pipx run --spec "$wheel" nodewright "$@"; fi
echo "{PLUGIN}: needs nodewright, uv or pipx on the PATH, with Python 3.11 or newer" >&2
exit 1
"""


def artefacts(version: str, wheel: bytes, when: int, downloads_url: str = "") -> dict[str, bytes]:
    """The archive and the manifest by their names. ``downloads_url``: the folder where the archive is going to be."""
    name = f"nodewright-krew-{version}.tar.gz"
    tree = {
        PLUGIN: file(LAUNCHER, 0o755),
        f"nodewright-{version}-py3-none-any.whl": file(wheel),
        "LICENSE": file((ROOT / "LICENSE").read_bytes()),
    }
    archive = zipped(to_tar(tree, when))
    return {name: archive, MANIFEST: _manifest(version, archive, f"{downloads_url.rstrip('/') or NOWHERE}/{name}")}


def _manifest(version: str, archive: bytes, address: str) -> bytes:
    """As krew's ``krew.googlecontainertools.github.com/v1alpha2`` has it."""
    platform = {
        "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": ["darwin", "linux"]}]},
        "uri": address,
        "sha256": hashlib.sha256(archive).hexdigest(),
        "bin": PLUGIN,
    }
    plugin = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "nodewright"},
        "spec": {
            "version": f"v{version}",
            "shortDescription": "Declarative machines: status, plans, rollouts",
            "description": _SAID,
            "caveats": _CAVEATS,
            "platforms": [platform],
        },
    }
    return yamltext.dump(plugin).encode()
