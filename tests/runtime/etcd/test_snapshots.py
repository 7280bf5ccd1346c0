"""Snapshots from real members into a bucket, by the part of the program that does it in the background."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import cast

import pyrage
import pytest

from controllers.kernel.actions import TakeEtcdSnapshot
from controllers.kernel.etcd import EtcdHost
from controllers.kernel.etcd_snapshots import SnapshotFailed, SnapshotTaken, SnapshotTarget, SnapshotUnderWay
from controllers.kernel.refs import SECRET, Key
from nodewright.runtime.etcd.directory import EtcdDirectory
from nodewright.runtime.etcd.gateway import GatewayError
from nodewright.runtime.kube.servers import ServerPolicy, Tls
from tests.runtime.etcd.s3 import FakeS3
from tests.runtime.etcd.test_bucket import secret as secret_data
from tests.runtime.etcd.test_directory import secret
from tests.runtime.etcd.test_reading import CLUSTER, DEADLINE, Members, members, now, pem_of
from tests.runtime.stub_server import until
from tests.runtime.town import Town

__all__ = ["members"]
BACKUPS = Key(CLUSTER.namespace, "backups")
NEEDLE = b"a value that is found again"
PLAIN = ServerPolicy(Tls.PLAIN)


@pytest.fixture
async def s3() -> AsyncIterator[FakeS3]:
    async with FakeS3() as found:
        yield found


@pytest.fixture
async def directory(town: Town, members: Members) -> AsyncIterator[EtcdDirectory]:
    await secret(town, *pem_of(members.ca))
    found = EtcdDirectory(town.client, now, members.client, PLAIN)
    yield found
    await found.close(5.0)


async def bucket_secret(town: Town, url: str) -> None:
    body = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": BACKUPS.name, "namespace": BACKUPS.namespace},
        "data": secret_data(f"{url}/backups/etcd"),
    }  # fmt: skip
    await town.client.create(SECRET, body)


def ordered(hosts: tuple[EtcdHost, ...], *recipients: str) -> TakeEtcdSnapshot:
    return TakeEtcdSnapshot(
        CLUSTER, hosts, SnapshotTarget(BACKUPS, recipients, plain=not recipients), "step-1", "v1.36.3", "a test"
    )


def ended(directory: EtcdDirectory) -> Callable[[], bool]:
    return lambda: not isinstance(directory.snapshots.snapshot(CLUSTER), SnapshotUnderWay | None)


async def put(directory: EtcdDirectory, members: Members) -> bool:
    """Whether etcd has taken a value."""
    body = {"key": "a2V5", "value": base64.b64encode(NEEDLE).decode()}
    async with directory.gateway(CLUSTER) as gateway:
        try:
            await gateway._ask(f"https://{members.hosts[0].address}:{members.client}", "/v3/kv/put", body)
        except GatewayError:
            return False
    return True


async def filled(directory: EtcdDirectory, members: Members) -> None:
    async with asyncio.timeout(DEADLINE):
        while not await put(directory, members):  # noqa: ASYNC110  (etcd wakes nobody here)
            await asyncio.sleep(0.01)


@pytest.mark.realplane
async def test_a_snapshot_arrives_whole_and_only_the_holder_of_the_key_can_read_it(
    town: Town, members: Members, s3: FakeS3, directory: EtcdDirectory
) -> None:
    await bucket_secret(town, s3.url)
    await filled(directory, members)
    identity = pyrage.x25519.Identity.generate()
    order = ordered(members.hosts, str(identity.to_public()))
    assert directory.submit(order)
    assert not directory.submit(order)
    await until(ended(directory), DEADLINE)
    taken = directory.snapshots.snapshot(CLUSTER)
    assert isinstance(taken, SnapshotTaken), taken
    [(name, content)] = s3.objects.items()
    assert taken.location == f"{s3.url}/{name}"
    assert name.startswith("backups/etcd/default/prod/etcd-")
    assert name.endswith(f"-{taken.revision}-before-v1.36.3.db.age")
    assert NEEDLE not in content
    opened = io.BytesIO()
    pyrage.decrypt_io(io.BytesIO(content), opened, [identity])
    database = opened.getvalue()
    assert NEEDLE in database
    assert len(database) == taken.size_bytes
    assert hashlib.sha256(database[:-32]).digest() == database[-32:]
    assert taken.revision >= 2


@pytest.mark.realplane
async def test_with_a_member_that_is_lost_another_one_is_asked_and_in_plain_if_that_is_said(
    town: Town, members: Members, s3: FakeS3, directory: EtcdDirectory
) -> None:
    await bucket_secret(town, s3.url)
    await filled(directory, members)
    members.kill("m0")
    assert directory.submit(ordered(members.hosts))

    def whole() -> bool:
        """Until a leader was elected none of the others works."""
        found = directory.snapshots.snapshot(CLUSTER)
        if isinstance(found, SnapshotFailed):
            directory.submit(ordered(members.hosts))
        return isinstance(found, SnapshotTaken)

    await until(whole, DEADLINE)
    [(name, content)] = s3.objects.items()
    assert name.endswith(".db")
    assert NEEDLE in content


async def test_why_there_is_no_snapshot_names_what_is_missing(town: Town, s3: FakeS3) -> None:
    directory = EtcdDirectory(town.client, now, servers=PLAIN)

    async def why(order: TakeEtcdSnapshot) -> str:
        assert directory.submit(order)
        await until(ended(directory), DEADLINE)
        found = directory.snapshots.snapshot(CLUSTER)
        assert isinstance(found, SnapshotFailed)
        return found.why

    try:
        order = ordered(())
        assert await why(order) == "Secret default/backups: there is none"
        await bucket_secret(town, s3.url)
        unsaid = replace(order, target=SnapshotTarget(BACKUPS))
        assert "name recipients, or set plain to true" in await why(unsaid)
        wrong = replace(order, target=SnapshotTarget(BACKUPS, ("age1nonsense",)))
        assert "age1nonsense" in await why(wrong)
        assert "Secret default/prod-etcd" in await why(order)
        assert s3.asked == []
    finally:
        await directory.close(5.0)


async def test_a_snapshot_that_is_under_way_when_the_process_ends_is_broken_off(town: Town) -> None:
    directory = EtcdDirectory(cast("object", _Silent()), now, servers=PLAIN)  # type: ignore[arg-type]
    assert directory.submit(ordered(()))
    await asyncio.sleep(0)
    await directory.close(5.0)
    assert isinstance(directory.snapshots.snapshot(CLUSTER), SnapshotUnderWay)
    assert not directory.submit(ordered(()))


class _Silent:
    """A client whose server never answers."""

    async def get(self, *_: object) -> None:
        await asyncio.Event().wait()
