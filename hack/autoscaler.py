"""Finds a Cluster Autoscaler for the tests, or builds the stand-in for it.

Looked for in this order: ``$CLUSTER_AUTOSCALER``, the cache folder (``cluster-autoscaler``), and then the stand-in of
``hack/tools/autoscaler``: a Go program whose client is made of our own .proto file and which plays the calls that are
documented of the original. Its build takes a minute or two of CPU once; it lies in the cache, named by a digest of its
sources.

    python -m hack.autoscaler      # prints the path, builds what is missing
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

from hack import golang
from hack.binaries import BinaryMissing, cache_folder
from hack.proto import WIRE

SOURCES = Path(__file__).parent / "tools" / "autoscaler"
PROTO = WIRE / "cloudprovider.proto"
MODULE = "nodewright/hack/tools/autoscaler"
ROOT = Path(__file__).parent.parent
REMEDY = "run `make cluster-autoscaler` (needs Go 1.26+), or set CLUSTER_AUTOSCALER to the binary"


def find() -> tuple[Path, bool] | None:
    """The binary, and whether it is the original; None: neither is there. Raises BinaryMissing for a wrong path."""
    named = os.environ.get("CLUSTER_AUTOSCALER")
    if named:
        path = Path(named)
        if not (path.is_file() and os.access(path, os.X_OK)):
            raise BinaryMissing(f"CLUSTER_AUTOSCALER: {named} is no program")
        return path, True
    original = cache_folder().parent / "cluster-autoscaler"
    if os.access(original, os.X_OK):
        return original, True
    return (_stand_in(), False) if os.access(_stand_in(), os.X_OK) else None


def ensure() -> tuple[Path, bool]:
    """As ``find``, building the stand-in where nothing is there. Raises BinaryMissing."""
    return find() or (build(), False)


def build() -> Path:
    if shutil.which("go") is None:
        raise BinaryMissing(f"there is no Cluster Autoscaler and no Go: {REMEDY}")
    target = _stand_in()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        shutil.copytree(SOURCES, work, dirs_exist_ok=True)
        plugin, partial = work / "protoc-gen-go", target.with_suffix(f".{os.getpid()}")
        golang.build(work, plugin, "google.golang.org/protobuf/cmd/protoc-gen-go")
        _generate(plugin, work)
        golang.build(work, partial)
        partial.replace(target)
    return target


def _generate(plugin: Path, work: Path) -> None:
    """The client's messages, from the same file as the server's."""
    (work / "wire").mkdir()
    well_known = resources.files("grpc_tools") / "_proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"-I{well_known}", f"--plugin={plugin}"]
    command += [f"--go_out={work}", f"--go_opt=module={MODULE},M{PROTO}={MODULE}/wire", str(PROTO)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BinaryMissing(f"generating the client failed:\n{done.stderr[-2000:]}")


def _stand_in() -> Path:
    digest = hashlib.sha256((ROOT / PROTO).read_bytes())
    for path in sorted(SOURCES.glob("*")):
        digest.update(path.name.encode() + path.read_bytes())
    return cache_folder().parent / f"autoscaler-stand-in-{digest.hexdigest()[:12]}"


def main() -> int:
    try:
        path, original = ensure()
    except BinaryMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    print(path if original else f"{path} (the stand-in; set CLUSTER_AUTOSCALER for the original)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
