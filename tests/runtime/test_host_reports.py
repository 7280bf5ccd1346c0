"""Reports of hosts, from the API server to whoever waits for them: who is believed, and what others can do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from api import names
from controllers.bootstrap import report
from controllers.kernel.host_report import Report
from controllers.kernel.refs import EVENT, NAMESPACE, SECRET, Key
from nodewright.runtime.bootstrap.reports import HostReports, Pauses
from nodewright.runtime.kube.errors import ApiError
from tests.runtime.town import Town

SECRET_OF = {"aaaaaa": "0123456789aaaaaa", "bbbbbb": "0123456789bbbbbb"}
SAID = Report("aaaaaa", 5, 8, 13, "install kubelet 1.36.9", "binary", True, 1, 1, "no such thing")


class Heard:
    """A HostReports and what its listener was told; ``until`` waits for a report of ``machine``."""

    def __init__(self, town: Town, relist: float = 0.05) -> None:
        self.town = town
        self.asked: list[str] = []
        self.changed = asyncio.Event()
        quick = Pauses(relist=relist, secret=0.05, retry=0.05, refused=0.05)
        self.reports = HostReports(lambda _cluster: self.town.client, quick)
        self.reports.listen(lambda _uid: self.changed.set())

    async def until(self, machine: str, token_id: str, sequence: int) -> Report:
        async with asyncio.timeout(180):
            while True:
                found = self.reports.look(machine, None, token_id)
                if found is not None and found.sequence >= sequence:
                    return found
                await self.changed.wait()
                self.changed.clear()

    async def token(self, token_id: str, machine: str) -> None:
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": f"{names.TOKEN_SECRET_PREFIX}{token_id}", "namespace": names.TOKEN_NAMESPACE,
                "labels": {names.TOKEN_MACHINE_UID_LABEL: machine},
            },
            "type": "bootstrap.kubernetes.io/token",
            "stringData": {"token-id": token_id, "token-secret": SECRET_OF[token_id]},
        }  # fmt: skip
        await self.town.client.create(SECRET, body)

    async def says(self, said: Report, secret: str) -> None:
        text = report.as_text(said)
        annotations = {names.REPORT_ANNOTATION: text, names.REPORT_SIGNATURE_ANNOTATION: report.sign(text, secret)}
        name, namespace = f"{said.token_id}-{said.sequence}-{secret}", names.BOOTSTRAP_NAMESPACE
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
            "involvedObject": {"kind": "Host", "namespace": namespace, "name": said.token_id},
        }
        await self.town.client.create(EVENT, body)


@pytest.fixture
async def heard(town: Town) -> AsyncIterator[Heard]:
    for name in (names.BOOTSTRAP_NAMESPACE, names.TOKEN_NAMESPACE):
        try:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await town.client.create(NAMESPACE, body)
        except ApiError as error:
            if not error.already_exists:
                raise
    made = Heard(town)
    yield made
    await made.reports.close()


async def test_a_report_is_heard_that_came_before_and_one_that_comes_after(heard: Heard) -> None:
    await heard.token("aaaaaa", "uid-a")
    await heard.says(SAID, SECRET_OF["aaaaaa"])
    assert await heard.until("uid-a", "aaaaaa", 5) == SAID
    later = replace(SAID, sequence=6, failed=False, step=9, log="")
    await heard.says(later, SECRET_OF["aaaaaa"])
    assert await heard.until("uid-a", "aaaaaa", 6) == later


async def test_the_holder_of_another_token_is_not_believed_and_the_host_itself_still_is(heard: Heard) -> None:
    await heard.token("aaaaaa", "uid-a")
    await heard.token("bbbbbb", "uid-b")
    await heard.says(replace(SAID, sequence=10**9), SECRET_OF["bbbbbb"])
    await heard.says(SAID, SECRET_OF["aaaaaa"])
    assert await heard.until("uid-a", "aaaaaa", 5) == SAID


async def test_an_older_report_changes_nothing(heard: Heard) -> None:
    await heard.token("aaaaaa", "uid-a")
    for sequence in (7, 6, 8, 5):
        await heard.says(replace(SAID, sequence=sequence), SECRET_OF["aaaaaa"])
    assert (await heard.until("uid-a", "aaaaaa", 8)).sequence == 8


async def test_a_token_speaks_for_the_machine_that_it_was_made_for_and_for_no_other(heard: Heard) -> None:
    """A Machine that names the token of another (by its annotation) gets no word of that one's host."""
    await heard.token("aaaaaa", "uid-a")
    await heard.token("bbbbbb", "uid-b")
    await heard.says(SAID, SECRET_OF["aaaaaa"])
    heard.reports.look("uid-a", None, "aaaaaa")
    assert heard.reports.look("uid-thief", None, "aaaaaa") is None
    await heard.says(replace(SAID, token_id="bbbbbb"), SECRET_OF["bbbbbb"])
    await heard.until("uid-b", "bbbbbb", 5)
    assert heard.reports.look("uid-thief", None, "aaaaaa") is None
    assert await heard.until("uid-a", "aaaaaa", 5) == SAID


