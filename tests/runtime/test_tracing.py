"""Spans of rounds and provider calls, below each other, with the keys of their object; without the extra: nothing."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from controllers.kernel.refs import MACHINE
from nodewright.runtime.telemetry import logs, tracing
from providers.base.errors import ErrorClass, ProviderError
from tests.runtime.town import Town


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    tracing.start(exporter)
    yield exporter
    tracing.stop()


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_rounds_and_the_provider_calls_they_begin_are_one_trace(town: Town, spans: InMemorySpanExporter) -> None:
    async with town.controllers():
        await town.machine_set("ms", 1)
        await town.until(lambda: town.ready() == 1)
    (machine,) = town.objects(MACHINE)
    keys = {
        "controller": "machine",
        "kind": "Machine",
        "namespace": "default",
        "name": machine["metadata"]["name"],
        "uid": machine["metadata"]["uid"],
    }
    reconciles = [span for span in named(spans, "reconcile machine") if attributes(span).items() >= keys.items()]
    assert {"settled", "wait"} & {attributes(span)["result"] for span in reconciles}
    (create,) = named(spans, "provider create")
    assert attributes(create)["uid"] == keys["uid"]
    assert str(attributes(create)["scope"]).startswith("simulated/")
    assert create.parent is not None
    assert create.parent.span_id in {span.context.span_id for span in reconciles if span.context}
    assert all(span.parent is None for span in named(spans, "provider list")), "a list serves everybody"


@pytest.mark.parametrize(
    ("error", "class_"),
    [(ValueError("s3cret"), "ValueError"), (ProviderError(ErrorClass.STOCK_OUT, "s3cret"), "StockOut")],
)
def test_a_failure_is_marked_by_its_class_and_not_quoted(
    spans: InMemorySpanExporter, error: Exception, class_: str
) -> None:
    with pytest.raises(type(error)), tracing.span("provider create", {}):
        raise error
    (span,) = named(spans, "provider create")
    assert not span.status.is_ok
    assert attributes(span)["error.type"] == class_
    assert "s3cret" not in span.to_json()


def test_log_lines_name_the_open_span(spans: InMemorySpanExporter) -> None:
    root, stream = logging.getLogger(), io.StringIO()
    before, level = root.handlers[:], root.level
    logs.configure(json=True, stream=stream)
    with tracing.span("reconcile machine", {}):
        structlog.get_logger("t").info("inside")
    structlog.get_logger("t").info("outside")
    root.handlers[:] = before
    root.setLevel(level)
    inside, outside = map(json.loads, stream.getvalue().splitlines())
    (span,) = named(spans, "reconcile machine")
    assert span.context is not None
    assert int(inside["span_id"], 16) == span.context.span_id
    assert "trace_id" not in outside


def test_nothing_is_imported_and_nothing_made_without_it() -> None:
    code = (
        "import sys\n"
        "import nodewright.runtime.reconciling.shell, nodewright.runtime.hosts.scope\n"
        "from nodewright.runtime.telemetry import tracing\n"
        "with tracing.span('x', {}) as span: span.set_attribute('a', 'b')\n"
        "assert tracing.ids() == {}\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ImportError, match=r"pip install .*\[otel\]'"):
        tracing.start()
