"""Authentication: a client certificate of our authority; a token of the administrator, a person, a service account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aiohttp import web

from nodewright.apiserver.app.certificates import ADMIN_GROUP, ADMIN_USER
from nodewright.apiserver.app.tokens import AccountClaim, Tokens
from nodewright.apiserver.app.users import Users
from nodewright.apiserver.roles import Role

_AUTHENTICATED = "system:authenticated"
READERS = "nodewright:read-only"
"""The group of those who only read."""


@dataclass(frozen=True, slots=True)
class User:
    """The user of a request, who may do everything unless `read_only`: there is no RBAC here."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    read_only: bool = False


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
ADMINISTRATOR = User(ADMIN_USER, (ADMIN_GROUP, _AUTHENTICATED))


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Tells users by certificate or token.

    `account_exists` says whether a service account with that uid is (still) there.
    """

    tokens: Tokens
    clock: Callable[[], datetime]
    account_exists: Callable[[AccountClaim], bool]
    users: Users

    def user(self, request: web.BaseRequest) -> User | None:
        """Give the user; `ANONYMOUS` if the request carries no credentials, None if it carries bad ones.

        A token wins over a certificate, as with kube-apiserver when both are good; a bad token is never ignored.
        """
        self.users.refresh()  # whoever asks: watches of somebody who was removed end
        header = request.headers.get("Authorization")
        if header:
            scheme, _, token = header.partition(" ")
            if scheme.lower() != "bearer":
                return None
            return self.by_token(token.strip())
        transport = request.transport
        peer = transport.get_extra_info("peercert") if transport is not None else None
        return _certified(peer) if peer else ANONYMOUS

    def by_token(self, token: str) -> User | None:
        """Give the user of a bearer token, or None."""
        if self.tokens.is_admin(token):
            return ADMINISTRATOR
        if (person := self.users.find(token)) is not None:
            read_only = person.role is not Role.ADMIN
            return User(person.name, (READERS if read_only else ADMIN_GROUP, _AUTHENTICATED), read_only=read_only)
        claim = self.tokens.account(token, self.clock())
        if claim is None or not self.account_exists(claim):
            return None
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{claim.namespace}", _AUTHENTICATED)
        return User(f"system:serviceaccount:{claim.namespace}:{claim.name}", groups, claim.uid)


def _certified(peer: Mapping[str, Any]) -> User | None:
    """Read the user from a certificate that TLS has verified: common name and organizations (x509 request header)."""
    subject = [part for group in peer.get("subject", ()) for part in group]
    names = [value for key, value in subject if key == "commonName"]
    groups = tuple(value for key, value in subject if key == "organizationName")
    return User(names[0], (*groups, _AUTHENTICATED)) if names else None
