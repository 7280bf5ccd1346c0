"""Bearer tokens: the administrator's fixed one, and signed ones for service accounts that run out.

A service account's token is a JWT (RFC 7519, HS256) with the claims of kubernetes' bound tokens; it is only good
for this plane and only as long as the account with that uid exists.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from nodewright.apiserver.app.private_files import write_private

TOKEN_FILE = "token"  # noqa: S105 - the name of the file
ISSUER = "https://kubernetes.default.svc"
MIN_LIFE = timedelta(minutes=10)
MAX_LIFE = timedelta(days=365)
_SECRET = re.compile(rb"[!-~]+").fullmatch
"""What a header can carry; a file that holds anything else is made anew."""
_HEADER = {"alg": "HS256", "typ": "JWT"}


@dataclass(frozen=True, slots=True)
class AccountClaim:
    """Which service account a token speaks for."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """The secrets behind all tokens."""

    admin: str
    key: bytes

    @classmethod
    def load_or_create(cls, folder: Path) -> Tokens:
        """Read `token` and `service-account.key` in a private folder, or make them. Raises OSError."""
        admin = _secret(folder / TOKEN_FILE).decode().strip()
        return cls(admin, _secret(folder / "service-account.key"))

    def is_admin(self, token: str) -> bool:
        """Say whether this is the administrator's token, in constant time."""
        return token.isascii() and hmac.compare_digest(token.encode(), self.admin.encode())

    def issue(self, account: AccountClaim, now: datetime, life: timedelta) -> str:
        """Sign a token for a service account."""
        issued = int(now.timestamp())
        bound = {
            "namespace": account.namespace,
            "serviceaccount": {"name": account.name, "uid": account.uid},
        }
        claims = {
            "aud": [ISSUER],
            "exp": issued + int(life.total_seconds()),
            "iat": issued,
            "nbf": issued,
            "iss": ISSUER,
            "jti": secrets.token_hex(16),
            "kubernetes.io": bound,
            "sub": f"system:serviceaccount:{account.namespace}:{account.name}",
        }
        signed = f"{_encode(_HEADER)}.{_encode(claims)}"
        return f"{signed}.{_base64(self._signature(signed))}"

    def account(self, token: str, now: datetime) -> AccountClaim | None:
        """Give the account of a token of ours that has not run out; None for anything else."""
        if not token.isascii():
            return None
        signed, _, signature = token.rpartition(".")
        try:
            if not hmac.compare_digest(_unbase64(signature), self._signature(signed)):
                return None
            claims: dict[str, Any] = json.loads(_unbase64(signed.partition(".")[2]))
            if now.timestamp() >= claims["exp"]:
                return None
            bound = claims["kubernetes.io"]
            account = bound["serviceaccount"]
            return AccountClaim(bound["namespace"], account["name"], account["uid"])
        except (ValueError, KeyError, TypeError, binascii.Error):
            return None

    def _signature(self, signed: str) -> bytes:
        return hmac.new(self.key, signed.encode(), hashlib.sha256).digest()


def _secret(path: Path) -> bytes:
    if path.is_file():
        found = path.read_bytes().strip()
        if len(found) >= 32 and _SECRET(found):
            return found
    made = secrets.token_urlsafe(32).encode()
    write_private(path, made)
    return made


def _encode(content: dict[str, Any]) -> str:
    return _base64(json.dumps(content, separators=(",", ":")).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _unbase64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
