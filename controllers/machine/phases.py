"""Where in its life a Machine is: one table from what was found to ``status.phase`` and ``status.lastOperation``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from api.names import MachinePhase, OperationState, OperationType


class Stage(Enum):
    """What was found this reconcile. Each Machine is in exactly one."""

    WAITING = "waits for a host to be made"
    CREATING = "its host is being made"
    BOOTED = "its host runs, no Node has joined yet"
    JOINED = "its Node has joined"
    UPDATING = "its host is changed in place"
    UPDATE_STUCK = "its host can't be changed as asked"
    REPLACING = "its host is replaced by a new one"
    REFUSED = "its host can't be made as asked"
    BROKEN = "its host failed"
    LOST = "its host vanished"
    DELETING = "it is going"


@dataclass(frozen=True, slots=True)
class Row:
    phase: MachinePhase
    type: OperationType
    state: OperationState


TABLE: dict[Stage, Row] = {
    Stage.WAITING: Row(MachinePhase.PENDING, OperationType.CREATE, OperationState.PROCESSING),
    Stage.CREATING: Row(MachinePhase.PROVISIONING, OperationType.CREATE, OperationState.PROCESSING),
    Stage.BOOTED: Row(MachinePhase.PROVISIONED, OperationType.CREATE, OperationState.PROCESSING),
    Stage.JOINED: Row(MachinePhase.RUNNING, OperationType.CREATE, OperationState.SUCCESSFUL),
    Stage.UPDATING: Row(MachinePhase.UPDATING, OperationType.UPDATE, OperationState.PROCESSING),
    Stage.UPDATE_STUCK: Row(MachinePhase.RUNNING, OperationType.UPDATE, OperationState.FAILED),
    Stage.REPLACING: Row(MachinePhase.UPDATING, OperationType.UPDATE, OperationState.PROCESSING),
    Stage.REFUSED: Row(MachinePhase.FAILED, OperationType.CREATE, OperationState.FAILED),
    Stage.BROKEN: Row(MachinePhase.FAILED, OperationType.CREATE, OperationState.FAILED),
    Stage.LOST: Row(MachinePhase.FAILED, OperationType.CREATE, OperationState.FAILED),
    Stage.DELETING: Row(MachinePhase.DELETING, OperationType.DELETE, OperationState.PROCESSING),
}

COMING_UP = frozenset({Stage.WAITING, Stage.CREATING, Stage.BOOTED})
"""Stages on the smooth way to the first Ready; reported sparingly (see ``status.is_quiet``)."""
