"""An API server that is away costs a line, not one for each watch and attempt."""

from __future__ import annotations

from nodewright.runtime.telemetry.outages import Outages

AWAY = {kind: f"watch of {kind}: Cannot connect" for kind in ("pods", "nodes", "machines")}


def test_a_watch_that_is_back_at_once_is_worth_no_line() -> None:
    outages = Outages()
    assert outages.look(0.0, AWAY) is None
    assert outages.look(1.0, {}) is None


def test_one_line_names_the_cause_and_the_kinds_and_one_tells_the_end() -> None:
    outages = Outages()
    outages.look(0.0, AWAY)
    line = outages.look(3.0, AWAY)
    assert line is not None
    assert (line.why, line.kinds) == ("Cannot connect", "machines, nodes, pods")
    assert outages.look(4.0, AWAY) is None
    end = outages.look(65.0, {})
    assert end is not None
    assert (end.why, end.wrong) == ("after 65 s", False)
    assert outages.look(66.0, {}) is None


def test_an_hour_of_it_is_a_handful_of_lines() -> None:
    outages = Outages()
    lines = [line for second in range(3600) if (line := outages.look(float(second), AWAY))]
    assert 3 <= len(lines) <= 16


def test_a_kind_that_is_refused_is_told_beside_the_others() -> None:
    outages = Outages(first_after=0.0)
    line = outages.look(0.0, {**AWAY, "machineclasses": "list machineclasses: 404 NotFound"})
    assert line is not None
    assert line.why == "Cannot connect (and 1 for another reason)"


def test_many_kinds_stay_one_short_line() -> None:
    line = Outages(first_after=0.0).look(0.0, {f"kind{n}s": "x" for n in range(40)})
    assert line is not None
    assert line.kinds.endswith("and 35 more")
