"""What was declared of an object, without what a server fills in, what controllers note down, and secrets. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from api import names
from controllers.kernel.ownership import controller_uid
from controllers.kernel.refs import CLUSTER, MACHINE, SECRET, Obj, annotations_of, mapping, uid_of
from nodewright.cli.manifests.checks import defaulted
from nodewright.cli.moving.graph import Item

BOOKKEEPING: Final = frozenset(
    {
        *names.NOT_COPIED_ANNOTATIONS,
        names.BOOTSTRAP_DIGEST_ANNOTATION,
        names.BOOTSTRAP_TOKEN_ANNOTATION,
        names.CLOUDPOOL_DETACHED_FROM_ANNOTATION,
        names.CLOUDPOOL_MEMBERSHIP_ANNOTATION,
        names.CLOUDPOOL_SERVICE_STATE_ANNOTATION,
        names.CONTROL_PLANE_HOOK,
        names.CONTROL_PLANE_INITIALIZED,
        names.CONTROL_PLANE_INIT_LOCK,
        names.CONTROL_PLANE_MEMBER,
        names.IN_PLACE_ANNOTATION,
        names.MACHINE_CLASS_ANNOTATION,
        names.MOVING_ANNOTATION,
        names.ORDINAL_ANNOTATION,
        names.PROPAGATED_ANNOTATION,
        names.RELEASED_FROM_ANNOTATION,
        names.REMEDIATION_FOR_ANNOTATION,
        names.TEMPLATE_ANNOTATION,
        names.TOUCHED_ANNOTATION,
    }
)
"""Annotations that programs write for themselves. What a person sets to ask for something is not among them."""
_FRAME: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_LEFT_OUT_OF_SPEC: Final = {MACHINE.name: frozenset({"providerID"}), CLUSTER.name: frozenset({"addons"})}
"""Fields of a spec that controllers fill in, and those that files alone have."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A value of a Secret: it can be compared and not be read."""

    digest: bytes


@dataclass(frozen=True, slots=True)
class Declaration:
    """``content``: JSON types and ``Hidden``, without apiVersion, kind, name and namespace."""

    group: str
    kind: str
    namespace: str
    name: str
    content: Mapping[str, Any]

    @property
    def title(self) -> str:
        return f"{self.kind}/{self.name}"


def declaration_of(obj: Obj, namespace: str = "default") -> Declaration:
    """``namespace``: that of an object which names none."""
    meta = mapping(obj.get("metadata"))
    kind, group = str(obj.get("kind")), str(obj.get("apiVersion", "")).rpartition("/")[0]
    filled = defaulted({name: value for name, value in obj.items() if name != "status"})
    content = {name: value for name, value in filled.items() if name not in _FRAME}
    if kind == SECRET.name and not group:
        content = _of_secret(content)
    if left_out := _LEFT_OUT_OF_SPEC.get(kind):
        content["spec"] = {name: value for name, value in mapping(content.get("spec")).items() if name not in left_out}
    annotations = {k: v for k, v in mapping(meta.get("annotations")).items() if k not in BOOKKEEPING}
    labels = mapping(meta.get("labels"))
    shown = {name: value for name, value in (("labels", labels), ("annotations", annotations)) if value}
    content = {name: value for name, value in {"metadata": shown, **content}.items() if value not in ({}, None)}
    return Declaration(group, kind, str(meta.get("namespace") or namespace), str(meta.get("name") or ""), content)


def declared_in(items: Iterable[Item]) -> list[Obj]:
    """Those that a person or a program outside has written: nothing that controllers made of them."""
    listed = list(items)
    uids = {uid_of(item.obj) for item in listed}
    return [
        item.obj
        for item in listed
        if controller_uid(item.obj) not in uids
        and (item.shared or item.kind != SECRET)
        and names.AUTOPROVISIONED_ANNOTATION not in annotations_of(item.obj)
    ]


def _of_secret(content: Mapping[str, Any]) -> dict[str, Any]:
    data = {name: Hidden(_digest(_decoded(value))) for name, value in mapping(content.get("data")).items()}
    plain = mapping(content.get("stringData"))
    data |= {name: Hidden(_digest(str(value).encode(errors="surrogatepass"))) for name, value in plain.items()}
    kept = {name: value for name, value in content.items() if name not in {"data", "stringData"}}
    return {"type": "Opaque", **kept, "data": data}


def _decoded(value: object) -> bytes:
    text = str(value).encode(errors="surrogatepass")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text


def _digest(value: bytes) -> bytes:
    return hashlib.sha256(value).digest()
