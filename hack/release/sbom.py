"""Lists of what is in an artefact, as CycloneDX 1.6 in JSON, without a time or a number of chance."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from hack.release.inventory import Item


def cyclonedx(kind: str, name: str, version: str, items: Sequence[Item], when: int) -> bytes:
    """``kind``: ``library`` or ``container``, what ``name`` is. The serial number is made of what is in the list."""
    components = [_component(item) for item in sorted(items)]
    told = json.dumps([kind, name, version, components], sort_keys=True)
    serial = uuid.UUID(bytes=hashlib.sha256(told.encode()).digest()[:16], version=4)
    main = {"type": kind, "name": name, "version": version, "bom-ref": f"{name}@{version}"}
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": main,
        },
        "components": components,
        "dependencies": [{"ref": main["bom-ref"], "dependsOn": [each["bom-ref"] for each in components]}],
    }
    return json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"


def _component(item: Item) -> dict[str, object]:
    made: dict[str, object] = {
        "type": "library",
        "name": item.name,
        "version": item.version,
        "purl": item.purl,
        "bom-ref": item.ref,
    }
    if item.within:
        made["properties"] = [{"name": "nodewright:within", "value": item.within}]
    if item.licence:
        made["licenses"] = (
            [{"expression": item.licence}] if item.kind == "pypi" else [{"license": {"name": item.licence}}]
        )
    if item.sha256:
        made["hashes"] = [{"alg": "SHA-256", "content": item.sha256}]
    return made
