"""What people have asked for the drain of a Machine: its MachineDrainRules, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Iterator

from controllers.drain.context import Behavior, Rule, rules_for_machine
from controllers.kernel import view as indexes
from controllers.kernel.conditions import counted
from controllers.kernel.ownership import cluster_of
from controllers.kernel.refs import MACHINE_DRAIN_RULE, Obj, key_of
from controllers.kernel.view import View
from nodewright.reports.tree.branch import Branch, Mood


def drain_rules(machine: Obj, view: View) -> Iterator[Branch]:
    """A line for each rule that selects the Machine; one that can't be read blocks every drain, and is shown alone."""
    objects = view.indexed(MACHINE_DRAIN_RULE, indexes.NAMESPACE, key_of(machine).namespace)
    found = rules_for_machine(machine, cluster_of(machine, view), objects)
    if found.problem:
        yield Branch("Drain", Mood.BAD, state="held up", message=found.problem)
    for rule in found.rules:
        yield Branch(f"{MACHINE_DRAIN_RULE.name}/{rule.name}", state=_does(rule), message=_about(rule))


def _does(rule: Rule) -> str:
    return f"{rule.behavior}, order {rule.order}" if rule.behavior is Behavior.DRAIN else str(rule.behavior)


def _about(rule: Rule) -> str:
    return f"pods of {counted(len(rule.pods), 'selector')}" if rule.pods else "every pod"
