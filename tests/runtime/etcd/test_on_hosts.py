"""What becomes of a snapshot that a host is to take: of its provider's answers, and of those without a way to it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controllers.kernel.actions import TakeEtcdSnapshot
from controllers.kernel.etcd import EtcdHost
from controllers.kernel.etcd_snapshots import HostTarget, SnapshotTaken
from nodewright.runtime.etcd.on_hosts import NotOnHost, Unable, saved_by
from providers.base.errors import ErrorClass, ProviderError
from tests.builders.clock import NOW
from tests.runtime.etcd.test_reading import CLUSTER

TARGET = HostTarget("cp-1", EtcdHost("node-1", "10.0.0.1", "uid-1"), "a script")
ORDER = TakeEtcdSnapshot(CLUSTER, (TARGET.host,), TARGET, "step-1", "v1.36.3", "a test")


class Says:
    """A provider that runs scripts, of the host with the UID ``uid-1``."""

    def __init__(self, answer: str | ProviderError) -> None:
        self._answer = answer

    async def run_script(self, _host: Any, script: str, _within: float) -> str:
        assert script == "a script"
        if isinstance(self._answer, ProviderError):
            raise self._answer
        return self._answer

    def locate(self, uid: str, namespace: str) -> Any:
        return (self, object()) if (uid, namespace) == ("uid-1", CLUSTER.namespace) else None


async def saved(locate: Any) -> SnapshotTaken:
    return await saved_by(TARGET, ORDER, locate, lambda: NOW)


async def test_what_the_host_has_saved_is_named_with_its_age_by_our_clock() -> None:
    found = await saved(Says("a login shell greets\nsaved 90 4128 77 /var/backups/etcd/etcd-x.db\n").locate)
    place = "node-1:/var/backups/etcd/etcd-x.db"
    assert found == SnapshotTaken("step-1", NOW - timedelta(seconds=90), 4128, 77, place, "cp-1")


@pytest.mark.parametrize(
    "printed", ["", "saved", "saved -1 1 1 /x", "saved 1 1 1 x", "saved 1 1 1 /x;y", "saved 1 1 1 /" + "x" * 400]
)
async def test_what_is_no_answer_of_the_script_is_no_snapshot(printed: str) -> None:
    with pytest.raises(NotOnHost, match="Machine cp-1: no etcd of kubeadm"):
        await saved(Says(printed).locate)


async def test_why_a_host_saves_nothing_is_bounded_and_printable() -> None:
    error = ProviderError(ErrorClass.TIMEOUT, "no room\x1b[31m" + "x" * 5000)
    with pytest.raises(NotOnHost, match=r"Machine cp-1: no room\?") as refused:
        await saved(Says(error).locate)
    assert len(str(refused.value)) < 600
    assert not isinstance(refused.value, Unable)


async def test_a_provider_without_a_way_to_its_hosts_and_a_host_that_nobody_knows_are_two_things() -> None:
    with pytest.raises(Unable, match="name a bucket"):
        await saved(lambda _uid, _namespace: (object(), object()))
    with pytest.raises(NotOnHost, match="not known") as refused:
        await saved(lambda _uid, _namespace: None)
    assert not isinstance(refused.value, Unable)
