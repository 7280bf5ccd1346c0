"""An OpenID Connect provider as far as Fulcio asks one: where its keys are, and the keys. It signs tokens by them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

URL = "http://issuer.example"
"""What it is called in tokens and certificates. Nobody looks the name up: Fulcio's proxy for it is this server."""
_KEY = "the-one"


class Issuer:
    """``Issuer().token("release@nodewright.example")``. In a ``with`` it serves ``pages`` on ``port`` of loopback."""

    def __init__(self) -> None:
        self._key = generate_private_key(SECP256R1())
        public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self._key.public_key()))
        self.pages: dict[str, Any] = {
            "/.well-known/openid-configuration": {
                "issuer": URL,
                "jwks_uri": f"{URL}/keys",
                "authorization_endpoint": f"{URL}/authorize",
                "token_endpoint": f"{URL}/token",
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["ES256"],
            },
            "/keys": {"keys": [{**public, "kid": _KEY, "use": "sig", "alg": "ES256"}]},
        }
        self._handler = _handler(self.pages)
        self.port = 0

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def token(self, email: str, **claims: object) -> str:
        """For Sigstore, valid for ten minutes unless ``claims`` say otherwise."""
        now = int(time.time())
        whole = {
            "iss": URL,
            "sub": email,
            "aud": "sigstore",
            "iat": now,
            "exp": now + 600,
            "email": email,
            "email_verified": True,
            **claims,
        }
        return jwt.encode(whole, self._key, algorithm="ES256", headers={"kid": _KEY})


def _handler(pages: Mapping[str, Any]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.removeprefix(URL).partition("?")[0]  # whoever asks a proxy names the whole URL
            body = json.dumps(pages.get(path, {})).encode()
            self.send_response(200 if path in pages else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test shows what matters."""

    return Handler
