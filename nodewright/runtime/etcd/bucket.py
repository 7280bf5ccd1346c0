"""Where snapshots go: a bucket that a Secret names, reached through aiobotocore (the extra ``s3``).

Keys of the Secret: ``url`` (``https://host[:port]/bucket[/folder]``), ``accessKeyID``, ``secretAccessKey``, and if
needed ``region`` and ``ca.crt``. The URL stands beside the credentials, so that nobody can have them used elsewhere.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import re
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.errors import ConfigurationError
from nodewright.runtime.kube.servers import ServerPolicy
from providers.base.extras import install_command

PART = 8 << 20
"""Bytes of a part: S3 takes 10,000 of them, of at least 5 MiB."""
_CONNECT, _READ = 10.0, 60.0
"""Seconds."""
_LARGEST = 64 * 1024
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_FOLDER = re.compile(r"[A-Za-z0-9._/-]{0,400}")
_CODE = re.compile(r"[A-Za-z0-9]{1,64}")
_REGION = re.compile(r"[a-z0-9-]{1,63}")


class BucketError(Exception):
    """The Secret can't be used, or the bucket takes nothing; the message shows no secret."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """``endpoint``: without the bucket. ``folder`` ends with a slash, or is ""."""

    endpoint: str
    name: str
    folder: str
    key_id: str = field(repr=False)
    key: str = field(repr=False)
    region: str = "us-east-1"
    ca: bytes = b""

    def location(self, key: str) -> str:
        """For people."""
        return f"{self.endpoint}/{self.name}/{key}"


def bucket_of(data: Mapping[str, Any], title: str, servers: ServerPolicy) -> Bucket:
    """``data`` of the Secret ``title``. Raises BucketError naming the key that can't be used."""
    url = _text(data, "url", title)
    parts = urlsplit(url)
    bucket, _, folder = parts.path.strip("/").partition("/")
    try:
        netloc = parts.netloc if parts.hostname and (parts.port is None or parts.port > 0) else ""
    except ValueError:
        netloc = ""
    plain = not (parts.query or parts.fragment or "@" in parts.netloc) and parts.scheme in ("http", "https")
    if not plain or not netloc or not _BUCKET.fullmatch(bucket) or not _FOLDER.fullmatch(folder):
        raise BucketError(f"Secret {title}, url: must be https://host[:port]/bucket[/folder]")
    region = _text(data, "region", title) if data.get("region") else "us-east-1"
    if not _REGION.fullmatch(region):
        raise BucketError(f"Secret {title}, region: must be the name of a region")
    ca = _bytes(data, "ca.crt", title) if data.get("ca.crt") else b""
    endpoint = f"{parts.scheme}://{netloc}"
    try:
        servers.check(Connection(endpoint, ca=ca), f"Secret {title}, url")
    except ConfigurationError as error:
        raise BucketError(str(error)) from None
    key_id, key = _text(data, "accessKeyID", title), _text(data, "secretAccessKey", title)
    return Bucket(endpoint, bucket, f"{folder}/" if folder else "", key_id, key, region, ca)


def _text(data: Mapping[str, Any], name: str, title: str) -> str:
    try:
        text = _bytes(data, name, title).decode("ascii").strip()
    except UnicodeDecodeError:
        text = ""
    if not text or not text.isprintable():
        raise BucketError(f"Secret {title}, {name}: must be one line of ASCII")
    return text


def _bytes(data: Mapping[str, Any], name: str, title: str) -> bytes:
    found = data.get(name)
    if not isinstance(found, str) or len(found) > _LARGEST:
        raise BucketError(f"Secret {title}, {name}: missing, or too long")
    try:
        return base64.b64decode(found, validate=True)
    except (binascii.Error, ValueError):
        raise BucketError(f"Secret {title}, {name}: no base64") from None


async def upload(
    bucket: Bucket, key: str, content: AsyncIterator[bytes], *, servers: ServerPolicy, part: int = PART
) -> None:
    """The object ``key`` is there when this returns; if anything fails, ``content`` too, there is none of it.

    Raises BucketError, and what ``content`` raises. Keeps one part in memory.
    """
    try:
        with _trusted(bucket) as verify:
            async with await _client(bucket, servers, verify) as client:
                await _upload(client, {"Bucket": bucket.name, "Key": key}, content, part)
    except _errors() as error:
        raise BucketError(f"{bucket.location('')}: {_why(error)}") from None


