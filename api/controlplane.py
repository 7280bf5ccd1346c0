"""ControlPlane: the Machines that run etcd and the API server of a Cluster, as many as desired, of one version."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api import limits, names
from api.machine import Version
from api.machineset import ONE_SAY_ON_FAILURE_DOMAINS, MachineTemplateSpec, RestingDomain
from api.meta import Conditions, Count, Duration, FailureDomains, Generation, Message, ObjectMeta, ShortText, Time
from api.model import ATOMIC_LIST, Model, Rule, Schema, name_fits
from api.resource import AGE, Column, Resource, Scale

AgeKey = Annotated[str, Field(max_length=100, pattern=r"^age1[02-9ac-hj-np-z]{58}$")]
"""Public key of age, as ``age-keygen`` prints it (Bech32)."""


class ControlPlaneRollout(Model):
    """How Machines of an earlier template or version give way, always one after the other."""

    max_surge: Annotated[int, Field(ge=0, le=1), Schema({"format": "int32"})] = 1
    """1: a replacement joins before an old Machine goes. 0: an old one goes first, where there are no more hosts."""
    in_place: Literal["Never", "Prefer", "Require"] = "Never"
    """Never: Machines are replaced. Prefer: they get the new template and stay; those whose provider can't change the
    running host are replaced by other Machines. Require: then the rollout stops instead."""
    renew_certificates_before: Duration = "1440h"
    """How long before their end the certificates of a host are renewed, in place or by another Machine as ``inPlace``
    says: 60 days without it. A certificate of less than half a year is renewed when a third of its life is left. 0s
    leaves them to upgrades and to people."""
    paused: bool = False
    """True stops rollouts, renewals of certificates too; the number of Machines is looked after all the same."""


class ControlPlaneRemediation(Model):
    """Limits on replacing Machines that a health check, a person or a failure asks to have replaced."""

    max_retry: Count | None = None
    """Replacements that may follow one another. No limit without it."""
    retry_period: Duration = "0s"
    """Wait between a replacement and the next one."""
    min_healthy_period: Duration = "1h"
    """After so long without a replacement the count begins anew."""


class SnapshotBucket(Model):
    """A bucket of S3, or of whatever speaks its protocol. Snapshots hold all Secrets of the cluster."""

    __rules__: ClassVar = (
        Rule(
            "!has(self.secretName) || (has(self.recipients) && size(self.recipients) > 0) != "
            "(has(self.plain) && self.plain)",
            "name recipients, who alone can read the snapshots, or set plain to true: not both",
        ),
    )

    secret_name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """Secret in this namespace with ``url`` (``https://host/bucket/folder``), ``accessKeyID`` and ``secretAccessKey``,
    and if needed ``region`` and ``ca.crt``. Nothing is saved in a bucket without it."""
    recipients: Annotated[list[AgeKey], Field(max_length=20), ATOMIC_LIST] | None = None
    """Public keys of age (``age1...``) for which each snapshot is encrypted before it leaves the process."""
    plain: bool = False
    """True: snapshots are not encrypted."""


class EtcdSnapshotSettings(Model):
    """Where etcd is saved before an upgrade changes it: on a host, in a bucket, or both."""

    path: (
        Annotated[
            str,
            Field(
                min_length=2, max_length=201, pattern=r"^/[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$"
            ),
        ]
        | None
    ) = None
    """Folder on a host, like ``/var/backups/etcd``: that of a Machine that is updated in place, else one whose member
    works and that stays. It needs room for ``keep`` and two further copies of the database, and a provider that runs
    scripts on its hosts. With ``s3`` too, hosts save etcd as a part of an update in place alone."""
    keep: Annotated[int, Field(ge=1, le=99), Schema({"format": "int32"})] = 3
    """Snapshots that stay in the folder; older ones are removed."""
    s3: SnapshotBucket = SnapshotBucket()
    """Bucket into which etcd is saved before each step of a rollout, in place or by replacement. Nothing is removed
    there."""


class ControlPlaneEtcd(Model):
    """How etcd is looked after."""

    snapshot: EtcdSnapshotSettings = EtcdSnapshotSettings()
    """A snapshot before each step of a rollout. The step begins only once its snapshot was taken and its checksum is
    right."""


class ControlPlaneSpec(Model):
    """How many Machines run the control plane, of which version and template."""

    __rules__: ClassVar = (
        ONE_SAY_ON_FAILURE_DOMAINS,
        Rule(
            "!has(self.rollout) || !has(self.rollout.maxSurge) || self.rollout.maxSurge > 0 || self.replicas > 1 || "
            "(has(self.rollout.inPlace) && self.rollout.inPlace != 'Never')",
            "maxSurge may not be 0 where replicas is 1 and inPlace is Never: the only Machine could never be replaced",
            field_path=".rollout.maxSurge",
        ),
    )

    cluster_name: Annotated[
        str,
        Field(min_length=1, max_length=63),
        Schema(rules=(Rule("self == oldSelf", "clusterName is immutable"),)),
    ]
    """Cluster whose control plane this is. Can't be changed."""
    replicas: Annotated[
        int,
        Field(ge=1, le=5),
        Schema(
            {"format": "int32"},
            rules=(
                Rule("self % 2 == 1", "replicas must be odd: etcd with 2 of 4 has no quorum, as with 1 of 2 or 3 of 6"),
            ),
        ),
    ] = 1
    """Number of Machines, each with an etcd member: 1, 3 or 5. 3 bear the loss of one, 5 of two."""
    version: Version
    """Version of Kubernetes. Machines get it as ``versions.kubelet`` and ``versions.controlPlane``."""
    template: MachineTemplateSpec
    """What Machines are made from; its ``spec.versions.kubelet`` and ``controlPlane`` are ``version``."""
    rollout: ControlPlaneRollout = ControlPlaneRollout()
    """How Machines of an earlier template or version give way."""
    remediation: ControlPlaneRemediation = ControlPlaneRemediation()
    """Limits on replacing Machines."""
    failure_domains: FailureDomains | None = None
    """Failure domains, such as zones, over which the Machines are spread evenly, so that the loss of one costs etcd as
    few votes as can be. Default: those of the Cluster. An empty list turns spreading off. Nothing that runs is moved.
    """
    upgrade: Literal["Alone", "Together"] = "Alone"
    """What ``version`` reaches. Alone: the control plane. Together: then the MachineDeployments of the Cluster too, one
    after the other, each when the one before is done; those with a newer kubelet are left alone."""
    upgrade_order: Annotated[list[ShortText], Field(max_length=50), ATOMIC_LIST] | None = None
    """Names of MachineDeployments in the order in which they are upgraded; others follow by name."""
    etcd: ControlPlaneEtcd = ControlPlaneEtcd()
    """How etcd is looked after."""


class EtcdSummary(Model):
    """etcd's members at the last look."""

    members: Count = 0
    """Members, learners among them."""
    voters: Count = 0
    """Members with a vote."""
    healthy: Count = 0
    """Voters that answer."""
    unhealthy: Annotated[list[ShortText], Field(max_length=20), ATOMIC_LIST] | None = None
    """Names of the others."""
    alarms: Annotated[list[ShortText], Field(max_length=20), ATOMIC_LIST] | None = None
    """Alarms as ``member: alarm``."""
    db_size_bytes: Annotated[int, Field(ge=0), Schema({"format": "int64"})] | None = None
    """Size of the largest database."""


class EtcdSnapshotRecord(Model):
    """A snapshot in a bucket or on a host."""

    step: Annotated[str, Field(max_length=64)]
    """Names the step for which it was taken."""
    time: Time
    """When it began."""
    size_bytes: Annotated[int, Field(ge=0), Schema({"format": "int64"})]
    """Size of the database."""
    revision: Annotated[int, Field(ge=0), Schema({"format": "int64"})]
    """etcd's revision when it began. All until then is in it."""
    location: Message
    """URL of the object, or ``host:path``."""
    machine: Annotated[str, Field(max_length=253)] | None = None
    """Machine whose host keeps it. It goes with that host."""


class PendingOperation(Model):
    """The change that was decided last. It is written before it is made, and repeated until it is seen."""

    operation: Literal["Join", "Remove", "Upgrade"]
    """Join: a Machine is created. Remove: one is deleted. Upgrade: one gets the present template."""
    machine: Annotated[str, Field(max_length=253)]
    """Name of the Machine."""


class ReplacedMachine(Model):
    """Machines that were removed since they did not work."""

    machine: Annotated[str, Field(max_length=253)]
    """Name of the last one."""
    times: Annotated[list[Time], Field(max_length=20), ATOMIC_LIST]
    """When they were removed, the oldest first."""


class ControlPlaneStatus(Model):
    """What was seen of the control plane."""

    observed_generation: Generation | None = None
    """``metadata.generation`` that this status is about."""
    replicas: Count | None = None
    """Machines that are not being deleted."""
    ready_replicas: Count | None = None
    """Machines whose Node is Ready, whose static pods run and whose etcd member is healthy."""
    updated_replicas: Count | None = None
    """Machines of the present template and version."""
    version: Annotated[str, Field(max_length=64)] | None = None
    """Lowest version that a Machine runs."""
    initialized: bool | None = None
    """True once the cluster was initialized; it never turns back."""
    label_selector: Annotated[str, Field(max_length=16384)] | None = None
    """Selects the Machines, for the scale subresource."""
    next_ordinal: Count | None = None
    """Number of the next Machine; none is used twice."""
    pending: PendingOperation | None = None
    """The change that was decided last, until it is seen."""
    replaced: ReplacedMachine | None = None
    """Machines that were removed since they did not work."""
    etcd: EtcdSummary | None = None
    """etcd's members at the last look."""
    etcd_snapshot: EtcdSnapshotRecord | None = None
    """The last snapshot of etcd that was taken before a step."""
    resting_failure_domains: Annotated[list[RestingDomain], Field(max_length=64), ATOMIC_LIST] | None = None
    """Failure domains that were out of stock or quota. A Machine that joins goes to another one."""
    next: Message | None = None
    """What is done next, or what it waits for."""
    conditions: Conditions | None = None
    """Aspects of its state."""


class ControlPlane(Model):
    """Keeps Machines with etcd and the API server of a Cluster: initialized once, joined, healed and upgraded one at a
    time, never below etcd's quorum."""

    __rules__: ClassVar = (name_fits(limits.MAX_MACHINESET_NAME, "the names of its Machines become names of Nodes"),)
    resource: ClassVar = Resource(
        kind="ControlPlane",
        plural="controlplanes",
        short_name="cp",
        scale=Scale(),
        columns=(
            Column("Cluster", ".spec.clusterName", "Cluster whose control plane it is."),
            Column("Desired", ".spec.replicas", "Number of Machines desired.", "integer"),
            Column("Ready", ".status.readyReplicas", "Machines that work.", "integer"),
            Column("Updated", ".status.updatedReplicas", "Machines of the present template and version.", "integer"),
            Column("Version", ".spec.version", "Version of Kubernetes that is desired."),
            Column("Initialized", ".status.initialized", "Whether the cluster was initialized.", "boolean"),
            AGE,
            Column(
                "Etcd",
                '.status.conditions[?(@.type=="EtcdHealthy")].reason',
                "Whether all etcd members work.",
                priority=1,
            ),
            Column("Next", ".status.next", "What is done next, or what it waits for.", priority=1),
        ),
    )

    api_version: str = names.API_VERSION
    """Version of the schema of this object."""
    kind: Literal["ControlPlane"] = "ControlPlane"
    """Kind of this object."""
    metadata: ObjectMeta = ObjectMeta()
    """Standard metadata."""
    spec: ControlPlaneSpec
    """How many Machines run the control plane, of which version and template."""
    status: ControlPlaneStatus | None = None
    """What was seen of the control plane."""
