"""Read the contents of files that stand in no spec, as part of a conversation (``credentials``).

Only Secrets of a type of their own are handed to hosts: else whoever may make Machines could read every Secret of the
namespace, by a host of theirs.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Generator, Mapping

from api.conditions import Reason
from api.names import HOST_FILES_SECRET_TYPE
from controllers.bootstrap.calls import Call, Get, Refused
from controllers.kernel.bootstrapping import BootstrapOrder, FileSource
from controllers.kernel.refs import Key, Obj, mapping

Contents = Mapping[tuple[str, str], bytes]


def read_contents(order: BootstrapOrder) -> Generator[Call, Obj | None, Contents | Refused]:
    """By name and key of the Secrets, each of which is read once. What an answer says of them holds no content."""
    secrets: dict[str, Obj | None] = {}
    found: dict[tuple[str, str], bytes] = {}
    for source in order.contents:
        if source.secret not in secrets:
            secrets[source.secret] = yield Get("machines", Key(order.secret.namespace, source.secret))
        content = _content(source, secrets[source.secret], order.secret.namespace)
        if isinstance(content, Refused):
            return content
        found[source.secret, source.key] = content
    return found


def _content(source: FileSource, secret: Obj | None, namespace: str) -> bytes | Refused:
    title = f"Secret {namespace}/{source.secret}"
    if secret is None:
        return _refused(source, f"{title} does not exist: create it")
    if secret.get("type") != HOST_FILES_SECRET_TYPE:
        return _refused(source, f"{title} is not of the type {HOST_FILES_SECRET_TYPE}, and no other is given to hosts")
    data = mapping(secret.get("data"))
    if source.key not in data:
        return _refused(source, f"{title} has no key {source.key}")
    try:
        return base64.b64decode(str(data[source.key]), validate=True)
    except (binascii.Error, ValueError):
        return _refused(source, f"key {source.key} of {title} is not base64")


def _refused(source: FileSource, why: str) -> Refused:
    return Refused(str(Reason.INVALID_BOOTSTRAP_SPEC), f"{source.field}: {why}")
