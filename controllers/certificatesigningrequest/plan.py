"""Observed → Plan for one CertificateSigningRequest: approve it, deny it, or leave it alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from controllers.certificatesigningrequest.observe import (
    APPROVED_REASON,
    DENIED_REASON,
    SIGNERS,
    UID_MARK,
    Observed,
    conditions,
)
from controllers.certificatesigningrequest.rules import Approved, Denied, Left, judge
from controllers.kernel.actions import Delete, Patch
from controllers.kernel.conditions import format_time
from controllers.kernel.plan import NOTHING, Outcome, Plan, Settled, Wait, steps
from controllers.kernel.refs import resource_version_of

UNREAD = 5.0
"""Seconds to wait for a complete view."""
FETCHED = timedelta(minutes=1)
"""A kubelet has fetched its certificate by then; it watches its request. A request that another management cluster
decided, whose Machines nobody knows here, has served its purpose by then, too.
"""


def plan(observed: Observed) -> Plan:
    if not observed.complete:
        return Plan(outcome=Wait(UNREAD, "Machines are not completely read yet"))
    if observed.orphaned_since is not None:
        return _remove(observed, observed.orphaned_since)
    if observed.signer not in SIGNERS or observed.decided:
        return NOTHING
    if isinstance(observed.request, str):
        return Plan(notes=(f"left alone: {observed.request}",))
    verdict = judge(observed, observed.request)
    if isinstance(verdict, Left):
        return Plan(outcome=_wait(observed, verdict), notes=(f"left alone: {verdict.why}",))
    return Plan(steps([_decide(observed, verdict)]))


def _remove(observed: Observed, decided: datetime) -> Plan:
    """kube-controller-manager would do it an hour after the approval, and where it does not run, nobody.

    Those that nobody has decided are left to it: nothing tells whose they were.
    """
    why = f"the Machine of {observed.ref} is gone"
    left = (decided + FETCHED - observed.now).total_seconds()
    if left > 0:
        return Plan(outcome=Wait(left, why))
    return Plan(steps([Delete(observed.ref, why, resource_version=resource_version_of(observed.csr))]))


def _decide(observed: Observed, verdict: Approved | Denied) -> Patch:
    """Guarded: the list of conditions is replaced whole, and somebody else may have decided meanwhile."""
    approved = isinstance(verdict, Approved)
    (host,) = observed.hosts  # else nothing is decided
    written: dict[str, Any] = {
        "type": "Approved" if approved else "Denied",
        "status": "True",
        "reason": APPROVED_REASON if approved else DENIED_REASON,
        "message": f"{verdict.why}{UID_MARK}{host.uid}",
        "lastUpdateTime": format_time(observed.now),
        "lastTransitionTime": format_time(observed.now),
    }
    listed = [*(dict(c) for c in conditions(observed.csr)), written]
    version = resource_version_of(observed.csr)
    return Patch(observed.ref, {"status": {"conditions": listed}}, verdict.why, "approval", version)


def _wait(observed: Observed, left: Left) -> Outcome:
    if left.look_at is None:
        return Settled()
    return Wait(max((left.look_at - observed.now).total_seconds(), 0.1), left.why)
