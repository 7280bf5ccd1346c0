"""A bucket for snapshots of etcd beside the lab, with TLS: a small S3 in a thread of its own."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyrage

from hack import credentials
from tests.runtime.etcd.s3 import KEY, KEY_ID, FakeS3
from tests.runtime.etcd.test_reading import pem_of

SECRET = "backups"


@dataclass(frozen=True, slots=True)
class Backups:
    """``identity``: the only key that reads what is in ``s3``."""

    s3: FakeS3
    ca: bytes
    identity: Any

    def secret(self) -> dict[str, Any]:
        texts = {"url": f"{self.s3.url}/backups", "accessKeyID": KEY_ID, "secretAccessKey": KEY, "ca.crt": self.ca}
        encoded = {
            name: base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()
            for name, text in texts.items()
        }
        meta = {"name": SECRET, "namespace": "default"}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": encoded}

    def spec(self) -> dict[str, Any]:
        """``spec.etcd`` of a ControlPlane."""
        return {"snapshot": {"s3": {"secretName": SECRET, "recipients": [str(self.identity.to_public())]}}}

    def databases(self) -> dict[str, bytes]:
        """Snapshots by name, decrypted; each is whole."""
        found = {}
        for name, content in self.s3.objects.items():
            opened = io.BytesIO()
            pyrage.decrypt_io(io.BytesIO(content), opened, [self.identity])
            database = opened.getvalue()
            assert hashlib.sha256(database[:-32]).digest() == database[-32:]
            found[name] = database
        return found


@contextmanager
def backups(folder: Path) -> Iterator[Backups]:
    ca = credentials.issue("backups-ca")
    certificate, key = pem_of(credentials.issue("s3", issuer=ca, address="127.0.0.1"))
    (folder / "s3.crt").write_bytes(certificate)
    credentials.private(folder / "s3.key", key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "s3.crt", folder / "s3.key")
    s3, ready, over, loop = FakeS3(context), threading.Event(), asyncio.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        async with s3:
            ready.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield Backups(s3, pem_of(ca)[0], pyrage.x25519.Identity.generate())
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(30)
        loop.close()
