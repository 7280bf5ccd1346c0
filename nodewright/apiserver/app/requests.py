"""What does a URL ask for? The rules are those of k8s.io/apiserver's RequestInfo."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aiohttp import web
from multidict import MultiMapping

from nodewright.apiserver.values import ApiError, Cause

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
_MAX_AGENT = 128
_MAX_SHOWN = 64
_NUMBER = re.compile(r"[-+]?[0-9]+").fullmatch
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


@dataclass(frozen=True, slots=True)
class Target:
    """The object or collection that a request is about.

    `verb` is Kubernetes' word for it: get, list, watch, create, update, patch, delete, deletecollection.
    """

    verb: str
    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: tuple[str, ...] = ()
    """What follows the subresource in the path; nothing that we serve has any."""


def target_of(method: str, path: str, query: MultiMapping[str]) -> Target | None:
    """Give what a path below /api/v1 or /apis/GROUP/VERSION is about; None for every other path."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource, *more = [*rest, "", "", ""][: max(3, len(rest))]
    verb = _VERBS.get(method, "")
    if not name and verb == "get":
        verb = "watch" if flag(query, "watch") else "list"
    elif not name and verb == "delete":
        verb = "deletecollection"
    return Target(verb, group, version, plural, namespace, name, subresource, tuple(more))


def flag(query: MultiMapping[str], key: str) -> bool:
    """Read a truth value as kube-apiserver does: present is true, unless it says "false" or "0" in any case.

    The Python clients send `watch=True`.
    """
    value = query.get(key)
    return value is not None and value.lower() not in {"false", "0"}


def number(query: MultiMapping[str], key: str) -> int | None:
    """Read an int64, None if it is absent. Raises ApiError 400 for anything else."""
    value = query.get(key)
    if not value:
        return None
    shown = value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}..."
    if not _NUMBER(value):
        raise ApiError.bad_request(f'strconv.ParseInt: parsing "{shown}": invalid syntax')
    if len(value) > _MAX_SHOWN or not -(1 << 63) <= int(value) < 1 << 63:
        raise ApiError.bad_request(f'strconv.ParseInt: parsing "{shown}": value out of range')
    return int(value)


def dry_run(values: list[str], kind: str) -> bool:
    """Read the `dryRun` directives, of which only "All" exists. Raises ApiError 422 for any other."""
    wrong = [value for value in values if value != "All"]
    if wrong:
        listed = ",".join(f'"{value}"' for value in values)
        message = f'Unsupported value: [{listed}]: supported values: "All"'
        group_kind = f"{kind}.meta.k8s.io"
        raise ApiError.invalid(group_kind, "", [Cause("dryRun", "FieldValueNotSupported", message)])
    return bool(values)


def user_agent(request: web.BaseRequest) -> str:
    """Give the first word of the client's User-Agent without its version: "kubectl", "kopf", "Python".

    What can't be printed is left out, as by kube-apiserver: the name becomes a field manager.
    """
    name = request.headers.get("User-Agent", "").partition(" ")[0].partition("/")[0]
    return "".join(c for c in name[:_MAX_AGENT] if c.isprintable())
