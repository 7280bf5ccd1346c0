"""Whether a host can be brought to another request as it stands, and what its answer means. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from providers.base.contract import HostRequest, InProgress, NeedsReplacement, UpdateAnswer, Updated
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh.claims import Claim
from providers.ssh.looks import failure_of, gave_up

CHANGED_IN_PLACE = "versions, kubelet configuration, files, users, time servers, proxies, kernel settings and sources"
_POLL = 3.0
"""Seconds between two looks at a host that is being changed."""


def refusal(request: HostRequest, claim: Claim) -> str:
    """Why another host has to take over; "" if this one can be changed."""
    if not (_equal(request.fixed_hash, claim.fixed_hash) or _equal(request.kept_hash, claim.kept_hash)):
        return f"more is different than {CHANGED_IN_PLACE}, and these alone are changed on a host"
    if request.upgrade.script and (leaves_pods(request, claim) or not request.upgrade.why_not):
        return ""
    return request.upgrade.why_not


def leaves_pods(request: HostRequest, claim: Claim) -> bool:
    """Whether no program is changed: pods run on while a kubelet is restarted."""
    return _equal(request.pods_hash, claim.pods_hash)


def _equal(wanted: str, had: str) -> bool:
    return bool(wanted) and wanted == had


def answer_of(answers: Mapping[str, str]) -> UpdateAnswer:
    """From the words of ``remote.change``. Raises ProviderError (Conflict) if the host was given back meanwhile."""
    if "gone" in answers:
        raise ProviderError(ErrorClass.CONFLICT, "the host was given back meanwhile")
    if "changed" in answers:
        return Updated()
    if "joining" in answers:
        return NeedsReplacement("the host has not joined its cluster")
    if "busy" in answers:
        return InProgress(_POLL, "the steps for an earlier version of its Machine have to end first")
    if "gave-up" in answers:
        return InProgress(_POLL, gave_up(answers) or "the host went back", failed=True)
    failure = failure_of(answers, least=1)
    progress = " ".join(answers.get("progress", "").split())[:200]
    return InProgress(_POLL, failure or (f"step {progress}" if progress else ""))
