"""Is this a name? The rules of apimachinery's validation for object names, labels, annotations and finalizers."""

from __future__ import annotations

import hashlib
import re

from api.remembered import remembered

MAX_NAME = 253
MAX_GENERATED_BASE = 58
"""A generated name is the prefix, cut to this, and a suffix of five: 63 in all (apiserver/pkg/storage/names)."""

_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SERVICE_LABEL = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = rf"({_QUALIFIED})?"
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"

_MATCH_SUBDOMAIN = re.compile(_SUBDOMAIN).fullmatch
_MATCH_LABEL = re.compile(_LABEL).fullmatch
_MATCH_SERVICE_LABEL = re.compile(_SERVICE_LABEL).fullmatch
_MATCH_QUALIFIED = re.compile(_QUALIFIED).fullmatch
_MATCH_LABEL_VALUE = re.compile(_LABEL_VALUE).fullmatch

_CHARACTERS = "characters"
_PATH_SEGMENT_KINDS = frozenset(
    ("roles", "rolebindings", "clusterroles", "clusterrolebindings", "certificatesigningrequests")
)
_LABEL_NAMED = frozenset(("namespaces",))
_SERVICE_NAMED = frozenset(("services",))


def name_faults(plural: str, name: str) -> list[str]:
    """Say what is wrong with an object's name, [] if nothing is. Which rule applies depends on the kind."""
    if plural in _PATH_SEGMENT_KINDS:
        return _path_segment_faults(name)
    if plural in _LABEL_NAMED:
        return _label_name_faults(name)
    if plural in _SERVICE_NAMED:
        return _faults(name, 63, _MATCH_SERVICE_LABEL(name) is not None, _SERVICE_LABEL_MESSAGE, _CHARACTERS)
    return subdomain_faults(name)


def prefix_faults(plural: str, prefix: str) -> list[str]:
    """Say what is wrong with a generateName: as a name, but it may end in a dash."""
    return name_faults(plural, re.sub(r"-+$", "a", prefix))


def subdomain_faults(name: str) -> list[str]:
    """Say why a text is no DNS-1123 subdomain."""
    return _faults(name, MAX_NAME, _MATCH_SUBDOMAIN(name) is not None, _SUBDOMAIN_MESSAGE, _CHARACTERS)


def dns_label_faults(name: str) -> list[str]:
    """Say why a text is no DNS-1035 label, as the names of custom resources must be."""
    return _faults(name, 63, _MATCH_SERVICE_LABEL(name) is not None, _SERVICE_LABEL_MESSAGE, _CHARACTERS)


@remembered(4096)
def qualified_name_faults(key: str) -> tuple[str, ...]:
    """Say why a text is no key of a label or annotation: an optional DNS prefix and a name of at most 63."""
    prefix, slash, name = key.rpartition("/")
    faults = []
    if slash and "/" in prefix:
        return (_QUALIFIED_MESSAGE,)
    if slash and not prefix:
        faults.append("prefix part must be non-empty")
    elif slash:
        faults += [f"prefix part {fault}" for fault in subdomain_faults(prefix)]
    if not name:
        faults.append("name part must be non-empty")
    if len(name) > 63:
        faults.append("name part must be no more than 63 bytes")
    if not _MATCH_QUALIFIED(name):
        faults.append(f"name part {_NAME_PART_MESSAGE}")
    return tuple(faults)


@remembered(4096)
def label_value_faults(value: str) -> tuple[str, ...]:
    """Say why a text can't be the value of a label."""
    return tuple(_faults(value, 63, _MATCH_LABEL_VALUE(value) is not None, _LABEL_VALUE_MESSAGE))


def generated_name(prefix: str, seed: str) -> str:
    """Make a name from `generateName`; the suffix is drawn from the seed, which must not repeat."""
    number = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "big")
    letters = []
    for _ in range(5):
        number, index = divmod(number, len(_SUFFIX_LETTERS))
        letters.append(_SUFFIX_LETTERS[index])
    return prefix[:MAX_GENERATED_BASE] + "".join(letters)


def _label_name_faults(name: str) -> list[str]:
    if "." in name:
        return ["must not contain dots"]
    return _faults(name, 63, _MATCH_LABEL(name) is not None, _LABEL_MESSAGE, _CHARACTERS)


def _faults(text: str, longest: int, matches: bool, message: str, unit: str = "bytes") -> list[str]:
    faults = []
    if len(text) > longest:
        faults.append(f"must be no more than {longest} {unit}")
    if not matches:
        faults.append(message)
    return faults


def _path_segment_faults(name: str) -> list[str]:
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in name]


_SUBDOMAIN_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_SUBDOMAIN}')"
)
_LABEL_MESSAGE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_SERVICE_LABEL_MESSAGE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{_SERVICE_LABEL}')"
)
_NAME_PART_MESSAGE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{_QUALIFIED}')"
)
_QUALIFIED_MESSAGE = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{_QUALIFIED}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_LABEL_VALUE_MESSAGE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_LABEL_VALUE}')"
)
