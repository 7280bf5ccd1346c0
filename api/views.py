"""Generated from the models of api/ by ``make generate``; edits are overwritten.

Each view has the fields of its model with their defaults. ``read`` never raises: see ``api/reading.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from api.reading import Reading


@dataclass(frozen=True, slots=True)
class InPlaceUpdateView:
    """``InPlaceUpdate`` of ``api/machineset.py``."""

    policy: str = "Prefer"
    min_available: int = 0
    max_updating: int | None = None
    partition: int = 0

    @classmethod
    def read(cls, found: Reading) -> InPlaceUpdateView:
        return cls(
            policy=found.choice("policy", "Prefer", ("Prefer", "Require")),
            min_available=found.count("minAvailable", 0, 0, 2147483647),
            max_updating=found.count("maxUpdating", None, 0, 2147483647),
            partition=found.count("partition", 0, 0, 2147483647),
        )


@dataclass(frozen=True, slots=True)
class MachineSetSpecView:
    """``MachineSetSpec`` of ``api/machineset.py``."""

    replicas: int = 1
    min_ready_seconds: int = 0
    delete_policy: str = "Random"
    failure_domains: tuple[str, ...] | None = None
    in_place_update: InPlaceUpdateView | None = None
    selector: Any = None
    template: Any = None

    @classmethod
    def read(cls, found: Reading) -> MachineSetSpecView:
        return cls(
            replicas=found.count("replicas", 1, 0, 100000),
            min_ready_seconds=found.count("minReadySeconds", 0, 0, 2147483647),
            delete_policy=found.choice("deletePolicy", "Random", ("Random", "Newest", "Oldest", "LeastDisruptive")),
            failure_domains=found.domains("failureDomains", None),
            in_place_update=found.optional("inPlaceUpdate", InPlaceUpdateView.read),
            selector=found.raw("selector"),
            template=found.raw("template"),
        )


@dataclass(frozen=True, slots=True)
class RollingUpdateView:
    """``RollingUpdate`` of ``api/machinedeployment.py``."""

    max_unavailable: int | str = 0
    max_surge: int | str = 1
    delete_policy: str | None = None
    partition: int | str = 0
    on_failure: str = "Continue"
    in_place: str = "Never"

    @classmethod
    def read(cls, found: Reading) -> RollingUpdateView:
        return cls(
            max_unavailable=found.share("maxUnavailable", 0),
            max_surge=found.share("maxSurge", 1),
            delete_policy=found.choice("deletePolicy", None, ("Random", "Newest", "Oldest", "LeastDisruptive")),
            partition=found.share("partition", 0),
            on_failure=found.choice("onFailure", "Continue", ("Continue", "Pause", "Rollback")),
            in_place=found.choice("inPlace", "Never", ("Never", "Prefer", "Require")),
        )


@dataclass(frozen=True, slots=True)
class MachineDeploymentStrategyView:
    """``MachineDeploymentStrategy`` of ``api/machinedeployment.py``."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdateView = RollingUpdateView()
    disruption_budgets: Any = None

    @classmethod
    def read(cls, found: Reading) -> MachineDeploymentStrategyView:
        return cls(
            type=found.choice("type", "RollingUpdate", ("RollingUpdate", "OnDelete", "Recreate")),
            rolling_update=RollingUpdateView.read(found.child("rollingUpdate")),
            disruption_budgets=found.raw("disruptionBudgets"),
        )


@dataclass(frozen=True, slots=True)
class RolloutView:
    """``Rollout`` of ``api/machinedeployment.py``."""

    after: datetime | None = None

    @classmethod
    def read(cls, found: Reading) -> RolloutView:
        return cls(
            after=found.time("after", None),
        )


