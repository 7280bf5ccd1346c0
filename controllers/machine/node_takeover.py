"""Does the kubelet of the Machine's present host report on the Node of a host that was replaced?

A kubelet that finds a Node of its name goes on with that one: its spec.providerID stays that of the host that
registered it, and a kubelet that runs never registers again. So such a Node must not be deleted under it, and can't
become the present host's either. Nobody says who writes a Node's status; but no host reports before it is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from controllers.kernel.conditions import find, parse_time
from controllers.kernel.refs import Obj, spec_of
from controllers.kernel.view import HostAbsent, HostPresent, HostRead
from providers.base.contract import Host, HostState

LAST_WORD = timedelta(seconds=60)
"""For so long the Node of a host that is gone may still say that it is Ready; then Kubernetes has made it Unknown."""
_RUNS = {HostState.RUNNING, HostState.UPDATING}


def among(nodes: Iterable[Obj], read: HostRead) -> Obj | None:
    """The one of ``nodes``, of hosts that are gone, that the present host has taken over; None if it has none."""
    if not isinstance(read, HostPresent):
        return None
    return next((node for node in nodes if _has_reported(read.host, node)), None)


def message(node: Obj) -> str:
    name, host = node["metadata"]["name"], spec_of(node).get("providerID")
    return f"its kubelet reports on Node {name}, which belongs to host {host} that was replaced; that can't be changed"


def is_certain(node: Obj, host: Host, since: datetime, now: datetime) -> bool:
    """Whether the clocks of two hosts that differ can be ruled out: somebody reports on it still. ``since``: the birth
    of ``host``, as far as it is known."""
    return host.state in _RUNS and not _is_silent(node) and now >= since + LAST_WORD


def may_go(node: Obj, read: HostRead) -> bool:
    """Whether no kubelet would lose the Node of a host that is gone: nobody reports on it, and nobody could."""
    match read:
        case HostAbsent():
            return True
        case HostPresent(host):
            boots = host.state is HostState.PENDING and host.created_at is not None
            return (boots or _is_silent(node)) and not _has_reported(host, node)
        case _:
            return False


def _has_reported(host: Host, node: Obj) -> bool:
    """Its status was written since ``host`` was made; of a host that does not say when that was, silence tells.

    Kubernetes tells times in whole seconds.
    """
    if host.created_at is None:
        return not _is_silent(node)
    ready = find((node.get("status") or {}).get("conditions"), "Ready")
    beat = parse_time(ready.get("lastHeartbeatTime")) if ready is not None else None
    return beat is not None and beat >= host.created_at.replace(microsecond=0)


def _is_silent(node: Obj) -> bool:
    ready = find((node.get("status") or {}).get("conditions"), "Ready")
    return ready is not None and ready.get("status") == "Unknown"
