"""Who moves first: tiers by rule and priority, one after the other."""

from __future__ import annotations

from datetime import timedelta

from controllers.drain.stages import Deadlines
from tests.controllers.drain.scene import CLOSED, deleted, draining, evicted, next_step
from tests.controllers.machine.pods import budget, daemon_set, drain_rule, pod

CLUSTER_CRITICAL, NODE_CRITICAL = 2_000_000_000, 2_000_001_000

DNS = pod("dns").priority(CLUSTER_CRITICAL)
WEB = pod("web").priority(10)
BATCH = pod("batch").priority(-5)
PLAIN = pod("plain")
ORPHAN = pod("orphan").of_daemon_set()
"""Its DaemonSet is gone, so nobody needs it and nobody puts it back."""


def order(*pods: object) -> list[str]:
    """The names in the order in which they are evicted, each tier joined by +."""
    left, found = list(pods), []
    while left:
        now = evicted(draining(CLOSED, *left))  # type: ignore[arg-type]
        found.append("+".join(sorted(now)))
        left = [p for p in left if p.metadata["name"] not in now]  # type: ignore[attr-defined]
    return found


def test_lower_priority_moves_first_and_what_is_critical_last() -> None:
    assert order(DNS, WEB, PLAIN, BATCH, pod("other")) == ["batch", "other+plain", "web", "dns"]


def test_orphans_of_a_daemon_set_move_after_others_of_their_kind() -> None:
    critical = pod("orphan-2").of_daemon_set().priority(NODE_CRITICAL)
    assert order(DNS, ORPHAN, WEB, critical) == ["web", "orphan", "dns", "orphan-2"]


def test_a_pod_of_a_living_daemon_set_is_no_orphan() -> None:
    assert evicted(draining(CLOSED, ORPHAN, WEB, daemon_set("orphan"))) == ["web"]


def test_the_order_of_a_rule_beats_priority() -> None:
    first = drain_rule("r").drain("Drain", -1).pods(selector={"matchLabels": {"app": "web"}})
    last = drain_rule("s").drain("Drain", 7).pods(selector={"matchLabels": {"app": "batch"}})
    assert evicted(draining(CLOSED, WEB, PLAIN, BATCH, first, last)) == ["web"]
    assert evicted(draining(CLOSED, PLAIN, BATCH, first, last)) == ["plain"]
    assert evicted(draining(CLOSED, BATCH, first, last)) == ["batch"]


def test_the_next_tier_waits_until_the_last_pod_of_this_one_has_gone() -> None:
    found = next_step(draining(CLOSED, WEB, pod("plain").deleting()))
    assert found.actions == ()
    assert "after those: default/web" in found.why


def test_a_blocked_tier_holds_up_the_next() -> None:
    found = next_step(draining(CLOSED, WEB, PLAIN, budget("keep").over("plain").allowing(0)))
    assert found.actions == ()
    assert found.blocked


def test_what_completes_by_itself_holds_up_no_tier() -> None:
    job = pod("job").priority(-100).labelled({"cluster.x-k8s.io/drain": "wait-completed"})
    assert evicted(draining(CLOSED, WEB, job)) == ["web"]


def test_tiers_hold_while_pods_are_deleted_too() -> None:
    soon = Deadlines(delete=timedelta(seconds=1))
    assert deleted(draining(CLOSED, WEB, PLAIN, since=5, deadlines=soon)) == [("plain", None)]