@dataclass(frozen=True, slots=True)
class MachineDeploymentSpecView:
    """``MachineDeploymentSpec`` of ``api/machinedeployment.py``."""

    replicas: int = 1
    selector: Any = None
    template: Any = None
    strategy: MachineDeploymentStrategyView = MachineDeploymentStrategyView()
    failure_domains: tuple[str, ...] | None = None
    rollout: RolloutView | None = None
    min_ready_seconds: int = 0
    revision_history_limit: int = 1
    paused: bool = False
    progress_deadline_seconds: int = 600

    @classmethod
    def read(cls, found: Reading) -> MachineDeploymentSpecView:
        return cls(
            replicas=found.count("replicas", 1, 0, 100000),
            selector=found.raw("selector"),
            template=found.raw("template"),
            strategy=MachineDeploymentStrategyView.read(found.child("strategy")),
            failure_domains=found.domains("failureDomains", None),
            rollout=found.optional("rollout", RolloutView.read),
            min_ready_seconds=found.count("minReadySeconds", 0, 0, 2147483647),
            revision_history_limit=found.count("revisionHistoryLimit", 1, 0, 2147483647),
            paused=found.flag("paused", False),
            progress_deadline_seconds=found.count("progressDeadlineSeconds", 600, 0, 2147483647),
        )


@dataclass(frozen=True, slots=True)
class RebootStrategyView:
    """``RebootStrategy`` of ``api/machinehealthcheck.py``."""

    max_attempts: int = 0
    timeout: timedelta = timedelta(seconds=600)

    @classmethod
    def read(cls, found: Reading) -> RebootStrategyView:
        return cls(
            max_attempts=found.count("maxAttempts", 0, 0, 3),
            timeout=found.duration("timeout", timedelta(seconds=600)),
        )


@dataclass(frozen=True, slots=True)
class RemediationStrategyView:
    """``RemediationStrategy`` of ``api/machinehealthcheck.py``."""

    max_in_flight: int | str | None = None
    max_retry: int | None = None
    retry_period: timedelta = timedelta(seconds=0)
    max_retry_period: timedelta = timedelta(seconds=3600)
    min_healthy_period: timedelta = timedelta(seconds=3600)
    reboot: RebootStrategyView = RebootStrategyView()
    correlated_failures: str = "Freeze"

    @classmethod
    def read(cls, found: Reading) -> RemediationStrategyView:
        return cls(
            max_in_flight=found.share("maxInFlight", None),
            max_retry=found.count("maxRetry", None, 0, 2147483647),
            retry_period=found.duration("retryPeriod", timedelta(seconds=0)),
            max_retry_period=found.duration("maxRetryPeriod", timedelta(seconds=3600)),
            min_healthy_period=found.duration("minHealthyPeriod", timedelta(seconds=3600)),
            reboot=RebootStrategyView.read(found.child("reboot")),
            correlated_failures=found.choice("correlatedFailures", "Freeze", ("Freeze", "Remediate")),
        )


@dataclass(frozen=True, slots=True)
class MachineHealthCheckSpecView:
    """``MachineHealthCheckSpec`` of ``api/machinehealthcheck.py``."""

    cluster_name: str | None = None
    selector: Any = None
    unhealthy_conditions: Any = None
    unhealthy_machine_conditions: Any = None
    node_startup_timeout: timedelta = timedelta(seconds=600)
    max_unhealthy: int | str = "100%"
    unhealthy_range: str | None = None
    remediation_template: Any = None
    remediation_strategy: RemediationStrategyView = RemediationStrategyView()

    @classmethod
    def read(cls, found: Reading) -> MachineHealthCheckSpecView:
        return cls(
            cluster_name=found.text("clusterName", None),
            selector=found.raw("selector"),
            unhealthy_conditions=found.raw("unhealthyConditions"),
            unhealthy_machine_conditions=found.raw("unhealthyMachineConditions"),
            node_startup_timeout=found.duration("nodeStartupTimeout", timedelta(seconds=600)),
            max_unhealthy=found.share("maxUnhealthy", "100%"),
            unhealthy_range=found.text("unhealthyRange", None),
            remediation_template=found.raw("remediationTemplate"),
            remediation_strategy=RemediationStrategyView.read(found.child("remediationStrategy")),
        )


