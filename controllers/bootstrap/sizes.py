"""Does bootstrap data fit the cloud? Asked of the data before a host is made, and of a spec when it is admitted.

A spec is judged by what it alone puts into user data: its long texts (files, scripts, patches, keys), packed as the
renderers pack them. Whatever is refused then is too large for certain; the rest is known when there is a token.
"""

from __future__ import annotations

import base64
import binascii
import gzip
from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.faults import FieldError, child, text_of
from controllers.bootstrap.join import Refusal
from providers.base.contract import Registration
from providers.base.user_data import Fitted, TooLarge, UserDataLimit
from providers.base.user_data import fit as fit_bytes

PATH: Final = "spec.bootstrap"
_SPECS: Final = {"Machine": "spec", "MachineSet": "spec.template.spec", "MachineDeployment": "spec.template.spec"}
_LONG: Final = 256
"""Characters from which a text counts. Shorter ones are names and flags, and may be packed to nothing."""
_MOST_VALUES: Final = 20_000
_MOST_BYTES: Final = 256 * 1024
"""More is refused by the rules of ``spec.bootstrap`` itself."""


def fit(data: bytes, limit: UserDataLimit | None) -> Fitted | Refusal:
    """``data`` as the provider is to hand it over, or why no host can be made."""
    found = fit_bytes(data, limit)
    return Refusal(PATH, found.message) if isinstance(found, TooLarge) else found


def faults(obj: Mapping[str, Any], config: Mapping[str, Any], registration: Registration) -> Iterator[FieldError]:
    """What is wrong with the ``spec.bootstrap`` of a Machine or a set whose provider configuration is ``config``."""
    path, limit = _SPECS.get(text_of(obj, "kind"), ""), registration.user_data_limit
    if not path or limit is None or registration.brings_user_data(config):
        return
    spec: Mapping[str, Any] = obj
    for name in path.split("."):
        spec = child(spec, name)
    texts = _texts(spec.get("bootstrap"))
    if 2 * sum(len(text) for text in texts) <= limit.size // 2:
        return
    found = fit_bytes(_packed(texts), limit)
    if isinstance(found, TooLarge):
        yield FieldError(f"{path}.bootstrap", f"its files, scripts and keys alone make it too large: {found.message}")


def _packed(texts: list[bytes]) -> bytes:
    """As ``shell`` and ``cloud_config`` write files: base64 in a script, whose gzip is base64 in a document."""
    script = b"\n".join(base64.b64encode(text) for text in texts)
    return b"#cloud-config\n" + base64.b64encode(gzip.compress(script, 9, mtime=0))


def _texts(spec: Any) -> list[bytes]:
    found: list[bytes] = []
    left, seen, size = [spec], 0, 0
    while left and seen < _MOST_VALUES:
        value = left.pop()
        seen += 1
        if isinstance(value, Mapping):
            coded = value.get("encoding") == "base64"
            left += [_decoded(each) if coded and key == "content" else each for key, each in value.items()]
        elif isinstance(value, list):
            left += value
        elif isinstance(value, str | bytes) and len(value) >= _LONG:
            found.append(value if isinstance(value, bytes) else value.encode(errors="replace"))
            size += len(found[-1])
            if size > _MOST_BYTES:
                return []
    return found


def _decoded(text: Any) -> Any:
    try:
        return base64.b64decode(text) if isinstance(text, str) else text
    except (binascii.Error, ValueError):
        return text
