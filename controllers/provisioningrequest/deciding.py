"""What becomes of one request now, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from api.conditions import ProvisioningCondition, Reason
from api.durations import format_duration
from controllers.autoscaler.health import unhealthy
from controllers.autoscaler.record import Record, fits
from controllers.autoscaler.requests import Request
from controllers.autoscaler.reservations import Reservation
from controllers.kernel.conditions import Condition, format_time
from controllers.provisioningrequest.classes import CheckCapacity, Found, Growth, NotFound
from controllers.provisioningrequest.observe import Observed
from controllers.provisioningrequest.options import NO_RETRY
from controllers.provisioningrequest.rollback import made_for, still_here
from controllers.provisioningrequest.stages import Stage, deadline_of, problem_of, stage_of
from controllers.provisioningrequest.trial_snapshot import TrialSnapshot

_ACCEPTED, _PROVISIONED, _AVAILABLE, _FAILED, _EXPIRED, _REVOKED = ProvisioningCondition.__members__.values()
MOST_TRIED = 100
"""Requests that are tried in one look: each costs some milliseconds, in which the process does nothing else."""
NEXT_REQUEUE = "it is its turn in the next look"
_TRUE: Literal["True"] = "True"
_FALSE: Literal["False"] = "False"


@dataclass(frozen=True, slots=True)
class Decided:
    """``conditions`` are to be said, ``record`` to be kept (None: as it is), ``added`` Nodes to be asked for.

    ``delete``: why the request itself goes. ``note``: why nothing is done.
    """

    request: Request
    stage: Stage
    conditions: tuple[Condition, ...] = ()
    record: Record | None = None
    added: Mapping[str, int] = field(default_factory=dict)
    delete: str = ""
    note: str = ""


def decide_all(observed: Observed, trial_snapshot: TrialSnapshot) -> tuple[Decided, ...]:
    """In order: those who hold room first, then those who came first. ``trial_snapshot`` knows which bookings end."""
    planner = RequestPlanner(observed, trial_snapshot)
    return tuple(planner.decide(request) for request in observed.requests)


def end_of_booking(request: Request, observed: Observed) -> Condition | None:
    """What ends it now, if anything does."""
    if not request.booked or stage_of(request, observed) is not Stage.BOOKED:
        return None
    if not request.problem and not request.left:
        why = f"all {_wanted(request)} pods have a Node"
        return Condition(_EXPIRED, _TRUE, Reason.CAPACITY_BOOKING_CONSUMED, why)
    lasts = observed.defaults_of(request).limits.booking_time
    since = request.since(_PROVISIONED) or observed.now
    if observed.now - since < lasts:
        return None
    why = f"the room was booked for {format_duration(lasts)}"
    return Condition(_EXPIRED, _TRUE, Reason.CAPACITY_RESERVATION_TIME_EXPIRED, why)


class RequestPlanner:
    def __init__(self, observed: Observed, trial_snapshot: TrialSnapshot) -> None:
        self._observed = observed
        self._trial_snapshot = trial_snapshot
        self._cluster = observed.autoscaler.cluster
        self._frozen = unhealthy(self._cluster)
        self._tries = MOST_TRIED
        self._leaving_machines = {key for request in observed.requests for key in request.record.leaving}
        self._handlers: Mapping[Stage, Callable[[Request], Decided]] = {
            Stage.UNKNOWN_CLASS: self._unknown,
            Stage.LEAVING: self._leaving,
            Stage.OLD: self._old,
            Stage.BOOKED: self._booked,
            Stage.GROWING: self._growing,
            Stage.INVALID: self._invalid,
            Stage.INCOMPLETE: self._incomplete,
            Stage.EXPIRED: self._expired,
            Stage.FRESH: self._fresh,
        }

    def decide(self, request: Request) -> Decided:
        stage = stage_of(request, self._observed)
        handler = self._handlers.get(stage)
        decided = handler(request) if handler is not None else Decided(request, stage)
        return replace(decided, stage=stage)

    # -- the end -------------------------------------------------------------------------------------------------------

    def _unknown(self, request: Request) -> Decided:
        known = ", ".join(sorted(self._observed.classes))
        why = f"spec.provisioningClassName: no class is called {request.class_name}; there are {known}"
        return _decided(request, Condition(_ACCEPTED, _FALSE, Reason.UNKNOWN_PROVISIONING_CLASS, why))

    def _old(self, request: Request) -> Decided:
        age = format_duration(self._observed.options.max_age)
        return Decided(request, Stage.OLD, delete=f"it has been over for {age}")

    def _invalid(self, request: Request) -> Decided:
        why = problem_of(request, self._observed)
        if request.growing:
            return self._roll_back(request, why)
        return self._fail(request, Reason.INVALID_PARAMETERS, why)

    def _incomplete(self, request: Request) -> Decided:
        until = request.created + self._observed.options.template_patience
        if self._observed.now < until:
            text = f"{request.problem}; waited for until {format_time(until)}"
            condition = Condition(_PROVISIONED, _FALSE, Reason.FAILED_TO_CREATE_PODS, text)
            return Decided(
                request=request, stage=Stage.INCOMPLETE, conditions=(_accepted(), condition), note=request.problem
            )
        return self._fail(request, Reason.FAILED_TO_CREATE_PODS, request.problem)

    def _expired(self, request: Request) -> Decided:
        return self._fail(request, Reason.EXPIRED, deadline_of(request, self._observed)[1])

    def _fail(self, request: Request, reason: Reason, why: str) -> Decided:
        failed = Condition(_FAILED, _TRUE, reason, why)
        return _decided(request, _accepted(), failed, record=Record())

    # -- a booking -----------------------------------------------------------------------------------------------------

    def _booked(self, request: Request) -> Decided:
        end = end_of_booking(request, self._observed)
        if end is not None:
            return _over(request, end)
        held = self._trial_snapshot.held[request.ref]
        if not held.short or self._frozen or request.problem:
            return Decided(request, Stage.BOOKED, note="")
        shaken = sorted(self._observed.shaken.intersection(request.record.nodes))
        if shaken:
            return Decided(request, Stage.BOOKED, note=f"Node {shaken[0]} is not Ready and may be again")
        return self._moved(request, held)

    def _moved(self, request: Request, held: Reservation) -> Decided:
        """Booked pods whose room is gone get other room if there is any."""
        there = {node.name for node in self._cluster.workload.nodes}
        gone = [name for name in request.record.nodes if name not in there]
        reservation = self._trial_snapshot.move(request)
        if not reservation.short and reservation.upcoming:
            return Decided(request, Stage.BOOKED, note="there is room for it on Nodes that are on their way")
        if not reservation.short:
            kept = [name for name in request.record.nodes if name in there]
            nodes = tuple(sorted({*reservation.nodes, *kept}))
            return Decided(request, Stage.BOOKED, record=replace(request.record, nodes=nodes))
        if not gone and request.left != request.pods:
            return Decided(request, Stage.BOOKED, note="its own pods have taken the room in another way than foreseen")
        what = f"Nodes are gone: {', '.join(gone[:5])}" if gone else "others took room on its Nodes"
        why = f"{_count(reservation)} of {_wanted(request)} pods have no room any more; {what}"
        return _over(request, Condition(_REVOKED, _TRUE, Reason.CAPACITY_IS_GONE, why))

    # -- Nodes on their way --------------------------------------------------------------------------------------------

    def _growing(self, request: Request) -> Decided:
        unresolved = self._frozen or self._unresolved(request)
        if unresolved:
            return Decided(request, Stage.GROWING, note=unresolved)
        deadline, why = deadline_of(request, self._observed)
        if request.problem or self._observed.now >= deadline:
            return self._roll_back(request, request.problem or why)
        held = self._trial_snapshot.held[request.ref]
        if held.short:
            return self._grow_more(request, held)
        if held.upcoming:
            return self._on_its_way(request, held, request.record, {})
        return self._provisioned(request, held)

    def _unresolved(self, request: Request) -> str:
        """Why nobody can say now what is on its way for it; "" if that is known."""
        states = {state.id: state for state in self._cluster.groups}
        there = {f"{ref.kind.name}/{ref.key}" for ref in self._observed.autoscaler.records.refs.values()}
        for name in request.record.groups:
            if name not in states and name in there:
                return f"{name} is left alone for now"
            if name in states and states[name].template is None:
                return f"nobody knows what Nodes of {name} are like: {states[name].problem}"
        return ""

    def _grow_more(self, request: Request, held: Reservation) -> Decided:
        """A part of what was asked for will not come: from elsewhere, or not at all."""
        verdict = self._trial_snapshot.more(request, self._observed.parameters_of(request))
        if not isinstance(verdict, Growth):
            why = verdict.why if isinstance(verdict, NotFound) else "the room is gone"
            return self._roll_back(request, f"{_progress(held)}; {why}")
        groups = dict(request.record.groups)
        for name in {*groups, *verdict.added}:
            holds = verdict.reservation.upcoming.get(name, 0) + self._young(request, name, verdict.reservation)
            groups[name] = max(groups.get(name, 0), holds)
        return self._on_its_way(request, verdict.reservation, replace(request.record, groups=groups), verdict.added)

    def _young(self, request: Request, group: str, reservation: Reservation) -> int:
        """Nodes of the group that it holds and that joined since it asked for them."""
        since, names = request.record.since, set(reservation.nodes)
        machines = next((state.machines for state in self._cluster.groups if state.id == group), ())
        return sum(1 for m in machines if m.node_name in names and (since is None or m.created >= since))

    def _on_its_way(
        self, request: Request, reservation: Reservation, record: Record, added: Mapping[str, int]
    ) -> Decided:
        condition = Condition(_PROVISIONED, _FALSE, Reason.PROVISIONING_IN_PROGRESS, _progress(reservation))
        return _decided(request, _accepted(), condition, record=record, added=added)

    def _provisioned(self, request: Request, reservation: Reservation) -> Decided:
        made = bool(request.record.groups)
        reason = Reason.CAPACITY_IS_PROVISIONED if made else Reason.CAPACITY_IS_FOUND
        nodes = f"{reservation.size}/{reservation.size} nodes ready" if made else "the cluster has the room"
        until = self._observed.now + self._observed.defaults_of(request).limits.booking_time
        why = f"{nodes}, booked until {format_time(until)}"
        reported = [_accepted(), Condition(_PROVISIONED, _TRUE, reason, why)]
        if isinstance(self._observed.classes.get(request.class_name), CheckCapacity):
            reported.append(Condition(_AVAILABLE, _TRUE, reason, nodes))
        record = Record(reservation.nodes, request.record.groups)
        if not fits(record):
            why = f"{len(reservation.nodes)} Nodes are more than the status of a request can name"
            return self._fail(request, Reason.INVALID_PARAMETERS, why)
        return _decided(request, *reported, record=record)

    # -- rolling back --------------------------------------------------------------------------------------------------

    def _roll_back(self, request: Request, why: str) -> Decided:
        leaving = made_for(request, self._trial_snapshot.held, self._cluster, self._leaving_machines)
        self._leaving_machines.update(leaving)
        record = replace(request.record, leaving=leaving, since=None)
        if not leaving:
            return self._tried_in_vain(request, replace(record, groups={}), why)
        text = f"{why}; {len(leaving)} Machines that were made for it go again"
        condition = Condition(_PROVISIONED, _FALSE, Reason.ROLLING_BACK, text)
        return _decided(request, _accepted(), condition, record=record)

    def _leaving(self, request: Request) -> Decided:
        left = still_here(request.record.leaving, self._observed.autoscaler)
        if left:
            return Decided(request, Stage.LEAVING, note=f"{len(left)} Machines have yet to go")
        if request.over:
            return Decided(request, Stage.LEAVING, record=replace(request.record, leaving=(), groups={}))
        why = next((str(c.get("message")) for c in request.conditions if c.get("type") == _PROVISIONED), "")
        return self._tried_in_vain(request, replace(request.record, leaving=(), groups={}), f"rolled back: {why}")

    # -- the beginning -------------------------------------------------------------------------------------------------

    def _fresh(self, request: Request) -> Decided:
        if self._frozen:
            return Decided(request, Stage.FRESH, note=self._frozen)
        if not self._tries:
            return Decided(request, Stage.FRESH, note=NEXT_REQUEUE)
        self._tries -= 1
        class_ = self._observed.classes[request.class_name]
        verdict = self._trial_snapshot.decide(request, class_, self._observed.parameters_of(request))
        match verdict:
            case Found(reservation):
                return self._provisioned(request, reservation)
            case Growth(reservation, added):
                record = replace(request.record, nodes=(), groups=dict(added), since=self._observed.now)
                return self._on_its_way(request, reservation, record, added)
            case NotFound(why):
                if self._observed.autoscaler.templates.awaiting:
                    return Decided(request, Stage.FRESH, note="providers have yet to say what their hosts are like")
                return self._tried_in_vain(request, request.record, why)

    def _tried_in_vain(self, request: Request, record: Record, why: str) -> Decided:
        parameters = self._observed.parameters_of(request)
        problem = request.problem or problem_of(request, self._observed)
        deadline, late = deadline_of(request, self._observed) if not problem else (self._observed.now, problem)
        if self._observed.now >= deadline:
            reason = Reason.FAILED_TO_CREATE_PODS if request.problem else Reason.EXPIRED
            return self._fail(request, reason, f"{late}: {why}" if why != late else why)
        if parameters.get(NO_RETRY) == "true":
            return self._fail(request, Reason.CAPACITY_IS_NOT_FOUND, why)
        retries = record.retries + 1
        again = self._observed.now + self._observed.defaults_of(request).limits.pause(retries)
        text = f"{why}; tried again at {format_time(again)}"
        reported = [_accepted(), Condition(_PROVISIONED, _FALSE, Reason.CAPACITY_IS_NOT_FOUND, text)]
        if isinstance(self._observed.classes.get(request.class_name), CheckCapacity):
            reported.append(Condition(_AVAILABLE, _FALSE, Reason.CAPACITY_IS_NOT_FOUND, why))
        return _decided(request, *reported, record=replace(record, since=None, retries=retries, retry_after=again))


def _decided(
    request: Request, *conditions: Condition, record: Record | None = None, added: Mapping[str, int] | None = None
) -> Decided:
    return Decided(request=request, stage=Stage.FRESH, conditions=conditions, record=record, added=added or {})


def _over(request: Request, condition: Condition) -> Decided:
    """The booking is given back; the Nodes stay named for people to see."""
    return _decided(request, condition)


def _accepted() -> Condition:
    return Condition(_ACCEPTED, _TRUE, Reason.ACCEPTED, "")


def _progress(reservation: Reservation) -> str:
    return f"{len(reservation.nodes)}/{reservation.size} nodes ready"


def _wanted(request: Request) -> int:
    return sum(count for _, count in request.pods)


def _count(reservation: Reservation) -> int:
    return sum(count for _, count in reservation.short)