async def _upload(client: Any, where: Mapping[str, str], content: AsyncIterator[bytes], size: int) -> None:
    begun = await client.create_multipart_upload(**where)
    upload = {**where, "UploadId": begun["UploadId"]}
    try:
        done: list[dict[str, Any]] = []
        async for body in _in_parts(content, size):
            sent = await client.upload_part(**upload, PartNumber=len(done) + 1, Body=body)
            done.append({"PartNumber": len(done) + 1, "ETag": sent["ETag"]})
        await client.complete_multipart_upload(**upload, MultipartUpload={"Parts": done})
    except BaseException:
        # Else its parts would be paid for, and nobody would see them.
        with contextlib.suppress(Exception):
            await asyncio.shield(client.abort_multipart_upload(**upload))
        raise


async def _in_parts(content: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """All of one size but the last."""
    waiting = bytearray()
    async for piece in content:
        waiting += piece
        while len(waiting) >= size:
            yield bytes(waiting[:size])
            del waiting[:size]
    if waiting:
        yield bytes(waiting)


async def _client(bucket: Bucket, servers: ServerPolicy, verify: str | bool) -> AbstractAsyncContextManager[Any]:
    """Nothing of this process's environment is used: no proxy, no file and no service of a cloud with credentials."""
    try:
        config_class, session_class = await asyncio.to_thread(_library)
    except ImportError:
        raise BucketError(f"aiobotocore is missing: {install_command('s3')}") from None
    config = config_class(
        connector_args={"socket_factory": servers.sockets()},
        warm_up_loader_caches=True,  # in a thread: some tenths of a second of CPU
        proxies={},
        connect_timeout=_CONNECT,
        read_timeout=_READ,
        retries={"total_max_attempts": 3, "mode": "standard"},
        s3={"addressing_style": "path", "use_accelerate_endpoint": False},
        request_checksum_calculation="when_required",  # many servers know none of the newer checksums
        response_checksum_validation="when_required",
    )
    client: AbstractAsyncContextManager[Any] = session_class().create_client(
        "s3", region_name=bucket.region, endpoint_url=bucket.endpoint, aws_access_key_id=bucket.key_id,
        aws_secret_access_key=bucket.key, config=config, verify=verify,
    )  # fmt: skip
    return client


def _library() -> tuple[Any, Any]:
    """Slow to import. Raises ImportError without the extra "s3"."""
    from aiobotocore.config import AioConfig  # noqa: PLC0415
    from aiobotocore.session import AioSession  # noqa: PLC0415

    return AioConfig, AioSession


@contextlib.contextmanager
def _trusted(bucket: Bucket) -> Iterator[str | bool]:
    """File with the authorities that count: the library takes certificates as files alone. Raises BucketError."""
    if not bucket.ca:
        yield ssl.get_default_verify_paths().cafile or True
        return
    try:
        Connection(bucket.endpoint, ca=bucket.ca).ssl_context()
    except ConfigurationError:
        raise BucketError(f"{bucket.endpoint}: ca.crt can't be used") from None
    with tempfile.NamedTemporaryFile(prefix="nodewright-ca-") as file:
        file.write(bucket.ca)
        file.flush()
        yield file.name


def _errors() -> tuple[type[Exception], ...]:
    try:
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError  # noqa: PLC0415
    except ImportError:
        return (OSError,)
    return (BotoCoreError, ClientError, HTTPClientError, OSError)


def _why(error: Exception) -> str:
    """A code, and our own words: what answers there may be any server, and its words are for who may read it alone."""
    answer = getattr(error, "response", None)
    if isinstance(answer, Mapping):
        code = str((answer.get("Error") or {}).get("Code") or "")
        status = (answer.get("ResponseMetadata") or {}).get("HTTPStatusCode")
        return f"HTTP {status}{f' {code}' if _CODE.fullmatch(code) else ''}"
    kwargs = getattr(error, "kwargs", None)
    inner = kwargs.get("error") if isinstance(kwargs, Mapping) else None
    text = f"{type(error).__name__} {inner or ''}".strip()
    return "".join(each if each.isprintable() else "?" for each in text[:200])
