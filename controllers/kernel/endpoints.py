"""The endpoint that a provider makes for a Cluster: what is asked for, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from api.providerconfig import ProviderConfigError, read
from controllers.kernel.node_policy import endpoint_of
from controllers.kernel.refs import Obj, mapping, spec_of, status_of
from providers.base.endpoints import EndpointRequest


@dataclass(frozen=True, slots=True)
class EndpointKnown:
    """What a provider last said. ``host``: "" while there is none; ``waits``: what is not as requested yet.

    ``reason`` and ``message``: the class of its error and what it says, "" without one. ``gone``: nothing is left of
    it. ``due``: it is time to ask.
    """

    host: str = ""
    waits: str = ""
    reason: str = ""
    message: str = ""
    gone: bool = False
    due: bool = True


class EndpointsView(Protocol):
    """Answers at once, with what was said last about a request; None: this process makes none."""

    def look(self, request: EndpointRequest) -> EndpointKnown | None: ...


class NobodyMakes:
    """``EndpointsView`` of a dry run or a simulation."""

    def look(self, request: EndpointRequest) -> None:
        return None


NOBODY_MAKES = NobodyMakes()


def asked_of(cluster: Obj | None) -> Mapping[str, Any] | None:
    """The provider's config of a Cluster that asks for an endpoint: it has an object ``endpoint``. None: none."""
    if cluster is None:
        return None
    try:
        found = read(spec_of(cluster))
    except ProviderConfigError:
        return None
    value = found.value if found is not None else None
    return value if value is not None and isinstance(value.get("endpoint"), Mapping) else None


def recorded_of(cluster: Obj | None) -> Mapping[str, Any] | None:
    """The config with which an endpoint was made, or may have been. It is written down before anything is made."""
    found = mapping(status_of(cluster).get("providerStatus")) if cluster is not None else {}
    return found if isinstance(found.get("endpoint"), Mapping) else None


def has_own_api(cluster: Obj | None) -> bool:
    """Whether the Cluster has an API of its own, be it only to come: its endpoint is there, or is to be made."""
    return bool(endpoint_of(cluster)) or asked_of(cluster) is not None or recorded_of(cluster) is not None
