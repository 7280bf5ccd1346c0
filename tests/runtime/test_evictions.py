"""One allowance of evictions for all drains, and a rest for each pod that was refused."""

from __future__ import annotations

from nodewright.runtime.writes.evictions import BURST, FIRST_REST, LONGEST_REST, RATE, EvictionPace


def granted(pace: EvictionPace, pods: int, now: float) -> int:
    return sum(pace.may(f"pod-{number}", now) for number in range(pods))


def test_a_hundred_drains_get_one_burst_and_then_the_rate() -> None:
    pace = EvictionPace()
    assert granted(pace, 5000, 0.0) == BURST
    assert granted(pace, 5000, 0.0) == 0
    assert granted(pace, 5000, 1.0) == RATE
    assert granted(pace, 5000, 1000.0) == BURST


def test_a_refused_pod_rests_twice_as_long_each_time_up_to_the_longest() -> None:
    pace, now, rest = EvictionPace(), 100.0, FIRST_REST
    for _ in range(10):
        assert pace.may("p", now)
        pace.refused("p", now)
        assert not pace.may("p", now + rest - 0.01)
        now += rest + 0.001
        rest = min(rest * 2, LONGEST_REST)
    assert rest == LONGEST_REST


def test_the_rest_ends_with_success() -> None:
    pace = EvictionPace()
    for now in (0.0, 1.0, 2.0):
        pace.refused("p", now)
    pace.accepted("p")
    assert pace.may("p", 2.0)
    pace.refused("p", 3.0)
    assert pace.may("p", 3.0 + FIRST_REST)


def test_a_resting_pod_costs_no_allowance() -> None:
    pace = EvictionPace(rate=1.0, burst=1.0)
    pace.refused("p", 0.0)
    assert not pace.may("p", 0.0)
    assert pace.may("q", 0.0)
