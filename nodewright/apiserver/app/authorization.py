"""Who may do what: administrators everything, those who only read all but Secrets, and nothing else."""

from __future__ import annotations

from nodewright.apiserver.app.authentication import User
from nodewright.apiserver.app.requests import Target
from nodewright.apiserver.values import ApiError, Resource

READS = frozenset({"get", "list", "watch"})
_ABOUT_ONESELF = frozenset({"selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"})
"""Questions that are POSTed and stored nowhere."""
_NO_SECRETS = "those who only read may not read Secrets"
_NO_WRITES = "those who only read may get, list and watch"


def why_not(user: User, verb: str, group: str, plural: str) -> str:
    """Why this is not allowed; "" if it is. Whatever is not known to be a read is a write."""
    if not user.read_only:
        return ""
    if group.endswith(("authentication.k8s.io", "authorization.k8s.io")) and plural in _ABOUT_ONESELF:
        return "" if verb == "create" else _NO_WRITES
    if verb not in READS:
        return _NO_WRITES
    return _NO_SECRETS if not group and plural == "secrets" else ""


def authorize(user: User, target: Target, resource: Resource) -> None:
    """Raises ApiError 403."""
    why = why_not(user, target.verb, target.group, target.plural)
    if why:
        text = f'User "{user.name}" cannot {target.verb or "change"} resource "{target.plural}": {why}'
        raise ApiError.forbidden(resource, target.name, text)


def authorize_snapshot(user: User) -> None:
    """It holds all Secrets. Raises ApiError 403."""
    if user.read_only:
        raise ApiError(403, "Forbidden", f'User "{user.name}" cannot take a snapshot: it holds all Secrets')
