"""Machine: the desired state of one Node (KEP-3)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from api import limits, names
from api.behaviour import Absent, Behaviour, Change
from api.bootstrap import BootstrapSpec
from api.meta import (
    Conditions,
    Count,
    Duration,
    Generation,
    Message,
    ObjectMeta,
    ObjectReference,
    RawExtension,
    ShortText,
    Taints,
    TemplateMeta,
    Time,
)
from api.model import ATOMIC_LIST, SET, Model, Rule, Schema, list_map, name_fits
from api.noderules import (
    LONGEST_RUNTIME_NAME,
    LONGEST_VERSION,
    RUNTIME_NAME_PATTERN,
    RUNTIME_VERSION_PATTERN,
    VERSION_PATTERN,
)
from api.reboots import RequestedReboot
from api.resource import AGE, Column, Resource

Version = Annotated[str, Field(max_length=64, pattern=VERSION_PATTERN)]
"""A semantic version; the patch level may be left to the provider."""


class ContainerRuntime(Model):
    """A container runtime (KEP-3; dropped from later forms of the API, kept here)."""

    name: Annotated[str, Field(max_length=LONGEST_RUNTIME_NAME, pattern=RUNTIME_NAME_PATTERN)]
    """Which one, like ``containerd``."""
    version: Annotated[str, Field(max_length=LONGEST_VERSION, pattern=RUNTIME_VERSION_PATTERN)] | None = None
    """Its version."""


class ObservedContainerRuntime(Model):
    """A container runtime as a Node reports it, in any form."""

    name: Annotated[str, Field(max_length=63)]
    """Which one, like ``containerd``."""
    version: Annotated[str, Field(max_length=64)] | None = None
    """Its version."""


class MachineVersions(Model):
    """Versions asked for."""

    kubelet: Version
    """Version of the kubelet; a change upgrades the Node in place or by replacement, as the provider can."""
    control_plane: Version | None = None
    """Version of the control plane; set on Machines that run one, and only there."""
    container_runtime: ContainerRuntime | None = None
    """Desired container runtime. Default: the provider chooses."""


class ObservedVersions(Model):
    """Versions seen on the Node."""

    kubelet: Annotated[str, Field(max_length=64)] | None = None
    """Version of the kubelet."""
    control_plane: Annotated[str, Field(max_length=64)] | None = None
    """Version of the control plane."""
    container_runtime: ObservedContainerRuntime | None = None
    """The container runtime."""


class MachineClassReference(Model):
    """Points at a MachineClass."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the MachineClass."""
    namespace: ShortText | None = None
    """Its namespace; that of the object itself when absent, and no other is allowed."""
    provider: ShortText | None = None
    """Name of the provider that the class is for (lineage); informational."""
    api_version: ShortText | None = None
    """API version of the class (lineage); not needed."""
    kind: ShortText | None = None
    """Kind of the class (lineage); not needed."""


class ProviderConfigSource(Model):
    """Where the provider's configuration comes from."""

    machine_class: MachineClassReference | None = None
    """A MachineClass that holds it."""


class ProviderSpec(Model):
    """The provider's configuration: given here, or by reference."""

    value: RawExtension | None = None
    """The configuration itself: an object with apiVersion and kind that only its provider understands."""
    value_from: ProviderConfigSource | None = None
    """Where to take it from instead."""


ProviderConfigField = Annotated[
    str | ProviderSpec,
    Schema({"x-kubernetes-preserve-unknown-fields": True, "maxLength": limits.MAX_PROVIDER_CONFIG}),
]
"""Two generations: a plain string that holds YAML or JSON, or an object like ``providerSpec``."""


class ReadinessGate(Model):
    """A further condition of the Machine that must hold before it is Ready."""

    condition_type: Annotated[str, Field(min_length=1, max_length=316)]
    """Type of the condition, as found in ``status.conditions``."""
    polarity: Literal["Positive", "Negative"] | None = None
    """Positive (the default): the condition must be True. Negative: it must be False."""


