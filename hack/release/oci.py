"""An OCI image layout (image-spec 1.1) as a tar, which containerd, podman, skopeo and registries' tools take."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hack.release import tree
from hack.release.tree import Tree

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclass(frozen=True, slots=True)
class Platform:
    """One architecture's image: its layers as gzip, from the lowest up, each with a sentence of where it is from."""

    architecture: str
    layers: Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Described:
    """``config``: the keys of OCI's ``config`` (User, Entrypoint …). ``when``: seconds since the epoch."""

    name: str
    config: Mapping[str, Any]
    when: int


def layout(platforms: Sequence[Platform], described: Described) -> tuple[str, bytes]:
    """The digest (``sha256:…``) of what is to be pulled, and the archive.

    With one platform the digest is its manifest's; with several it is that of an index over all of them.
    """
    blobs: Tree = {}
    manifests = [_manifest(blobs, platform, described) for platform in platforms]
    top = manifests[0] if len(manifests) == 1 else _put(blobs, _INDEX, _json(_index(manifests)))
    names = {
        "org.opencontainers.image.ref.name": described.name.rpartition(":")[2],
        "io.containerd.image.name": described.name,
    }
    archive = {
        **blobs,
        "oci-layout": tree.file(_json({"imageLayoutVersion": "1.0.0"})),
        "index.json": tree.file(_json(_index([{**top, "annotations": names}]))),
    }
    return str(top["digest"]), tree.to_tar(archive, described.when)


def _manifest(blobs: Tree, platform: Platform, described: Described) -> dict[str, Any]:
    moment = datetime.fromtimestamp(described.when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    place = {"architecture": platform.architecture, "os": "linux"}
    layers = [_put(blobs, _LAYER, data) for _, data in platform.layers]
    config = {
        **place,
        "created": moment,
        "config": described.config,
        "rootfs": {"type": "layers", "diff_ids": [_digest(gzip.decompress(data)) for _, data in platform.layers]},
        "history": [{"created": moment, "created_by": text} for text, _ in platform.layers],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _put(blobs, _CONFIG, _json(config)),
        "layers": layers,
        "annotations": described.config.get("Labels", {}),
    }
    return {**_put(blobs, _MANIFEST, _json(manifest)), "platform": place}


def _index(manifests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"schemaVersion": 2, "mediaType": _INDEX, "manifests": list(manifests)}


def _put(blobs: Tree, media_type: str, data: bytes) -> dict[str, Any]:
    digest = _digest(data)
    blobs[f"blobs/{digest.replace(':', '/')}"] = tree.file(data)
    return {"mediaType": media_type, "digest": digest, "size": len(data)}


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
