"""What is served beside objects: health, version, discovery and OpenAPI."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import orjson
from aiohttp import web

from nodewright.apiserver.app import discovery
from nodewright.apiserver.app.negotiation import Wanted, wanted_discovery
from nodewright.apiserver.app.rendering import answer, raw_answer
from nodewright.apiserver.store.registry import ResourceRegistry
from nodewright.apiserver.values import ApiError, NoSuchPathError, Obj

_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
VERSION: Obj = {
    "major": "1",
    "minor": "32",
    "gitVersion": "v1.32.4+nodewright",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
"""The minor version whose API is spoken. Some distributions' kubectl picks its binary by it, so it must exist."""


_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V2_TITLE = b"Nodewright"
_V2_VERSION = b"v1.32.4"
# openapi_v2.Document (github.com/google/gnostic-models, openapiv2/OpenAPIv2.proto): 1 swagger, 2 info {1 title,
# 2 version}. kubectl asks for this before it creates what lies in a `kind: List`, and is content with no kinds in it.
_V2_INFO = b"\x0a%c%b\x12%c%b" % (len(_V2_TITLE), _V2_TITLE, len(_V2_VERSION), _V2_VERSION)
_V2_DOCUMENT = b"\x0a\x032.0\x12%c%b" % (len(_V2_INFO), _V2_INFO)


class Documents:
    """Serves documents; those that cost something are kept until the set of resources changes."""

    def __init__(self, registry: ResourceRegistry, why_not_ready: Callable[[], str]) -> None:
        self._registry = registry
        self._why_not_ready = why_not_ready
        self._generation = -1
        self._kept: dict[tuple[str, str], bytes] = {}

    def public(self, request: web.BaseRequest) -> web.Response | None:
        """Answer what anybody may ask: health and version. None for everything else."""
        path = request.path
        if path.rstrip("/") == "/version":
            _only_get(request)
            return answer(VERSION)
        if path in _HEALTH:
            _only_get(request)
            why = self._why_not_ready() if path == "/readyz" else ""
            return web.Response(text=f"not ready: {why}" if why else "ok", status=500 if why else 200)
        return None

    def serve(self, request: web.BaseRequest) -> web.Response:
        """Answer a path that names no resource. Raises ApiError 404, 405, 406."""
        parts = tuple(request.path.strip("/").split("/"))
        if parts[:2] == ("openapi", "v3"):
            _only_get(request)
            return self._openapi(request, parts[2:])
        if parts == ("openapi", "v2"):
            _only_get(request)
            return _openapi_v2(request)
        if parts[0] not in ("", "api", "apis"):
            raise NoSuchPathError
        _only_get(request)
        wanted = wanted_discovery(request.headers.get("Accept", ""))
        if len(parts) > 1:
            wanted = Wanted(wanted.media_type)
        if parts == ("api",) and not wanted.as_kind:
            return answer(
                discovery.api_versions(ascii(request.host)[1:-1]), wanted
            )  # not kept: it repeats what the client calls us
        return self._kept_answer(request, wanted, lambda: self._discovery(parts, wanted))

    def _discovery(self, parts: tuple[str, ...], wanted: Wanted) -> Obj:
        registry = self._registry
        match parts:
            case ("",):
                return {"paths": self._paths()}
            case ("api" | "apis",) if wanted.as_kind:
                return discovery.aggregated(registry, wanted.version, core=parts == ("api",))
            case ("apis",):
                return discovery.group_list(registry)
            case ("api", "v1"):
                return discovery.resource_list(registry, "", "v1")
            case ("apis", group):
                return discovery.group(registry, group)
            case ("apis", group, version):
                return discovery.resource_list(registry, group, version)
        raise NoSuchPathError

    def _openapi(self, request: web.BaseRequest, parts: tuple[str, ...]) -> web.Response:
        from nodewright.apiserver import openapi  # noqa: PLC0415 - its tables are long, and few clients ask

        registry = self._registry
        match parts:
            case ():
                return self._kept_answer(request, Wanted(), lambda: openapi.index(registry))
            case ("api", version):
                group = ""
            case ("apis", group, version):
                pass
            case _:
                raise ApiError.page_not_found()
        if not any((r.group, r.version) == (group, version) for r in registry.all()):
            raise ApiError.page_not_found()
        return self._kept_answer(request, Wanted(), lambda: openapi.document(registry, group, version))

    def _paths(self) -> list[str]:
        versions = {"/api/v1" if not r.group else f"/apis/{r.group}/{r.version}" for r in self._registry.all()}
        groups = {f"/apis/{r.group}" for r in self._registry.all() if r.group}
        return sorted({"/api", "/apis", "/openapi/v3", "/version", *_HEALTH, *groups, *versions})

    def _kept_answer(self, request: web.BaseRequest, wanted: Wanted, make: Callable[[], Obj]) -> web.Response:
        if self._generation != self._registry.generation:
            self._kept.clear()
            self._generation = self._registry.generation
        key = (request.path.strip("/"), wanted.content_type)
        body = self._kept.get(key)
        if body is None:
            body = self._kept[key] = orjson.dumps(make(), option=orjson.OPT_APPEND_NEWLINE)
        tag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers={"ETag": tag})
        response = raw_answer(body, wanted.content_type)
        response.headers["ETag"] = tag
        response.headers["Vary"] = "Accept"
        return response


def _openapi_v2(request: web.BaseRequest) -> web.Response:
    """Answer with an OpenAPI v2 document that describes nothing: all descriptions are in v3."""
    if "protobuf" in request.headers.get("Accept", ""):
        return raw_answer(_V2_DOCUMENT, _V2_PROTOBUF)
    info = {"title": _V2_TITLE.decode(), "version": _V2_VERSION.decode()}
    return answer({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}})


def _only_get(request: web.BaseRequest) -> None:
    if request.method not in ("GET", "HEAD"):
        raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
