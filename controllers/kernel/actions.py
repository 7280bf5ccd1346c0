"""What a plan may ask for: a closed union. Each action carries its ``why`` for people.

The executor may die after any action, so every plan must be right after any prefix of the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from controllers.kernel.bootstrapping import BootstrapOrder
from controllers.kernel.etcd import EtcdHost
from controllers.kernel.etcd_snapshots import HostTarget, SnapshotTarget
from controllers.kernel.refs import Intent, Key, Kind, Ref, mapping, spec_of
from providers.base.contract import Host, HostIdentity, HostRequest
from providers.base.endpoints import EndpointRequest


@dataclass(frozen=True, slots=True)
class Create:
    """POST ``body``. Names are derived, never random: an AlreadyExists answer with our owner counts as done."""

    kind: Kind
    body: Mapping[str, Any]
    why: str


@dataclass(frozen=True, slots=True)
class CreateFromTemplate:
    """Read ``template``, of a kind that nobody watches, and POST ``body`` with the ``spec`` and the labels and
    annotations of its ``spec.template``. An AlreadyExists answer with our owner counts as done."""

    kind: Kind
    body: Mapping[str, Any]
    template: Ref
    why: str

    def filled(self, template: Mapping[str, Any]) -> Create:
        """The creation, once the template is read; what ``body`` says itself goes first."""
        inner = mapping(spec_of(template).get("template"))
        theirs, own = mapping(inner.get("metadata")), self.body["metadata"]
        metadata = {**own}
        for part in ("labels", "annotations"):
            both = {**mapping(theirs.get(part)), **mapping(own.get(part))}
            metadata |= {part: both} if both else {}
        return Create(self.kind, {**self.body, "metadata": metadata, "spec": dict(spec_of(inner))}, self.why)


@dataclass(frozen=True, slots=True)
class Patch:
    """JSON merge patch of ``target``.

    ``resource_version``: if set, the patch is refused (409) when the object has changed since it was observed;
    needed whenever the patch replaces a list or reserves something. ``subresource``: "" is the object itself.
    """

    target: Ref
    patch: Mapping[str, Any]
    why: str
    subresource: Literal["", "status", "approval"] = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """Set ``replicas`` of ``target`` through its scale subresource.

    ``intent``: of the object that was decided on (``refs.intent_of``). With it the write is sent again if only the
    status has changed since: a group whose Machines come reports so all the time, and would not grow meanwhile.
    """

    target: Ref
    replicas: int
    why: str
    resource_version: str = ""
    intent: Intent = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE with a uid precondition; NotFound counts as done. ``grace_seconds`` None: as the object itself says.

    ``resource_version``: if set, the deletion is refused (409) when the object has changed since it was observed.
    """

    target: Ref
    why: str
    propagation: Literal["Background", "Foreground", "Orphan"] = "Background"
    grace_seconds: int | None = None
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Evict:
    """POST pods/eviction; a PodDisruptionBudget may refuse it (429), then a later reconcile asks again.

    ``grace_seconds`` None: as the pod itself says.
    """

    target: Ref
    why: str
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes Event about ``target``. Placed in a step after the write it speaks of."""

    target: Ref
    type: Literal["Normal", "Warning"]
    reason: str
    why: str


@dataclass(frozen=True, slots=True)
class CreateHost:
    """Ask the provider for the host of ``machine``; idempotent by the Machine's UID."""

    machine: Ref
    request: HostRequest
    why: str


@dataclass(frozen=True, slots=True)
class UpdateHost:
    """Ask the provider to bring ``host`` to ``request``; its answer is observed in the next reconcile."""

    machine: Ref
    request: HostRequest
    host: Host
    drained: bool
    why: str


@dataclass(frozen=True, slots=True)
class DeleteHost:
    """Ask the provider to remove ``host``; done only when its list no longer shows it."""

    machine: Ref
    identity: HostIdentity
    host: Host
    config: Mapping[str, Any]
    why: str


