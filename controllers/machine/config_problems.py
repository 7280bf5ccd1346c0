"""A Machine whose config can't be used: say which field, leave a host that runs alone, make none."""

from __future__ import annotations

from api.conditions import Reason
from controllers.kernel.conditions import in_words
from controllers.kernel.plan import Blocked, Failed, Outcome
from controllers.kernel.view import HostAbsent, HostPresent
from controllers.machine.decision import Cause, Decision, infrastructure, up_to_date
from controllers.machine.host import lost
from controllers.machine.observe import Observed
from controllers.machine.phases import Stage
from controllers.machine.update import is_old_host, remove_old_host


def decide(observed: Observed) -> Decision:
    """Terminal only while no host runs: one bad edit of a class must not make a thousand running Machines failed."""
    reason, text = _reason(observed), describe(observed)
    outcome: Outcome = Blocked(text) if observed.desired.waits else Failed(reason, text)
    stale, warning = up_to_date(False, reason, text), Cause(reason, text)
    match observed.reads.host:
        case HostPresent(host) if is_old_host(observed, host):
            return remove_old_host(observed, host)
        case HostPresent():
            return Decision(None, outcome=outcome, up_to_date=stale, warning=warning)
        case HostAbsent() if observed.provider_id and observed.provider_id != observed.replaced_host:
            return lost(observed)
        case _ if observed.provider_id:
            return Decision(None, outcome=outcome, up_to_date=stale, warning=warning)
    condition = infrastructure(False, reason, text)
    if observed.desired.waits:
        return Decision(Stage.WAITING, (), outcome, condition, stale, warning=warning)
    failure = Cause(Reason.INVALID_CONFIGURATION, text)
    return Decision(Stage.REFUSED, (), outcome, condition, stale, failure=failure, warning=warning)


def describe(observed: Observed) -> str:
    """Every problem with its field below spec, and what to do."""
    return in_words(observed.problems, "spec.")


def _reason(observed: Observed) -> str:
    if observed.desired.reason:
        return str(observed.desired.reason)
    paths = {problem.path.rsplit(".", 1)[-1] for problem in observed.problems}
    unknown = any("no installed provider" in problem.message for problem in observed.problems)
    return str(Reason.PROVIDER_UNKNOWN if unknown and paths & {"apiVersion", "kind"} else Reason.INVALID_CONFIGURATION)
