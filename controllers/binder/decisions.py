"""What may be decided about a pod that waits."""

from __future__ import annotations

from dataclasses import dataclass

from controllers.kernel.refs import Ref


@dataclass(frozen=True, slots=True)
class Reported:
    """The condition PodScheduled of a pod that waits; empty where it says nothing against it."""

    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Bind:
    pod: Ref
    node: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """What the condition PodScheduled is to say, in kube-scheduler's words."""

    pod: Ref
    says: Reported