class ConfigMapSource(Model):
    """A kubelet configuration in a ConfigMap."""

    namespace: ShortText | None = None
    """Namespace of the ConfigMap."""
    name: ShortText | None = None
    """Name of the ConfigMap."""
    uid: ShortText | None = None
    """UID of the ConfigMap."""
    resource_version: ShortText | None = None
    """Version of the ConfigMap."""
    kubelet_config_key: ShortText | None = None
    """Key in it that holds the kubelet's configuration."""


class NodeConfigSource(Model):
    """Dynamic kubelet configuration (removed from Kubernetes in 1.26; read, never acted on)."""

    config_map: ConfigMapSource | None = None
    """The ConfigMap that holds it."""
    config_map_ref: ObjectReference | None = None
    """Older form of the same."""


Roles = Annotated[list[Annotated[str, Field(max_length=63)]], Field(max_length=8), ATOMIC_LIST]
"""Roles of the first generation of the API: Master, Node."""

_PROVIDER_ID_FIXED = Rule(
    "self == oldSelf || self == '' || oldSelf == ''",
    "providerID is fixed once it is set; it may only be cleared",
)
_CLUSTER_NAME_FIXED = Rule(
    "!has(oldSelf.clusterName) || (has(self.clusterName) && self.clusterName == oldSelf.clusterName)",
    "clusterName is immutable",
    field_path=".clusterName",
)
_ProviderID = Annotated[str, Field(max_length=512), Schema(rules=(_PROVIDER_ID_FIXED,))]
_ClusterName = Annotated[str, Field(min_length=1, max_length=63)]
_ReadinessGates = Annotated[list[ReadinessGate], Field(max_length=32), list_map("conditionType")]

# What a change of a field does stands in its declaration; without it a test refuses the field.
_IS_CONFIG = Behaviour(Change.HOST, hashed_as="config")
_FLOWS_TO_NODE = Behaviour(Change.NODE)
_IN_PLACE = Behaviour(Change.IN_PLACE)
_DELETION_TIMEOUT = Behaviour(Change.IN_PLACE, timeout=True)


class MachineSpec(Model):
    """What the Node is to be like. Unknown fields survive, so that manifests of every generation do."""

    __rules__: ClassVar = (_CLUSTER_NAME_FIXED,)
    __preserve__: ClassVar = True
    __exclusive__: ClassVar = ("providerConfig", "providerSpec")

    metadata: Annotated[TemplateMeta | None, _FLOWS_TO_NODE] = None
    """Labels and annotations for the Node. Changes flow to it without a rollout. Labels and annotations of other
    writers are kept.
    """
    taints: Annotated[Taints | None, _FLOWS_TO_NODE] = None
    """Taints for the Node. Changes flow to it without a rollout. Taints of other writers are kept."""
    provider_config: Annotated[ProviderConfigField | None, _IS_CONFIG] = None
    """The provider's configuration (first and second generation). At most one of it and ``providerSpec``."""
    provider_spec: Annotated[ProviderSpec | None, _IS_CONFIG] = None
    """The provider's configuration (third generation). At most one of it and ``providerConfig``."""
    versions: Annotated[MachineVersions | None, Behaviour(Change.HOST, hashed_as="versions")] = None
    """Versions of the software on the Node."""
    bootstrap: Annotated[BootstrapSpec | None, Behaviour(Change.HOST, empty_counts=True)] = None
    """How its host joins the cluster, where that differs from ``spec.bootstrap`` of its Cluster. An empty object asks
    for bootstrap data too. A change needs another host, unless the provider can make it on the one that is there.
    """
    config_source: Annotated[NodeConfigSource | None, Behaviour(Change.HOST, absent=Absent.NULL)] = None
    """Dynamic kubelet configuration of old clusters. It is stored and has no effect."""
    provider_id: Annotated[_ProviderID | None, Behaviour(Change.OWN)] = None
    """Identity of the host as the Node's ``spec.providerID`` shows it. The controller sets it, once for each host."""
    roles: Annotated[Roles | None, Behaviour(Change.REVISION)] = None
    """Roles of the Machine (first generation): Master or Node."""
    cluster_name: Annotated[_ClusterName | None, Behaviour(Change.REVISION)] = None
    """Cluster that the Machine belongs to. Default: the label ``cluster.k8s.io/cluster-name``."""
    failure_domain: Annotated[ShortText | None, Behaviour(Change.HOST, absent=Absent.EMPTY_TEXT)] = None
    """Failure domain, such as a zone, in which the provider places the host."""
    node_drain_timeout: Annotated[Duration | None, _DELETION_TIMEOUT] = None
    """How long a drain may take before deletion goes on without it. Absent or 0: no limit."""
    node_drain_delete_after: Annotated[Duration | None, _DELETION_TIMEOUT] = None
    """How long after the start of a drain pods that could not be evicted are deleted, regardless of their
    PodDisruptionBudgets. Absent or 0: never.
    """
    node_drain_force_after: Annotated[Duration | None, _DELETION_TIMEOUT] = None
    """How long after the start of a drain the remaining pods are deleted without a grace period. Absent or 0: never."""
    node_volume_detach_timeout: Annotated[Duration | None, _DELETION_TIMEOUT] = None
    """How long deletion waits for volumes to detach after the drain. Absent or 0: no limit."""
    node_deletion_timeout: Annotated[Duration | None, _DELETION_TIMEOUT] = None
    """How long deletion tries to delete the Node object after its host is gone. Absent or 0: no limit."""
    readiness_gates: Annotated[_ReadinessGates | None, _IN_PLACE] = None
    """Conditions that must hold, besides the Node's, before the Machine is Ready."""
    min_ready_seconds: Annotated[Count | None, _IN_PLACE] = None
    """Seconds that the Machine must be Ready before its condition Available is True.

    Sets use their own minReadySeconds.
    """


