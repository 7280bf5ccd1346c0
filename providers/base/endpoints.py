"""Endpoints of clusters: what a provider may offer beside hosts. Optional; see ``MakesEndpoints``.

1. ``ensure_endpoint`` is idempotent by ``cluster_uid``: called again (also after a crash between the provider's work
   and its answer) it makes no second endpoint, and it tells a host only once that stays.
2. It gives the endpoint to the members as the request names them; called again with others it moves it.
3. ``remove_endpoint`` answers True only once nothing is left that costs money, and is safe to repeat.
4. Errors are ``ProviderError`` with the class that fits; messages hold no secrets.

``providers.base.endpoint_contract_tests`` checks these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

ENDPOINT_PORT = 6443
"""Where an endpoint that a provider makes is served, and where kubeadm has API servers listen."""


@dataclass(frozen=True, slots=True)
class EndpointMember:
    """A Machine whose host runs an API server, or is to run one. ``ready``: its Machine is Ready."""

    machine_uid: str
    ready: bool = False


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """The endpoint of a Cluster. ``config``: of the provider's own kind for Clusters.

    ``members``: the oldest Machine first. ``host``: the address that the Cluster has been told, "" before there is one.
    """

    cluster_uid: str
    namespace: str
    name: str
    config: Mapping[str, Any]
    members: tuple[EndpointMember, ...] = ()
    host: str = ""
    port: int = ENDPOINT_PORT


@dataclass(frozen=True, slots=True)
class Endpoint:
    """``host``: its address, "" while it is made. ``waits``: what is not yet as requested, "" if all is."""

    host: str
    waits: str = ""


@runtime_checkable
class MakesEndpoints(Protocol):
    """A provider that makes the address at which the API of a cluster is served. Optional."""

    async def ensure_endpoint(self, request: EndpointRequest) -> Endpoint:
        """Make it, or bring it to ``request``; asked again while it ``waits``, and now and then.

        Raises ``ProviderError``: NotFound if the address in ``request.host`` is gone, since it can't be had again.
        """

    async def remove_endpoint(self, request: EndpointRequest) -> bool:
        """Remove what was made for the Cluster. False: something is left: ask again. Raises ``ProviderError``."""


@runtime_checkable
class RebindsEndpoints(Protocol):
    """A provider whose endpoints can be handed to a Cluster of another management cluster (docs/adr/0027). Optional.

    Without it a Cluster with an endpoint that the provider has made can't be moved.
    """

    async def rebind_endpoint(self, request: EndpointRequest, new_uid: str) -> None:
        """What was made for the Cluster of ``request`` becomes that of ``new_uid``: its address stays, and so does what
        it serves. Nothing is done to what is that of ``new_uid`` already. Raises ``ProviderError``.
        """
