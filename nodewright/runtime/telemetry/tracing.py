"""OpenTelemetry spans, one a reconcile and one a provider call; nothing at all unless ``start`` was called.

The library is an extra (``nodewright[otel]``) and imported by ``start`` only. Where spans go, how many
are sampled and under which service name follows OpenTelemetry's own environment variables
(``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_TRACES_SAMPLER``, ``OTEL_SERVICE_NAME``, …).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol


class Span(Protocol):
    """What may be said of a span once more is known."""

    def set_attribute(self, key: str, value: str) -> None: ...


class _NoSpan:
    def set_attribute(self, key: str, value: str) -> None:
        """Nobody listens."""


_NO_SPAN: AbstractContextManager[Span] = nullcontext(_NoSpan())


class _Tracing:
    """The state of this process."""

    tracer: Any = None
    provider: Any = None


def start(exporter: Any = None) -> None:
    """Make spans from now on. ``exporter`` None: to an OTLP collector, over HTTP, in the background.

    Raises ImportError with what to install.
    """
    try:
        from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor  # noqa: PLC0415

        if exporter is None:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

            processor: Any = BatchSpanProcessor(OTLPSpanExporter())
        else:
            processor = SimpleSpanProcessor(exporter)
    except ImportError as error:
        from providers.base.extras import install_command  # noqa: PLC0415

        raise ImportError(f"opentelemetry is not installed: {install_command('otel')}") from error
    resource = Resource.create({SERVICE_NAME: "nodewright"}).merge(OTELResourceDetector().detect())
    _Tracing.provider = TracerProvider(resource=resource)
    _Tracing.provider.add_span_processor(processor)
    _Tracing.tracer = _Tracing.provider.get_tracer("nodewright")


def stop() -> None:
    """Send what is left, and make no more spans."""
    provider, _Tracing.tracer, _Tracing.provider = _Tracing.provider, None, None
    if provider is not None:
        provider.shutdown()


def span(name: str, attributes: Mapping[str, str]) -> AbstractContextManager[Span]:
    """A span around a block, below the one that is open. An exception that leaves the block marks it as failed.

    Only the class of the exception is kept: messages may quote secrets.
    """
    return _NO_SPAN if _Tracing.tracer is None else _span(name, attributes)


@contextmanager
def _span(name: str, attributes: Mapping[str, str]) -> Iterator[Span]:
    from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415

    with _Tracing.tracer.start_as_current_span(
        name, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
    ) as opened:
        try:
            yield opened
        except Exception as error:
            class_ = str(getattr(error, "error_class", type(error).__name__))
            opened.set_attribute("error.type", class_)
            opened.set_status(Status(StatusCode.ERROR, class_))
            raise


def ids() -> dict[str, str]:
    """``trace_id`` and ``span_id`` of the open span, for log lines; empty without one."""
    if _Tracing.tracer is None:
        return {}
    from opentelemetry import trace  # noqa: PLC0415

    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}
