"""A small S3: uploads in parts, as the API's reference has them, with signatures of version 4 checked."""

from __future__ import annotations

import hashlib
import hmac
import ssl
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, quote

from aiohttp import web

KEY_ID, KEY = "AKIDEXAMPLE", "a-key-for-tests-alone"


@dataclass
class FakeS3:
    """``async with`` it. ``objects``: by ``bucket/key``, once they are whole; ``uploads``: those that are not.

    ``refuses``: code with which every part is refused; ``says``: answers that alone; ``asked``: method and path of
    each request.
    """

    context: ssl.SSLContext | None = None
    refuses: str = ""
    says: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    largest: int = 0
    url: str = ""
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.context)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"{'https' if self.context else 'http'}://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        body, where = await request.read(), request.path.lstrip("/")
        self.asked.append((request.method, request.path_qs))
        if self.says:
            return web.Response(text=self.says, status=404)
        if not _is_signed(request, body):
            return _error(403, "SignatureDoesNotMatch")
        query = request.query
        if request.method == "POST" and "uploads" in query:
            upload = f"upload-{len(self.asked)}"
            self.uploads[upload] = {}
            return _xml(f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>")
        parts = self.uploads.get(query.get("uploadId", ""))
        if parts is None:
            return _error(404, "NoSuchUpload")
        if request.method == "PUT":
            if self.refuses:
                return _error(403, self.refuses)
            parts[int(query["partNumber"])] = body
            self.largest = max(self.largest, len(body))
            return web.Response(headers={"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
        del self.uploads[query["uploadId"]]
        if request.method == "DELETE":
            return web.Response(status=204)
        self.objects[where] = b"".join(parts[number] for number in sorted(parts))
        return _xml("<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")


def _xml(text: str, status: int = 200) -> web.Response:
    return web.Response(text=f'<?xml version="1.0"?>{text}', content_type="application/xml", status=status)


def _error(status: int, code: str) -> web.Response:
    return _xml(f"<Error><Code>{code}</Code><Message>no: {code}</Message></Error>", status)


def _is_signed(request: web.Request, body: bytes) -> bool:
    """Signature of version 4 (docs of S3: "Authenticating Requests: Using the Authorization Header")."""
    scheme, _, rest = request.headers.get("Authorization", "").partition(" ")
    fields = dict(each.strip().split("=", 1) for each in rest.split(",")) if rest else {}
    if scheme != "AWS4-HMAC-SHA256" or not fields.get("Credential", "").startswith(f"{KEY_ID}/"):
        return False
    scope = fields["Credential"].removeprefix(f"{KEY_ID}/")
    signed, said = fields["SignedHeaders"].split(";"), request.headers["x-amz-content-sha256"]
    if said != "UNSIGNED-PAYLOAD" and said != hashlib.sha256(body).hexdigest():
        return False
    query = sorted(parse_qsl(request.rel_url.raw_query_string, keep_blank_values=True))
    canonical = "\n".join((
        request.method, request.rel_url.raw_path,
        "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in query),
        *(f"{name}:{request.headers[name].strip()}" for name in signed), "", ";".join(signed), said,
    ))  # fmt: skip
    text = "\n".join(
        (scheme, request.headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest())
    )  # fmt: skip
    key = f"AWS4{KEY}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.compare_digest(hmac.digest(key, text.encode(), "sha256").hex(), fields["Signature"])
