"""Build the path and the query of every request. No other module writes one.

Each part is checked against the rule that API servers have for it (RFC 1123 and 1035 names; ``IsValidPathSegmentName``
of k8s.io/apimachinery for names of objects) and quoted, so text of others can't become another path or query.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, urlencode

from controllers.kernel.refs import Key, Kind
from nodewright.runtime.kube.errors import InvalidRequestError

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_LONGEST_NAME = 253
_ESCAPED = str.maketrans({"\\": r"\\", ",": r"\,", "=": r"\="})


def collection_path(kind: Kind, namespace: str) -> str:
    """Path of a collection; of all namespaces if ``namespace`` is "". Raises InvalidRequestError naming the part that
    is no name.
    """
    if kind.namespaced and namespace:
        return f"{_root(kind)}/namespaces/{_checked(_LABEL, 'namespace', namespace)}/{kind.plural}"
    return f"{_root(kind)}/{kind.plural}"


def object_path(kind: Kind, key: Key, subresource: str = "") -> str:
    """Path of one object; an empty name or namespace would mean all of them. Raises InvalidRequestError."""
    if kind.namespaced and not key.namespace:
        raise InvalidRequestError(f"{kind.plural} {_shown(key.name)}: the namespace is empty")
    path = f"{collection_path(kind, key.namespace)}/{_name(key.name)}"
    return f"{path}/{_checked(_LABEL, 'subresource', subresource)}" if subresource else path


def api_path(group: str, version: str) -> str:
    """Path of the resources of one version of a group, "" for core. Raises InvalidRequestError."""
    version = _checked(_LABEL, "version", version)
    return f"/apis/{_checked(_SUBDOMAIN, 'group', group)}/{version}" if group else f"/api/{version}"


def with_query(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def field_selector(field: str, value: str) -> dict[str, str]:
    """The query for objects whose ``field`` is ``value``, escaped as ``fields.EscapeValue`` does it."""
    return {"fieldSelector": f"{field}={value.translate(_ESCAPED)}"}


def one_object(name: str) -> dict[str, str]:
    """One object of that name: RBAC's ``resourceNames`` allow lists and watches of this form."""
    return field_selector("metadata.name", name) if name else {}


@lru_cache(maxsize=1024)
def _root(kind: Kind) -> str:
    _checked(_LABEL, "resource", kind.plural)
    return api_path(kind.group, kind.version)


def _checked(rule: re.Pattern[str], what: str, text: str) -> str:
    if not isinstance(text, str) or rule.match(text) is None:
        raise InvalidRequestError(f"{what} {_shown(text)} is not a name that an API server knows")
    return text


def _name(text: str) -> str:
    sound = isinstance(text, str) and 0 < len(text) <= _LONGEST_NAME and text not in {".", ".."}
    if not sound or not text.isprintable() or "/" in text or "%" in text:
        raise InvalidRequestError(f"name {_shown(text)} can't be the name of an object")
    return quote(text, safe="")


def _shown(text: object) -> str:
    """Short, and without control characters."""
    return ascii(str(text)[:80])
