"""Judge one AdmissionReview (admission.k8s.io/v1). No cloud is asked, nothing is read but the review itself.

What is refused are faults that a change *brings in*. An object that was faulty before can still be labelled, released
from its finalizers and deleted, and whatever is being deleted passes: a check must never keep a thing from going.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from api import names
from api.faults import FieldError, child, text_of
from api.kinds import KINDS
from api.providerconfig import REQUIRED, ProviderConfigError, find, missing
from api.validate import MOST_FAULTS, validate
from controllers.bootstrap import sizes
from providers.base.registry import Registry

API_VERSION = "admission.k8s.io/v1"
_CONFIGURED = frozenset({"Machine", "MachineSet", "MachineDeployment", "MachineClass"})
"""Kinds whose provider configuration is checked by the provider's schema."""
_MOST_CONTAINERS = 20_000
"""Objects and lists in a review: reading more of them would keep other reviews waiting."""
_MOST_REPORTED = 100
"""Faults that an answer names."""
_LONGEST_WARNING = 256
"""Characters; API servers cut what is longer."""


class BadReviewError(ValueError):
    """What came is no AdmissionReview of the version that is served."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``errors`` refuse the object; ``warnings`` are shown to whoever sent it."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        return not self.errors


ALLOWED = Verdict()


def review(body: Any, registry: Registry) -> dict[str, Any]:
    """The AdmissionReview to answer with. Raises BadReviewError."""
    request = _request(body)
    verdict = judge(request, registry)
    response: dict[str, Any] = {"uid": request["uid"], "allowed": verdict.allowed}
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    if not verdict.allowed:
        response["status"] = _refusal(request, verdict.errors)
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}


def review_text(text: bytes, registry: Registry) -> tuple[Any, dict[str, Any]]:
    """What a request's body says, and the AdmissionReview to answer with. Raises BadReviewError."""
    if text.count(b"{") + text.count(b"[") > _MOST_CONTAINERS:
        raise BadReviewError(f"it has more than {_MOST_CONTAINERS} objects and lists")
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadReviewError(f"not JSON: {error}") from None
    return body, review(body, registry)


def kind_of(body: Any) -> str:
    """The kind under review, for counting; "" for kinds that are not ours."""
    kind = text_of(child(child(body, "request"), "kind"), "kind")
    group = text_of(child(child(body, "request"), "kind"), "group")
    return kind if group == names.GROUP and kind in KINDS else ""


def judge(request: Mapping[str, Any], registry: Registry) -> Verdict:
    """Errors and warnings of one request; faults that the old object has as well don't count."""
    obj, operation = child(request, "object"), text_of(request, "operation")
    if operation not in ("CREATE", "UPDATE") or text_of(request, "subResource"):
        return ALLOWED
    if child(obj, "metadata").get("deletionTimestamp"):
        return ALLOWED
    creating = operation == "CREATE"
    found = _judged(obj, registry, creating)
    if creating:
        return found
    before = _judged(child(request, "oldObject"), registry, creating)
    known = frozenset(before.errors)
    errors = tuple(error for error in found.errors if error not in known)
    return Verdict(errors, tuple(text for text in found.warnings if text not in before.warnings))


def _judged(obj: Mapping[str, Any], registry: Registry, creating: bool) -> Verdict:
    errors = list(validate(obj, creating=creating))
    warnings: list[str] = []
    for problem, unknown in _config_problems(obj, registry):
        if unknown:
            # Another process may have the provider: this one must not stand in its way.
            warnings.append(str(problem)[:_LONGEST_WARNING])
        elif (fault := problem.shortened()) not in errors:
            errors.append(fault)
    return Verdict(tuple(errors), tuple(warnings))


def _config_problems(obj: Mapping[str, Any], registry: Registry) -> Iterator[tuple[FieldError, bool]]:
    """What a provider's own schema says, and whether nobody here has that provider."""
    if text_of(obj, "kind") not in _CONFIGURED:
        return
    try:
        config, path = find(obj)
    except ProviderConfigError:
        return  # ``validate`` has said so
    if where := missing(obj, config):
        yield FieldError(where, REQUIRED), False
    if config is None or config.value is None:
        return
    found = registry.find(config.api_version, config.kind) if config.api_version and config.kind else None
    unknown = bool(config.api_version and config.kind) and found is None
    for problem in registry.problems(config.value):
        yield FieldError(f"{path}.{problem.path}" if problem.path else path, problem.message), unknown
    if found is not None:
        yield from ((fault, False) for fault in sizes.faults(obj, config.value, found.registration))


def _request(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, Mapping) or body.get("kind") != "AdmissionReview":
        raise BadReviewError("not an AdmissionReview")
    if body.get("apiVersion") != API_VERSION:
        raise BadReviewError(f"apiVersion {body.get('apiVersion')!r} is not served, only {API_VERSION} is")
    request = body.get("request")
    if not isinstance(request, Mapping) or not isinstance(request.get("uid"), str):
        raise BadReviewError("request.uid is required")
    return request


def _refusal(request: Mapping[str, Any], errors: tuple[FieldError, ...]) -> dict[str, Any]:
    """A Status as an API server writes it for an invalid object."""
    kind = child(request, "kind")
    obj_name = text_of(request, "name") or text_of(child(child(request, "object"), "metadata"), "generateName")
    left_out, at_least = len(errors) - _MOST_REPORTED, " or more" if len(errors) >= MOST_FAULTS else ""
    errors = errors[:_MOST_REPORTED]
    texts = [*map(str, errors), *([f"and {left_out}{at_least} others"] if left_out > 0 else [])]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{text_of(kind, 'kind')}.{text_of(kind, 'group')}"
    return {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f'{qualified} "{obj_name}" is invalid: {text}',
        "details": {
            "name": obj_name,
            "group": text_of(kind, "group"),
            "kind": text_of(kind, "kind"),
            "causes": [
                {"reason": "FieldValueInvalid", "field": error.path, "message": error.message} for error in errors
            ],
        },
    }
