"""The kinds that are questions and are never stored: may I, who am I, is this token good, give me a token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from nodewright.apiserver.app.authentication import ANONYMOUS, READERS, Authenticator, User
from nodewright.apiserver.app.authorization import why_not
from nodewright.apiserver.app.tokens import ISSUER, MAX_LIFE, MIN_LIFE, AccountClaim, Tokens
from nodewright.apiserver.values import ApiError, Cause, Obj, Resource

_DEFAULT_LIFE = timedelta(hours=1)
_WHY = {
    False: "everybody who is authenticated and not confined to reading may do everything here",
    True: "those who only read may get, list and watch all but Secrets",
}


def _review(group: str, kind: str, *, namespaced: bool = False) -> Resource:
    singular = kind.lower()
    return Resource(group, "v1", kind, f"{singular}s", singular, f"{kind}List", namespaced)


REVIEWS: tuple[Resource, ...] = (
    _review("authentication.k8s.io", "TokenReview"),
    _review("authentication.k8s.io", "SelfSubjectReview"),
    _review("authorization.k8s.io", "SubjectAccessReview"),
    _review("authorization.k8s.io", "LocalSubjectAccessReview", namespaced=True),
    _review("authorization.k8s.io", "SelfSubjectAccessReview"),
    _review("authorization.k8s.io", "SelfSubjectRulesReview"),
)

_BY_URL = {(resource.group, resource.version, resource.plural): resource for resource in REVIEWS}


def find_review(group: str, version: str, plural: str) -> Resource | None:
    """Find the question behind a URL."""
    return _BY_URL.get((group, version, plural))


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Answers the questions."""

    authenticator: Authenticator
    tokens: Tokens
    clock: Callable[[], datetime]

    def answer(self, resource: Resource, body: Obj, user: User) -> Obj:
        """Fill in the status of a review. Raises ApiError 400, 422 for a question without its subject."""
        if body.get("kind", resource.kind) != resource.kind:
            raise ApiError.bad_request(f"{body.get('kind')} is not a {resource.kind}")
        spec = body.get("spec") or {}
        if not isinstance(spec, dict):
            raise ApiError.bad_request("spec must be an object")
        return {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": {"creationTimestamp": None},
            **({"spec": spec} if resource.kind != "SelfSubjectReview" else {}),
            "status": self._status(resource, spec, user),
        }

    def issue(self, account: Obj, body: Obj) -> Obj:
        """Answer a TokenRequest for a ServiceAccount that exists. Raises ApiError 422 for a life out of bounds."""
        metadata = account["metadata"]
        seconds = _life_in_seconds(metadata["name"], body.get("spec") or {})
        now, life = self.clock(), timedelta(seconds=seconds)
        claim = AccountClaim(metadata["namespace"], metadata["name"], metadata["uid"])
        ends = (now + life).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": claim.name,
                "namespace": claim.namespace,
                "creationTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            },
            "spec": {"audiences": [ISSUER], "expirationSeconds": seconds, "boundObjectRef": None},
            "status": {"token": self.tokens.issue(claim, now, life), "expirationTimestamp": ends},
        }

    def _status(self, resource: Resource, spec: Mapping[str, Any], user: User) -> Obj:
        if resource.kind == "TokenReview":
            asked = self.authenticator.by_token(str(spec.get("token") or ""))
            return {"authenticated": False} if asked is None else {"authenticated": True, "user": _info(asked)}
        if resource.kind == "SelfSubjectReview":
            return {"userInfo": _info(user)}
        if resource.kind == "SelfSubjectRulesReview":
            return _rules(user)
        self._check_question(resource, spec)
        if resource.kind == "SelfSubjectAccessReview":
            return _verdict(user, spec)
        groups = spec.get("groups")
        reads = isinstance(groups, list) and READERS in groups
        asked = User(str(spec.get("user") or ""), read_only=reads)
        return _verdict(asked, spec) if asked.name != ANONYMOUS.name else {"allowed": False}

    def _check_question(self, resource: Resource, spec: Mapping[str, Any]) -> None:
        given = [name for name in ("resourceAttributes", "nonResourceAttributes") if spec.get(name)]
        if len(given) != 1:
            message = "Invalid value: exactly one of nonResourceAttributes or resourceAttributes must be specified"
            cause = Cause("spec.resourceAttributes", "FieldValueInvalid", message)
            raise ApiError.invalid(resource.group_kind, "", [cause])


def _life_in_seconds(account: str, spec: Obj) -> int:
    seconds = spec.get("expirationSeconds", int(_DEFAULT_LIFE.total_seconds()))
    if not isinstance(seconds, int) or not MIN_LIFE.total_seconds() <= seconds <= MAX_LIFE.total_seconds():
        message = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes, or above a year"
        cause = Cause("spec.expirationSeconds", "FieldValueInvalid", message)
        raise ApiError.invalid("TokenRequest.authentication.k8s.io", account, [cause])
    return seconds


def _verdict(user: User, spec: Mapping[str, Any]) -> Obj:
    """Whether the user may do what the attributes say: a path is read by GET and HEAD."""
    about = spec.get("resourceAttributes")
    if isinstance(about, Mapping) and about:
        group, plural = str(about.get("group") or ""), str(about.get("resource") or "")
        why = why_not(user, str(about.get("verb") or ""), group, plural)
        if not why and user.read_only and "*" in (group, plural):
            why = why_not(user, str(about.get("verb") or ""), "", "secrets")
    else:
        path = spec.get("nonResourceAttributes")
        verb = str(path.get("verb") if isinstance(path, Mapping) else "").lower()
        why = "" if not user.read_only or verb in {"get", "head"} else why_not(user, verb, "", "")
    return {"allowed": False, "reason": why} if why else {"allowed": True, "reason": _WHY[user.read_only]}


def _rules(user: User) -> Obj:
    """Kubernetes' rules only add, so that "all but Secrets" can't be said by one: `incomplete` says it."""
    if not user.read_only:
        every: Obj = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return {
            "resourceRules": [every],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        }
    return {
        "resourceRules": [],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["*"]}],
        "incomplete": True,
        "evaluationError": "get, list and watch of all but Secrets, which no rule can say",
    }


def _info(user: User) -> Obj:
    info: Obj = {"username": user.name, "groups": list(user.groups)}
    return info | {"uid": user.uid} if user.uid else info
