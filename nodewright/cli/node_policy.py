"""Options that say which labels and taints of Machines may reach their Nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.exits import USAGE, CliError

if TYPE_CHECKING:
    from controllers.kernel.node_policy import NodePolicy, Rule

_PATTERN = "[NS=]PATTERN"

AllowLabels = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-node-labels",
        metavar=_PATTERN,
        help="Labels that Machines (of a namespace) may give their Nodes though they grant rights. Repeatable.",
    ),
]
ProtectLabels = Annotated[
    list[str] | None,
    typer.Option(
        "--protect-node-labels",
        metavar=_PATTERN,
        help="Further labels that Machines may not give their Nodes unless they are allowed. Repeatable.",
    ),
]
AllowTaints = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-node-taints", metavar=_PATTERN, help="The same for taints, as KEY or KEY:EFFECT. Repeatable."
    ),
]
ProtectTaints = Annotated[
    list[str] | None,
    typer.Option(
        "--protect-node-taints", metavar=_PATTERN, help="The same for taints, as KEY or KEY:EFFECT. Repeatable."
    ),
]
Given = list[str] | None


@dataclass(frozen=True, slots=True)
class NodePolicyFlags:
    """As they are typed."""

    allow_node_labels: AllowLabels = None
    protect_node_labels: ProtectLabels = None
    allow_node_taints: AllowTaints = None
    protect_node_taints: ProtectTaints = None

    def policy(self) -> NodePolicy:
        """Raises CliError (usage)."""
        from controllers.kernel.node_policy import ALLOWED_AT_FIRST, NodePolicy  # noqa: PLC0415

        return NodePolicy(
            (*ALLOWED_AT_FIRST, *_rules("--allow-node-labels", self.allow_node_labels)),
            tuple(_rules("--protect-node-labels", self.protect_node_labels)),
            tuple(_rules("--allow-node-taints", self.allow_node_taints)),
            tuple(_rules("--protect-node-taints", self.protect_node_taints)),
        )


def _rules(option: str, given: Given) -> Iterable[Rule]:
    from controllers.kernel.node_policy import read_rule  # noqa: PLC0415

    for part in (part for text in given or () for part in text.split(",")):
        try:
            yield read_rule(part)
        except ValueError as error:
            raise CliError(f"{option}: {error}", "For example team-a=node-role.kubernetes.io/*", USAGE) from error
