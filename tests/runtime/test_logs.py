"""Logs: one line an event, and no secrets in them."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from nodewright.runtime.telemetry import logs

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzYSJ9abc.c2lnbmF0dXJl"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = before
    root.setLevel(level)
    structlog.reset_defaults()


def _lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    "fields",
    [
        {"token": "s3cret"},
        {"client_key": "x", "config": {"password": "s3cret", "user": "me"}},
        {"error": "401 for Bearer s3cret-token-value"},
        {"error": f"could not load {PEM}"},
        {"headers": [{"Authorization": "Basic s3cret"}]},
        {"url": "https://me:s3cret@example.test/v3"},
        {"error": f"token was {JWT}"},
    ],
)
def test_secrets_are_hidden(stream: io.StringIO, fields: dict[str, Any]) -> None:
    logs.configure(json=True, stream=stream)
    structlog.get_logger("t").warning("refused", **fields)
    text = stream.getvalue()
    for secret in ("s3cret", "MIIE", JWT):
        assert secret not in text
    assert "[hidden]" in text


def test_what_is_no_secret_is_shown(stream: io.StringIO) -> None:
    logs.configure(json=True, stream=stream)
    structlog.get_logger("t").info("created", machine="default/m-1", url="https://example.test:6443/api")
    (line,) = _lines(stream)
    assert (line["event"], line["machine"], line["level"]) == ("created", "default/m-1", "info")
    assert line["url"] == "https://example.test:6443/api"


@pytest.mark.parametrize("as_json", [True, False])
def test_a_traceback_keeps_no_secret(stream: io.StringIO, as_json: bool) -> None:
    logs.configure(json=as_json, stream=stream)
    try:
        raise ValueError(f"bad answer to Bearer {JWT}, and to a-password")
    except ValueError:
        with logs.hiding(["a-password"]):
            structlog.get_logger("t").exception("failed")
    assert JWT not in stream.getvalue()
    assert "a-password" not in stream.getvalue()
    assert "ValueError: bad answer to Bearer [hidden], and to [hidden]" in stream.getvalue()


def test_a_line_says_what_it_is_about(stream: io.StringIO) -> None:
    logs.configure(json=True, stream=stream)
    with logs.about({"kind": "Machine", "name": "m-1"}):
        structlog.get_logger("t").info("inside", name="its own word")
    structlog.get_logger("t").info("outside")
    inside, outside = _lines(stream)
    assert (inside["kind"], inside["name"]) == ("Machine", "its own word")
    assert "kind" not in outside


def test_libraries_that_use_the_standard_library_come_out_the_same_way(stream: io.StringIO) -> None:
    logs.configure(json=True, stream=stream)
    logging.getLogger("some.library").warning("token %s", "Bearer s3cret-token-value")
    (line,) = _lines(stream)
    assert line["level"] == "warning"
    assert "s3cret" not in line["event"]


def test_for_people_it_is_no_json(stream: io.StringIO) -> None:
    logs.configure(json=False, stream=stream)
    structlog.get_logger("t").info("created", machine="m-1")
    assert "created" in stream.getvalue()
    with pytest.raises(json.JSONDecodeError):
        json.loads(stream.getvalue())


def test_what_is_below_the_level_is_not_written(stream: io.StringIO) -> None:
    logs.configure(json=True, level="warning", stream=stream)
    structlog.get_logger("t").info("quiet")
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("stream")
def test_what_is_set_up_late_says_the_first_line_no_less_than_the_second(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure_late(json=True, level="warning")
    for number in (1, 2):
        logging.getLogger("some.library").warning("token %s in line %d", "Bearer s3cret-token-value", number)
        logging.getLogger("some.library").info("quiet")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == [f"token Bearer [hidden] in line {number}" for number in (1, 2)]


def test_an_attempt_of_kopfs_client_is_no_line_and_its_other_warnings_are(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(json=True)
    kopf = logging.getLogger("kopf._core.reactor.observation")
    kopf.error("Request attempt #1/9 failed; will retry: GET https://127.0.0.1:1/api -> ClientConnectorError()")
    kopf.error("Resource watching is not possible")
    told = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert told == ["Resource watching is not possible"]


def test_logging_outlives_the_standard_error_that_it_was_set_up_with(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = io.StringIO(), io.StringIO()
    monkeypatch.setattr("sys.stderr", first)
    logs.configure(json=True)
    log = structlog.get_logger()
    log.info("one")
    logging.getLogger("library").warning("two")
    first.close()
    monkeypatch.setattr("sys.stderr", second)
    log.info("three")
    logging.getLogger("library").warning("four")
    assert [json.loads(line)["event"] for line in second.getvalue().splitlines()] == ["three", "four"]


def test_a_line_with_what_is_no_unicode_is_written(stream: io.StringIO) -> None:
    """A cloud that said it made the log of a failed call raise, so that the failure was not counted."""
    logs.configure(json=True, stream=stream)
    structlog.get_logger("t").warning("provider call failed", error="bad \ud800", nested={"a": ["\udfff"], 7: object})
    (line,) = _lines(stream)
    assert line["error"].startswith("bad ")
