"""The cloudpool REST API as an OpenAPI document, for one pool and for several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controllers.cloudpool.messages import LONGEST, MachineState, ServiceState
from controllers.cloudpool.pool import KINDS
from nodewright import __version__

_TIME = {"type": "string", "format": "date-time"}
_TEXT = {"type": "string"}
_ID = {"type": "string", "minLength": 1}
_BOOL = {"type": "boolean"}
_TEXTS = {"type": "array", "items": _TEXT}
_COUNT = {"type": "integer", "minimum": 0, "maximum": LONGEST - 1}
_NAME = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": r"^[A-Za-z0-9_\-.]+$", "minLength": 1, "maxLength": 253},
}


def document() -> dict[str, Any]:
    """OpenAPI 3.0: of 3.1 not all tools know yet."""
    return {
        "openapi": "3.0.3",
        "info": {"title": "cloudpool REST API", "version": __version__},
        "paths": dict(_paths()),
        "components": {"schemas": _schemas()},
    }


def _paths() -> Iterator[tuple[str, Any]]:
    listed = {"description": "URLs of all pools", **_content({"type": "array", "items": _TEXT})}
    yield "/cloudpools", {"get": _operation("listPools", {"200": listed}, "500")}
    created = {"description": "made, neither configured nor started"}
    yield (
        "/cloudpools/{name}",
        {
            "parameters": [_NAME],
            "post": _operation("createPool", {"201": created}, "400", "404", "500"),
            "delete": _operation("deletePool", _EMPTY, "404", "500"),
        },
    )
    for base, suffix in (("", ""), ("/cloudpools/{name}", "Of")):
        for path, item in _pool_paths(suffix):
            yield base + path, {**({"parameters": [_NAME]} if base else {}), **item}


def _pool_paths(suffix: str) -> Iterator[tuple[str, Any]]:
    yield (
        "/config",
        {
            "get": _operation(f"getConfig{suffix}", _answer("Config"), "404", "500"),
            "post": _operation(f"setConfig{suffix}", _EMPTY, "400", "404", "413", "500", body="Config"),
        },
    )
    yield "/start", {"post": _operation(f"start{suffix}", _EMPTY, "400", "404", "500")}
    yield "/stop", {"post": _operation(f"stop{suffix}", _EMPTY, "404", "500")}
    yield "/status", {"get": _operation(f"getStatus{suffix}", _answer("Status"), "404", "500")}
    yield "/pool", {"get": _operation(f"getPool{suffix}", _answer("Pool"), "404", "500", "502")}
    changes = ("400", "404", "413", "500", "502", "503")
    yield (
        "/pool/size",
        {
            "get": _operation(f"getSize{suffix}", _answer("Size"), "404", "500", "502"),
            "post": _operation(f"setSize{suffix}", _EMPTY, *changes, body="SetSize"),
        },
    )
    for name, body in (
        ("terminate", "Dismissal"),
        ("detach", "Dismissal"),
        ("attach", "Attach"),
        ("serviceState", "SetServiceState"),
        ("membershipStatus", "SetMembershipStatus"),
    ):
        yield f"/pool/{name}", {"post": _operation(f"{name}{suffix}", _EMPTY, *changes, body=body)}


_EMPTY: dict[str, Any] = {"200": {"description": "done, or on its way"}}
_MEANINGS = {
    "400": "illegal input",
    "404": "no such pool, machine or configuration",
    "413": "the request is too large",
    "500": "not started, refused, or an error of the server",
    "502": "whoever is behind the server refused or did not answer",
    "503": "too much is under way",
}


def _operation(id_: str, answers: dict[str, Any], *errors: str, body: str = "") -> dict[str, Any]:
    responses = {code: {"description": _MEANINGS[code], **_content(_ref("Error"))} for code in errors}
    found: dict[str, Any] = {"operationId": id_, "responses": {**answers, **responses}}
    if body:
        found["requestBody"] = {"required": True, **_content(_ref(body))}
    return found


def _answer(schema: str) -> dict[str, Any]:
    return {"200": {"description": schema, **_content(_ref(schema))}}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """To Go clients null and left out are one."""
    return {**schema, "nullable": True}


def _schemas() -> dict[str, Any]:
    membership = _object({"active": _BOOL, "evictable": _BOOL})
    machine = _object(
        {
            "id": _ID,
            "machineState": {"type": "string", "enum": [str(state) for state in MachineState]},
            "membershipStatus": membership,
            "serviceState": {"type": "string", "enum": [str(state) for state in ServiceState]},
            "cloudProvider": _TEXT,
            "region": _TEXT,
            "machineSize": _TEXT,
            "publicIps": _TEXTS,
            "privateIps": _TEXTS,
        },
        requestTime=_TIME,
        launchTime=_TIME,
        metadata={"type": "object"},
    )
    return {
        "Error": _object({"message": _TEXT, "detail": _TEXT}),
        "Config": _object({"kind": {"type": "string", "enum": list(KINDS)}, "name": _ID}, namespace=_or_null(_TEXT)),
        "Status": _object({"started": _BOOL, "configured": _BOOL}, problem=_TEXT),
        "Machine": machine,
        "Pool": _object({"timestamp": _TIME, "machines": {"type": "array", "items": _ref("Machine")}}),
        "Size": _object({"timestamp": _TIME, "desiredSize": _COUNT, "allocated": _COUNT, "active": _COUNT}),
        "SetSize": _object({"desiredSize": _COUNT}),
        "Dismissal": _object({"machineId": _ID}, decrementDesiredSize=_or_null(_BOOL)),
        "Attach": _object({"machineId": _ID}),
        "SetServiceState": _object({"machineId": _ID, "serviceState": machine["properties"]["serviceState"]}),
        "SetMembershipStatus": _object({"machineId": _ID, "membershipStatus": membership}),
    }
