"""The kubeconfig Secret of one Cluster, understood without trusting it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace

from api.names import KUBECONFIG_KEY, KUBECONFIG_KEYS, KUBECONFIG_OTHER_KEY
from controllers.kernel.refs import Obj, key_of
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.errors import ConfigurationError
from nodewright.runtime.kube.kubeconfig import parse_kubeconfig
from nodewright.runtime.kube.servers import ServerPolicy

STRICT = ServerPolicy()
LARGEST = 128 << 10
"""Bytes; a kubeconfig with two certificates has some eight thousand."""


def connection_in(secret: Obj, policy: ServerPolicy = STRICT) -> Connection:
    """The connection that the Secret describes, as far as ``policy`` allows it. Takes some CPU: not for the event loop.

    Raises ConfigurationError naming the Secret, the key and the field, but none of its contents.
    """
    title = f"Secret {key_of(secret)}"
    data = secret.get("data")
    data = data if isinstance(data, Mapping) else {}
    key = next((name for name in KUBECONFIG_KEYS if data.get(name)), None)
    if key is None:
        raise ConfigurationError(f"{title}: there is no key {KUBECONFIG_KEY} (or {KUBECONFIG_OTHER_KEY}) in its data")
    title = f"{title}, key {key}"
    connection = parse_kubeconfig(_decoded(str(data[key]), title), title)
    policy.check(connection, title)
    try:
        connection.ssl_context()
    except ConfigurationError:
        raise ConfigurationError(f"{title}: a certificate or key of it can't be used") from None
    return replace(connection, sockets=policy.sockets())


def _decoded(value: str, title: str) -> bytes:
    try:
        text = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConfigurationError(f"{title}: not base64") from error
    if len(text) > LARGEST:
        raise ConfigurationError(f"{title}: larger than {LARGEST} bytes")
    return text
