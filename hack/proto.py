"""Generate the Python code of our .proto files, or prove that it is current.

python -m hack.proto --write
python -m hack.proto --check
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

WIRE = Path("nodewright/gateways/externalgrpc/wire")


class CompileError(Exception):
    """The compiler refused a file; the message is what it said."""


def sources(root: Path = Path()) -> list[Path]:
    return sorted((root / WIRE).glob("*.proto"))


def generated(target: Path) -> dict[Path, bytes]:
    """Compile all sources below ``target``; what came out, by its place in the repository."""
    well_known = resources.files("grpc_tools") / "_proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"-I{well_known}"]
    command += [f"--python_out={target}", f"--pyi_out={target}", *map(str, sources())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(done.stderr)
    return {found.relative_to(target): found.read_bytes() for found in sorted((target / WIRE).glob("*_pb2.py*"))}


def main() -> int:
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    if mode not in ("--write", "--check"):
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        try:
            wanted = generated(Path(folder))
        except CompileError as error:
            print(error, file=sys.stderr)
            return 1
    if mode == "--write":
        for path, content in wanted.items():
            path.write_bytes(content)
        return 0
    there = set(WIRE.glob("*_pb2.py*"))
    stale = [path for path in {*wanted, *there} if path not in there or wanted.get(path) != path.read_bytes()]
    for path in sorted(stale):
        print(f"{path} is not current: run `make proto`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
