"""Which tags and metadata of a server a config has set there: only those may be taken away again. Pure.

A server remembers them in its metadata, as digests: of a tag, or of a key with its value. What it does not remember, or
what has another value meanwhile, is somebody else's. Servers that remember nothing keep all they have.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from providers.base.contract import HostRequest
from providers.openstack import ownership_tags
from providers.openstack.config import OpenStackMachineConfig

OWN: Final = "nodewright-own-"
"""How the keys begin under which a server remembers; one value holds 42 digests."""
_DIGEST = 6
_LONGEST = 255 // _DIGEST * _DIGEST


@dataclass(frozen=True, slots=True)
class Marking:
    """What makes a server's tags and metadata as wanted, in this order. Right after any prefix of it."""

    intent: Mapping[str, str]
    """Metadata to be set before anything: what will be ours is remembered before it is there."""
    new_tags: tuple[str, ...]
    old_tags: tuple[str, ...]
    old_keys: tuple[str, ...]
    metadata: Mapping[str, str]
    """To be set at the end."""


def metadata_of_new(request: HostRequest, config: OpenStackMachineConfig) -> dict[str, str]:
    """All metadata of a server that is made."""
    joins = ownership_tags.bootstrap_format(request, config)
    join_tags = {ownership_tags.BOOTSTRAP: joins} if joins else {}
    return {**ownership_tags.metadata_of(request, config), **join_tags, **_memory(_of_config(config))}


def marking(server: Mapping[str, Any], request: HostRequest, config: OpenStackMachineConfig) -> Marking:
    have, tags = dict(server.get("metadata") or {}), set(server.get("tags") or ())
    known = _remembered(have)
    wanted, wanted_tags = ownership_tags.metadata_of(request, config), ownership_tags.tags_of(request, config)
    before = {_of_tag(tag) for tag in tags} | {_of_item(key, value) for key, value in have.items()}
    ours = {digest for digest in _of_config(config) if digest in known or digest not in before}
    memory = _memory(ours)
    return Marking(
        intent={} if ours <= known else _memory(known | ours),
        new_tags=tuple(tag for tag in wanted_tags if tag not in tags),
        old_tags=tuple(sorted(tag for tag in tags - set(wanted_tags) if _of_tag(tag) in known)),
        old_keys=tuple(
            sorted(
                key
                for key, value in have.items()
                if key not in wanted and key not in memory and (_is_mark(key) or _of_item(key, value) in known)
            )
        ),
        metadata={**wanted, **memory},
    )


def _of_config(config: OpenStackMachineConfig) -> set[str]:
    return {_of_tag(tag) for tag in config.tags} | {_of_item(key, value) for key, value in config.metadata.items()}


def _is_mark(key: str) -> bool:
    """How a server was made to join, and when it was rebooted, stays true for as long as it is not rebuilt."""
    return (key in ownership_tags.KEYS and key not in ownership_tags.LASTING) or key.startswith(OWN)


def _memory(digests: Iterable[str]) -> dict[str, str]:
    text = "".join(sorted(digests))
    starts = range(0, len(text), _LONGEST)
    return {f"{OWN}{number}": text[start : start + _LONGEST] for number, start in enumerate(starts)}


def _remembered(metadata: Mapping[str, str]) -> set[str]:
    texts = (str(value) for key, value in metadata.items() if key.startswith(OWN))
    return {text[start : start + _DIGEST] for text in texts for start in range(0, len(text), _DIGEST)}


def _of_tag(tag: str) -> str:
    return _digest(f"tag {tag}")


def _of_item(key: str, value: str) -> str:
    return _digest(f"metadata {key}={value}")


def _digest(text: str) -> str:
    """36 bits: short enough to be kept for all, and nobody else's tag has the same by chance."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()[:_DIGEST]