@dataclass(frozen=True, slots=True)
class ControlPlaneRolloutView:
    """``ControlPlaneRollout`` of ``api/controlplane.py``."""

    max_surge: int = 1
    in_place: str = "Never"
    renew_certificates_before: timedelta = timedelta(seconds=5184000)
    paused: bool = False

    @classmethod
    def read(cls, found: Reading) -> ControlPlaneRolloutView:
        return cls(
            max_surge=found.count("maxSurge", 1, 0, 1),
            in_place=found.choice("inPlace", "Never", ("Never", "Prefer", "Require")),
            renew_certificates_before=found.duration("renewCertificatesBefore", timedelta(seconds=5184000)),
            paused=found.flag("paused", False),
        )


@dataclass(frozen=True, slots=True)
class ControlPlaneRemediationView:
    """``ControlPlaneRemediation`` of ``api/controlplane.py``."""

    max_retry: int | None = None
    retry_period: timedelta = timedelta(seconds=0)
    min_healthy_period: timedelta = timedelta(seconds=3600)

    @classmethod
    def read(cls, found: Reading) -> ControlPlaneRemediationView:
        return cls(
            max_retry=found.count("maxRetry", None, 0, 2147483647),
            retry_period=found.duration("retryPeriod", timedelta(seconds=0)),
            min_healthy_period=found.duration("minHealthyPeriod", timedelta(seconds=3600)),
        )


@dataclass(frozen=True, slots=True)
class SnapshotBucketView:
    """``SnapshotBucket`` of ``api/controlplane.py``."""

    secret_name: str | None = None
    recipients: Any = None
    plain: bool = False

    @classmethod
    def read(cls, found: Reading) -> SnapshotBucketView:
        return cls(
            secret_name=found.text("secretName", None),
            recipients=found.raw("recipients"),
            plain=found.flag("plain", False),
        )


@dataclass(frozen=True, slots=True)
class EtcdSnapshotSettingsView:
    """``EtcdSnapshotSettings`` of ``api/controlplane.py``."""

    path: str | None = None
    keep: int = 3
    s3: SnapshotBucketView = SnapshotBucketView()

    @classmethod
    def read(cls, found: Reading) -> EtcdSnapshotSettingsView:
        return cls(
            path=found.text("path", None),
            keep=found.count("keep", 3, 1, 99),
            s3=SnapshotBucketView.read(found.child("s3")),
        )


@dataclass(frozen=True, slots=True)
class ControlPlaneEtcdView:
    """``ControlPlaneEtcd`` of ``api/controlplane.py``."""

    snapshot: EtcdSnapshotSettingsView = EtcdSnapshotSettingsView()

    @classmethod
    def read(cls, found: Reading) -> ControlPlaneEtcdView:
        return cls(
            snapshot=EtcdSnapshotSettingsView.read(found.child("snapshot")),
        )


@dataclass(frozen=True, slots=True)
class ControlPlaneSpecView:
    """``ControlPlaneSpec`` of ``api/controlplane.py``."""

    cluster_name: str | None = None
    replicas: int = 1
    version: str | None = None
    template: Any = None
    rollout: ControlPlaneRolloutView = ControlPlaneRolloutView()
    remediation: ControlPlaneRemediationView = ControlPlaneRemediationView()
    failure_domains: tuple[str, ...] | None = None
    upgrade: str = "Alone"
    upgrade_order: Any = None
    etcd: ControlPlaneEtcdView = ControlPlaneEtcdView()

    @classmethod
    def read(cls, found: Reading) -> ControlPlaneSpecView:
        return cls(
            cluster_name=found.text("clusterName", None),
            replicas=found.count("replicas", 1, 1, 5),
            version=found.text("version", None),
            template=found.raw("template"),
            rollout=ControlPlaneRolloutView.read(found.child("rollout")),
            remediation=ControlPlaneRemediationView.read(found.child("remediation")),
            failure_domains=found.domains("failureDomains", None),
            upgrade=found.choice("upgrade", "Alone", ("Alone", "Together")),
            upgrade_order=found.raw("upgradeOrder"),
            etcd=ControlPlaneEtcdView.read(found.child("etcd")),
        )
