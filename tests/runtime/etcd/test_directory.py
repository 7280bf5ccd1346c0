"""What is known of a cluster's etcd in the running program: read in the background, forgotten with each change."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from controllers.kernel.actions import RemoveEtcdMember
from controllers.kernel.etcd import EtcdHost, EtcdMembers, EtcdRead, EtcdUnread
from controllers.kernel.refs import SECRET, Key
from nodewright.runtime.etcd.directory import EtcdDirectory
from tests.runtime.etcd.test_reading import CLUSTER, DEADLINE, Members, members, now, pem_of
from tests.runtime.stub_server import until
from tests.runtime.town import Town

__all__ = ["members"]


async def secret(town: Town, crt: bytes, key: bytes) -> None:
    data = {name: base64.b64encode(text).decode() for name, text in (("tls.crt", crt), ("tls.key", key))}
    meta = {"name": f"{CLUSTER.name}-etcd", "namespace": CLUSTER.namespace}
    await town.client.create(SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})


async def seen(look: Callable[[], EtcdRead], done: Callable[[EtcdRead], bool]) -> EtcdRead:
    await until(lambda: done(look()), DEADLINE)
    return look()


def healthy(found: EtcdRead) -> int:
    return sum(bool(m.healthy) for m in found.members) if isinstance(found, EtcdMembers) else 0


@pytest.mark.realplane
async def test_a_member_is_removed_and_what_was_read_before_counts_for_nothing(town: Town, members: Members) -> None:
    await secret(town, *pem_of(members.ca))
    directory = EtcdDirectory(town.client, now, members.client)
    try:
        assert isinstance(directory.look(CLUSTER, members.hosts), EtcdUnread)
        found = await seen(lambda: directory.look(CLUSTER, members.hosts), lambda read: healthy(read) == 3)
        assert isinstance(found, EtcdMembers)
        members.kill("m2")
        found = await seen(lambda: directory.look(CLUSTER, members.hosts), lambda read: healthy(read) == 2)
        assert isinstance(found, EtcdMembers)
        [dead] = [m.id for m in found.members if not m.healthy]
        everybody = frozenset(m.id for m in found.members)
        action = RemoveEtcdMember(CLUSTER, dead, everybody, everybody - {dead}, "")
        assert directory.submit(action)  # be it while a read is under way
        assert isinstance(directory.look(CLUSTER, members.hosts), EtcdUnread)
        assert not directory.submit(action)
        found = await seen(lambda: directory.look(CLUSTER, members.hosts), lambda read: isinstance(read, EtcdMembers))
        assert isinstance(found, EtcdMembers)
        assert dead not in {m.id for m in found.members}
    finally:
        await directory.close(5.0)


@pytest.mark.realplane
async def test_what_was_read_while_there_were_other_machines_counts_for_nothing(town: Town, members: Members) -> None:
    """A member of a Machine that is gone by now may have been healthy then: another one would join beside it."""
    await secret(town, *pem_of(members.ca))
    directory = EtcdDirectory(town.client, now, members.client)
    try:
        await seen(lambda: directory.look(CLUSTER, members.hosts), lambda read: healthy(read) == 3)
        fewer = members.hosts[:2]
        assert directory.look(CLUSTER, fewer) == EtcdUnread("it was not read yet", finding_out=True)
        await seen(lambda: directory.look(CLUSTER, fewer), lambda read: healthy(read) == 3)
    finally:
        await directory.close(5.0)


@pytest.mark.parametrize(
    ("crt", "key", "why"),
    [(b"", b"", "tls.crt: no certificate"), (None, b"very-secret", "tls.key: no private key")],
)
async def test_an_unusable_secret_is_told_without_what_it_holds(
    town: Town, tmp_path: Path, crt: bytes | None, key: bytes, why: str
) -> None:
    await secret(town, pem_of(Members(tmp_path).ca)[0] if crt is None else crt, key)
    directory = EtcdDirectory(town.client, now)
    hosts = (EtcdHost("m0", "127.0.0.1"),)
    try:
        found = await seen(
            lambda: directory.look(CLUSTER, hosts),
            lambda read: isinstance(read, EtcdUnread) and "not read yet" not in read.why,
        )
        assert isinstance(found, EtcdUnread)
        assert why in found.why
        assert f"{CLUSTER}-etcd" in found.why
        assert "very-secret" not in found.why
    finally:
        await directory.close(5.0)


async def test_a_missing_secret_is_named(town: Town) -> None:
    directory = EtcdDirectory(town.client, now)
    other = Key("default", "none")
    try:
        found = await seen(
            lambda: directory.look(other, (EtcdHost("m0", "127.0.0.1"),)),
            lambda read: isinstance(read, EtcdUnread) and "not read yet" not in read.why,
        )
        assert found == EtcdUnread("Secret default/none-etcd with etcd's CA: there is none")
    finally:
        await directory.close(5.0)
    assert not directory.submit(RemoveEtcdMember(other, 1, frozenset(), frozenset(), ""))