class NodeAddress(Model):
    """One address of the host (core/v1)."""

    type: Annotated[str, Field(max_length=63)]
    """Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS."""
    address: Annotated[str, Field(max_length=256)]
    """The address."""


class LastOperation(Model):
    """What the controller did last (lineage)."""

    description: Message | None = None
    """What it was, for people."""
    last_updated: Time | None = None
    """When this was written."""
    state: Literal["Processing", "Successful", "Failed"] | None = None
    """How far it is."""
    type: Literal["Create", "Update", "Delete"] | None = None
    """Which kind of operation."""


EarlierHosts = Annotated[list[Annotated[str, Field(max_length=512)]], Field(max_length=8), ATOMIC_LIST]
"""Identities of hosts that are gone, oldest first."""


class Replacement(Model):
    """A host that is being replaced under the same Machine. Here until a Node of the new host has joined."""

    provider_id: Annotated[str, Field(max_length=512)] | None = None
    """Provider ID of the host that is being replaced."""
    earlier_provider_ids: EarlierHosts | None = None
    """Hosts that were replaced before it and whose successors never joined: Nodes of theirs may still turn up."""
    reason: Annotated[str, Field(max_length=1024)] | None = None
    """Why the host is replaced: the provider can't change it in place, or it can get no Node."""
    started_at: Time | None = None
    """When the replacement began."""
    wait_for_node_volume_detach_start_time: Time | None = None
    """When waiting for volumes of the old host began."""


AppliedKey = Annotated[str, Field(max_length=340)]
"""A label key with room for a taint's effect."""


class AppliedNodeMetadata(Model):
    """What of the Node's metadata came from this Machine, so that it can be taken back and nothing else is."""

    labels: Annotated[list[AppliedKey], Field(max_length=256), SET] | None = None
    """Keys of labels."""
    annotations: Annotated[list[AppliedKey], Field(max_length=256), SET] | None = None
    """Keys of annotations."""
    taints: Annotated[list[AppliedKey], Field(max_length=64), SET] | None = None
    """Taints as ``key:effect``."""


class MachineDeletion(Model):
    """Clocks of the deletion, one for each stage that has a deadline (CAPI's names)."""

    node_drain_start_time: Time | None = None
    """When draining began."""
    wait_for_node_volume_detach_start_time: Time | None = None
    """When waiting for volumes began."""
    wait_for_pre_terminate_hook_start_time: Time | None = None
    """When waiting for pre-terminate hooks began."""
    host_deletion_start_time: Time | None = None
    """When the provider was first asked to delete the host."""
    node_deletion_start_time: Time | None = None
    """When deleting the Node object was first tried; only with ``nodeDeletionTimeout``."""


