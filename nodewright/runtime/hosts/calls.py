"""A provider call that a plan asks for, on its way through the queues of a scope."""

from __future__ import annotations

from contextvars import Context, copy_context
from dataclasses import dataclass, field

from controllers.kernel.actions import CreateHost, DeleteHost, HostAction, UpdateHost


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


def call_of(action: HostAction) -> Call:
    match action:
        case CreateHost(request=request):
            return Call("create", request.identity.machine_uid, request.spec_hash, action, request.identity.namespace)
        case UpdateHost(request=request):
            return Call("update", request.identity.machine_uid, request.spec_hash, action, request.identity.namespace)
        case DeleteHost(identity=identity):
            return Call("delete", identity.machine_uid, "", action, identity.namespace)
