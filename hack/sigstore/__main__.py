"""``python -m hack.sigstore FOLDER``: signs the files of FOLDER by a private Sigstore that it starts for that.

It writes the bundles beside them, ``trust-config.json``, and ``signed-by.json`` with identity and issuer. What the
tests check without a network is in ``tests/release/signed`` and was made by it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from hack.binaries import BinaryMissing
from hack.release import bundles
from hack.release.parts import ReleaseError
from hack.sigstore.instance import Instance

IDENTITY = "release@nodewright.example"
TRUST_CONFIG, SIGNED_BY = "trust-config.json", "signed-by.json"


def sign(folder: Path) -> None:
    """Raises ReleaseError, BinaryMissing, or RuntimeError where a service does not start."""
    made = (TRUST_CONFIG, SIGNED_BY)
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name not in made}
    artefacts = {name: data for name, data in files.items() if not name.endswith(bundles.SUFFIX)}
    with tempfile.TemporaryDirectory(prefix="nodewright-sigstore-") as scratch, Instance(Path(scratch)) as sigstore:
        token = Path(scratch) / "token"
        token.write_text(sigstore.issuer.token(IDENTITY))
        signed = bundles.signed(artefacts, bundles.Instance(sigstore.trust_config, token))
        (folder / TRUST_CONFIG).write_bytes(sigstore.trust_config.read_bytes())
    for name, bundle in signed.bundles.items():
        (folder / name).write_bytes(bundle)
    (folder / SIGNED_BY).write_text(json.dumps({"identity": signed.identity, "issuer": signed.issuer}, indent=1) + "\n")


def main(arguments: list[str]) -> int:
    try:
        sign(Path(arguments[0]))
    except (ReleaseError, BinaryMissing, RuntimeError) as error:
        print(f"hack.sigstore: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
