"""Calls of a provider that change a host, the order in which those that wait are made, and what ``update`` answers."""

from __future__ import annotations

from contextvars import Context, copy_context
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from controllers.kernel.actions import CreateHost, DeleteHost, HostAction, RebootHost, UpdateHost
from providers.base.capabilities import RebootsHosts
from providers.base.contract import Host, Provider, UpdateAnswer
from providers.base.errors import ErrorClass, ProviderError

ORDER: Final = {"delete": 0, "reboot": 1, "update": 2, "create": 3}


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    uid: str
    spec_hash: str
    action: HostAction
    namespace: str
    """Namespace of the Machine; "" for a host whose Machine is not known."""
    begun_in: Context = field(default_factory=copy_context, compare=False)
    """What log lines and spans of the reconcile that asked for the call are about."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What ``update`` said for a spec, and when."""

    spec_hash: str
    value: UpdateAnswer
    at: datetime


def call_of(action: HostAction) -> Call:
    match action:
        case CreateHost(request=request):
            return Call("create", request.identity.machine_uid, request.spec_hash, action, request.identity.namespace)
        case UpdateHost(request=request):
            return Call("update", request.identity.machine_uid, request.spec_hash, action, request.identity.namespace)
        case DeleteHost(identity=identity):
            return Call("delete", identity.machine_uid, "", action, identity.namespace)
        case RebootHost(identity=identity):
            return Call("reboot", identity.machine_uid, "", action, identity.namespace)


async def made(provider: Provider, action: HostAction) -> Host | UpdateAnswer | None:
    """The call itself. Raises ProviderError."""
    match action:
        case CreateHost():
            return await provider.create(action.request)
        case UpdateHost():
            return await provider.update(action.request, action.host, action.drained)
        case DeleteHost():
            try:
                await provider.delete(action.host)
            except ProviderError as error:
                if error.error_class is not ErrorClass.NOT_FOUND:
                    raise
        case RebootHost():
            if not isinstance(provider, RebootsHosts):
                raise ProviderError(ErrorClass.UNSUPPORTED_CHANGE, "its provider can't reboot hosts")
            await provider.reboot(action.host, action.attempt)
    return None
