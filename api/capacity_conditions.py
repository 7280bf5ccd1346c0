"""Condition types and reasons of CapacityBuffers and CapacityQuotas, the Cluster Autoscaler's."""

from __future__ import annotations

from enum import StrEnum


class BufferCondition(StrEnum):
    """Condition types of a CapacityBuffer, the Cluster Autoscaler's."""

    READY_FOR_PROVISIONING = "ReadyForProvisioning"
    """The shape and the number of chunks are known. False: the message names the field or the object."""
    PROVISIONING = "Provisioning"
    """All chunks have room. False: the message says how many have, and what the others wait for."""
    LIMITED_BY_QUOTAS = "LimitedByQuotas"
    """The ResourceQuotas of the namespace leave room for fewer chunks; the message names the quota."""


class QuotaCondition(StrEnum):
    """Condition types of a CapacityQuota, the Cluster Autoscaler's."""

    RECONCILED = "Reconciled"
    """The quota is read and kept to. False: it can't be read, and limits nothing; the message names the field."""


class CapacityReason(StrEnum):
    """Reasons of the conditions of CapacityBuffers and CapacityQuotas."""

    RESOLVED = "Resolved"
    """The shape and the number of chunks are known."""
    POD_TEMPLATE_NOT_FOUND = "PodTemplateNotFound"
    """There is no PodTemplate of that name."""
    SCALABLE_REF_NOT_FOUND = "ScalableRefNotFound"
    """There is no workload of that name."""
    RESOLUTION_FAILED = "ResolutionFailed"
    """A field can't be read, or asks for what is not served."""
    FITS_EXISTING_CAPACITY = "FitsExistingCapacity"
    """All chunks have room on Nodes that are there or on their way."""
    REQUIRES_NEW_CAPACITY = "RequiresNewCapacity"
    """Some chunks have no room; Nodes are added for them where a group may grow."""
    BUFFER_EMPTY = "BufferEmpty"
    """The buffer asks for no chunk."""
    NOT_READY_FOR_PROVISIONING = "NotReadyForProvisioning"
    """The shape or the number of chunks is not known."""
    WITHIN_QUOTAS = "WithinQuotas"
    """No ResourceQuota leaves room for fewer chunks than are asked for."""
    QUOTA_LEAVES_LESS = "QuotaLeavesLess"
    """A ResourceQuota of the namespace leaves room for fewer chunks."""
    RECONCILIATION_SUCCEEDED = "ReconciliationSucceeded"
    """The quota is read and kept to."""
    RECONCILIATION_FAILED = "ReconciliationFailed"
    """The quota can't be read."""
