"""The words that every part of the control plane shares: resources, options, results and API errors.

Nothing here does I/O, and nothing here knows how objects are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Obj = dict[str, Any]
"""A Kubernetes object as plain JSON data. Frozen by convention once stored: copy, then change the copy."""

OWN_MANAGER = "nodewright-controlplane"
"""Field manager of the kinds that the embedded API server brings itself."""

PatchType = Literal["json", "merge", "strategic", "apply"]
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a kind keeps what its `scale` subresource shows: JSONPaths such as `.spec.replicas`."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column of a kind (CustomResourceDefinition `additionalPrinterColumns`)."""

    name: str
    type: str
    json_path: str
    description: str = ""
    format: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One kind in one version as it is served. Compared by identity: a changed CRD gives a new Resource.

    `schema` is the structural openAPI v3 schema of the whole object, or None if anything goes.
    All versions of a kind share one set of stored objects, named by `group_resource`.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    list_kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    scale: ScalePaths | None = None
    columns: tuple[Column, ...] = ()
    schema: Obj | None = None
    builtin: bool = True
    served: bool = True
    storage: bool = True
    deprecated: bool = False
    selectable_fields: tuple[str, ...] = ()
    """JSONPaths, beyond metadata.name and metadata.namespace, that field selectors may use."""
    api_version: str = field(init=False)
    """As in an object's `apiVersion`: "v1" for the core group, otherwise "group/version"."""
    group_resource: str = field(init=False)
    """As in error messages: "pods" or "machines.cluster.k8s.io"."""
    group_kind: str = field(init=False)
    """As in error messages: "Pod" or "Machine.cluster.k8s.io"."""

    def __post_init__(self) -> None:
        suffix = f".{self.group}" if self.group else ""
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "api_version", api_version)
        object.__setattr__(self, "group_resource", self.plural + suffix)
        object.__setattr__(self, "group_kind", self.kind + suffix)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """What a LIST asks for, as in its query parameters. `limit=0` is everything."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    resource_version_match: str = ""


@dataclass(frozen=True, slots=True)
class ListResult:
    """`remaining` is `metadata.remainingItemCount`: None on the last page, or unknown (a selector was given)."""

    items: list[Obj]
    resource_version: str
    continue_: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What a WATCH asks for. An empty or "0" `resource_version` sends an ADDED for every object first.

    `send_initial_events` is KEP-3157's: True sends the ADDED of what there is, closed by a BOOKMARK that
    carries the annotation `k8s.io/initial-events-end`.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    send_initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change. `object` is the object in the version that is watched, frozen and shared between watches.

    A BOOKMARK of the store (the end of the initial events) carries an object of kind and metadata only.
    """

    type: EventType
    object: Obj
    resource_version: str


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How to write. `field_validation` is "Strict", "Warn", "Ignore" or "" (the server's default: Warn)."""

    field_manager: str = ""
    field_validation: str = ""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class PatchRequest:
    """A PATCH: `body` is a list of operations for "json", otherwise an object. `force` is for "apply"."""

    type: PatchType
    body: Any
    options: WriteOptions = WriteOptions()
    force: bool = False


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """`metav1.DeleteOptions`; `uid` and `resource_version` are the preconditions."""

    propagation: Literal["", "Background", "Foreground", "Orphan"] = ""
    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """The object as stored (or as it would be, for a dry run), and the texts for `Warning:` headers."""

    obj: Obj
    warnings: tuple[str, ...] = ()
    created: bool = False
    """True if the write made the object: HTTP 201 rather than 200."""


@dataclass(frozen=True, slots=True)
class Cause:
    """`metav1.StatusCause`, e.g. ("spec.replicas", "FieldValueInvalid", "Invalid value: -1: should be …")."""

    field: str
    reason: str
    message: str


class ApiError(Exception):
    """A refusal in the words of the API: what a client reads as `metav1.Status`.

    `code` is the HTTP status, `reason` one of metav1's StatusReasons, `retry_after` whole seconds.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Obj | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def status(self) -> Obj:
        """Give the metav1.Status to answer with."""
        status: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        details = dict(self.details or {})
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        if details or self.details is not None:
            status["details"] = details
        status["code"] = self.code
        return status

    @classmethod
    def not_found(cls, resource: Resource, name: str) -> ApiError:
        """404: there is no object of that name."""
        return cls(404, "NotFound", f'{resource.group_resource} "{name}" not found', _details(resource, name))

    @classmethod
    def page_not_found(cls) -> ApiError:
        """404: the server serves no such resource."""
        return cls(404, "NotFound", "the server could not find the requested resource", {})

    @classmethod
    def already_exists(cls, resource: Resource, name: str, deleting: bool = False) -> ApiError:
        """409: the name is taken, perhaps by an object that is on its way out."""
        message = f'{resource.group_resource} "{name}" already exists'
        if deleting:
            message = f"object is being deleted: {message}"
        return cls(409, "AlreadyExists", message, _details(resource, name))

    @classmethod
    def conflict(cls, resource: Resource, name: str, message: str, causes: Sequence[Cause] = ()) -> ApiError:
        """409: the object changed, or a precondition or a field manager stands against the write.

        Without causes the message gets the usual prefix; with causes (server-side apply) it is kept as it is.
        """
        if causes:
            return cls(409, "Conflict", message, _causes(causes))
        text = f'Operation cannot be fulfilled on {resource.group_resource} "{name}": {message}'
        return cls(409, "Conflict", text, _details(resource, name))

    @classmethod
    def invalid(cls, kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
        """422: the content is wrong. `kind` is `Resource.group_kind`; each cause names its field."""
        lines = list(dict.fromkeys(f"{c.field}: {c.message}" for c in causes))
        text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
        kind_name, _, group = kind.partition(".")
        details: Obj = {"name": name} if name else {}
        if group:
            details["group"] = group
        details |= {"kind": kind_name, **_causes(causes)}
        return cls(422, "Invalid", f'{kind} "{name}" is invalid: {text}', details)

    @classmethod
    def bad_request(cls, message: str) -> ApiError:
        """400: the request cannot be understood."""
        return cls(400, "BadRequest", message)

    @classmethod
    def unauthorized(cls) -> ApiError:
        """401: no valid credentials."""
        return cls(401, "Unauthorized", "Unauthorized")

    @classmethod
    def forbidden(cls, resource: Resource, name: str, message: str, causes: Sequence[Cause] = ()) -> ApiError:
        """403: understood and refused."""
        details = _details(resource, name)
        if causes:
            details |= _causes(causes)
        subject = f'{resource.group_resource} "{name}"' if name else resource.group_resource
        return cls(403, "Forbidden", f"{subject} is forbidden: {message}", details)

    @classmethod
    def method_not_allowed(cls, resource: Resource, verb: str) -> ApiError:
        """405: this resource cannot be asked that."""
        message = f'{verb} is not supported on resources of kind "{resource.group_resource}"'
        return cls(405, "MethodNotAllowed", message, _details(resource, ""))

    @classmethod
    def not_acceptable(cls, message: str) -> ApiError:
        """406: none of the media types the client accepts can be served."""
        return cls(406, "NotAcceptable", message)

    @classmethod
    def unsupported_media_type(cls, message: str) -> ApiError:
        """415: the body's media type cannot be read."""
        return cls(415, "UnsupportedMediaType", message)

    @classmethod
    def expired(cls, message: str) -> ApiError:
        """410: a resourceVersion or continue token is older than what is kept."""
        return cls(410, "Expired", message)

    @classmethod
    def too_many_requests(cls, message: str, retry_after: int | None = None, causes: Sequence[Cause] = ()) -> ApiError:
        """429: try again later."""
        return cls(429, "TooManyRequests", message, _causes(causes) if causes else None, retry_after)

    @classmethod
    def insufficient_storage(cls, why: str) -> ApiError:
        """507: the state can't be written down, so that nothing can be changed; reads go on."""
        message = f"the state can't be written to its disk, and nothing was changed: {why}. Make room, then try again"
        return cls(507, "InsufficientStorage", message, retry_after=5)

    @classmethod
    def internal(cls, message: str) -> ApiError:
        """500: a fault of the server."""
        return cls(500, "InternalError", f"Internal error occurred: {message}")


def _details(resource: Resource, name: str) -> Obj:
    details: Obj = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.plural
    return details


def _causes(causes: Sequence[Cause]) -> Obj:
    listed = []
    for cause in causes:
        entry = {"reason": cause.reason, "message": cause.message}
        listed.append(entry | {"field": cause.field} if cause.field else entry)
    return {"causes": listed}


class NoSuchPathError(ApiError):
    """404 for a path of which no part is served: upstream answers a line of text, not a `metav1.Status`."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found")
