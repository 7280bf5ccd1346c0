"""What must not be shown: values under telling names, and texts that look like credentials. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

HIDDEN: Final = "[hidden]"

_NAME = re.compile(
    r"token|password|passwd|secret|authorization|credential|private_?key|kubeconfig_?data|user_?data|cloud_?config",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"^secret_?(name|namespace|ref)$", re.IGNORECASE)
"""Where a secret is, which is none itself."""
_TEXT = re.compile(
    r"(?i)(bearer\s+)[a-z0-9._~+/=-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<![A-Za-z0-9.])[a-z0-9]{6}\.[a-z0-9]{16}(?![A-Za-z0-9.])"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"
    r"|(://[^/\s:@]+:)[^/\s@]+(?=@)",
    re.DOTALL,
)
_DEEPEST = 16
_SHORTEST = 4
"""Characters of a secret that is looked for in texts; shorter ones would tear ordinary words apart."""


def is_secret_name(name: str) -> bool:
    """Whether what stands under ``name`` is likely a secret."""
    return bool(_NAME.search(name)) and not _REFERENCE.match(name)


def without_secrets(text: str) -> str:
    """``text`` without what looks like a credential: tokens, private keys, passwords in addresses."""
    return _TEXT.sub(lambda match: f"{match[1] or match[2] or ''}{HIDDEN}", text)


def secret_values(value: Any, secret: bool = False, depth: int = 0) -> Iterator[str]:
    """Every text in ``value`` that stands, however deep, under the name of a secret."""
    if isinstance(value, str):
        if secret and len(value) >= _SHORTEST:
            yield value
    elif depth >= _DEEPEST:
        return
    elif isinstance(value, Mapping):
        for name, child in value.items():
            inside = secret and not _REFERENCE.match(str(name))
            yield from secret_values(child, inside or is_secret_name(str(name)), depth + 1)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from secret_values(child, secret, depth + 1)
