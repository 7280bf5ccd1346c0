"""What providers say of the endpoints of Clusters, and the calls that make and remove them.

    reconcile -> look -> plan -> EnsureEndpoint, RemoveEndpoint -> submit -> a call in the background -> look

One call at a time for each Cluster. What a provider answered counts for that request alone, but for the address.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from dataclasses import dataclass, field, replace
from random import Random

import structlog

from api.secrets import secret_values
from controllers.kernel.actions import EnsureEndpoint, RemoveEndpoint
from controllers.kernel.endpoints import EndpointKnown
from nodewright.runtime.hosts.directory import HostDirectory
from nodewright.runtime.hosts.limits import backoff
from nodewright.runtime.telemetry import logs
from providers.base.endpoints import EndpointRequest, MakesEndpoints
from providers.base.errors import ErrorClass, ProviderError

_log = structlog.get_logger("nodewright.endpoints")

PAUSE = 120.0
"""Seconds after which an endpoint that is as requested is looked at again."""
WAITING = 2.0
"""The same while it waits for something."""
LIMIT = 60.0
"""Seconds for a call."""
FORGET = 3600.0
"""Seconds after which a Cluster that nobody asks for is forgotten."""


@dataclass(slots=True)
class _Known:
    asked_at: float
    request: EndpointRequest | None = None
    """The last one that was answered."""
    removes: bool = False
    result: EndpointKnown = field(default_factory=EndpointKnown)
    due_at: float = float("-inf")
    failures: int = 0
    task: asyncio.Task[None] | None = None


class EndpointDirectory:
    """``EndpointsView``. One event loop; ``close`` at the end. ``hosts``: where the providers are."""

    def __init__(self, hosts: HostDirectory, random: Random | None = None) -> None:
        self._hosts = hosts
        self._random = random or Random()  # noqa: S311  (jitter)
        self._known: dict[str, _Known] = {}
        self._closed = False

    def look(self, request: EndpointRequest) -> EndpointKnown:
        faults = self._hosts.faults(request.config, request.namespace)
        if faults:  # nothing is asked, written down or taken for gone
            return EndpointKnown(reason=str(ErrorClass.INVALID_CONFIGURATION), message=faults, due=False)
        at = self._time()
        self._known = {uid: each for uid, each in self._known.items() if each.task or at - each.asked_at < FORGET}
        known = self._known.setdefault(request.cluster_uid, _Known(at))
        known.asked_at = at
        if known.task is not None:
            return replace(known.result, due=False)
        if known.request is None or known.request.config != request.config:
            return EndpointKnown()
        changed = known.request != request and not known.result.reason
        return replace(known.result, due=changed or at >= known.due_at)

    def submit(self, action: EnsureEndpoint | RemoveEndpoint) -> bool:
        """False while a call is under way for this Cluster, and until a removal that failed is due again. A removal
        does not wait for the back-off of what it removes.
        """
        known = self._known.get(action.request.cluster_uid)
        if known is None or known.task is not None or self._closed:
            return False
        removes = isinstance(action, RemoveEndpoint)
        if removes and known.removes and self._time() < known.due_at:
            return False
        if removes != known.removes or known.request is None or known.request.config != action.request.config:
            known.result, known.failures = EndpointKnown(), 0
        known.removes = removes
        name = f"{'remove' if removes else 'make'} the endpoint of {action.cluster.key}"
        known.task = asyncio.create_task(self._run(known, action), name=name, context=Context())
        return True

    async def close(self, grace: float) -> None:
        self._closed = True
        tasks = [known.task for known in self._known.values() if known.task is not None]
        if tasks:
            _done, pending = await asyncio.wait(tasks, timeout=grace)
            for task in pending:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, known: _Known, action: EnsureEndpoint | RemoveEndpoint) -> None:
        request = action.request
        try:
            result, pause = await self._ask(action), PAUSE
            known.failures = 0
            if result.waits or (known.removes and not result.gone):
                pause = WAITING
        except ProviderError as error:
            known.failures += 1
            pause = backoff(error.error_class, known.failures, self._random, error.retry_after)
            result = replace(known.result, waits="", reason=str(error.error_class), message=error.message, gone=False)
            if known.failures == 1:
                _log.warning("an endpoint is not as requested", cluster=str(action.cluster.key), why=str(error))
        finally:
            known.task = None
        known.request, known.result, known.due_at = request, result, self._time() + pause

    async def _ask(self, action: EnsureEndpoint | RemoveEndpoint) -> EndpointKnown:
        """Raises ProviderError."""
        try:
            async with asyncio.timeout(LIMIT):
                return await self._call(action)
        except ProviderError:
            raise
        except TimeoutError:
            raise ProviderError(ErrorClass.TIMEOUT, f"no answer within {LIMIT:.0f} s") from None
        except Exception as error:
            with logs.hiding(secret_values(action.request.config)):
                _log.exception("provider raised an unexpected error", cluster=str(action.cluster.key))
            raise ProviderError(ErrorClass.INTERNAL, f"unexpected {type(error).__name__}") from None

    async def _call(self, action: EnsureEndpoint | RemoveEndpoint) -> EndpointKnown:
        """Raises ProviderError."""
        request = action.request
        provider = self._hosts.provider_of(request.config, request.namespace)
        if not isinstance(provider, MakesEndpoints):
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, "its provider makes no endpoints")
        if isinstance(action, RemoveEndpoint):
            return EndpointKnown(gone=await provider.remove_endpoint(request))
        found = await provider.ensure_endpoint(request)
        return EndpointKnown(found.host, found.waits)

    @staticmethod
    def _time() -> float:
        return asyncio.get_running_loop().time()