async def test_of_events_for_tokens_that_nobody_waits_for_no_secret_is_read(heard: Heard, town: Town) -> None:
    await heard.token("aaaaaa", "uid-a")
    await heard.token("bbbbbb", "uid-b")
    read: list[Key] = []
    real = town.client.get

    async def get(kind: Any, key: Key) -> Any:
        read.append(key)
        return await real(kind, key)

    town.client.get = get  # type: ignore[method-assign]
    for number in range(50):
        await heard.says(replace(SAID, token_id="bbbbbb", sequence=number), SECRET_OF["bbbbbb"])
    await heard.says(SAID, SECRET_OF["aaaaaa"])
    await heard.until("uid-a", "aaaaaa", 5)
    assert read == [Key(names.TOKEN_NAMESPACE, f"{names.TOKEN_SECRET_PREFIX}aaaaaa")]


async def test_a_secret_that_comes_late_makes_what_was_said_before_count(heard: Heard) -> None:
    await heard.says(SAID, SECRET_OF["aaaaaa"])
    heard.reports.look("uid-a", None, "aaaaaa")
    await heard.token("aaaaaa", "uid-a")
    assert await heard.until("uid-a", "aaaaaa", 5) == SAID


@pytest.mark.parametrize(
    "annotations", [None, {}, {names.REPORT_ANNOTATION: "{"}, {names.REPORT_ANNOTATION: "[" * 999}]
)
async def test_events_of_any_shape_are_passed_over(annotations: Any, heard: Heard, town: Town) -> None:
    await heard.token("aaaaaa", "uid-a")
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "x", "namespace": names.BOOTSTRAP_NAMESPACE, "annotations": annotations},
        "involvedObject": {"kind": "Host", "namespace": names.BOOTSTRAP_NAMESPACE},
    }
    await town.client.create(EVENT, body)
    await heard.says(SAID, SECRET_OF["aaaaaa"])
    assert await heard.until("uid-a", "aaaaaa", 5) == SAID


async def test_nobody_listens_once_nobody_is_waited_for(heard: Heard) -> None:
    heard.reports.look("uid-a", None, "aaaaaa")
    (task,) = heard.reports._followers.values()
    heard.reports.forget("uid-a")
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert not heard.reports._followers
    heard.reports.forget("uid-a")


async def test_what_comes_later_is_heard_by_the_watch(heard: Heard) -> None:
    """No list but the first one is made here."""
    watching = Heard(heard.town, relist=3600.0)
    try:
        await heard.token("aaaaaa", "uid-a")
        for sequence in range(5, 8):
            await heard.says(replace(SAID, sequence=sequence), SECRET_OF["aaaaaa"])
            await watching.until("uid-a", "aaaaaa", sequence)
    finally:
        await watching.reports.close()