@dataclass(frozen=True, slots=True)
class RebootHost:
    """Ask the provider to boot ``host`` anew, once for ``attempt``; done when its list shows that."""

    machine: Ref
    identity: HostIdentity
    host: Host
    config: Mapping[str, Any]
    attempt: str
    why: str


@dataclass(frozen=True, slots=True)
class EnsureBootstrap:
    """See that the bootstrap data of ``order`` is there, and its token good for a while; observed in the next
    reconcile. No secret is in the action: it is made and rendered by whoever carries it out."""

    order: BootstrapOrder
    why: str


@dataclass(frozen=True, slots=True)
class RemoveBootstrap:
    """Remove the bootstrap data of ``machine`` and its token; observed in the next reconcile.

    ``secret``: where the data lies; ``ids``: of tokens that it may have; ``cluster`` as in ``BootstrapNeed``.
    ``founds``: the Cluster that its host was to make and has not; None for any other Machine.
    """

    machine: Ref
    secret: Key
    ids: tuple[str, ...]
    cluster: Key | None
    why: str
    founds: Key | None = None


@dataclass(frozen=True, slots=True)
class RemoveEtcdMember:
    """Take ``member`` out of etcd's list. Refused if the list is not ``members`` any more, or if one of ``healthy``
    does not answer: the quorum was reckoned with them. Observed in a later reconcile."""

    cluster: Key
    member: int
    members: frozenset[int]
    healthy: frozenset[int]
    why: str


@dataclass(frozen=True, slots=True)
class TakeEtcdSnapshot:
    """Save etcd in a bucket or on a host; observed in a later reconcile (``controllers.kernel.etcd_snapshots``).

    ``hosts``: as in ``EtcdView.look``. ``key``: the step that waits for it. ``before``: the version that comes next.
    """

    cluster: Key
    hosts: tuple[EtcdHost, ...]
    target: SnapshotTarget | HostTarget
    key: str
    before: str
    why: str


@dataclass(frozen=True, slots=True)
class RenewKubeconfig:
    """Make the kubeconfig Secret of a cluster that Machines make anew, if it is still due when it is done. Observed in
    a later reconcile. ``endpoint``: ``host:port``."""

    cluster: Ref
    endpoint: str
    why: str


@dataclass(frozen=True, slots=True)
class EnsureEndpoint:
    """Ask the provider to make the endpoint of ``cluster``, or to bring it to ``request``; observed in a later
    reconcile."""

    cluster: Ref
    request: EndpointRequest
    why: str


@dataclass(frozen=True, slots=True)
class RemoveEndpoint:
    """Ask the provider to remove what it has made for ``cluster``; done only when it says that nothing is left."""

    cluster: Ref
    request: EndpointRequest
    why: str


ApiAction = Create | CreateFromTemplate | Patch | Scale | Delete | Evict | Event
HostAction = CreateHost | UpdateHost | DeleteHost | RebootHost
BootstrapAction = EnsureBootstrap | RemoveBootstrap
EndpointAction = EnsureEndpoint | RemoveEndpoint
EtcdAction = RemoveEtcdMember | TakeEtcdSnapshot
Action = ApiAction | HostAction | BootstrapAction | EtcdAction | RenewKubeconfig | EndpointAction


def kind_of(action: Action) -> Kind | None:
    """What the action writes to; None if that is no object of an API server. An Event lies with its target."""
    match action:
        case Create(kind=kind) | CreateFromTemplate(kind=kind):
            return kind
        case CreateHost() | UpdateHost() | DeleteHost() | RebootHost() | Event():
            return None
        case EnsureBootstrap() | RemoveBootstrap() | RemoveEtcdMember() | TakeEtcdSnapshot() | RenewKubeconfig():
            return None
        case EnsureEndpoint() | RemoveEndpoint():
            return None
        case _:
            return action.target.kind
