"""Events: told once, counted when repeated, never a stream of writes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from controllers.kernel.actions import Event
from controllers.kernel.refs import MACHINE, NODE, Key, Kind, Obj, Ref
from nodewright.runtime.kube.errors import ApiError, InvalidRequestError, NoAnswer
from nodewright.runtime.kube.requests import encoded
from nodewright.runtime.writes import recorder as module
from nodewright.runtime.writes.correlator import BURST, MOST_SIMILAR, REFILL_SECONDS, SIMILAR_WITHIN
from nodewright.runtime.writes.recorder import EventRecorder
from tests.builders.clock import NOW
from tests.runtime.virtual_time import virtual_time

M1 = Ref(MACHINE, Key("team", "m-1"), "uid-1")


class Server:
    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.patched: list[tuple[str, dict[str, Any]]] = []
        self.errors: list[Exception] = []

    async def create(self, kind: Kind, body: Obj) -> dict[str, Any]:
        if self.errors:
            raise self.errors.pop(0)
        self.created.append(dict(body))
        return dict(body)

    async def merge_patch(
        self, target: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = ""
    ) -> dict[str, Any]:
        if self.errors:
            raise self.errors.pop(0)
        self.patched.append((target.key.name, dict(patch)))
        return {}


def said(why: str = "created 3 Machines", target: Ref = M1) -> Event:
    return Event(target, "Normal", "Created", why)


class RecorderDriver:
    def __init__(self, per_second: float = 1000) -> None:
        self.server = Server()
        self.recorder = EventRecorder(self.server, "nodewright-tests", lambda: NOW, per_second)
        self.task = asyncio.create_task(self.recorder.run())

    async def written(self) -> None:
        await self.recorder.flush(1000)

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@virtual_time
async def test_an_event_names_its_object_and_who_speaks() -> None:
    driver = RecorderDriver()
    driver.recorder.record(said())
    await driver.written()
    (event,) = driver.server.created
    assert event["involvedObject"]["uid"] == "uid-1"
    assert event["metadata"]["namespace"] == "team"
    assert (event["reason"], event["message"], event["count"]) == ("Created", "created 3 Machines", 1)
    assert event["source"] == {"component": "nodewright-tests"}
    await driver.close()


@virtual_time
async def test_an_event_about_a_cluster_scoped_object_lies_in_default() -> None:
    driver = RecorderDriver()
    driver.recorder.record(said(target=Ref(NODE, Key("", "n"), "u")))
    await driver.written()
    assert driver.server.created[0]["metadata"]["namespace"] == "default"
    assert "namespace" not in driver.server.created[0]["involvedObject"]
    await driver.close()


@virtual_time
async def test_a_sentence_that_is_said_in_every_round_is_counted_and_written_ever_more_rarely() -> None:
    driver = RecorderDriver()
    for _ in range(600):
        driver.recorder.record(said())
        await asyncio.sleep(1)
    await driver.written()
    assert len(driver.server.created) == 1
    assert len(driver.server.patched) <= 5
    assert driver.server.patched[-1][1]["count"] > 300
    assert {name for name, _ in driver.server.patched} == {driver.server.created[0]["metadata"]["name"]}
    await driver.close()


@virtual_time
async def test_different_sentences_are_different_events() -> None:
    driver = RecorderDriver()
    driver.recorder.record(said("a"))
    driver.recorder.record(said("b"))
    await driver.written()
    assert len({event["metadata"]["name"] for event in driver.server.created}) == 2
    await driver.close()


@virtual_time
async def test_a_namespace_with_many_events_does_not_keep_others_waiting() -> None:
    driver = RecorderDriver(per_second=10)
    for number in range(module.QUEUE_BOUND):
        driver.recorder.record(said(target=Ref(MACHINE, Key("hostile", f"m-{number}"), f"uid-{number}")))
    driver.recorder.record(said(target=Ref(MACHINE, Key("busy", "m"), "uid-busy")))
    await asyncio.sleep(1)
    assert "busy" in {event["metadata"]["namespace"] for event in driver.server.created}


@virtual_time
async def test_a_flood_is_bounded_in_rate_and_in_number() -> None:
    driver = RecorderDriver(per_second=10)
    for number in range(module.QUEUE_BOUND + 500):
        driver.recorder.record(said(target=Ref(MACHINE, Key("team", f"m-{number}"), f"uid-{number}")))
    await asyncio.sleep(10)
    assert len(driver.server.created) <= 50 + 10 * 10 + 1
    await driver.recorder.flush(10_000)
    assert len(driver.server.created) == module.QUEUE_BOUND // 2, "the other half is for other namespaces"
    await driver.close()


@virtual_time
async def test_an_event_whose_answer_was_lost_is_counted_on_later() -> None:
    driver = RecorderDriver()
    driver.server.errors = [ApiError(409, "AlreadyExists", "there")]
    driver.recorder.record(said())
    await driver.written()
    await asyncio.sleep(60)
    driver.recorder.record(said())
    await driver.written()
    assert len(driver.server.patched) == 1
    await driver.close()


@virtual_time
async def test_an_event_that_the_server_has_expired_is_written_anew() -> None:
    driver = RecorderDriver()
    driver.recorder.record(said())
    await driver.written()
    await asyncio.sleep(60)
    driver.server.errors = [ApiError(404, "NotFound", "expired")]
    driver.recorder.record(said())
    await driver.written()
    assert len(driver.server.created) == 2
    await driver.close()


@virtual_time
async def test_a_server_that_takes_no_events_disturbs_nobody() -> None:
    driver = RecorderDriver()
    driver.server.errors = [NoAnswer("down", sent=False), ApiError(403, "Forbidden", "no")]
    for number in range(3):
        driver.recorder.record(said(f"{number}"))
    await driver.written()
    assert len(driver.server.created) == 1
    await driver.close()


@virtual_time
async def test_many_sentences_alike_become_one_event_that_shows_the_latest() -> None:
    driver = RecorderDriver()
    for number in range(60):
        driver.recorder.record(said(f"host {number} is slow"))
        await asyncio.sleep(5)
    await driver.written()
    messages = [event["message"] for event in driver.server.created]
    assert len(messages) == MOST_SIMILAR + 1
    assert messages[-1] == "(combined from similar events): host 10 is slow"
    assert driver.server.patched[-1][1]["count"] > 20
    assert driver.server.patched[-1][1]["message"].startswith("(combined from similar events): host ")
    await driver.close()


@virtual_time
async def test_sentences_alike_of_another_object_or_reason_stand_for_themselves() -> None:
    driver = RecorderDriver()
    for number in range(MOST_SIMILAR):
        driver.recorder.record(said(f"{number}"))
    driver.recorder.record(Event(M1, "Warning", "Other", "another reason"))
    driver.recorder.record(said("of another", Ref(MACHINE, Key("team", "m-2"), "uid-2")))
    await driver.written()
    assert [event["message"] for event in driver.server.created[-2:]] == ["another reason", "of another"]
    await driver.close()


@virtual_time
async def test_after_a_while_a_sentence_stands_for_itself_again() -> None:
    driver = RecorderDriver()
    for number in range(MOST_SIMILAR):
        driver.recorder.record(said(f"{number}"))
    await asyncio.sleep(SIMILAR_WITHIN)
    driver.recorder.record(said("later"))
    await driver.written()
    assert driver.server.created[-1]["message"] == "later"
    await driver.close()


@virtual_time
async def test_an_object_has_a_budget_of_writes_that_others_keep() -> None:
    driver = RecorderDriver()
    for number in range(100):
        driver.recorder.record(Event(M1, "Normal", f"Reason{number}", "so many reasons"))
    driver.recorder.record(said("one of another", Ref(MACHINE, Key("team", "m-2"), "uid-2")))
    await driver.written()
    assert len(driver.server.created) == BURST + 1
    await asyncio.sleep(REFILL_SECONDS)
    driver.recorder.record(Event(M1, "Normal", "Later", "and one more"))
    driver.recorder.record(Event(M1, "Normal", "TooSoon", "and another"))
    await driver.written()
    assert driver.server.created[-1]["reason"] == "Later"
    await driver.close()


@virtual_time
async def test_an_event_shows_no_credential() -> None:
    driver = RecorderDriver()
    driver.recorder.record(said("the cloud said: 401 for Bearer s3cret-token-value"))
    await driver.written()
    assert driver.server.created[0]["message"] == "the cloud said: 401 for Bearer [hidden]"
    await driver.close()


@virtual_time
async def test_an_event_of_any_text_is_written() -> None:
    """A text of a cloud that is no Unicode ended the task that writes Events, and with it the process."""
    driver = RecorderDriver()
    for text in ("bad \ud800", "x" * 100_000):
        driver.recorder.record(said(text))
    await driver.written()
    assert len(driver.server.created) == 2
    for body in driver.server.created:
        assert orjson.loads(encoded(body))["message"]
    assert not driver.task.done()
    await driver.close()


def test_a_body_that_is_no_unicode_is_an_error_of_the_request() -> None:
    with pytest.raises(InvalidRequestError, match="no Unicode"):
        encoded({"status": {"x": "\ud800"}})
