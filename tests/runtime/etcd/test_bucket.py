"""Snapshots on their way into a bucket: the Secret that names it, and objects that are whole or not there."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hack import credentials
from nodewright.runtime.etcd.bucket import Bucket, BucketError, bucket_of, upload
from nodewright.runtime.kube.servers import ServerPolicy, Tls
from providers.base.addresses import AddressPolicy, networks
from tests.runtime.etcd.s3 import KEY, KEY_ID, FakeS3
from tests.runtime.etcd.test_reading import pem_of
from tests.runtime.etcd.test_snapshot_stream import cut, stream

PLAIN = ServerPolicy(Tls.PLAIN)
SIZE = 1 << 16


def secret(url: str, **more: str) -> dict[str, str]:
    texts = {"url": url, "accessKeyID": KEY_ID, "secretAccessKey": KEY, **more}
    return {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}


def bucket(url: str, servers: ServerPolicy = PLAIN, **more: str) -> Bucket:
    return bucket_of(secret(url, **more), "default/backups", servers)


async def test_an_object_of_several_parts_arrives_whole_and_no_part_is_larger_than_it_may_be() -> None:
    content = bytes(range(256)) * 1000
    async with FakeS3() as s3:
        await upload(bucket(f"{s3.url}/backups"), "a/b c.db", stream(cut(content, 999)), servers=PLAIN, part=SIZE)
        assert s3.objects == {"backups/a/b c.db": content}
        assert s3.largest == SIZE
        assert s3.uploads == {}


async def test_tls_is_verified_with_the_ca_of_the_secret(tmp_path: Path) -> None:
    ca = credentials.issue("ca")
    certificate, key = pem_of(credentials.issue("s3", issuer=ca, address="127.0.0.1"))
    (tmp_path / "crt").write_bytes(certificate)
    credentials.private(tmp_path / "key", key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    servers = ServerPolicy()
    async with FakeS3(context) as s3:
        known = bucket(f"{s3.url}/backups/folder", servers, **{"ca.crt": pem_of(ca)[0].decode()})
        await upload(known, f"{known.folder}x.db", stream([b"x"]), servers=servers)
        assert s3.objects == {"backups/folder/x.db": b"x"}
        with pytest.raises(BucketError, match=r"(?i)certificate|ssl"):
            await upload(bucket(f"{s3.url}/backups", servers), "y", stream([b"y"]), servers=servers)


async def broken() -> AsyncIterator[bytes]:
    yield b"x" * SIZE
    raise RuntimeError("the database ended early")


async def test_of_content_that_breaks_off_nothing_stays() -> None:
    async with FakeS3() as s3:
        with pytest.raises(RuntimeError, match="ended early"):
            await upload(bucket(f"{s3.url}/backups"), "x.db", broken(), servers=PLAIN, part=SIZE)
        assert (s3.objects, s3.uploads) == ({}, {})


async def test_why_the_bucket_takes_nothing_is_said_without_its_key() -> None:
    async with FakeS3(refuses="AccessDenied") as s3:
        with pytest.raises(BucketError, match="AccessDenied") as caught:
            await upload(bucket(f"{s3.url}/backups"), "x.db", stream([b"x"]), servers=PLAIN)
        assert (s3.objects, s3.uploads) == ({}, {})
        assert KEY not in str(caught.value)
        with pytest.raises(BucketError, match="SignatureDoesNotMatch"):
            await upload(bucket(f"{s3.url}/backups", secretAccessKey="another"), "x.db", stream([b"x"]), servers=PLAIN)


@pytest.mark.parametrize(
    "says",
    ["the-secret-of-a-server", "<Error><Code>a secret!</Code></Error>", "<Error>the-secret", '{"secret": 1}', ""],
)
async def test_no_word_of_an_answer_but_its_code_is_said(says: str) -> None:
    async with FakeS3(says=says or " ") as s3:
        with pytest.raises(BucketError) as caught:
            await upload(bucket(f"{s3.url}/backups"), "x.db", stream([b"x"]), servers=PLAIN)
        assert "secret" not in str(caught.value)


async def test_an_address_that_the_process_may_not_connect_to_is_never_asked() -> None:
    async with FakeS3() as s3:
        servers = ServerPolicy(Tls.PLAIN, AddressPolicy(denied=networks(["127.0.0.0/8"])))
        with pytest.raises(BucketError, match="server-deny-cidrs"):
            await upload(bucket(f"{s3.url}/backups"), "x.db", stream([b"x"]), servers=servers)
        assert s3.asked == []


@pytest.mark.parametrize(
    "url",
    ["s3://bucket", "https:///bucket", "https://host", "https://host/B", "https://a:b@host/bucket", "ftp://host/bucket",
     "https://host/bucket?x=1", "https://host:0/bucket", "https://host:99999/bucket", "https://host/bucket/ä", ""],
)  # fmt: skip
def test_a_url_that_names_no_bucket_is_refused_by_its_key(url: str) -> None:
    with pytest.raises(BucketError, match="Secret default/backups, url: "):
        bucket(url)


@pytest.mark.parametrize(
    ("key", "value"),
    [("accessKeyID", None), ("secretAccessKey", 7), ("secretAccessKey", "?"), ("region", base64.b64encode(b"a b"))],
)
def test_a_key_of_the_secret_that_cannot_be_used_is_named(key: str, value: Any) -> None:
    data: dict[str, Any] = secret("https://host/bucket")
    data[key] = value.decode() if isinstance(value, bytes) else value
    with pytest.raises(BucketError, match=f"Secret default/backups, {key}: "):
        bucket_of(data, "default/backups", ServerPolicy())


def test_http_is_taken_only_where_the_administrator_allows_it() -> None:
    with pytest.raises(BucketError, match="not an https URL"):
        bucket("http://host/bucket", ServerPolicy())
    found = bucket("http://host/bucket/a/b/")
    assert (found.endpoint, found.name, found.folder) == ("http://host", "bucket", "a/b/")
    assert KEY not in repr(found)
