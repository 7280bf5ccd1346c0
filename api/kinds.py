"""All our kinds, in the order in which they are shown."""

from __future__ import annotations

from typing import Final

from api.capacitybuffer import CapacityBuffer
from api.capacityquota import CapacityQuota
from api.cluster import Cluster
from api.controlplane import ControlPlane
from api.machine import Machine
from api.machineclass import MachineClass
from api.machinedeployment import MachineDeployment
from api.machinedrainrule import MachineDrainRule
from api.machinehealthcheck import MachineHealthCheck
from api.machineset import MachineSet
from api.model import Model
from api.provisioningrequest import ProvisioningRequest
from api.sshhostpool import SSHHostPool

KINDS: Final[dict[str, type[Model]]] = {
    "Cluster": Cluster,
    "ControlPlane": ControlPlane,
    "MachineDeployment": MachineDeployment,
    "MachineSet": MachineSet,
    "Machine": Machine,
    "MachineClass": MachineClass,
    "MachineHealthCheck": MachineHealthCheck,
    "MachineDrainRule": MachineDrainRule,
}
"""Type by kind; each has ``resource`` (names, columns, subresources)."""

OTHERS: Final[dict[str, type[Model]]] = {
    "ProvisioningRequest": ProvisioningRequest,
    "CapacityBuffer": CapacityBuffer,
    "CapacityQuota": CapacityQuota,
    "SSHHostPool": SSHHostPool,
}
"""Kinds of other groups: those that are served as they were defined there, and those of providers."""
