"""A failed Machine that somebody looks into is left alone until the time that he named, and replaced meanwhile."""

from __future__ import annotations

from api import names
from controllers.kernel.plan import Wait
from controllers.kernel.refs import MACHINE_DEPLOYMENT, MACHINE_SET
from tests.builders import FakeView, machine, machine_deployment, machine_set
from tests.builders.clock import ago
from tests.builders.loop import plan_for
from tests.builders.objects import MachineBuilder, MachineSetBuilder
from tests.builders.plans import created_names, deletes

KEEP = names.PRESERVE_UNTIL_ANNOTATION


def pool(replicas: int) -> MachineSetBuilder:
    return machine_set("pool").replicas(replicas).observed()


def member(name: str, until: str = "") -> MachineBuilder:
    found = machine(name).of(machine_set("pool"))
    return found.failed("HostFailed").annotated(KEEP, until) if until else found.ready()


def test_a_preserved_machine_is_replaced_and_not_deleted() -> None:
    view = FakeView(pool(2), member("a"), member("broken", ago(-600)))
    plan = plan_for(view, MACHINE_SET, "pool")
    assert len(created_names(plan)) == 1
    assert deletes(plan) == []


def test_it_is_no_victim_of_a_scale_down() -> None:
    view = FakeView(pool(1), member("a"), member("b"), member("broken", ago(-600)))
    assert deletes(plan_for(view, MACHINE_SET, "pool")) in (["a"], ["b"])


def test_nothing_is_done_for_it_while_the_time_runs_and_the_end_is_waited_for() -> None:
    plan = plan_for(FakeView(pool(1), member("a"), member("broken", ago(-600))), MACHINE_SET, "pool")
    assert created_names(plan) == deletes(plan) == []
    assert plan.outcome == Wait(600.0, "a failed Machine is preserved until then")


def test_when_the_time_is_over_it_is_one_too_many_and_goes_first() -> None:
    view = FakeView(pool(1), member("a"), member("broken", ago(-600))).at(601)
    assert deletes(plan_for(view, MACHINE_SET, "pool")) == ["broken"]


def test_a_sound_machine_is_not_preserved() -> None:
    view = FakeView(pool(0), member("a").annotated(KEEP, ago(-600)))
    assert deletes(plan_for(view, MACHINE_SET, "pool")) == ["a"]


def test_a_time_that_can_not_be_read_preserves_nothing() -> None:
    view = FakeView(pool(1), member("a"), member("broken", "tomorrow"))
    assert deletes(plan_for(view, MACHINE_SET, "pool")) == ["broken"]


def test_the_old_set_of_a_deployment_stays_as_long_as_it_has_one() -> None:
    deployment = machine_deployment("md").replicas(1).history_limit(0)
    old = machine_set("md-old").of(deployment, "old").replicas(0).observed().kubelet("1.33.0").revision(1)
    new = machine_set("md-new").of(deployment, "new").replicas(1).observed().revision(2)
    kept = machine("broken").of(old).failed().annotated(KEEP, ago(-600))
    view = FakeView(deployment, old, new, machine("fine").of(new).ready(), kept)
    assert deletes(plan_for(view, MACHINE_DEPLOYMENT, "md")) == []
    gone = FakeView(deployment, old, new, machine("fine").of(new).ready())
    assert deletes(plan_for(gone, MACHINE_DEPLOYMENT, "md")) == ["md-old"]
