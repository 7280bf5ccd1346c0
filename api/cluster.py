"""Cluster: what its Machines have in common."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api import limits, names
from api.addons import ADDONS_IN_FILES_ONLY
from api.bootstrap import BootstrapSpec
from api.machine import ProviderConfigField, ProviderSpec, ProviderStatusField
from api.meta import Conditions, Count, Duration, FailureDomains, Generation, Message, ObjectMeta
from api.model import ATOMIC_LIST, Model, Rule, Schema, name_fits
from api.resource import AGE, Column, Resource


class NetworkRanges(Model):
    """Ranges of addresses."""

    cidr_blocks: Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=16), ATOMIC_LIST]
    """Ranges in CIDR notation."""


class ClusterNetwork(Model):
    """Network ranges and DNS domain of the cluster."""

    services: NetworkRanges | None = None
    """Ranges of Service addresses."""
    pods: NetworkRanges | None = None
    """Ranges of Pod addresses."""
    service_domain: Annotated[str, Field(max_length=253)] | None = None
    """DNS domain of Services, like ``cluster.local``."""
    dns_domain: Annotated[str, Field(max_length=253)] | None = None
    """Older name of ``serviceDomain``."""


class ControlPlaneEndpoint(Model):
    """Where the API of a cluster that is made here is to be served."""

    host: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9:]([a-z0-9.:-]*[a-z0-9])?$")]
    """DNS name in lower case, or IP address: of a load balancer, of a virtual address, or of the only host."""
    port: Annotated[int, Field(ge=1, le=65535)] = 6443
    """Port."""


class AddOnObject(Model):
    """A ConfigMap or Secret that the same files hold, in the namespace of the Cluster."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Its name."""
    key: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """The key with the manifests. Default: all keys, sorted."""


class AddOn(Model):
    """Manifests that are applied in a new cluster. One of ``file``, ``configMap`` and ``secret``."""

    __rules__: ClassVar = (
        Rule(
            "[has(self.file), has(self.configMap), has(self.secret)].exists_one(given, given)",
            "exactly one of file, configMap and secret is needed",
        ),
    )

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    """What it is called in messages."""
    file: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Path of a file, relative to the file that holds the Cluster and not above it."""
    config_map: AddOnObject | None = None
    """A ConfigMap with the manifests."""
    secret: AddOnObject | None = None
    """A Secret with the manifests."""


class ClusterSpec(Model):
    """Desired state of the cluster."""

    __preserve__: ClassVar = True
    __exclusive__: ClassVar = ("providerConfig", "providerSpec")

    cluster_network: ClusterNetwork | None = None
    """Network ranges and DNS domain of the cluster."""
    provider_config: ProviderConfigField | None = None
    """The provider's configuration (first and second generation). At most one of it and ``providerSpec``."""
    provider_spec: ProviderSpec | None = None
    """The provider's configuration (third generation). At most one of it and ``providerConfig``."""
    control_plane_endpoint: (
        Annotated[ControlPlaneEndpoint, Schema(rules=(Rule("self == oldSelf", "controlPlaneEndpoint is immutable"),))]
        | None
    ) = None
    """Where its API is served once Machines with ``versions.controlPlane`` have made it. With it the cluster has an API
    of its own from the start: no Machine of it ever joins the cluster that holds it. It is part of certificates, so it
    can't change. Absent where ``providerConfig`` asks the provider for one (an object ``endpoint``): then the
    controllers set it."""
    failure_domains: FailureDomains | None = None
    """Failure domains, such as zones, over which sets spread their Machines. A set or its template may name others."""
    max_hosts_in_flight: Count | None = None
    """How many hosts of its Machines may come up at the same time; further hosts wait. 0 makes none. Default: the
    controllers' flag ``--cluster-hosts-in-flight``.
    """
    bootstrap_token_lifetime: Duration | None = None
    """How long a host can join after it came up. It limits how many hosts come up at the same time: 20 at first, then
    twice as many as joined within this time. Default: ``--bootstrap-token-lifetime``.
    """
    addons: (
        Annotated[
            list[AddOn],
            Field(max_length=32),
            ATOMIC_LIST,
            Schema(rules=(Rule("size(self) == 0", ADDONS_IN_FILES_ONLY),)),
        ]
        | None
    ) = None
    """What ``nodewright create cluster`` applies in the new cluster, in this order. It belongs to files: that command
    takes it out, and an API server refuses it, since no controller acts on it.
    """
    bootstrap: BootstrapSpec | None = None
    """How hosts of its Machines join the cluster: defaults for ``spec.bootstrap`` of the Machines. Nodewright makes
    no bootstrap data if both are absent.
    """
    paused: bool = False
    """True makes the controllers ignore the cluster and all its Machines."""


