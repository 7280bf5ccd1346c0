"""Checksums, a signature over them, and a statement of where the artefacts are from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from hack.release.parts import ReleaseError

SUMS, SIGNATURE, PUBLIC_KEY = "SHA256SUMS", "SHA256SUMS.sig", "nodewright.pub"


def sums(artefacts: Mapping[str, bytes]) -> bytes:
    """As `sha256sum --check` reads it."""
    return "".join(f"{_sha256(data)}  {name}\n" for name, data in sorted(artefacts.items())).encode()


def signed(text: bytes, key_file: Path) -> dict[str, bytes]:
    """The signature over ``text`` and the public key. Raises ReleaseError for what is no Ed25519 key in PEM."""
    try:
        key = load_pem_private_key(key_file.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise ReleaseError(
            f"--key {key_file}: {type(error).__name__}; make one by `openssl genpkey -algorithm ed25519`"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ReleaseError(f"--key {key_file} is no Ed25519 key; make one by `openssl genpkey -algorithm ed25519`")
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return {SIGNATURE: key.sign(text), PUBLIC_KEY: public}


def signable(artefacts: Mapping[str, bytes]) -> dict[str, bytes]:
    """All that is released but the signature by a key and its public half."""
    return {name: data for name, data in artefacts.items() if name not in (SIGNATURE, PUBLIC_KEY)}


def provenance(artefacts: Mapping[str, bytes], version: str, commit: str) -> bytes:
    """An in-toto statement with SLSA's predicate: these bytes are of this commit, made by `make release`."""
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": _sha256(data)}} for name, data in sorted(artefacts.items())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://nodewright.dev/build/make-release/v1",
                "externalParameters": {"version": version},
                "resolvedDependencies": [{"uri": "git+file:.", "digest": {"gitCommit": commit}}],
            },
            "runDetails": {"builder": {"id": "https://nodewright.dev/build/make-release"}},
        },
    }
    return json.dumps(statement, indent=1, sort_keys=True).encode() + b"\n"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
