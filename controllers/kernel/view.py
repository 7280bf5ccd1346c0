"""The world as a reconciler may see it: a consistent, read-only cache plus what the provider said.

"Unknown" is a value of its own, never "absent": a reconciler must not act on a world that was not completely read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from controllers.kernel.bootstrapping import NO_SUPPORT, NOBODY_LOOKED, BootstrapNeed, BootstrapReads, Support
from controllers.kernel.refs import Key, Kind, Obj
from providers.base.contract import Host, Shape, UpdateAnswer
from providers.base.errors import ErrorClass


@dataclass(frozen=True, slots=True)
class ManagementCluster:
    """In the cluster that holds our objects: the Cluster has no kubeconfig Secret, or there is no Cluster."""


@dataclass(frozen=True, slots=True)
class Reached:
    """In a cluster of their own, which was completely read and answers. ``secret`` names its kubeconfig's Secret.

    ``servers``: host names and addresses under which its API is reached, by that kubeconfig.
    ``lacking``: what can't be read there, and why, of kinds without which all else works (``LivesInClusters``).
    ``missing``: plurals of kinds that are not served there, though a reconciler would read them: there are none.
    """

    secret: str
    servers: frozenset[str] = frozenset()
    lacking: str = ""
    missing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Unreachable:
    """In a cluster of their own, of which nobody knows how it is now: freeze, and say so.

    ``secret`` is "" if nobody could look yet whether there is one: then they may as well live in the management
    cluster. ``reason`` is a condition reason. It and ``why`` stay the same for as long as the trouble does, and
    ``last_contact`` is when the cluster last answered (None: not since the controllers were started).
    ``finding_out``: nothing is known yet (the start), so nothing is to be said either.
    """

    secret: str
    reason: str
    why: str
    last_contact: datetime | None = None
    finding_out: bool = False


Workload = ManagementCluster | Reached | Unreachable
"""Where the Nodes and Pods of a Cluster live."""
MANAGEMENT_CLUSTER = ManagementCluster()


@dataclass(frozen=True, slots=True)
class ShapeUnknown:
    """Nobody can say what a host would be like. ``asked``: its provider has been asked and has yet to answer."""

    why: str
    asked: bool = False


ShapeRead = Shape | ShapeUnknown


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """A providerConfig that can't be used; ``path`` names the field below spec (``providerConfig.value.flavor``)."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class ConfigChecked:
    """The provider has looked in its cloud for all that a config names; no ``problems``: it is there."""

    problems: tuple[ConfigProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class LoginRefused:
    """The cloud does not take the login that a config names, or it can't be used."""

    why: str


@dataclass(frozen=True, slots=True)
class NotChecked:
    """Nobody can say now. ``asked``: the provider has been asked and has yet to answer."""

    why: str
    asked: bool = False


LiveCheck = ConfigChecked | LoginRefused | NotChecked
NOBODY_ASKED = NotChecked("nobody asked its provider")


class View(Protocol):
    """Read-only access to the cache. All reads are O(result).

    A reconcile sees one workload cluster: ``WORKLOAD_KINDS`` are those of its own key's Cluster.
    """

    @property
    def now(self) -> datetime: ...

    @property
    def workload(self) -> Workload:
        """Where the Nodes and Pods of this reconcile live. While it is Unreachable, what is shown of them is old or
        empty.
        """

    @property
    def cluster(self) -> Key | None:
        """The Cluster with an API of its own that ``WORKLOAD_KINDS`` are shown of; None: the management cluster."""

    def of_cluster(self, cluster: Key | None) -> View:
        """The same moment as a reconcile of that Cluster sees it; None: the management cluster.

        Unreachable while it is being found out.
        """

    def complete(self, kind: Kind) -> bool:
        """False until the first list of ``kind`` has finished, and after its watch was lost for too long."""

    def current_since(self, kind: Kind) -> datetime | None:
        """Since when ``kind`` has been followed without an outage worth the name (over half a minute).

        The dawn of time if there was none; None while there is one. What is timed by objects of the kind has to begin
        anew after an outage: nobody could report in time (MCM freezes alike).
        """

    def get(self, kind: Kind, key: Key) -> Obj | None: ...

    def by_uid(self, kind: Kind, uid: str) -> Obj | None: ...

    def indexed(self, kind: Kind, index: str, value: str) -> Sequence[Obj]:
        """Objects whose ``index`` holds ``value``; the indexes are those of ``INDEXES`` below."""

    def all(self, kind: Kind) -> Sequence[Obj]:
        """Every object of the kind: for reconcilers that look at a cluster as a whole."""

    def shape(self, config: Mapping[str, Any], namespace: str) -> ShapeRead:
        """What a host of this config would be like for a Machine in ``namespace``; who looks has its provider asked."""


@dataclass(frozen=True, slots=True)
class HostPresent:
    host: Host


@dataclass(frozen=True, slots=True)
class HostAbsent:
    """A complete list of the scope, taken after our last call for this Machine, does not show it.

    ``leftover``: what was made for one, or is left of one, and has to go with the Machine.
    """

    leftover: Host | None = None


@dataclass(frozen=True, slots=True)
class HostUnknown:
    why: str


HostRead = HostPresent | HostAbsent | HostUnknown


@dataclass(frozen=True, slots=True)
class Attempt:
    """The last failed provider call for this Machine. ``retry_at`` carries back-off with jitter.

    ``call`` is ``create``, ``update`` or ``delete``; ``spec_hash`` is what was asked for ("" for a delete).
    """

    call: str
    error_class: ErrorClass
    message: str
    failures: int
    at: datetime
    retry_at: datetime
    spec_hash: str = ""


@dataclass(frozen=True, slots=True)
class HostReads:
    """All that a Machine's plan may know from its provider.

    ``answer`` is what ``update`` said for exactly the spec hash that the Machine asks for now, else None;
    ``answered_at`` when it said so (after ``InProgress.after`` seconds from then the plan asks again).
    ``in_flight`` names the provider call that is still running ("" if none); ``queued`` says why it has not begun.
    ``scope`` is the account or region in which a present host was found, as ``provider/scope``.
    ``live`` is what the provider found in its cloud of what the config names, where the need asked for that.
    ``support`` and ``bootstrap`` tell of the data with which the host joins, where the need asked for that.
    ``console``: the last lines that the host has printed, without secrets, where the need asked for them and the
    provider can tell; "" else.
    """

    host: HostRead
    problems: tuple[ConfigProblem, ...] = ()
    answer: UpdateAnswer | None = None
    attempt: Attempt | None = None
    in_flight: str = ""
    answered_at: datetime | None = None
    scope: str = ""
    queued: str = ""
    live: LiveCheck = NOBODY_ASKED
    support: Support = NO_SUPPORT
    bootstrap: BootstrapReads = NOBODY_LOOKED
    console: str = ""


UNRECORDED = "?"
"""Value of ``HostNeed.made_in``: there is a host, and it was not written down where."""


@dataclass(frozen=True, slots=True)
class HostNeed:
    """Ask the shell to read the host of ``machine_uid`` in the scope that ``config`` belongs to.

    ``machine_uid`` "": only the config is to be checked, for ``HostReads.problems``; nobody's host is looked for.
    ``config`` None: the Machine's own config could not be resolved (``problems`` says why); the shell then looks
    for the UID in every scope it knows. ``fresh_within`` (seconds) is how old the list may be.
    ``config_path`` says where below spec the config stands: the shell puts it before the paths of what it finds wrong.
    ``made_in`` is the scope in which a host is known to have been made ("" if none was): as long as that scope is not
    listed, nobody can say that the host is absent, wherever an edited config points now.
    ``namespace`` is the Machine's: Secrets that the config names are looked up there, and what the clouds of other
    namespaces say of its host counts for nothing.
    ``live``: have the provider look in its cloud for what the config names, once for all who ask.
    ``console``: have it tell what the host has printed, once.
    """

    machine_uid: str
    config: Mapping[str, Any] | None
    fresh_within: float
    problems: tuple[ConfigProblem, ...] = ()
    spec_hash: str = ""
    config_path: str = "providerConfig.value"
    made_in: str = ""
    namespace: str = ""
    live: bool = False
    bootstrap: BootstrapNeed | None = None
    console: bool = False


OWNER = "owner"
"""Index: uid of the controlling ownerReference (MachineSets, Machines) ("" for orphans)."""
NAMESPACE = "namespace"
"""Index: namespace (MachineSets, Machines, MachineDeployments, MachineDrainRules, PodDisruptionBudgets)."""
PROVIDER_ID = "providerID"
"""Index: ``spec.providerID`` (Machines, Nodes)."""
NODE_OWNER = "nodeOwner"
"""Index: UID of the Machine that a Node is recorded for (``controllers.kernel.node_policy``)."""
NODE_NAME = "nodeName"
"""Index: ``status.nodeRef.name`` (Machines), ``spec.nodeName`` (Pods, VolumeAttachments), the Node that is asked for
(CertificateSigningRequests)."""
HOST_NAME = "hostName"
"""Index: ``host_name_of`` (Machines)."""
CLAIM = "claim"
"""Index: ``namespace/name`` of the PersistentVolumeClaim that a PersistentVolume is bound to."""
MACHINE_CLASS_REF = "machineClass"
"""Index: ``namespace/name`` of the referenced MachineClass (Machines)."""
CLUSTER_NAME = "clusterName"
"""Index: ``namespace/name`` of the Cluster, by label ``cluster.k8s.io/cluster-name`` or by ``clusterName`` (Machines,
MachineSets, MachineDeployments)."""
CONTROL_PLANE_OF = "controlPlaneOf"
"""Index: the same, of Machines that run the control plane of the Cluster."""


COMING_UP = "comingUp"
"""Index: ``namespace/name`` of the Cluster ("" for the implicit one) of Machines that have no Node yet and stay."""
JOINED = "joined"
"""Index: the same of Machines that have a Node."""


def host_name_of(machine: Obj) -> str:
    """What the Machine's host calls itself: the address of type Hostname; before there is one, the Machine's name."""
    status = machine.get("status")
    addresses = status.get("addresses") if isinstance(status, Mapping) else None
    for address in addresses if isinstance(addresses, list) else ():
        if isinstance(address, Mapping) and address.get("type") == "Hostname" and address.get("address"):
            return str(address["address"])
    return str(machine["metadata"]["name"])