class APIEndpoint(Model):
    """Where the cluster's API is served."""

    host: Annotated[str, Field(max_length=253)]
    """Name or address of the host."""
    port: Annotated[int, Field(ge=0, le=65535)]
    """Port."""


class ClusterStatus(Model):
    """What was seen of the cluster."""

    observed_generation: Generation | None = None
    """``metadata.generation`` that this status is about."""
    api_endpoints: Annotated[list[APIEndpoint], Field(max_length=16), ATOMIC_LIST] | None = None
    """Where the cluster's API is served."""
    error_reason: Annotated[str, Field(max_length=253)] | None = None
    """Terminal failure, one word: it needs a person or another spec."""
    error_message: Message | None = None
    """Terminal failure, for people."""
    failure_reason: Annotated[str, Field(max_length=253)] | None = None
    """Same as ``errorReason``, under CAPI's name."""
    failure_message: Message | None = None
    """Same as ``errorMessage``, under CAPI's name."""
    kubeconfig_secret: Annotated[str, Field(max_length=253)] | None = None
    """Name of the Secret with the kubeconfig of the cluster's own API. Once it is set, the cluster never counts as
    the management cluster again, even if the Secret is deleted.
    """
    provider_status: ProviderStatusField | None = None
    """The configuration with which the provider makes the cluster's endpoint, written before anything is made."""
    phase: Annotated[str, Field(max_length=63)] | None = None
    """Where in its life the cluster is, in one word."""
    machines: Count | None = None
    """Machines that belong to it."""
    ready_machines: Count | None = None
    """Machines that are Ready."""
    conditions: Conditions | None = None
    """Aspects of the cluster's state."""


class Cluster(Model):
    """A Kubernetes cluster: what its Machines have in common. Machines name it in ``clusterName`` or by label."""

    __rules__: ClassVar = (name_fits(limits.MAX_LABEL_VALUE, "it becomes the value of a label"),)

    resource: ClassVar = Resource(
        kind="Cluster",
        plural="clusters",
        short_name="cl",
        columns=(
            Column("Phase", ".status.phase", "Where in its life the cluster is."),
            Column("Machines", ".status.machines", "Machines that belong to it.", "integer"),
            Column("Ready", ".status.readyMachines", "Machines that are ready.", "integer"),
            Column("Reachable", '.status.conditions[?(@.type=="Reachable")].status', "Whether its API answers."),
            AGE,
            Column("Endpoint", ".status.apiEndpoints[0].host", "Where its API is served.", priority=1),
            Column("Paused", ".spec.paused", "Whether the controllers leave it alone.", "boolean", priority=1),
            Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', "Why it is not ready.", priority=1),
        ),
    )

    api_version: str = names.API_VERSION
    """Version of the schema of this object."""
    kind: Literal["Cluster"] = "Cluster"
    """Kind of this object."""
    metadata: ObjectMeta = ObjectMeta()
    """Standard metadata."""
    spec: ClusterSpec = ClusterSpec()
    """Desired state of the cluster."""
    status: ClusterStatus | None = None
    """Observed state."""
