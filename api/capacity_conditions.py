"""Condition types and reasons of CapacityBuffers and CapacityQuotas, the Cluster Autoscaler's."""

from __future__ import annotations

from enum import StrEnum


class BufferCondition(StrEnum):
    """Condition types of a CapacityBuffer, the Cluster Autoscaler's."""

    READY_FOR_PROVISIONING = "ReadyForProvisioning"
    """The chunk and the number of chunks are known. False: the message names the field or the object."""
    PROVISIONING = "Provisioning"
    """All chunks fit. False: the message says how many fit, and what the others wait for."""
    LIMITED_BY_QUOTAS = "LimitedByQuotas"
    """A ResourceQuota of the namespace allows fewer chunks; the message names it."""


class QuotaCondition(StrEnum):
    """Condition types of a CapacityQuota, the Cluster Autoscaler's."""

    RECONCILED = "Reconciled"
    """The autoscaler enforces the quota. False: the quota is invalid, limits nothing, and the message says why."""


class CapacityReason(StrEnum):
    """Reasons of the conditions of CapacityBuffers and CapacityQuotas."""

    RESOLVED = "Resolved"
    """The chunk and the number of chunks are known."""
    POD_TEMPLATE_NOT_FOUND = "PodTemplateNotFound"
    """There is no PodTemplate of that name."""
    SCALABLE_REF_NOT_FOUND = "ScalableRefNotFound"
    """There is no workload of that name."""
    RESOLUTION_FAILED = "ResolutionFailed"
    """A field can't be read, or asks for what is not served."""
    FITS_EXISTING_CAPACITY = "FitsExistingCapacity"
    """All chunks fit on Nodes that exist or are on their way."""
    REQUIRES_NEW_CAPACITY = "RequiresNewCapacity"
    """Some chunks fit nowhere; Nodes are added for them where a group may grow."""
    BUFFER_EMPTY = "BufferEmpty"
    """The buffer asks for no chunk."""
    NOT_READY_FOR_PROVISIONING = "NotReadyForProvisioning"
    """The chunk or the number of chunks is not known."""
    WITHIN_QUOTAS = "WithinQuotas"
    """No ResourceQuota allows fewer chunks than the buffer asks for."""
    QUOTA_LEAVES_LESS = "QuotaLeavesLess"
    """A ResourceQuota of the namespace allows fewer chunks."""
    RECONCILIATION_SUCCEEDED = "ReconciliationSucceeded"
    """The autoscaler enforces the quota."""
    RECONCILIATION_FAILED = "ReconciliationFailed"
    """The quota is invalid."""