ProviderStatusField = Annotated[
    str | dict[str, Any], Schema({"x-kubernetes-preserve-unknown-fields": True, "maxLength": 262144})
]
"""What a provider wants to remember; a string in the first generation, an object later."""
Addresses = Annotated[list[NodeAddress], Field(max_length=128), ATOMIC_LIST]
"""Addresses of the host."""


class MachineStatus(Model):
    """What was seen of the Machine."""

    observed_generation: Generation | None = None
    """``metadata.generation`` that this status is about."""
    node_ref: ObjectReference | None = None
    """The Node, once it joined."""
    host_scope: Annotated[str, Field(max_length=512)] | None = None
    """Account or region of the provider in which the host was made, as ``provider/scope``. The host is looked for
    there even after the configuration was edited.
    """
    last_updated: Time | None = None
    """When the status last changed."""
    machine_class_digest: Annotated[str, Field(max_length=63)] | None = None
    """Digest of the MachineClass's configuration that the host has."""
    versions: ObservedVersions | None = None
    """Versions seen on the Node."""
    error_reason: Annotated[str, Field(max_length=253)] | None = None
    """Terminal failure, one word: it needs a person or another spec. Passing trouble stands in the conditions."""
    error_message: Message | None = None
    """Terminal failure, for people."""
    failure_reason: Annotated[str, Field(max_length=253)] | None = None
    """Same as ``errorReason``, under CAPI's name."""
    failure_message: Message | None = None
    """Same as ``errorMessage``, under CAPI's name; the Cluster Autoscaler reads it."""
    provider_status: ProviderStatusField | None = None
    """What the provider remembers about the host."""
    addresses: Addresses | None = None
    """Addresses of the host."""
    conditions: Conditions | None = None
    """Aspects of the Machine's state."""
    last_operation: LastOperation | None = None
    """What the controller did last."""
    phase: Annotated[str, Field(max_length=63)] | None = None
    """Where in its life the Machine is, in one word: Pending, Provisioning, Provisioned, Running, Updating, Deleting,
    Failed or Unknown."""
    failure_domain: Annotated[str, Field(max_length=253)] | None = None
    """Failure domain, such as a zone, of the host."""
    replacement: Replacement | None = None
    """Present while the host is replaced under this Machine, until a Node of the new host has joined."""
    applied_node_metadata: AppliedNodeMetadata | None = None
    """What of the Node's metadata came from this Machine."""
    reboot: RequestedReboot | None = None
    """The last reboot of the host that a MachineHealthCheck asked for."""
    deletion: MachineDeletion | None = None
    """How far deletion is."""


class Machine(Model):
    """The desired state of one Node and its host. A provider makes, changes and deletes the host."""

    __rules__: ClassVar = (name_fits(limits.MAX_NODE_NAME, "it becomes the name of a Node"),)

    resource: ClassVar = Resource(
        kind="Machine",
        plural="machines",
        short_name="ma",
        columns=(
            Column("Phase", ".status.phase", "Where in its life the Machine is."),
            Column("Ready", '.status.conditions[?(@.type=="Ready")].status', "Whether host and Node are ready."),
            Column("ProviderID", ".spec.providerID", "Identity of the host."),
            Column("Node", ".status.nodeRef.name", "Node that joined."),
            Column("Kubelet", ".spec.versions.kubelet", "Version of the kubelet that is asked for."),
            AGE,
            Column(
                "Reason",
                '.status.conditions[?(@.type=="Ready")].reason',
                "Why it is (not) ready.",
                priority=1,
            ),
            Column("Address", ".status.addresses[0].address", "First address of the host.", priority=1),
            Column("Cluster", ".spec.clusterName", "Cluster that it belongs to.", priority=1),
            Column("Zone", ".status.failureDomain", "Failure domain that its host is in.", priority=1),
            Column("Deleted", ".metadata.deletionTimestamp", "Since when it is going.", "date", priority=1),
        ),
    )

    api_version: str = names.API_VERSION
    """Version of the schema of this object."""
    kind: Literal["Machine"] = "Machine"
    """Kind of this object."""
    metadata: ObjectMeta = ObjectMeta()
    """Standard metadata."""
    spec: MachineSpec = MachineSpec()
    """Desired state of the Node and its host."""
    status: MachineStatus | None = None
    """Observed state."""
