"""What a candidate decides about a Lease: time is what this process has seen pass, never what others wrote down."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewright.runtime.election.lease import (
    Acquire,
    Candidate,
    Lost,
    Renew,
    Seen,
    Terms,
    Wait,
    decide,
    released,
    spec_of,
)

WALL = datetime(2026, 11, 21, 12, 0, 0, 250, tzinfo=UTC)
ME = Candidate("me", Terms())
LEADING = replace(ME, renewed_at=100.0)


def lease(holder: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "l"}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, **spec}}


def test_where_there_is_no_lease_it_makes_one() -> None:
    decision = decide(Seen(None, 0), ME, 0, WALL)
    assert isinstance(decision, Acquire)
    assert decision.spec == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-11-21T12:00:00.000250Z",
        "renewTime": "2026-11-21T12:00:00.000250Z",
        "leaseTransitions": 0,
    }


def test_anothers_lease_is_waited_for_as_long_as_it_was_seen_unchanged_for_its_whole_duration() -> None:
    seen = Seen(lease("other"), 50.0)
    assert decide(seen, ME, 64.9, WALL) == Wait("held by other")
    decision = decide(seen, ME, 65.0, WALL)
    assert isinstance(decision, Acquire)
    assert decision.spec["leaseTransitions"] == 1
    assert decision.why == "other has not renewed it for 15 s"


def test_the_holders_own_duration_counts_not_ours() -> None:
    """Two versions of a program may run with different terms while one replaces the other."""
    assert isinstance(decide(Seen(lease("other", leaseDurationSeconds=60), 0), ME, 59, WALL), Wait)


def test_a_clock_that_is_wrong_takes_nothing_from_its_holder() -> None:
    long_ago = lease("other", renewTime="1999-01-01T00:00:00.000000Z")
    assert isinstance(decide(Seen(long_ago, 50), ME, 51, WALL), Wait)
    ahead = lease("other", renewTime="2999-01-01T00:00:00.000000Z")
    assert isinstance(decide(Seen(ahead, 50), ME, 66, WALL), Acquire)


def test_a_renewal_starts_the_wait_anew_even_by_a_holder_whose_clock_stands_still() -> None:
    first, second = ({**lease("other"), "metadata": {"name": "l", "resourceVersion": v}} for v in ("1", "2"))
    seen = Seen(first, 0).then(first, 10)
    assert seen.since == 0
    assert seen.then(second, 12).since == 12


def test_a_released_lease_is_taken_at_once() -> None:
    given_back = {"metadata": {"name": "l"}, "spec": {**lease("other")["spec"], **released(WALL)}}
    assert isinstance(decide(Seen(given_back, 50), ME, 50, WALL), Acquire)


def test_an_acquisition_whose_answer_was_lost_is_its_own() -> None:
    decision = decide(Seen(lease("me", leaseTransitions=3), 50), ME, 50, WALL)
    assert isinstance(decision, Acquire)
    assert decision.spec["leaseTransitions"] == 3, "it did not change hands"


def test_the_leader_renews_and_keeps_what_else_is_there() -> None:
    decision = decide(Seen(lease("me"), 100), LEADING, 102, WALL)
    assert decision == Renew({"renewTime": "2026-11-21T12:00:00.000250Z", "leaseDurationSeconds": 15})


def test_the_leader_gives_up_at_its_deadline_though_the_lease_still_names_it() -> None:
    assert isinstance(decide(Seen(lease("me"), 100), LEADING, 109.9, WALL), Renew)
    assert isinstance(decide(Seen(lease("me"), 100), LEADING, 110, WALL), Lost)


@pytest.mark.parametrize("holder", ["other", ""])
def test_the_leader_stops_when_the_lease_names_it_no_more(holder: str) -> None:
    assert isinstance(decide(Seen(lease(holder), 100), LEADING, 101, WALL), Lost)


def test_a_deleted_lease_is_made_again_by_its_leader() -> None:
    assert isinstance(decide(Seen(None, 100), LEADING, 101, WALL), Acquire)


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ((15, 10, 0), "retry period must be above 0"),
        ((15, 2, 2), "renew deadline (2 s) must be above 1.2 times the retry period"),
        ((10, 10, 2), "lease duration (10 s) must be above the renew deadline"),
    ],
)
def test_terms_that_can_not_work_are_refused(terms: tuple[float, float, float], says: str) -> None:
    with pytest.raises(ValueError) as refusal:
        Terms(*terms)
    assert says in str(refusal.value)


def test_a_duration_is_written_down_in_whole_seconds_and_never_too_short() -> None:
    assert Terms(1.5, 1, 0.2).seconds == 2


@given(
    renewed=st.floats(0, 1000),
    delay=st.floats(0, 5),
    look=st.floats(0, 100),
    skew=st.floats(-1e6, 1e6),
)
def test_nobody_acquires_while_the_holder_may_still_write(
    renewed: float, delay: float, look: float, skew: float
) -> None:
    """The leader sends its renewal at ``renewed``; the server takes it ``delay`` later; another sees it ``look`` after.

    The other's clock differs by any ``skew``: its times only ever meet its own.
    """
    holder = replace(Candidate("other", Terms()), renewed_at=renewed)
    seen_at = renewed + delay + look
    for later in (0.0, 5.0, 10.0, 14.9, 15.0, 30.0):
        moment = seen_at + later
        decision = decide(Seen(lease("other"), seen_at + skew), ME, moment + skew, WALL)
        if isinstance(decision, Acquire):
            assert moment > holder.gives_up_at + Terms().lease_duration - Terms().renew_deadline - 0.001


def test_a_lease_without_a_spec_is_free() -> None:
    assert spec_of({"metadata": {"name": "l"}, "spec": None}) == {}
    assert isinstance(decide(Seen({"metadata": {"name": "l"}}, 0), ME, 0, WALL), Acquire)
