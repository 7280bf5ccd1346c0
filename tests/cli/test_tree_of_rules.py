"""``describe`` tells which MachineDrainRules a Machine's drain will follow."""

from __future__ import annotations

from controllers.kernel.refs import MACHINE, MACHINE_SET
from nodewright.reports.tree.branch import wrong
from tests.builders import machine, machine_set
from tests.cli.test_tree import line, names_in, tree_of
from tests.controllers.machine.pods import RuleBuilder, drain_rule

WEB = {"selector": {"matchLabels": {"app": "web"}}}


def for_the_blue(rule: RuleBuilder) -> RuleBuilder:
    rule.spec["machines"] = [{"selector": {"matchLabels": {"pool": "blue"}}}]
    return rule


def test_a_machine_shows_the_rules_that_select_it_in_their_order_with_what_they_do() -> None:
    first = for_the_blue(drain_rule("a-keeps").drain("Skip"))
    first.spec["pods"] = [WEB]
    rules = [drain_rule("b-orders").drain("Drain", 3).build(), first.build()]
    of_blue = tree_of(MACHINE, machine("m-1").labelled(pool="blue").ready(), rules=rules)
    assert names_in(of_blue)[-2:] == ["├─MachineDrainRule/a-keeps", "└─MachineDrainRule/b-orders"]
    assert (line(of_blue, "MachineDrainRule/a-keeps").state, line(of_blue, "MachineDrainRule/a-keeps").message) == (
        "Skip",
        "pods of 1 selector",
    )
    assert (line(of_blue, "MachineDrainRule/b-orders").state, line(of_blue, "MachineDrainRule/b-orders").message) == (
        "Drain, order 3",
        "every pod",
    )
    of_red = tree_of(MACHINE, machine("m-1").labelled(pool="red").ready(), rules=rules)
    assert [name for name in names_in(of_red) if "Rule" in name] == ["└─MachineDrainRule/b-orders"]


def test_in_a_tree_of_many_they_stand_only_below_machines_that_are_going() -> None:
    web = machine_set("web")
    machines = [machine("web-0").of(web).ready(), machine("web-1").of(web).ready().deleting()]
    told = names_in(tree_of(MACHINE_SET, web, *machines, rules=[drain_rule("r").drain("Skip").build()]))
    assert sum("MachineDrainRule/r" in name for name in told) == 1
    assert told.index("└─Machine/web-1") < next(i for i, name in enumerate(told) if "MachineDrainRule" in name)


def test_a_rule_that_can_not_be_read_is_wrong_since_it_holds_the_drain_up() -> None:
    broken = drain_rule("r").drain("Perhaps").build()
    tree = tree_of(MACHINE, machine("m-1").ready(), rules=[broken])
    assert "spec.drain.behavior" in line(tree, "Drain").message
    assert line(tree, "Drain") in wrong(tree)
